#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/dequantize.h"
#include "tests/support/paths.h"

namespace octavo::kernels {
namespace {

constexpr std::size_t kNumNumbers = 64 * 256;

// As numbers() of tests/golden/make_quantize.py.
std::vector<float> numbers_to_quantise() {
  std::uint64_t state = 2026;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 32);
  };
  std::vector<float> values(kNumNumbers);
  for (float& value : values) {
    std::int64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += next() >> 8;
    value = static_cast<float>(sum - 2 * (std::int64_t{1} << 24)) / 0x1.0p24f;
  }
  for (std::size_t block = 0; block < kNumNumbers / 32; ++block) {
    const float scale = std::ldexp(1.0f, -static_cast<int>(next() % 8));
    for (std::size_t i = 32 * block; i < 32 * block + 32; ++i) values[i] *= scale;
  }
  for (std::size_t i = 32; i < 64; ++i) values[i] = 0.0f;
  for (std::size_t i = 64; i < 96; ++i) values[i] = 0.5f;
  values[3 * 32 + 7] = 40.0f;
  return values;
}

std::string hash_of(std::span<const std::byte> bytes) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const std::byte byte : bytes) value = (value ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::vector<std::byte> quantised(TensorType type, std::span<const float> values) {
  const TensorTypeTraits& traits = traits_of(type);
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> bytes(static_cast<std::size_t>(count / traits.block_elements * traits.block_bytes));
  quantize(type, values.data(), count, bytes.data());
  return bytes;
}

TEST(Quantize, SimpleTypesGiveTheBytesOfGguf) {
  std::ifstream file(test::source_folder() / "tests/golden/quantize.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const std::vector<float> values = numbers_to_quantise();
  ASSERT_EQ(hash_of(std::as_bytes(std::span(values))), golden.at("values").get<std::string>());
  for (const TensorType type :
       {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1}) {
    const std::string name(traits_of(type).name);
    EXPECT_EQ(hash_of(quantised(type, values)), golden.at(name).get<std::string>()) << name;
  }
}

// Root of the mean square of the difference, of that of the numbers themselves.
double relative_error(TensorType type, std::span<const float> values) {
  const std::vector<std::byte> bytes = quantised(type, values);
  std::vector<float> back(values.size());
  dequantize(type, bytes.data(), static_cast<std::int64_t>(values.size()), back.data());
  double error = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(back[i]) - values[i], 2);
    square += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / square);
}

TEST(Quantize, SearchedTypesAreAsGoodAsTheirBitsAllow) {
  std::vector<float> values = numbers_to_quantise();
  values.erase(values.begin(), values.begin() + 256);  // without the odd blocks: sums of uniform numbers
  const std::map<TensorType, double> bounds = {
      {TensorType::kQ4_K, 0.078}, {TensorType::kQ5_K, 0.040}, {TensorType::kQ6_K, 0.021}};
  for (const auto& [type, bound] : bounds) {
    const double error = relative_error(type, values);
    RecordProperty(std::string(traits_of(type).name), std::to_string(error));
    EXPECT_LT(error, bound) << traits_of(type).name;
  }
  EXPECT_LT(relative_error(TensorType::kQ4_K, values), relative_error(TensorType::kQ4_0, values));
  EXPECT_LT(relative_error(TensorType::kQ5_K, values), relative_error(TensorType::kQ5_0, values));
}

TEST(Quantize, ZerosAndConstantsComeBack) {
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
                                TensorType::kQ5_1, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K}) {
    for (const float constant : {0.0f, 0.25f, -0.25f}) {
      const std::vector<float> values(256, constant);
      const std::vector<std::byte> bytes = quantised(type, values);
      std::vector<float> back(256);
      dequantize(type, bytes.data(), 256, back.data());
      for (const float value : back)
        ASSERT_NEAR(value, constant, 0.01f * std::fabs(constant)) << traits_of(type).name;
    }
  }
}

TEST(Quantize, RowsThatDoNotDivideGetAnotherType) {
  EXPECT_EQ(type_for_columns(TensorType::kQ4_K, 512), TensorType::kQ4_K);
  EXPECT_EQ(type_for_columns(TensorType::kQ4_K, 576), TensorType::kQ5_0);
  EXPECT_EQ(type_for_columns(TensorType::kQ5_K, 576), TensorType::kQ5_1);
  EXPECT_EQ(type_for_columns(TensorType::kQ6_K, 2880), TensorType::kQ8_0);
  EXPECT_EQ(type_for_columns(TensorType::kQ8_0, 100), std::nullopt);
  EXPECT_FALSE(can_quantize(TensorType::kQ2_K));
}

}  // namespace
}  // namespace octavo::kernels
