// Working memory of the operations: floats aligned to 64 bytes that grow to the largest use and stay.
#pragma once

#include <cstdint>
#include <memory>

namespace octavo::kernels::cpu {

class Scratch {
 public:
  // At least `num_floats` floats, contents undefined; what an earlier call returned is gone if this one is
  // larger.
  float* reserve(std::int64_t num_floats) {
    const std::int64_t lines = (num_floats + kLineFloats - 1) / kLineFloats;
    if (lines > num_lines_) {
      lines_.reset();
      lines_ = std::make_unique_for_overwrite<Line[]>(static_cast<std::size_t>(lines));
      num_lines_ = lines;
    }
    return lines_ ? lines_[0].values : nullptr;
  }

 private:
  static constexpr std::int64_t kLineFloats = 16;
  struct alignas(64) Line {
    float values[kLineFloats];
  };

  std::unique_ptr<Line[]> lines_;
  std::int64_t num_lines_ = 0;
};

}  // namespace octavo::kernels::cpu
