#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/dequantize_grids.h"
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
  ASSERT_EQ(golden_cases().size(), 28u);
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
  EXPECT_EQ(num_known, 28);
  for (const std::uint32_t number : {4u, 5u, 9u, 15u, 31u, 43u, 0x7fffffffu, 0xffffffffu}) {
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

// FIPS 180-4, of a text whose length is a multiple of 64.
std::string sha256(const std::vector<std::uint8_t>& text) {
  std::vector<std::uint32_t> constants;
  std::array<std::uint32_t, 8> state;
  const auto fraction = [](long double root) {
    return static_cast<std::uint32_t>((root - std::floor(root)) * 0x1p32L);
  };
  for (std::uint32_t candidate = 2; constants.size() < 64; ++candidate) {
    bool is_prime = true;
    for (std::uint32_t d = 2; d < candidate; ++d) is_prime = is_prime && candidate % d != 0;
    if (!is_prime) continue;
    if (constants.size() < 8)
      state[constants.size()] = fraction(std::sqrt(static_cast<long double>(candidate)));
    constants.push_back(fraction(std::cbrt(static_cast<long double>(candidate))));
  }
  std::vector<std::uint8_t> padded = text;
  padded.resize(text.size() + 64);
  padded[text.size()] = 0x80;
  for (std::size_t i = 0; i < 8; ++i)
    padded[padded.size() - 1 - i] = static_cast<std::uint8_t>(std::uint64_t{text.size()} * 8 >> (8 * i));
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i) {
      w[i] = 0;
      for (std::size_t k = 0; k < 4; ++k) w[i] = w[i] << 8 | padded[block + 4 * i + k];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += added[i];
  }
  std::string hex;
  for (const std::uint32_t word : state) {
    char digits[9];
    std::snprintf(digits, sizeof digits, "%08x", word);
    hex += digits;
  }
  return hex;
}

template <class Entry, int kSize>
std::string sha256_start(const Grid<Entry, kSize>& grid) {
  std::vector<std::uint8_t> bytes;
  for (const Entry entry : grid.entries) {
    for (std::size_t j = 0; j < sizeof entry; ++j)
      bytes.push_back(static_cast<std::uint8_t>(entry >> (8 * j)));
  }
  return sha256(bytes).substr(0, 16);
}

TEST(Dequantize, GridsAreThoseOfTheirOrigin) {
  ASSERT_EQ(sha256({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_start(kIq2XxsGrid), "05826b5d3e472a3a");
  EXPECT_EQ(sha256_start(kIq2XsGrid), "06e47aaca60b4dc1");
  EXPECT_EQ(sha256_start(kIq2SGrid), "e1aa1473412b0552");
  EXPECT_EQ(sha256_start(kIq3XxsGrid), "46e35f5a997efdee");
  EXPECT_EQ(sha256_start(kIq3SGrid), "bd1af4945a1717c6");
  EXPECT_EQ(sha256_start(kIq1Grid), "07540ffc1aeaf6ad");
}

TEST(Dequantize, TheEighthSignMakesTheNumberOfMinusSignsEven) {
  for (unsigned stored = 0; stored < 128; ++stored) {
    EXPECT_EQ(signs_of_seven(stored) & 127u, stored);
    EXPECT_EQ(std::popcount(signs_of_seven(stored)) % 2, 0) << stored;
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
