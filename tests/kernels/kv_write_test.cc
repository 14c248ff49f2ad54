// Keys and values as they are stored: every number of every type on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/half.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/reference/reference_backend.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

class KvWrite : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, KvWrite, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Every number of a type, the floats between them, and what lies beyond.
std::vector<float> numbers_to_round() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0.0f,      -0.0f,      1e-45f,
                                -1e-38f,   3e38f,      -3e38f,
                                kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float exact = half_to_float(static_cast<std::uint16_t>(code));
    const float next = half_to_float(static_cast<std::uint16_t>(code + 1));
    const float between = exact + (next - exact) * (0.5f + 1e-4f * noise(3, code));
    for (const float value : {exact, code % 3 == 0 ? (exact + next) / 2 : between, 1.3f * exact})
      if (!std::isnan(value)) numbers.push_back(value);
  }
  return numbers;
}

TEST_P(KvWrite, RoundsFloatsToEveryTypeAsTheDefinitionSays) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  constexpr std::int32_t kHeadDim = 83, kStride = 3;  // no whole number of vectors
  std::vector<float> numbers = numbers_to_round();
  numbers.resize(numbers.size() / kHeadDim * kHeadDim);
  for (const KvType type : kEveryKvType) {
    if (type == KvType::kInt8) continue;
    const auto size = static_cast<std::size_t>(kv_element_bytes(type));
    for (std::size_t start = 0; start < numbers.size(); start += kHeadDim) {
      std::vector<std::byte> key(kHeadDim * kStride * size), value(kHeadDim * size), expected(size);
      const float* const source = numbers.data() + start;
      kernels.write_kv(source, source,
                       {.type = type,
                        .head_dim = kHeadDim,
                        .key_stride = kStride,
                        .key = key.data(),
                        .value = value.data()});
      for (std::size_t d = 0; d < kHeadDim; ++d) {
        write_element(type, expected.data(), source[d]);
        ASSERT_EQ(std::memcmp(&key[d * kStride * size], expected.data(), size), 0)
            << name_of(type) << " " << source[d];
        ASSERT_EQ(std::memcmp(&value[d * size], expected.data(), size), 0)
            << name_of(type) << " " << source[d];
      }
    }
  }
}

double squared_error(const std::vector<float>& numbers, float scale) {
  double sum = 0.0;
  for (const float number : numbers) {
    const double error = number - double{scale} * std::nearbyint(number / double{scale});
    sum += error * error;
  }
  return sum;
}

// Of the allowed scales the best, and with it the nearest integers.
void expect_rounded_to_int8(const std::vector<float>& numbers, const std::int8_t* integers, float scale,
                            std::uint64_t seed) {
  double least = std::numeric_limits<double>::infinity();
  bool is_allowed = false;
  for (int c = 0; c < 8; ++c) {
    const float candidate = int8_scale(numbers) * (1.0f + static_cast<float>(c) / 128.0f);
    least = std::min(least, squared_error(numbers, candidate));
    is_allowed |= scale == candidate;
  }
  ASSERT_TRUE(is_allowed) << "seed " << seed;
  ASSERT_LE(squared_error(numbers, scale), least * (1.0 + 1e-4)) << "seed " << seed;
  for (std::size_t d = 0; d < numbers.size(); ++d) {
    ASSERT_EQ(integers[d], std::nearbyint(numbers[d] / scale)) << "seed " << seed;
  }
}

TEST_P(KvWrite, GivesEachKeyAndValueOfInt8ItsBestScale) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const cpu::KernelTable& portable = cpu::kernel_table(cpu::InstructionSet::kPortable);
  constexpr std::int32_t kHeadDim = 83;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const float magnitude = std::ldexp(1.0f, static_cast<int>(seed % 60) - 30);
    const std::vector<float> key = noise_row(seed, 1, kHeadDim, magnitude);
    std::vector<float> value = noise_row(seed, 2, kHeadDim, 5.0f);
    if (seed % 4 == 0) {  // multiples of half a step, so that many lie between two integers
      value = noise_row(seed, 3, kHeadDim, 254.0f);
      for (float& number : value) number = std::nearbyint(number) / 2;
      value[seed % kHeadDim] = 127.0f;
    }
    struct Written {
      std::int8_t keys[kHeadDim], values[kHeadDim];
      float key_scale, value_scale;
    };
    const auto write_with = [&](const cpu::KernelTable& table, Written& written) {
      table.write_kv(key.data(), value.data(),
                     {.type = KvType::kInt8,
                      .head_dim = kHeadDim,
                      .key_stride = 1,
                      .key = written.keys,
                      .value = written.values,
                      .key_scale = &written.key_scale,
                      .value_scale = &written.value_scale});
    };
    Written got = {}, expected = {};
    write_with(kernels, got);
    write_with(portable, expected);
    expect_rounded_to_int8(key, got.keys, got.key_scale, seed);
    expect_rounded_to_int8(value, got.values, got.value_scale, seed);
    ASSERT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << "another instruction set wrote other bytes";
  }
}

TEST_P(KvWrite, OfInt8KnowsZerosInfinitiesAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto reference = reference_backend();
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  constexpr std::int32_t kHeadDim = 20;
  const KvLayout layout{KvType::kInt8, 1, 1, 1, kHeadDim};
  const auto expected_kv = reference->allocate_kv_cache(layout, 1).value();
  auto& expected = static_cast<reference::ReferenceKvCache&>(*expected_kv);
  for (const float odd : {0.0f, 1e-44f, 1e-37f, 1e-35f, -1e-35f, kInfinity, -kInfinity,
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> key(kHeadDim, 0.0f), value(kHeadDim, odd);
    key[17] = odd;
    std::vector<std::byte> head(static_cast<std::size_t>(layout.layer(0).head_bytes));
    kernels.write_kv(
        key.data(), value.data(),
        {.type = KvType::kInt8,
         .head_dim = kHeadDim,
         .key_stride = 1,
         .key = head.data(),
         .value = head.data() + layout.layer(0).half_head_bytes,
         .key_scale = reinterpret_cast<float*>(head.data() + layout.layer(0).key_scale_offset(0)),
         .value_scale = reinterpret_cast<float*>(head.data() + layout.layer(0).value_scale_offset(0))});
    expected.write({0, 0, 0, 0}, key.data(), value.data());
    const auto scale = *reinterpret_cast<const float*>(head.data() + layout.layer(0).key_scale_offset(0));
    if (!std::isfinite(odd)) {
      EXPECT_TRUE(std::isnan(scale)) << odd;
      EXPECT_TRUE(std::isnan(expected.read_key({0, 0, 0, 0}, 3))) << odd;
      continue;
    }
    EXPECT_EQ(scale, std::fabs(odd) < 1e-36f ? 0.0f : std::fabs(odd) / 127.0f);
    EXPECT_EQ(std::memcmp(head.data(), expected.data(), head.size()), 0) << odd;
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
