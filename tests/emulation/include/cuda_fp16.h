// float16 as kernels/cuda uses it: storage and conversions, rounding to nearest even. Arithmetic is done in
// float.
#pragma once

#include <cstdint>

#include "engine/base/half.h"

struct alignas(2) __half_raw {
  std::uint16_t x;
};
struct alignas(2) __half {
  std::uint16_t bits;
  __half() = default;
  __half(const __half_raw& raw) : bits(raw.x) {}
  operator __half_raw() const { return {bits}; }
};
struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;

inline float __half2float(__half value) { return octavo::half_to_float(value.bits); }
inline __half __float2half_rn(float value) { return __half_raw{octavo::float_to_half(value)}; }
inline __half __float2half(float value) { return __float2half_rn(value); }
inline __half __ushort_as_half(std::uint16_t bits) { return __half_raw{bits}; }
inline std::uint16_t __half_as_ushort(__half value) { return value.bits; }
inline __half2 __floats2half2_rn(float low, float high) {
  return {__float2half_rn(low), __float2half_rn(high)};
}
inline __half2 __halves2half2(__half low, __half high) { return {low, high}; }
inline float __low2float(__half2 pair) { return __half2float(pair.x); }
inline float __high2float(__half2 pair) { return __half2float(pair.y); }
