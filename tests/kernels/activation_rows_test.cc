#include "kernels/cpu/activation_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace octavo::kernels::cpu {
namespace {

constexpr std::uint32_t kSeed = 11;

Int8Line rounded(InstructionSet isa, const std::vector<float>& values) {
  ActivationRows rows(isa);
  rows.reserve(1, 32, ActivationForm::kInt8);
  rows.set_row(0, values.data());
  return rows.int8_lines()[0];
}

Int16Line rounded_to_int16(InstructionSet isa, const std::vector<float>& values) {
  ActivationRows rows(isa);
  rows.reserve(1, 32, ActivationForm::kInt16);
  rows.set_row(0, values.data());
  return rows.int16_lines()[0];
}

// The values in the order of the columns.
std::vector<std::int32_t> columns_of(const Int16Line& line) {
  constexpr std::size_t kPlace[] = {0, 2, 1, 3};
  std::vector<std::int32_t> values(32);
  for (std::size_t i = 0; i < 32; ++i) values[i] = line.values[i / 4 * 4 + kPlace[i % 4]];
  return values;
}

std::vector<float> random_group(std::mt19937& random) {
  std::normal_distribution<float> normal;
  const float size = std::exp(20.0f * normal(random));
  std::vector<float> values(32);
  for (float& value : values) value = normal(random) * size;
  return values;
}

TEST(ActivationRows, RoundsToTheNearestMultipleOfTheScaleTiesToEven) {
  std::vector<float> values(32, 0.0f);
  const float some[] = {127.0f, -127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0.49f, 126.5f, -126.51f};
  std::copy(std::begin(some), std::end(some), values.begin());
  const std::int8_t expected[] = {127, -127, 0, 2, 2, 0, -2, -2, 0, 126, -127};
  for (const InstructionSet isa : usable_instruction_sets()) {
    const Int8Line line = rounded(isa, values);
    EXPECT_EQ(line.scale, 1.0f);
    for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(line.values[i], expected[i]) << values[i];
  }
}

TEST(ActivationRows, EveryNumberIsWithinHalfAScale) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  for (int pass = 0; pass < 200; ++pass) {
    std::vector<float> values(32);
    for (float& value : values) value = normal(random) * std::exp(20.0f * normal(random));
    const Int8Line line = rounded(usable_instruction_sets().front(), values);
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_LE(std::fabs(static_cast<double>(values[i]) - static_cast<double>(line.scale) * line.values[i]),
                0.50001 * static_cast<double>(line.scale));
    }
    const int first = std::accumulate(line.values, line.values + 16, 0),
              all = std::accumulate(line.values, line.values + 32, 0);
    EXPECT_EQ(line.negative_sum, -all);
    EXPECT_EQ(line.negative_half_sums[0], -first);
    EXPECT_EQ(line.negative_half_sums[1], first - all);
    EXPECT_EQ(line.scaled_sum, line.scale * static_cast<float>(all));
    EXPECT_EQ(line.scaled_half_sums[0], line.scale * static_cast<float>(first));
    EXPECT_EQ(line.scaled_half_sums[1], line.scale * static_cast<float>(all - first));
  }
}

TEST(ActivationRows, EveryInstructionSetGivesTheSameLines) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  constexpr std::int64_t kRows = 5, kColumns = 96;
  std::vector<float> values(kRows * kColumns);
  for (int pass = 0; pass < 100; ++pass) {
    for (float& value : values) value = normal(random) * std::exp(40.0f * normal(random));
    std::vector<std::vector<Int8Line>> lines;
    for (const InstructionSet isa : usable_instruction_sets()) {
      ActivationRows rows(isa);
      rows.reserve(kRows, kColumns, ActivationForm::kInt8);
      for (std::int64_t r = 0; r < kRows; ++r) rows.set_row(r, values.data() + r * kColumns);
      std::vector<Int8Line> copied;
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t g = 0; g < kColumns / 32; ++g)
          copied.push_back(rows.int8_lines()[g * rows.row_stride() + r]);
      }
      lines.push_back(copied);
    }
    for (const auto& others : lines) {
      ASSERT_EQ(std::memcmp(others.data(), lines[0].data(), others.size() * sizeof(Int8Line)), 0)
          << "pass " << pass;
    }
  }
}

TEST(ActivationRows, GroupsWithoutAUsableScaleAreZeroOrNaN) {
  for (const InstructionSet isa : usable_instruction_sets()) {
    const float tiny = std::numeric_limits<float>::min();
    for (const float value : {0.0f, -0.0f, tiny, -100.0f * tiny, std::numeric_limits<float>::denorm_min()}) {
      const Int8Line line = rounded(isa, std::vector<float>(32, value));
      EXPECT_EQ(line.scale, 0.0f) << value;
      EXPECT_EQ(line.values[0], 0) << value;
      EXPECT_EQ(line.scaled_sum, 0.0f) << value;
    }
    EXPECT_EQ(rounded(isa, std::vector<float>(32, 200.0f * tiny)).values[31], 127);
    EXPECT_EQ(rounded(isa, std::vector<float>(32, std::numeric_limits<float>::max())).values[31], 127);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(32, 1.0f);
      values[17] = bad;
      const Int8Line line = rounded(isa, values);
      EXPECT_TRUE(std::isnan(line.scale));
      EXPECT_TRUE(std::isnan(line.scaled_sum));
      EXPECT_EQ(line.values[0], 0);
    }
  }
}

