#include "engine/base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace octavo {
namespace {

// The value that the bits mean, from the definition.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const double mantissa = bits & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Nearest of all finite halves, ties to the even one; infinity from 65520 on.
std::uint16_t nearest_half(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);
  std::uint16_t low = 0, high = 0x7bff;  // magnitudes ascend with the bits
  while (low < high) {
    const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
    if (half_value(middle) <= magnitude) {
      low = middle;
    } else {
      high = static_cast<std::uint16_t>(middle - 1);
    }
  }
  if (low == 0x7bff) return static_cast<std::uint16_t>(sign | low);
  const double below = magnitude - half_value(low),
               above = half_value(static_cast<std::uint16_t>(low + 1)) - magnitude;
  const bool up = above < below || (above == below && (low & 1) != 0);
  return static_cast<std::uint16_t>(sign | (up ? low + 1 : low));
}

TEST(Half, EveryHalfMeansWhatItsBitsSay) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if ((bits & 0x7c00) == 0x7c00) {
      EXPECT_EQ(std::isnan(value), (bits & 0x3ff) != 0);
      EXPECT_EQ(std::isinf(value), (bits & 0x3ff) == 0);
    } else {
      ASSERT_EQ(static_cast<double>(value), half_value(half)) << bits;
      ASSERT_EQ(float_to_half(value), half);
    }
  }
}

TEST(Half, FloatsRoundToTheNearestTiesToEven) {
  std::mt19937 random(11);
  const auto draw = [&] { return static_cast<std::uint32_t>(random()); };
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t exponent = 96 + draw() % 50;  // around the range of halves
    const std::uint32_t mantissa =
        i % 3 == 0 ? (draw() & 0x7ff000u) : (draw() & 0x7fffffu);  // many exact ties
    const float value = std::bit_cast<float>((draw() & 0x80000000u) | exponent << 23 | mantissa);
    ASSERT_EQ(float_to_half(value), nearest_half(value)) << value;
  }
  EXPECT_EQ(float_to_half(65519.99f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(std::nanf("")))));
}

TEST(Bfloat16, RoundsToTheNearestTiesToEven) {
  std::mt19937 random(12);
  const auto draw = [&] { return static_cast<std::uint32_t>(random()); };
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t bits = draw();
    if (i % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;  // ties
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value) || (bits & 0x7fffffffu) >= 0x7f7f8000u) continue;
    const std::uint32_t below = bits & 0xffff0000u, above = below + 0x10000u;
    const std::uint32_t rest = bits & 0xffffu;
    const bool up = rest > 0x8000u || (rest == 0x8000u && (below & 0x10000u) != 0);
    ASSERT_EQ(float_to_bfloat16(value), (up ? above : below) >> 16) << value;
  }
  EXPECT_EQ(bfloat16_to_float(0x3f80), 1.0f);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace octavo
