// Numbers of a group to small integers and one scale: of activations, and of keys and values (which try
// larger scales, too).
//   scale = max |a| / most, zero if that is below the smallest normal float, NaN if a number is infinite or
//   NaN; integer = a / scale to the nearest, ties to even; zero where scale is zero or NaN
// `most` is the largest integer that a number becomes, 127 or kLargestInt16. Plain loops, which compilers
// turn into vectors: the same bits on every instruction set.
#pragma once

#include "kernels/cpu/simd.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// 127 * 256 + 127: such an integer is also a pair of signed bytes, 256 * high + low.
constexpr float kLargestInt16 = 32639.0f;

OCTAVO_INLINE std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }

// Compared as integers, so that a NaN is larger than every number.
OCTAVO_INLINE float largest_magnitude(const float* values, int size) {
  std::int32_t largest = 0;
  for (int i = 0; i < size; ++i) {
    const auto magnitude = static_cast<std::int32_t>(bits_of(values[i]) & 0x7fffffffu);
    largest = largest > magnitude ? largest : magnitude;
  }
  return __builtin_bit_cast(float, largest);
}

OCTAVO_INLINE float rounding_scale(const float* values, int size, float most) {
  constexpr std::uint32_t kInfinityBits = 0x7f800000u, kSmallestNormalBits = 0x00800000u;
  const float largest = largest_magnitude(values, size);
  if (bits_of(largest) >= kInfinityBits) return __builtin_nanf("");
  const float scale = largest / most;
  return bits_of(scale) < kSmallestNormalBits ? 0.0f : scale;
}

OCTAVO_INLINE float int8_scale(const float* values, int size) { return rounding_scale(values, size, 127.0f); }
OCTAVO_INLINE float int16_scale(const float* values, int size) {
  return rounding_scale(values, size, kLargestInt16);
}

// Adding 1.5 * 2^23 rounds to even and leaves the integer in the low bits.
OCTAVO_INLINE void round_to_int8(const float* values, int size, float scale, std::int8_t* rounded) {
  constexpr float kMagic = 0x1.8p23f;
  const bool is_zero = !(scale > 0.0f);
  for (int i = 0; i < size; ++i) {
    const std::uint32_t bits = bits_of(values[i] / scale + kMagic);
    rounded[i] = static_cast<std::int8_t>(is_zero ? 0 : static_cast<std::int32_t>(bits - bits_of(kMagic)));
  }
}

// The same, as floats. REQUIRES: |a| < 2^22
OCTAVO_INLINE F32x16 nearest_integers(F32x16 a) {
  const F32x16 magic = set1(0x1.8p23f);
  return sub(add(a, magic), magic);
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
