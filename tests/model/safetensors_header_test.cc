#include "engine/model/safetensors_header.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/limits.h"
#include "tests/support/safetensors_writer.h"

namespace octavo::model {
namespace {

using test::safetensors_bytes;
using test::SafetensorsWriter;

Result<SafetensorsHeader> parse_header(std::span<const std::byte> bytes) {
  return SafetensorsHeader::parse(MemorySource(bytes), "m.safetensors");
}

Result<SafetensorsHeader> parse_text(std::string_view header, std::size_t data_bytes) {
  return parse_header(safetensors_bytes(header, std::vector<std::byte>(data_bytes)));
}

TEST(SafetensorsHeader, ListsTensorsInTheOrderOfTheirPlaces) {
  const std::vector<std::byte> data(64);
  SafetensorsWriter writer;
  writer.add("z.weight", "BF16", {4, 4}, std::span(data).first(32));
  writer.add("a", "F32", {}, std::span(data).first(4));
  writer.add("empty", "I32", {0, 7}, {});
  writer.add("packed", "U8", {3}, std::span(data).first(3));
  writer.add("new", "F4_E2M1", {6}, std::span(data).first(3));
  const std::vector<std::byte> bytes = writer.bytes();
  const auto header = parse_header(bytes);
  ASSERT_TRUE(header) << header.error().message;
  const auto& tensors = header->tensors;
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors[0].name, "z.weight");
  EXPECT_EQ(tensors[0].type, SafetensorsType::kBF16);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(tensors[0].num_elements, 16);
  EXPECT_EQ(tensors[0].byte_offset + tensors[0].num_bytes, tensors[1].byte_offset);
  EXPECT_EQ(tensors[1].num_elements, 1);
  EXPECT_EQ(tensors[2].num_bytes, 0u);
  EXPECT_EQ(tensors[4].type, SafetensorsType::kOther);
  EXPECT_EQ(tensors[4].type_name, "F4_E2M1");
  EXPECT_EQ(tensors[4].byte_offset + tensors[4].num_bytes, bytes.size());
}

TEST(SafetensorsHeader, MetadataIsSteppedOver) {
  const auto header = parse_text(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors.size(), 1u);
}

// Of a header that is wrong: what is said of it.
struct WrongHeader {
  std::string header;
  std::size_t data_bytes;
  std::string sentence;
};

std::string tensor_text(std::string_view name, std::string_view type, std::string_view shape,
                        std::string_view offsets) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(type) +
         "\",\"shape\":" + std::string(shape) + ",\"data_offsets\":" + std::string(offsets) + "}";
}

