// Random numbers in device memory: a pattern that the host draws from a fixed seed, sent once and then
// written over and over by the device itself. Never zeros: a tensor core is quicker with them.
//
// Ownership: RandomMemory owns its patterns; what it fills is the caller's. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/base/result.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/kv_layout.h"
#include "kernels/tensor.h"

namespace octavo::bench {

// What the bytes are to mean, so that all numbers are finite and of moderate size.
enum class Numbers : std::uint8_t {
  kBytes,
  kF32,
  kF16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kScales
};  // kScales: f16 > 0

class RandomMemory {
 public:
  // `stream` outlives it. `pattern_bytes`: a power of two.
  RandomMemory(kernels::cuda::Stream& stream, std::int64_t pattern_bytes)
      : stream_(stream), pattern_bytes_(pattern_bytes) {}

  // In the order of the stream. REQUIRES: `bytes` is a multiple of 4.
  Result<void> fill(Numbers numbers, std::byte* target, std::int64_t bytes);
  Result<kernels::cuda::DeviceMemory> allocate(Numbers numbers, std::int64_t bytes);
  // Weights as kernels/cuda keeps them. REQUIRES: whole blocks of the type in a row.
  Result<std::unique_ptr<kernels::cuda::DeviceMatrix>> matrix(kernels::TensorType type, std::int64_t rows,
                                                              std::int64_t columns);
  // Keys and values in every slot of a pool.
  Result<void> fill_pool(const kernels::KvLayout& layout, std::byte* pool, std::int64_t num_blocks);

 private:
  static constexpr int kKinds = 7;

  kernels::cuda::Stream& stream_;
  const std::int64_t pattern_bytes_;
  std::optional<kernels::cuda::DeviceMemory> patterns_[kKinds];
  std::int64_t offset_ = 0;  // where the next filling begins in the pattern
};

}  // namespace octavo::bench
