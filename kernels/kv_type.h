// In what form a key or a value is stored.
#pragma once

#include <cstdint>

namespace octavo::kernels {

// How one key or value of head_dim numbers is stored. Rounding is to nearest, ties to even.
//   kInt8      integers a / scale; of the scales (1 + c / 128) * max |a| / 127, c = 0 .. 7, the one of the
//              least sum of squared errors, the smallest among equals. Scale and integers are zero when max
//              |a| / 127 is below the smallest normal float; a key or value that holds an infinity or a NaN
//              has the scale NaN. (Always taking c = 0 makes the mean error of prompt log-probabilities
//              0.057 instead of 0.047: SmolLM2-135M-Instruct.)
//   kFp8E4m3, kFp8E5m2   kernels/float8.h: no scale, saturating
enum class KvType : std::uint8_t { kF32, kF16, kBf16, kInt8, kFp8E4m3, kFp8E5m2 };

constexpr std::int64_t kv_element_bytes(KvType type) {
  if (type == KvType::kF32) return 4;
  return type == KvType::kF16 || type == KvType::kBf16 ? 2 : 1;
}

// Of a token's key or value, or both where they are the same numbers: one float, of int8 only.
inline constexpr std::int64_t kKvScaleBytes = 4;
constexpr bool has_kv_scales(KvType type) { return type == KvType::kInt8; }

}  // namespace octavo::kernels