TEST(SafetensorsHeader, WhatIsWrongIsOneSentence) {
  const auto one = [](std::string_view type, std::string_view shape, std::string_view offsets) {
    return "{" + tensor_text("t", type, shape, offsets) + "}";
  };
  const std::string deep = std::string(100'000, '[');
  const WrongHeader kCases[] = {
      {"", 0, "no valid JSON"},
      {"{", 0, "no valid JSON"},
      {"nonsense", 0, "no valid JSON"},
      {"{\"a\":\xff}", 0, "no valid JSON"},
      {"null", 0, "null where none is allowed"},
      {"true", 0, "a boolean where none is allowed"},
      {"[]", 0, "a list where none is allowed"},
      {"7", 0, "a number where none is allowed"},
      {"\"text\"", 0, "a string where none is allowed"},
      {deep, 0, "a list where none is allowed"},
      {R"({"t":7})", 0, "a number where none is allowed"},
      {R"({"t":null})", 0, "null where none is allowed"},
      {R"({"t":[]})", 0, "a list where none is allowed"},
      {R"({"t":"x"})", 0, "a string where none is allowed"},
      {R"({"t":{}})", 0, "no dtype, shape or two data_offsets"},
      {R"({"t":{"t":{}}})", 0, "the unknown field"},
      {R"({"t":{"dtype":{}}})", 0, "an object where none is allowed"},
      {R"({"t":{"dtype":7}})", 0, "a number where none is allowed"},
      {R"({"t":{"dtype":["F32"]}})", 0, "a list where none is allowed"},
      {R"({"t":{"dtype":"U8","dtype":"U8"}})", 0, "its dtype twice"},
      {R"({"t":{"shape":"2"}})", 0, "a string where none is allowed"},
      {R"({"t":{"shape":{}}})", 0, "an object where none is allowed"},
      {R"({"t":{"shape":[[1]]}})", 0, "a list where none is allowed"},
      {R"({"t":{"shape":["1"]}})", 0, "a string where none is allowed"},
      {R"({"t":{"data_offsets":7}})", 0, "a number where none is allowed"},
      {R"({"t":{"dtype":"U8","shape":[1]}})", 1, "no dtype, shape or two data_offsets"},
      {R"({"t":{"dtype":"U8","data_offsets":[0,1]}})", 1, "no dtype, shape or two data_offsets"},
      {R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1, "no dtype, shape or two data_offsets"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", 1, "the unknown field"},
      {R"({"__metadata__":{"a":1}})", 0, "a number where none is allowed"},
      {R"({"__metadata__":{"a":{}}})", 0, "an object where none is allowed"},
      {R"({"__metadata__":[]})", 0, "a list where none is allowed"},
      {one("U8", "[1]", "[0]"), 1, "no dtype, shape or two data_offsets"},
      {one("U8", "[1]", "[0,1,2]"), 1, "more than two data_offsets"},
      {one("U8", "[1]", "[]"), 0, "no dtype, shape or two data_offsets"},
      {one("U8", "[1]", "[0,1.5]"), 1, "a number that is not whole"},
      {one("U8", "[1]", "[-1,0]"), 1, "a negative number"},
      {one("U8", "[1]", "[0,1e999]"), 1, "no valid JSON"},
      {one("U8", "[1]", "[0,99999999999999999999]"), 1, "a number that is not whole, or too large"},
      {one("U8", "[-1]", "[0,1]"), 1, "a negative number"},
      {one("U8", "[1.0]", "[0,1]"), 1, "a number that is not whole"},
      {one("U8", "[2]", "[0,1]"), 1, "has 1 bytes for the shape [2] of U8"},
      {one("F32", "[2,3]", "[0,20]"), 20, "has 20 bytes for the shape [2, 3] of F32"},
      {one("BF16", "[]", "[0,4]"), 4, "has 4 bytes for the shape [] of BF16"},
      {one("U8", "[2]", "[0,2]"), 1, "stands at bytes 0 to 2 of 1"},
      {one("U8", "[2]", "[2,0]"), 2, "stands at bytes 2 to 0 of 2"},
      {one("U8", "[1]", "[18446744073709551614,18446744073709551615]"), 1, "stands at bytes"},
      {one("U8", "[1]", "[1,2]"), 2, "has a gap before it"},
      {one("U8", "[1]", "[0,1]"), 2, "leaves 1 bytes at the end"},
      {one("U8", "[1099511627777]", "[0,1]"), 1, "a dimension that no tensor has"},
      {one("U8", "[1099511627776,1099511627776]", "[0,1]"), 1, "which no file can hold"},
      {one("F64", "[1099511627776,2097152]", "[0,1]"), 1, "bytes for the shape"},
      {one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "too many dimensions"},
      {"{" + tensor_text("a", "U8", "[2]", "[0,2]") + "," + tensor_text("b", "U8", "[2]", "[1,3]") + "}", 3,
       "overlaps the one before it"},
      {"{" + tensor_text("a", "U8", "[2]", "[0,2]") + "," + tensor_text("b", "U8", "[2]", "[0,2]") + "}", 2,
       "overlaps the one before it"},
      {"{" + tensor_text("a", "U8", "[1]", "[0,1]") + "," + tensor_text("b", "U8", "[1]", "[2,3]") + "}", 3,
       "has a gap before it"},
      {"{" + tensor_text("a", "U8", "[1]", "[0,1]") + "," + tensor_text("a", "U8", "[1]", "[1,2]") + "}", 2,
       "is there twice"},
      {"{" + tensor_text(std::string(1'025, 'n'), "U8", "[1]", "[0,1]") + "}", 1, "a name that is too long"},
  };
  for (const WrongHeader& each : kCases) {
    const auto header = parse_text(each.header, each.data_bytes);
    ASSERT_FALSE(header) << each.header.substr(0, 200);
    const std::string& message = header.error().message;
    EXPECT_NE(message.find(each.sentence), std::string::npos) << message << "\n"
                                                              << each.header.substr(0, 200);
    EXPECT_TRUE(message.starts_with("m.safetensors: ")) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_LT(message.size(), 600u);
  }
}

TEST(SafetensorsHeader, LengthsThatLieTakeNoMemory) {
  const auto of_length = [](std::uint64_t length, std::size_t num_bytes) {
    std::vector<std::byte> bytes(num_bytes);
    std::memcpy(bytes.data(), &length, std::min(num_bytes, sizeof length));
    const auto header = parse_header(bytes);
    return header ? std::string("taken") : header.error().message;
  };
  EXPECT_NE(of_length(0, 0).find("is cut"), std::string::npos);
  EXPECT_NE(of_length(0, 7).find("is cut"), std::string::npos);
  EXPECT_NE(of_length(1, 8).find("is said to have 1 bytes, but the file has 8"), std::string::npos);
  EXPECT_NE(of_length(~std::uint64_t{0}, 16).find("is said to have"), std::string::npos);
  EXPECT_NE(of_length(~std::uint64_t{0} - 7, 16).find("is said to have"), std::string::npos);
  EXPECT_NE(of_length(kMaxSafetensorsHeaderBytes + 1, 64).find("is said to have"), std::string::npos);

  // As large as it says, and larger than any: a source without bytes of its own.
  class HugeSource final : public ByteSource {
   public:
    std::uint64_t size() const override { return std::uint64_t{1} << 40; }
    Result<void> read(std::uint64_t, std::span<std::byte> out) const override {
      const std::uint64_t length = kMaxSafetensorsHeaderBytes + 1;
      std::memcpy(out.data(), &length, std::min(out.size(), sizeof length));
      return {};
    }
  };
  const auto huge = SafetensorsHeader::parse(HugeSource(), "m.safetensors");
  ASSERT_FALSE(huge);
  EXPECT_NE(huge.error().message.find("more than any model needs"), std::string::npos);
}

// Every cut of a good file, and every byte of its header changed: an error in one line, or good as well.
TEST(SafetensorsHeader, NoDamageGoesUnseenOrHarms) {
  const std::vector<std::byte> data(24);
  SafetensorsWriter writer;
  writer.add("a", "F32", {2, 2}, std::span(data).first(16)).add("b", "U8", {8}, std::span(data).first(8));
  const std::vector<std::byte> bytes = writer.bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_header(std::span(bytes).first(size))) << size;
  std::size_t num_errors = 0;
  for (std::size_t i = 0; i < bytes.size() - data.size(); ++i) {
    for (const int change : {1, 2, 0x20, 0x80}) {
      std::vector<std::byte> changed = bytes;
      changed[i] ^= static_cast<std::byte>(change);
      const auto header = parse_header(changed);
      if (header) continue;
      ++num_errors;
      EXPECT_EQ(header.error().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(num_errors, 300u);
}

}  // namespace
}  // namespace octavo::model
