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
    const std::int64_t lines = lines_for(num_floats);
    if (lines > num_lines_) {
      lines_.reset();
      lines_ = std::make_unique_for_overwrite<Line[]>(static_cast<std::size_t>(lines));
      num_lines_ = lines;
    }
    return lines_ ? lines_[0].values : nullptr;
  }

  // What stands reserved, and what would for so many floats.
  std::int64_t bytes() const { return num_lines_ * static_cast<std::int64_t>(sizeof(Line)); }
  static std::int64_t bytes_for(std::int64_t num_floats) {
    return lines_for(num_floats) * static_cast<std::int64_t>(sizeof(Line));
  }

 private:
  static constexpr std::int64_t kLineFloats = 16;
  static constexpr std::int64_t lines_for(std::int64_t num_floats) {
    return (num_floats + kLineFloats - 1) / kLineFloats;
  }
  struct alignas(64) Line {
    float values[kLineFloats];
  };

  std::unique_ptr<Line[]> lines_;
  std::int64_t num_lines_ = 0;
};

}  // namespace octavo::kernels::cpu
