#include "engine/model/gguf_header.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "engine/model/limits.h"
#include "tests/support/gguf_writer.h"

namespace octavo::model {
namespace {

using test::ByteWriter;
using test::GgufWriter;
using test::TensorType;
using FileType = test::GgufType;

Result<GgufHeader> parse(std::span<const std::byte> bytes) {
  return GgufHeader::parse(MemorySource(bytes), "test.gguf");
}
Result<GgufHeader> parse(const GgufWriter& writer) {
  const std::vector<std::byte> bytes = writer.bytes();
  return parse(bytes);
}

std::vector<std::byte> zeros(std::size_t count) { return std::vector<std::byte>(count); }

// A file is refused with this sentence, and the error says what it is about and where.
void expect_refused(const GgufWriter& writer, ErrorCode code, std::string_view sentence,
                    std::string_view subject) {
  const auto header = parse(writer);
  ASSERT_FALSE(header.has_value()) << "accepted, but: " << sentence;
  EXPECT_EQ(header.error().code, code) << header.error().message;
  EXPECT_NE(header.error().message.find(sentence), std::string::npos) << header.error().message;
  EXPECT_EQ(header.error().message.rfind("test.gguf: ", 0), 0u) << header.error().message;
  EXPECT_EQ(header.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(header.error().subject, subject);
  ASSERT_TRUE(header.error().byte_offset.has_value());
  EXPECT_LE(*header.error().byte_offset, writer.bytes().size());
}
void expect_damaged(const GgufWriter& writer, std::string_view sentence, std::string_view subject = "") {
  expect_refused(writer, ErrorCode::kDamagedFile, sentence, subject);
}

// Claims a size, and holds zeros behind a prefix without storing them.
class SparseSource final : public ByteSource {
 public:
  SparseSource(std::vector<std::byte> prefix, std::uint64_t size) : prefix_(std::move(prefix)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = offset + i < prefix_.size() ? prefix_[offset + i] : std::byte{0};
    return {};
  }

 private:
  std::vector<std::byte> prefix_;
  std::uint64_t size_;
};

// ---- what is read

GgufWriter with_every_type() {
  GgufWriter writer;
  writer.add_number<std::uint8_t>("u8", 200).add_number<std::int8_t>("i8", -100);
  writer.add_number<std::uint16_t>("u16", 60'000).add_number<std::int16_t>("i16", -30'000);
  writer.add_u32("u32", 4'000'000'000u).add_i32("i32", -2'000'000'000);
  writer.add_u64("u64", 1ull << 63).add_number<std::int64_t>("i64", -(1ll << 62));
  writer.add_f32("f32", 1.5f).add_number<double>("f64", 0.1);
  writer.add_bool("yes", true).add_bool("no", false).add_string("text", "grün\0x");
  writer.add_array<std::int32_t>("i32s", {1, -2, 3}).add_array<std::uint8_t>("u8s", {7, 255});
  writer.add_array<float>("f32s", {0.25f, -1.0f}).add_bool_array("bools", {0, 1, 1});
  writer.add_string_array("texts", {"", "a", std::string(300, 'z')}).add_array<std::int32_t>("none", {});
  return writer;
}

TEST(GgufHeader, GivesEveryTypeOfValueBack) {
  const auto header = parse(with_every_type());
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->num_keys(), 19u);
  EXPECT_EQ(*header->get<std::uint32_t>("u8"), 200u);
  EXPECT_EQ(*header->get<std::int32_t>("i8"), -100);
  EXPECT_EQ(*header->get<std::uint32_t>("u16"), 60'000u);
  EXPECT_EQ(*header->get<std::int32_t>("i16"), -30'000);
  EXPECT_EQ(*header->get<std::uint32_t>("u32"), 4'000'000'000u);
  EXPECT_EQ(*header->get<std::int32_t>("i32"), -2'000'000'000);
  EXPECT_EQ(*header->get<std::uint64_t>("u64"), 1ull << 63);
  EXPECT_EQ(*header->get<float>("f32"), 1.5f);
  EXPECT_EQ(*header->get<float>("f64"), 0.1f);
  EXPECT_TRUE(*header->get<bool>("yes"));
  EXPECT_FALSE(*header->get<bool>("no"));
  EXPECT_EQ(*header->get<std::string_view>("text"), "grün\0x");
  EXPECT_EQ(*header->get<std::vector<std::int32_t>>("i32s"), (std::vector<std::int32_t>{1, -2, 3}));
  EXPECT_EQ(*header->get<std::vector<std::int32_t>>("u8s"), (std::vector<std::int32_t>{7, 255}));
  EXPECT_EQ(*header->get<std::vector<float>>("f32s"), (std::vector<float>{0.25f, -1.0f}));
  EXPECT_EQ(*header->get<std::vector<std::string_view>>("texts"),
            (std::vector<std::string_view>{"", "a", std::string(300, 'z')}));
  EXPECT_TRUE(header->get<std::vector<std::int32_t>>("none")->empty());
  EXPECT_EQ(**header->find_array_length("bools"), 3u);
}

TEST(GgufHeader, AMissingKeyIsNothingToFindAndAnErrorToGet) {
  const auto header = parse(with_every_type());
  EXPECT_FALSE(header->contains("missing"));
  EXPECT_FALSE(header->find<std::uint32_t>("missing")->has_value());
  EXPECT_FALSE(header->find_array_length("missing")->has_value());
  const auto got = header->get<std::uint32_t>("missing");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().subject, "missing");
}

TEST(GgufHeader, ValuesAreNeverReinterpreted) {
  const auto header = parse(with_every_type());
  EXPECT_FALSE(header->get<std::uint32_t>("f32").has_value());
  EXPECT_FALSE(header->get<std::uint32_t>("yes").has_value());
  EXPECT_FALSE(header->get<std::uint32_t>("text").has_value());
  EXPECT_FALSE(header->get<std::uint32_t>("i32s").has_value());
  EXPECT_FALSE(header->get<float>("u32").has_value());
  EXPECT_FALSE(header->get<bool>("u8").has_value());
  EXPECT_FALSE(header->get<std::string_view>("texts").has_value());
  EXPECT_FALSE(
      header->get<std::vector<float>>("u8s").has_value());  // narrower elements: the classic over-read
  EXPECT_FALSE(header->get<std::vector<float>>("f32").has_value());
  EXPECT_FALSE(header->get<std::vector<std::int32_t>>("bools").has_value());
  EXPECT_FALSE(header->get<std::vector<std::string_view>>("i32s").has_value());
  EXPECT_FALSE(header->find_array_length("u32").has_value());
  const auto error = header->get<std::uint32_t>("text").error();
  EXPECT_EQ(error.message,
            "test.gguf: text has type string where a whole number is needed; convert the model again");
  EXPECT_EQ(error.subject, "text");
  EXPECT_TRUE(error.byte_offset.has_value());
}

TEST(GgufHeader, WholeNumbersThatDoNotFitAreRefused) {
  const auto header = parse(with_every_type());
  EXPECT_FALSE(header->get<std::uint32_t>("i32").has_value());  // negative
  EXPECT_FALSE(header->get<std::uint32_t>("u64").has_value());
  EXPECT_FALSE(header->get<std::int32_t>("u32").has_value());
  EXPECT_FALSE(header->get<std::uint64_t>("i64").has_value());
  EXPECT_EQ(*header->get<std::uint64_t>("u8"), 200u);
  const auto arrays = parse(
      GgufWriter().add_array<std::uint32_t>("large", {1, 3'000'000'000u}).add_number<double>("huge", 1e300));
  EXPECT_FALSE(arrays->get<std::vector<std::int32_t>>("large").has_value());
  EXPECT_FALSE(arrays->get<float>("huge").has_value());
}

TEST(GgufHeader, VersionsTwoAndThreeReadAlike) {
  for (const std::uint32_t version : {2u, 3u}) {
    const auto header = parse(with_every_type().set_version(version));
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->version(), version);
  }
}

TEST(GgufHeader, TensorsStandWhereTheFileSaysForEveryAlignment) {
  for (const std::uint32_t alignment : {8u, 32u, 64u, 4096u, 65'536u}) {
    GgufWriter writer;
    writer.set_alignment(alignment).add_u32("general.alignment", alignment);
    writer.add_tensor("first", TensorType::kF16, {5}, zeros(10));
    writer.add_tensor("second", TensorType::kQ4_K, {512, 3, 2}, zeros(2 * 144 * 6));
    writer.add_tensor("third", TensorType::kF32, {1, 1, 1, 1}, zeros(4));
    const auto header = parse(writer);
    ASSERT_TRUE(header.has_value()) << header.error().message;
    EXPECT_EQ(header->alignment(), alignment);
    ASSERT_EQ(header->tensors().size(), 3u);
    const auto up = [&](std::uint64_t n) { return (n + alignment - 1) / alignment * alignment; };
    const std::uint64_t data = up(writer.header_bytes().size());
    EXPECT_EQ(header->data_offset(), data);
    EXPECT_EQ(header->tensors()[0].byte_offset, data);
    EXPECT_EQ(header->tensors()[1].byte_offset, data + up(10));
    EXPECT_EQ(header->tensors()[1].num_bytes, 1728u);
    EXPECT_EQ(header->tensors()[1].num_elements, 3072);
    EXPECT_EQ(header->tensors()[1].dimensions, (std::array<std::int64_t, 4>{512, 3, 2, 1}));
    EXPECT_EQ(header->tensors()[1].type(), TensorType::kQ4_K);
    EXPECT_EQ(header->tensors()[2].byte_offset, data + up(10) + up(1728));
  }
}

TEST(GgufHeader, TensorsOfTypesThatNoKernelReadsAreListed) {
  const auto header = parse(GgufWriter().add_raw_tensor("odd", 27, {32}, zeros(256)));
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->tensors()[0].type_name, "I64");
  EXPECT_FALSE(header->tensors()[0].type().has_value());
}

TEST(GgufHeader, AnEmptyFileOfTheRightFormIsFine) {
  const auto header = parse(GgufWriter());
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->num_keys(), 0u);
  EXPECT_TRUE(header->tensors().empty());
}

// ---- what is refused, class by class (G1 to G11)

TEST(GgufHeader, RefusesWhatIsNoGguf) {
  EXPECT_NE(parse(std::vector<std::byte>{}).error().message.find("ends within its first four bytes"),
            std::string::npos);
  const auto text = parse(ByteWriter().raw("PK\x03\x04 and more").bytes());
  EXPECT_NE(text.error().message.find("it starts with \"PK\\x03\\x04\" instead of \"GGUF\""),
            std::string::npos)
      << text.error().message;
  const auto words = parse(ByteWriter().raw("hello there,\nthis is a letter").bytes());
  EXPECT_NE(words.error().message.find("it starts with \"hello there,\" instead of \"GGUF\""),
            std::string::npos)
      << words.error().message;
}

TEST(GgufHeader, RefusesOtherVersionsAndByteOrders) {
  expect_refused(GgufWriter().set_version(0), ErrorCode::kUnsupported, "GGUF version 0 is not supported", "");
  expect_refused(GgufWriter().set_version(1), ErrorCode::kUnsupported, "GGUF version 1 is not supported", "");
  expect_refused(GgufWriter().set_version(4), ErrorCode::kUnsupported, "GGUF version 4 is not supported", "");
  expect_refused(GgufWriter().set_version(0x03000000), ErrorCode::kUnsupported,
                 "this GGUF file is big-endian", "");
}

TEST(GgufHeader, RefusesCountsThatTheFileCannotHold) {
  for (const std::uint64_t count :
       {std::uint64_t{2}, kMaxTensors + 1, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    expect_damaged(GgufWriter().set_num_tensors(count), "claims " + std::to_string(count) + " tensors");
    expect_damaged(GgufWriter().set_num_keys(count), "claims " + std::to_string(count) + " keys");
  }
  for (const std::uint64_t count :
       {std::uint64_t{100}, std::uint64_t{1} << 61, std::uint64_t{1} << 62, ~std::uint64_t{0}}) {
    GgufWriter writer;
    writer.add_raw_array("a", FileType::kU32, count, zeros(16));
    expect_damaged(writer, "\"a\" claims " + std::to_string(count) + " elements", "a");
    GgufWriter strings;
    strings.add_raw_array("s", FileType::kString, count, zeros(8));
    expect_damaged(strings, "\"s\" claims " + std::to_string(count) + " elements", "s");
  }
}

TEST(GgufHeader, HoldsTheTensorCountAgainstWhatTheKeysLeft) {
  GgufWriter writer;
  writer.add_string("long", std::string(10'000, 'x'))
      .set_num_tensors(200);  // 200 would fit where the key stands
  expect_damaged(writer, "claims 200 tensors");
}

TEST(GgufHeader, CountsMayReachTheirCapsAndNoFurther) {
  GgufWriter keys;
  for (std::uint64_t i = 0; i < kMaxMetadataKeys; ++i)
    keys.add_number<std::uint8_t>("k" + std::to_string(i), 1);
  EXPECT_TRUE(parse(keys).has_value());
  keys.add_number<std::uint8_t>("one more", 1);
  expect_damaged(keys, "claims 65537 keys");

  GgufWriter tensors;
  for (std::uint64_t i = 0; i < kMaxTensors; ++i)
    tensors.add_raw_tensor("t" + std::to_string(i), 24, {1}, zeros(1));
  EXPECT_TRUE(parse(tensors.set_alignment(8).add_u32("general.alignment", 8)).has_value());
  tensors.add_raw_tensor("one more", 24, {1}, zeros(1));
  expect_damaged(tensors, "claims 65537 tensors");
}

TEST(GgufHeader, RefusesStringsLongerThanTheFileOrTheirCap) {
  for (const std::uint64_t length :
       {std::uint64_t{100}, std::uint64_t{1} << 32, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    GgufWriter writer;
    writer.add_raw_value("s", FileType::kString, ByteWriter().number(length).raw("12345678").bytes());
    const auto header = parse(writer);
    ASSERT_FALSE(header.has_value());
    EXPECT_EQ(header.error().subject, "s");
  }
  EXPECT_TRUE(parse(GgufWriter().add_u32(std::string(kMaxKeyBytes, 'k'), 1)).has_value());
  expect_damaged(GgufWriter().add_u32(std::string(kMaxKeyBytes + 1, 'k'), 1),
                 "key 0 claims 65536 bytes; at most 65535");
  EXPECT_TRUE(parse(GgufWriter().add_string("s", std::string(kMaxStringBytes, 'v'))).has_value());
  expect_damaged(GgufWriter().add_string("s", std::string(kMaxStringBytes + 1, 'v')),
                 "claims 16777217 bytes; at most 16777216", "s");
  EXPECT_TRUE(
      parse(GgufWriter().add_string("tokenizer.chat_template", std::string(kMaxChatTemplateBytes, 'v')))
          .has_value());
  expect_damaged(
      GgufWriter().add_string("tokenizer.chat_template", std::string(kMaxChatTemplateBytes + 1, 'v')),
      "claims 1048577 bytes; at most 1048576", "tokenizer.chat_template");
  EXPECT_TRUE(
      parse(GgufWriter().add_tensor(std::string(kMaxTensorNameBytes, 'n'), TensorType::kF32, {1}, zeros(4)))
          .has_value());
  expect_damaged(
      GgufWriter().add_tensor(std::string(kMaxTensorNameBytes + 1, 'n'), TensorType::kF32, {1}, zeros(4)),
      "the name of tensor 0 claims 65 bytes; at most 64");
}

TEST(GgufHeader, RefusesImpossibleShapes) {
  const auto shaped = [](std::vector<std::uint64_t> dimensions) {
    return GgufWriter().add_tensor("t", TensorType::kF32, std::move(dimensions), zeros(64));
  };
  expect_damaged(shaped({}), "\"t\" has 0 dimensions", "t");
  expect_damaged(shaped({1, 1, 1, 1, 1}), "\"t\" has 5 dimensions", "t");
  expect_damaged(shaped({0}), "\"t\" has a dimension of 0", "t");
  expect_damaged(shaped({4, 0}), "\"t\" has a dimension of 0", "t");
  expect_damaged(shaped({~std::uint64_t{0}}), "has a dimension of 18446744073709551615", "t");
  expect_damaged(shaped({std::uint64_t{1} << 63}), "has a dimension of 9223372036854775808", "t");
  expect_damaged(shaped({kMaxTensorDimension + 1}), "has a dimension of 1099511627777", "t");
  expect_damaged(shaped({kMaxTensorDimension}), "is outside the file", "t");
  expect_damaged(shaped({1ull << 40, 1ull << 23}), "more elements than 64 bits can count", "t");
  expect_damaged(shaped({1ull << 40, 1ull << 40, 1ull << 40, 1ull << 40}),
                 "more elements than 64 bits can count", "t");
  expect_damaged(shaped({1ull << 40, 1ull << 22}), "more bytes than 64 bits can count",
                 "t");  // 2^62 elements of 4 bytes
  expect_damaged(shaped({1ull << 40, (1ull << 22) - 1}), "is outside the file", "t");
}

TEST(GgufHeader, RefusesRowsThatAreNoWholeBlocks) {
  for (const std::uint64_t columns : {1u, 31u, 33u, 48u}) {
    expect_damaged(GgufWriter().add_tensor("t", TensorType::kQ4_1, {columns, 32}, zeros(4096)),
                   "cannot divide into blocks of 32", "t");
  }
  expect_damaged(GgufWriter().add_tensor("t", TensorType::kQ6_K, {128, 2}, zeros(210)),
                 "cannot divide into blocks of 256", "t");
}

TEST(GgufHeader, RefusesTypesThatDoNotExist) {
  for (const std::uint32_t type : {4u, 5u, 31u, 36u, 1000u, 0x80000000u, 0xffffffffu}) {
    expect_refused(GgufWriter().add_raw_tensor("t", type, {32}, zeros(64)), ErrorCode::kUnsupported,
                   "tensor \"t\" has type number " + std::to_string(type), "t");
  }
  for (const std::uint32_t type : {13u, 14u, 255u, 0x80000000u, 0xffffffffu}) {
    expect_damaged(GgufWriter().add_raw_value("k", static_cast<FileType>(type), zeros(8)),
                   "\"k\" has value type " + std::to_string(type), "k");
    expect_damaged(GgufWriter().add_raw_array("k", static_cast<FileType>(type), 1, zeros(8)),
                   "\"k\" has value type " + std::to_string(type), "k");
  }
}

TEST(GgufHeader, RefusesOffsetsThatAreNotTheRunningSum) {
  const auto three = [] {
    GgufWriter writer;
    for (const char* name : {"a", "b", "c"}) writer.add_tensor(name, TensorType::kF32, {8}, zeros(32));
    return writer;
  };
  ASSERT_TRUE(parse(three()).has_value());
  for (const std::size_t index : {0u, 1u, 2u}) {
    const std::string name = std::vector<std::string>{"a", "b", "c"}[index];
    for (const std::uint64_t by :
         {std::uint64_t{1}, std::uint64_t{32}, ~std::uint64_t{0} - 31, std::uint64_t{1} << 63}) {
      expect_damaged(three().shift_offset(index, by), "the data of \"" + name + "\" is listed at", name);
    }
  }
}

TEST(GgufHeader, RefusesSizesWhoseSumOrPaddingWraps) {
  // The file claims to be as large as a file can be, so that only the sums are left to catch it.
  const auto f64 = [](std::vector<std::uint64_t> dimensions) {
    return GgufWriter().add_raw_tensor("a", 28, std::move(dimensions), {}).add_raw_tensor("b", 28, {1}, {});
  };
  const auto refused = [](const GgufWriter& writer) {
    const SparseSource source(writer.header_bytes(), ~std::uint64_t{0});
    const auto header = GgufHeader::parse(source, "test.gguf");
    return header.has_value() ? std::string("accepted") : header.error().message;
  };
  // 2^64 - 16 bytes: representable, but no file holds them behind a header, and
  // padding them would wrap to zero.
  EXPECT_NE(refused(f64({2 * ((1ull << 30) - 1), (1ull << 30) + 1})).find("is outside the file"),
            std::string::npos);
  // Two of 2^63 bytes: the first fits, the running sum of both does not.
  GgufWriter two;
  for (const char* name : {"a", "b"}) two.add_raw_tensor(name, 28, {1ull << 40, 1ull << 20}, {});
  two.shift_offset(1, 1ull << 63);
  EXPECT_NE(refused(two).find("is outside the file"), std::string::npos) << refused(two);
}

TEST(GgufHeader, RefusesTensorsOutsideTheFile) {
  const std::vector<std::byte> whole = GgufWriter().add_tensor("t", TensorType::kF32, {8}, zeros(32)).bytes();
  EXPECT_TRUE(parse(whole).has_value());
  const auto cut = parse(std::span(whole).first(whole.size() - 1));
  ASSERT_FALSE(cut.has_value());
  EXPECT_NE(cut.error().message.find("the data of \"t\" is outside the file of"), std::string::npos);
  GgufWriter unpadded;  // the padding after the last tensor may be missing
  unpadded.add_tensor("t", TensorType::kF32, {7}, zeros(28));
  const std::vector<std::byte> bytes = unpadded.bytes();
  EXPECT_TRUE(parse(std::span(bytes).first(bytes.size() - 4)).has_value());
  EXPECT_FALSE(parse(std::span(bytes).first(bytes.size() - 5)).has_value());
}

TEST(GgufHeader, RefusesImpossibleAlignments) {
  for (const std::uint32_t alignment : {0u, 1u, 4u, 7u, 12u, 33u, 131'072u, 0x80000000u, 0xffffffffu}) {
    expect_damaged(
        GgufWriter().add_u32("general.alignment", alignment),
        "general.alignment is " + std::to_string(alignment) + "; it must be a power of two from 8 to 65536",
        "general.alignment");
  }
  expect_damaged(GgufWriter().add_u64("general.alignment", 32),
                 "general.alignment has type u64 instead of u32", "general.alignment");
  expect_damaged(GgufWriter().add_i32("general.alignment", 32),
                 "general.alignment has type i32 instead of u32", "general.alignment");
  expect_damaged(GgufWriter().add_string("general.alignment", "32"), "has type string instead of u32",
                 "general.alignment");
  expect_damaged(GgufWriter().add_array<std::uint32_t>("general.alignment", {32}),
                 "has type array instead of u32", "general.alignment");
}

TEST(GgufHeader, RefusesArraysOfArrays) {
  const auto inner = ByteWriter().number<std::uint32_t>(4).number<std::uint64_t>(0).bytes();
  expect_damaged(GgufWriter().add_raw_array("k", FileType::kArray, 1, inner), "\"k\" is an array of arrays",
                 "k");
}

TEST(GgufHeader, RefusesBooleansOtherThanZeroAndOne) {
  for (const int wrong : {2, 127, 128, 255}) {
    const auto value = static_cast<std::uint8_t>(wrong);
    expect_damaged(GgufWriter().add_raw_value("k", FileType::kBool, ByteWriter().number(value).bytes()),
                   "\"k\" holds " + std::to_string(value) + ", but booleans must be 0 or 1", "k");
    expect_damaged(GgufWriter().add_bool_array("k", {0, 1, value}), "\"k\" holds " + std::to_string(value),
                   "k");
  }
}

TEST(GgufHeader, RefusesDuplicatesAndEmptyNames) {
  expect_damaged(GgufWriter().add_u32("k", 1).add_u32("other", 1).add_u32("k", 2),
                 "the key \"k\" appears twice", "k");
  expect_damaged(GgufWriter().add_u32("k", 1).add_u32("k", 1), "the key \"k\" appears twice", "k");
  expect_damaged(GgufWriter().add_u32("", 1), "key 0 is empty");
  const auto tensors = [](const char* first, const char* second) {
    return GgufWriter()
        .add_tensor(first, TensorType::kF32, {8}, zeros(32))
        .add_tensor(second, TensorType::kF32, {8}, zeros(32));
  };
  expect_damaged(tensors("t", "t"), "the tensor \"t\" appears twice", "t");
  expect_damaged(tensors("t", ""), "tensor 1 has no name");
  EXPECT_TRUE(parse(tensors("t", "T")).has_value());
}

TEST(GgufHeader, NamesFromFilesCannotBreakMessages) {
  const auto header = parse(GgufWriter().add_u32("a\n\x1b[31m\xff", 1).add_u32("a\n\x1b[31m\xff", 1));
  ASSERT_FALSE(header.has_value());
  EXPECT_NE(header.error().message.find("\"a\\x0a\\x1b[31m\\xff\""), std::string::npos)
      << header.error().message;
}

TEST(GgufHeader, RefusesMetadataAboveTheBudgetBeforeReadingIt) {
  GgufWriter writer;
  writer.add_raw_array("k", FileType::kU8, kMaxMetadataBytes, {});
  const SparseSource source(writer.header_bytes(), std::uint64_t{1} << 40);
  const auto header = GgufHeader::parse(source, "test.gguf");
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(header.error().message.find("its metadata is larger than 512 MiB"), std::string::npos)
      << header.error().message;
}

// Resident memory of this process in bytes: "VmRSS:" now, "VmHWM:" the peak since the last reset.
std::int64_t resident_memory(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stoll(line.substr(field.size())) * 1024;
  }
  return -1;
}

bool reset_peak_memory() {
  return static_cast<bool>(std::ofstream("/proc/self/clear_refs") << "5" << std::flush);
}

TEST(GgufHeader, ManyEmptyStringsTakeAtMostEightTimesTheirBytes) {
  constexpr std::uint64_t kCount = 4'000'000;
  GgufWriter writer;
  writer.add_raw_array("tokenizer.ggml.tokens", FileType::kString, kCount, {});
  const SparseSource source(writer.header_bytes(),
                            writer.header_bytes().size() + kCount * 8);  // read as lengths of 0
  if (!reset_peak_memory()) GTEST_SKIP() << "the peak of resident memory cannot be reset here";
  const std::int64_t before = resident_memory("VmRSS:");
  const auto header = GgufHeader::parse(source, "test.gguf");
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->get<std::vector<std::string_view>>("tokenizer.ggml.tokens")->size(), kCount);
  const std::int64_t added = resident_memory("VmHWM:") - before;
  EXPECT_GT(added, static_cast<std::int64_t>(kCount * 8));  // else nothing was measured
  EXPECT_LE(added, static_cast<std::int64_t>(8 * kCount * 8));
}

TEST(GgufHeader, ArraysOfStringsMayReachTheirCapAndNoFurther) {
  const auto strings = [](std::uint64_t count) {
    GgufWriter writer;
    writer.add_raw_array("k", FileType::kString, count, {});
    return GgufHeader::parse(SparseSource(writer.header_bytes(), writer.header_bytes().size() + count * 8),
                             "test.gguf");
  };
  EXPECT_TRUE(strings(kMaxArrayStrings).has_value());
  const auto more = strings(kMaxArrayStrings + 1);
  ASSERT_FALSE(more.has_value());
  EXPECT_NE(more.error().message.find("\"k\" claims 4194305 strings; at most 4194304"), std::string::npos)
      << more.error().message;
}

TEST(GgufHeader, LongValuesThatNobodyReadsAreSteppedOver) {
  const std::string at_most(kMaxShortValueBytes - 8, 'v');
  const auto header =
      parse(GgufWriter().add_string("short", at_most).add_string("long", at_most + "v").add_u32("last", 7));
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(*header->get<std::string_view>("short"), at_most);
  const auto refused = header->get<std::string_view>("long");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().subject, "long");
  EXPECT_EQ(header->key_at(1), "long");
  EXPECT_EQ(*header->get<std::uint32_t>("last"), 7u);
  // Half a gigabyte of numbers is not even looked at.
  GgufWriter numbers;
  numbers.add_raw_array("k", FileType::kF32, std::uint64_t{100} << 20, {});
  EXPECT_TRUE(GgufHeader::parse(SparseSource(numbers.header_bytes(), std::uint64_t{1} << 40), "test.gguf")
                  .has_value());
}

TEST(GgufHeader, ShortValuesAndTheVocabularyMayReachTheirCapsAndNoFurther) {
  const auto short_values = [](std::uint64_t num_bytes) {  // of keys and values together
    GgufWriter writer;
    for (std::uint64_t left = num_bytes, index = 0; left > 0; ++index) {
      const std::string key = "key" + std::to_string(1000 + index);
      const std::uint64_t take = std::min<std::uint64_t>(left, 60'000);
      writer.add_string(key, std::string(take - key.size() - 8, 'v'));
      left -= take;
    }
    return parse(writer);
  };
  EXPECT_TRUE(short_values(kMaxShortBytes).has_value());
  const auto more = short_values(kMaxShortBytes + 1);
  ASSERT_FALSE(more.has_value());
  EXPECT_NE(more.error().message.find("its keys and short values take more than 16 MiB"), std::string::npos)
      << more.error().message;

  const auto vocabulary = [](std::uint64_t num_bytes) {
    GgufWriter writer;
    writer.add_raw_array("tokenizer.ggml.scores", FileType::kU8, num_bytes, {});
    return GgufHeader::parse(SparseSource(writer.header_bytes(), writer.header_bytes().size() + num_bytes),
                             "test.gguf");
  };
  EXPECT_TRUE(vocabulary(kMaxVocabularyBytes).has_value());
  EXPECT_NE(
      vocabulary(kMaxVocabularyBytes + 1).error().message.find("its vocabulary takes more than 128 MiB"),
      std::string::npos);
}

TEST(GgufHeader, AnArrayOfMoreNumbersThanAnyVocabularyHasIsNotGivenOut) {
  const auto numbers = [](std::uint64_t count) {
    GgufWriter writer;
    writer.add_raw_array("tokenizer.ggml.scores", FileType::kU8, count, {});
    const auto header = GgufHeader::parse(
        SparseSource(writer.header_bytes(), writer.header_bytes().size() + count), "test.gguf");
    return header->get<std::vector<std::int32_t>>("tokenizer.ggml.scores");
  };
  EXPECT_EQ(numbers(kMaxArrayStrings)->size(), kMaxArrayStrings);
  EXPECT_EQ(numbers(kMaxArrayStrings + 1).error().code, ErrorCode::kUnsupported);
}

// ---- files that were cut or changed

// Other bytes at the second look: strings that were in their place no longer are.
class ChangingSource final : public ByteSource {
 public:
  ChangingSource(std::vector<std::byte> first, std::vector<std::byte> later)
      : first_(std::move(first)), later_(std::move(later)) {}
  std::uint64_t size() const override { return first_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto& bytes = offset < read_up_to_ ? later_ : first_;
    read_up_to_ = std::max(read_up_to_, offset + out.size());
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return {};
  }

 private:
  std::vector<std::byte> first_, later_;
  mutable std::uint64_t read_up_to_ = 0;
};

TEST(GgufHeader, AVocabularyThatChangesWhileItIsReadIsAnError) {
  GgufWriter writer;
  writer.add_string_array("tokenizer.ggml.tokens", std::vector<std::string>(200'000, "token"));
  std::vector<std::byte> bytes = writer.bytes(), changed = bytes;
  ASSERT_TRUE(GgufHeader::parse(ChangingSource(bytes, bytes), "test.gguf").has_value());
  for (std::size_t i = 1000; i < 1016; ++i) changed[i] = std::byte{0xff};  // one of them is a length
  const auto header = GgufHeader::parse(ChangingSource(bytes, changed), "test.gguf");
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().code, ErrorCode::kIo);
  EXPECT_NE(header.error().message.find("changed while it was being read"), std::string::npos)
      << header.error().message;
}

// About 64 KiB of header with every kind of value and several tensors.
GgufWriter large_header() {
  GgufWriter writer = with_every_type();
  std::vector<std::string> tokens;
  for (int i = 0; i < 400; ++i) tokens.push_back(std::string(150, 'x') + std::to_string(i));
  writer.add_string_array("tokenizer.ggml.tokens", tokens);
  for (int i = 0; i < 60; ++i) {
    writer.add_tensor("blk." + std::to_string(i) + ".weight", TensorType::kQ4_1, {32, 2}, zeros(40));
  }
  return writer;
}

TEST(GgufHeader, EveryCutOfAHeaderIsOneTypedError) {
  const GgufWriter writer = large_header();
  const std::vector<std::byte> bytes = writer.bytes();
  const std::size_t header_size = writer.header_bytes().size();
  ASSERT_GE(header_size, 64u * 1024);
  ASSERT_TRUE(parse(bytes).has_value());
  for (std::size_t size = 0; size < header_size; ++size) {
    // A heap block of exactly this size, so that a sanitizer sees every read beyond it.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto header = parse(cut);
    ASSERT_FALSE(header.has_value()) << "cut at " << size;
    ASSERT_EQ(header.error().code, ErrorCode::kDamagedFile) << "cut at " << size;
    ASSERT_FALSE(header.error().message.empty());
    ASSERT_LE(header.error().byte_offset.value_or(0), size) << "cut at " << size;
  }
}

TEST(GgufHeader, EveryCutOfTheDataNamesTheFirstTensorThatIsIncomplete) {
  const GgufWriter writer = large_header();
  const std::vector<std::byte> bytes = writer.bytes();
  const auto whole = parse(bytes);
  for (const GgufTensor& tensor : whole->tensors()) {
    const std::uint64_t end = tensor.byte_offset + tensor.num_bytes;
    for (const std::uint64_t size : {tensor.byte_offset, end - 1}) {
      const auto cut = parse(std::span(bytes).first(static_cast<std::size_t>(size)));
      ASSERT_FALSE(cut.has_value());
      EXPECT_EQ(cut.error().subject, tensor.name);
    }
  }
}

TEST(GgufHeader, RandomDamageNeverGivesATensorOutsideTheFile) {
  const std::uint64_t seed = 20240611;
  std::mt19937_64 random(seed);
  GgufWriter writer = with_every_type();
  for (int i = 0; i < 6; ++i)
    writer.add_tensor("t" + std::to_string(i), TensorType::kQ8_0, {32, 4}, zeros(136));
  const std::vector<std::byte> bytes = writer.bytes();
  const std::size_t header_size = writer.header_bytes().size();
  int num_accepted = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (std::uint64_t i = 0, n = 1 + random() % 4; i < n; ++i) {
      const std::size_t at = random() % header_size;
      const std::uint64_t kind = random() % 3;
      if (kind == 0) damaged[at] = static_cast<std::byte>(random());
      if (kind == 1) damaged[at] ^= static_cast<std::byte>(1u << (random() % 8));
      if (kind == 2)
        std::memset(&damaged[at], random() % 2 == 0 ? 0xff : 0,
                    std::min<std::size_t>(8, damaged.size() - at));
    }
    const auto header = parse(damaged);
    if (!header.has_value()) continue;
    ++num_accepted;
    for (const GgufTensor& tensor : header->tensors()) {
      ASSERT_LE(tensor.num_bytes, damaged.size()) << "seed " << seed << " round " << round;
      ASSERT_LE(tensor.byte_offset, damaged.size() - tensor.num_bytes)
          << "seed " << seed << " round " << round;
    }
    for (const char* key :
         {"u8", "i64", "text", "texts", "i32s", "f32s"}) {  // whatever it is now, asking is safe
      (void)header->find<std::uint32_t>(key);
      (void)header->find<std::string_view>(key);
      (void)header->find<std::vector<std::string_view>>(key);
      (void)header->find<std::vector<float>>(key);
    }
  }
  EXPECT_GT(num_accepted, 100);  // else the test says nothing about accepted files
}

// Shrinks or changes between two reads, as a file can.
class FailingSource final : public ByteSource {
 public:
  FailingSource(std::span<const std::byte> bytes, std::uint64_t readable)
      : source_(bytes), readable_(readable) {}
  std::uint64_t size() const override { return source_.size(); }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset + out.size() > readable_) return Error{ErrorCode::kIo, "shrank"};
    return source_.read(offset, out);
  }

 private:
  MemorySource source_;
  std::uint64_t readable_;
};

TEST(GgufHeader, AFileThatShrinksWhileItIsReadIsAnError) {
  const std::vector<std::byte> bytes = large_header().bytes();
  const auto header = GgufHeader::parse(FailingSource(bytes, 1000), "test.gguf");
  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().code, ErrorCode::kIo);
}

// Of this thread: what a busy machine does meanwhile does not count.
double cpu_seconds() {
  struct timespec now {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(GgufHeader, AVocabularyOfAMillionTokensIsReadInWellUnderTwoSeconds) {
  std::vector<std::string> tokens, merges;
  for (int i = 0; i < 1'000'000; ++i) {
    tokens.push_back("token" + std::to_string(i));
    merges.push_back("left" + std::to_string(i) + " right");
  }
  GgufWriter writer;
  writer.add_string_array("tokenizer.ggml.tokens", tokens)
      .add_array("tokenizer.ggml.token_type", std::vector<std::int32_t>(tokens.size(), 1));
  writer.add_string_array("tokenizer.ggml.merges", merges);
  const std::vector<std::byte> bytes = writer.bytes();
  const double start = cpu_seconds();
  const auto header = parse(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->get<std::vector<std::string_view>>("tokenizer.ggml.tokens")->back(), "token999999");
  EXPECT_EQ(header->get<std::vector<std::int32_t>>("tokenizer.ggml.token_type")->size(), 1'000'000u);
  EXPECT_EQ(header->get<std::vector<std::string_view>>("tokenizer.ggml.merges")->size(), 1'000'000u);
  const double elapsed = cpu_seconds() - start;
  EXPECT_LT(elapsed, 1.5);
  RecordProperty("seconds", std::to_string(elapsed));
}

}  // namespace
}  // namespace octavo::model
