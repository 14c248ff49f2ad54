#include "kernels/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace octavo::kernels {
namespace {

// The formats as their paper's table 1 has them: bits of the mantissa, bias, largest number.
struct Format {
  int mantissa_bits, bias;
  double largest;
  std::uint8_t (*from_float)(float);
  float (*to_float)(std::uint8_t);
};
constexpr Format kFormats[] = {{3, 7, 448.0, Fp8E4m3::from_float, Fp8E4m3::to_float},
                               {2, 15, 57344.0, Fp8E5m2::from_float, Fp8E5m2::to_float}};

// The value of a code, from the definition; numbers that no finite one has are above `largest`.
double value_of(const Format& format, int code) {
  const int magnitude = code & 0x7f, exponent = magnitude >> format.mantissa_bits;
  const double fraction = std::ldexp(magnitude & ((1 << format.mantissa_bits) - 1), -format.mantissa_bits);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - format.bias)
                                     : std::ldexp(1.0 + fraction, exponent - format.bias);
  return (code & 0x80) != 0 ? -value : value;
}

// By looking at all: the nearest, among two equally near the even one.
int nearest(const Format& format, double value) {
  int best = 0;
  for (int code = 1; value_of(format, code) <= format.largest && code < 0x80; ++code) {
    const double distance = std::fabs(value_of(format, code) - std::fabs(value));
    const double least = std::fabs(value_of(format, best) - std::fabs(value));
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return std::signbit(value) ? best | 0x80 : best;
}

TEST(Float8, EveryCodeMeansWhatItsBitsSayAndComesBack) {
  for (const Format& format : kFormats) {
    int num_finite = 0;
    for (int code = 0; code < 0x100; ++code) {
      const float value = format.to_float(static_cast<std::uint8_t>(code));
      if (std::fabs(value_of(format, code)) > format.largest) {
        const bool is_infinity = format.mantissa_bits == 2 && (code & 0x7f) == 0x7c;
        EXPECT_EQ(std::isinf(value), is_infinity) << code;
        EXPECT_EQ(std::isnan(value), !is_infinity) << code;
        continue;
      }
      ++num_finite;
      ASSERT_EQ(static_cast<double>(value), value_of(format, code)) << code;
      ASSERT_EQ(std::signbit(value), (code & 0x80) != 0);
      ASSERT_EQ(format.from_float(value), code);
    }
    EXPECT_EQ(num_finite, format.mantissa_bits == 3 ? 254 : 248);
  }
}

TEST(Float8, FloatsRoundToTheNearestTiesToEvenAndSaturate) {
  std::mt19937_64 random(5);
  for (const Format& format : kFormats) {
    std::vector<float> values;
    for (int code = 0; code < 0x7f; ++code) {
      const auto low = static_cast<float>(value_of(format, code)),
                 high = static_cast<float>(value_of(format, code + 1));
      const float middle = (low + high) / 2;
      for (const float value : {low, middle, std::nextafter(middle, low), std::nextafter(middle, high),
                                std::nextafter(high, low)}) {
        values.push_back(value);
        values.push_back(-value);
      }
    }
    for (int i = 0; i < 20000; ++i) {
      const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
      values.push_back(sign * std::ldexp(1.0f + static_cast<float>(random() % 1000) / 1000.0f,
                                         static_cast<int>(random() % 60) - 35));
    }
    for (const float value : values) ASSERT_EQ(format.from_float(value), nearest(format, value)) << value;
    for (const float beyond :
         {1e6f, 1e30f, std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(format.to_float(format.from_float(beyond)), static_cast<float>(format.largest));
      EXPECT_EQ(format.to_float(format.from_float(-beyond)), -static_cast<float>(format.largest));
    }
    EXPECT_TRUE(std::isnan(format.to_float(format.from_float(std::nanf("")))));
    EXPECT_EQ(format.from_float(std::numeric_limits<float>::denorm_min()), 0);
  }
}

}  // namespace
}  // namespace octavo::kernels
