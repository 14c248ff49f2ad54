#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "tests/support/paths.h"

namespace octavo::kernels {
namespace {

const nlohmann::json& golden_cases() {
  static const nlohmann::json cases = [] {
    std::ifstream file(test::source_folder() / "tests/golden/dequantize.json");
    return nlohmann::json::parse(file).at("cases");
  }();
  return cases;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::uint32_t> float_bits(const std::string& hex) {
  const std::vector<std::byte> bytes = from_hex(hex);
  std::vector<std::uint32_t> bits;
  for (std::size_t i = 0; i + 3 < bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (std::size_t k = 4; k-- > 0;) word = word << 8 | std::to_integer<std::uint32_t>(bytes[i + k]);
    bits.push_back(word);
  }
  return bits;
}

TEST(TensorType, EveryTypeHasTheSizesOfThePackageGguf) {
  ASSERT_EQ(golden_cases().size(), 16u);
  for (const auto& entry : golden_cases()) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto type = tensor_type_from(entry.at("type").get<std::uint32_t>());
    ASSERT_TRUE(type.has_value());
    EXPECT_EQ(traits_of(*type).name, entry.at("name").get<std::string>());
    EXPECT_EQ(traits_of(*type).block_elements, entry.at("block_elements").get<int>());
    EXPECT_EQ(traits_of(*type).block_bytes, entry.at("block_bytes").get<int>());
    EXPECT_EQ(traits_of(*type).quantised, entry.at("block_elements").get<int>() > 1);
  }
}

TEST(TensorType, AnyOtherNumberIsNone) {
  int num_known = 0;
  for (std::uint32_t number = 0; number < 1000; ++number) num_known += tensor_type_from(number).has_value();
  EXPECT_EQ(num_known, 16);
  for (const std::uint32_t number : {4u, 5u, 9u, 15u, 31u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_FALSE(tensor_type_from(number).has_value()) << number;
  }
}

TEST(Dequantize, EveryTypeEqualsThePackageGgufBitForBit) {
  for (const auto& entry : golden_cases()) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto type = *tensor_type_from(entry.at("type").get<std::uint32_t>());
    const std::vector<std::byte> source = from_hex(entry.at("bytes").get<std::string>());
    const std::vector<std::uint32_t> expected = float_bits(entry.at("float_bits").get<std::string>());
    std::vector<float> out(expected.size());
    dequantize(type, source.data(), static_cast<std::int64_t>(out.size()), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]), expected[i]) << "element " << i;
    }
  }
}

TEST(Dequantize, TheSourceNeedNotBeAligned) {
  for (const auto& entry : golden_cases()) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto type = *tensor_type_from(entry.at("type").get<std::uint32_t>());
    std::vector<std::byte> source = from_hex(entry.at("bytes").get<std::string>());
    const auto num_elements = static_cast<std::int64_t>(entry.at("float_bits").get<std::string>().size() / 8);
    std::vector<float> aligned(static_cast<std::size_t>(num_elements)), shifted(aligned);
    dequantize(type, source.data(), num_elements, aligned.data());
    source.insert(source.begin(), std::byte{0x5a});
    dequantize(type, source.data() + 1, num_elements, shifted.data());
    EXPECT_EQ(aligned, shifted);
  }
}

}  // namespace
}  // namespace octavo::kernels