TEST(ActivationRows, SixteenBitsRoundToTheNearestMultipleOfTheScaleTiesToEven) {
  std::vector<float> values(32, 0.0f);
  const float some[] = {32639.0f, -32639.0f, 0.5f,   1.5f,    2.5f,   -0.5f,    -1.5f,
                        -2.5f,    0.49f,     127.5f, -128.5f, 255.5f, 32638.5f, -32638.51f};
  std::copy(std::begin(some), std::end(some), values.begin());
  const std::int32_t expected[] = {32639, -32639, 0, 2, 2, 0, -2, -2, 0, 128, -128, 256, 32638, -32639};
  for (const InstructionSet isa : usable_instruction_sets()) {
    const Int16Line line = rounded_to_int16(isa, values);
    EXPECT_EQ(line.scale, 1.0f);
    const std::vector<std::int32_t> got = columns_of(line);
    for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(got[i], expected[i]) << values[i];
  }
}

TEST(ActivationRows, EverySixteenBitNumberIsWithinHalfAScaleAndTwoSignedBytes) {
  std::mt19937 random(kSeed);
  for (int pass = 0; pass < 500; ++pass) {
    const std::vector<float> values = random_group(random);
    const Int16Line line = rounded_to_int16(usable_instruction_sets().front(), values);
    const std::vector<std::int32_t> rounded = columns_of(line);
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_LE(std::fabs(static_cast<double>(values[i]) - static_cast<double>(line.scale) * rounded[i]),
                // The quotient that is rounded has 24 bits, of which 15 stand before the point.
                (0.5 + 0x1p-8) * static_cast<double>(line.scale))
          << "pass " << pass;
      EXPECT_LE(std::abs(rounded[i]), 127 * 256 + 127) << "pass " << pass;
    }
    const int first = std::accumulate(rounded.begin(), rounded.begin() + 16, 0),
              all = std::accumulate(rounded.begin(), rounded.end(), 0);
    EXPECT_EQ(line.scaled_sum, line.scale * static_cast<float>(all));
    EXPECT_EQ(line.scaled_half_sums[0], line.scale * static_cast<float>(first));
    EXPECT_EQ(line.scaled_half_sums[1], line.scale * static_cast<float>(all - first));
  }
}

TEST(ActivationRows, EveryInstructionSetGivesTheSameSixteenBitLines) {
  std::mt19937 random(kSeed);
  for (int pass = 0; pass < 300; ++pass) {
    const std::vector<float> values = random_group(random);
    const Int16Line expected = rounded_to_int16(InstructionSet::kPortable, values);
    for (const InstructionSet isa : usable_instruction_sets()) {
      const Int16Line line = rounded_to_int16(isa, values);
      ASSERT_EQ(std::memcmp(&line, &expected, sizeof line), 0)
          << instruction_set_name(isa) << ", pass " << pass;
    }
  }
}

TEST(ActivationRows, SixteenBitGroupsWithoutAUsableScaleAreZeroOrNaN) {
  const float tiny = std::numeric_limits<float>::min();
  for (const InstructionSet isa : usable_instruction_sets()) {
    for (const float value :
         {0.0f, -0.0f, tiny, -32000.0f * tiny, std::numeric_limits<float>::denorm_min()}) {
      const Int16Line line = rounded_to_int16(isa, std::vector<float>(32, value));
      EXPECT_EQ(line.scale, 0.0f) << value;
      EXPECT_EQ(line.values[0], 0) << value;
      EXPECT_EQ(line.scaled_sum, 0.0f) << value;
    }
    EXPECT_EQ(rounded_to_int16(isa, std::vector<float>(32, 40000.0f * tiny)).values[31], 32639);
    const float largest = std::numeric_limits<float>::max();
    EXPECT_EQ(rounded_to_int16(isa, std::vector<float>(32, -largest)).values[31], -32639);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> values(32, 1.0f);
      values[17] = bad;
      const Int16Line line = rounded_to_int16(isa, values);
      EXPECT_TRUE(std::isnan(line.scale));
      EXPECT_TRUE(std::isnan(line.scaled_sum));
      EXPECT_EQ(line.values[0], 0);
    }
  }
}

TEST(ActivationRows, KeepsEveryFormAndPadsTheLastFloatLine) {
  ActivationRows rows(usable_instruction_sets().front());
  std::vector<float> values(64);
  std::iota(values.begin(), values.end(), 1.0f);
  rows.reserve(2, 64, ActivationForm::kFloat | ActivationForm::kInt8 | ActivationForm::kInt16);
  rows.set_row(1, values.data());
  EXPECT_EQ(rows.float_lines()[3 * rows.row_stride() + 1].values[15], 64.0f);
  EXPECT_EQ(rows.int8_lines()[rows.row_stride() + 1].values[31], 127);
  EXPECT_EQ(rows.int16_lines()[rows.row_stride() + 1].values[31], 32639);

  rows.reserve(1, 17, ActivationForm::kFloat);
  rows.set_row(0, values.data());
  const FloatLine& last = rows.float_lines()[rows.row_stride()];
  EXPECT_EQ(last.values[0], 17.0f);
  for (int i = 1; i < 16; ++i) EXPECT_EQ(last.values[i], 0.0f);
}

}  // namespace
}  // namespace octavo::kernels::cpu
