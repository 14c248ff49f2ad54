// bfloat16 as kernels/cuda uses it: storage and conversions, rounding to nearest even. Arithmetic is done in
// float.
#pragma once

#include <cstdint>

#include "engine/base/half.h"

struct alignas(2) __nv_bfloat16_raw {
  std::uint16_t x;
};
struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits(raw.x) {}
  operator __nv_bfloat16_raw() const { return {bits}; }
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 value) { return octavo::bfloat16_to_float(value.bits); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  return __nv_bfloat16_raw{octavo::float_to_bfloat16(value)};
}
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }
inline __nv_bfloat16 __ushort_as_bfloat16(std::uint16_t bits) { return __nv_bfloat16_raw{bits}; }
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) {
  return {__float2bfloat16_rn(low), __float2bfloat16_rn(high)};
}
inline float __low2float(__nv_bfloat162 pair) { return __bfloat162float(pair.x); }
inline float __high2float(__nv_bfloat162 pair) { return __bfloat162float(pair.y); }
