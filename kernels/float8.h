// The 8-bit floats of Micikevicius et al. 2022 (arXiv:2209.05433; OCP OFP8), as bytes:
//   e4m3  sign, 4 bits of exponent (bias 7), 3 of mantissa; up to 448; 0x7f is NaN, and there is no infinity
//   e5m2  sign, 5 bits of exponent (bias 15), 2 of mantissa; up to 57,344; infinity and NaN as in IEEE 754
// Conversions to them round to nearest even and saturate: what lies beyond the largest number, infinity
// included, becomes it. A NaN stays one. Plain C++, exact on every machine: kernels have vector versions,
// which must agree bit for bit.
#pragma once

#include <bit>
#include <cstdint>

namespace octavo::kernels {

template <int kMantissaBits, std::uint8_t kLargest>
struct Float8 {
  static constexpr int kExponentBits = 7 - kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kMantissaBits;  // of the mantissa in a float
  static constexpr std::uint8_t kNan = 0x7f;

  static constexpr std::uint8_t from_float(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint8_t>(bits >> 24 & 0x80u);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | kNan;
    if (magnitude < (128u - kBias) << 23) {
      // A subnormal result: added to a float whose last place is worth the smallest one, it is rounded there.
      constexpr std::uint32_t kMagic = (127u + kShift + 1 - kBias) << 23;
      const float rounded = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kMagic);
      return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - kMagic));
    }
    const std::uint32_t round = (1u << (kShift - 1)) - 1 + (magnitude >> kShift & 1u);
    const std::uint32_t code = (magnitude - ((127u - kBias) << 23) + round) >> kShift;
    return static_cast<std::uint8_t>(sign | (code < kLargest ? code : kLargest));
  }

  static constexpr float to_float(std::uint8_t code) {
    const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude > kLargest) {  // e5m2's first one is infinity
      const bool is_infinity = magnitude == kLargest + 1 && magnitude != kNan;
      return std::bit_cast<float>(sign | (is_infinity ? 0x7f800000u : 0x7fc00000u));
    }
    if (magnitude >> kMantissaBits == 0) {
      constexpr float kSmallest = std::bit_cast<float>((128u - kBias - kMantissaBits) << 23);
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * kSmallest) |
                                  sign);
    }
    return std::bit_cast<float>(sign | ((magnitude << kShift) + ((127u - kBias) << 23)));
  }
};

using Fp8E4m3 = Float8<3, 0x7e>;
using Fp8E5m2 = Float8<2, 0x7b>;

}  // namespace octavo::kernels
