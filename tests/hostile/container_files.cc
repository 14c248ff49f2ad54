// G1..G11: counts, lengths, shapes, offsets, alignment, types, duplicates.
#include "tests/hostile/hostile_files.h"

namespace octavo::test {
namespace {

constexpr std::uint64_t kAllOnes = ~std::uint64_t{0};
constexpr std::uint32_t kStringType = 8, kArrayType = 9;

std::vector<std::byte> bytes_of(std::string_view text) { return ByteWriter().raw(text).bytes(); }
std::string number(std::uint64_t value) { return std::to_string(value); }

// A string value that claims a length and holds eight bytes.
std::vector<std::byte> claimed_string(std::uint64_t length) {
  return ByteWriter().number(length).raw("12345678").bytes();
}

void add_beginnings(HostileFiles& files) {
  files.push_back(raw("container/empty", "G11", "ends within its first four bytes", {}));
  files.push_back(raw("container/one-byte", "G11", "ends within its first four bytes", bytes_of("G")));
  files.push_back(raw("container/three-bytes", "G11", "ends within its first four bytes", bytes_of("GGU")));
  files.push_back(raw("container/magic-only", "G11", "ends within the version number", bytes_of("GGUF")));
  files.push_back(raw("container/magic-and-version", "G11", "ends within the number of tensors",
                      ByteWriter().raw("GGUF").number(3u).bytes()));
  files.push_back(raw("container/half-a-count", "G11", "ends within the number of tensors",
                      ByteWriter().raw("GGUF").number(3u).number(0u).bytes()));
  files.push_back(raw("container/no-key-count", "G11", "ends within the number of keys",
                      ByteWriter().raw("GGUF").number(3u).number(std::uint64_t{0}).bytes()));
  files.push_back(
      raw("container/no-keys-at-all", "G11", "general.architecture is missing",
          ByteWriter().raw("GGUF").number(3u).number(std::uint64_t{0}).number(std::uint64_t{0}).bytes()));
  files.push_back(raw("container/zeros", "G11", "not a GGUF file", std::vector<std::byte>(4096)));
  for (const auto& [name, start] :
       std::vector<std::pair<std::string, std::string>>{{"text", "This is no model.\n"},
                                                        {"json", "{\"weight_map\": {}}"},
                                                        {"zip", "PK\x03\x04\x14"},
                                                        {"elf",
                                                         "\x7f"
                                                         "ELF\x02"},
                                                        {"ggml", "lmgg\x01"},
                                                        {"ggjt", "tjgg\x03"},
                                                        {"lower-case", "gguf\x03"},
                                                        {"reversed", "FUGG\x03"},
                                                        {"terminal", "\x1b[2J\x1b]0;x\x07"},
                                                        {"line-breaks", "\n\n\n\n"},
                                                        {"python", "#!/usr/bin/env python3\n"}}) {
    files.push_back(raw("container/other-format-" + name, "G11", "this is not a GGUF file",
                        bytes_of(start + std::string(100, 'x'))));
  }
  for (const std::uint32_t version : {0u, 1u, 4u, 0xffffffffu}) {
    files.push_back(changed("container/version-" + number(version), "G11", "is not supported",
                            [=](ModelDraft& d) { d.version = version; }));
  }
  files.push_back(
      changed("container/big-endian", "G11", "big-endian", [](ModelDraft& d) { d.version = 0x03000000; }));
}

void add_counts(HostileFiles& files) {
  for (const std::uint64_t count : {std::uint64_t{65'537}, std::uint64_t{1} << 32, std::uint64_t{1} << 61,
                                    std::uint64_t{1} << 63, kAllOnes}) {
    files.push_back(changed("container/tensors-" + number(count), "G1",
                            "claims " + number(count) + " tensors",
                            [=](ModelDraft& d) { d.claimed_tensors = count; }));
    files.push_back(changed("container/keys-" + number(count), "G1", "claims " + number(count) + " keys",
                            [=](ModelDraft& d) { d.claimed_keys = count; }));
  }
  files.push_back(changed("container/one-tensor-more", "G1", "",
                          [](ModelDraft& d) { d.claimed_tensors = d.tensors.size() + 1; }));
  files.push_back(
      changed("container/one-key-more", "G1", "", [](ModelDraft& d) { d.claimed_keys = d.keys.size() + 1; }));
  files.push_back(
      changed("container/one-key-less", "G1", "", [](ModelDraft& d) { d.claimed_keys = d.keys.size() - 1; }));
  files.push_back(changed("container/one-tensor-less", "G1", "",
                          [](ModelDraft& d) { d.claimed_tensors = d.tensors.size() - 1; }));
  files.push_back(
      changed("container/no-tensors", "G1", "is missing", [](ModelDraft& d) { d.claimed_tensors = 0; }));
  for (const auto& [type, name] : std::vector<std::pair<std::uint32_t, std::string>>{
           {0, "u8"}, {4, "u32"}, {6, "f32"}, {7, "bool"}, {8, "string"}, {10, "u64"}}) {
    for (const std::uint64_t count : {std::uint64_t{1} << 32, std::uint64_t{1} << 61, kAllOnes}) {
      files.push_back(changed("container/array-of-" + name + "-" + number(count), "G1",
                              "\"x\" claims " + number(count) + " elements",
                              [type = type, count](ModelDraft& d) {
                                d.set_raw_array("x", type, count, std::vector<std::byte>(64));
                              }));
    }
  }
  files.push_back(changed("container/strings-over-their-cap", "G10", "at most 4194304", [](ModelDraft& d) {
    d.set_raw_array("tokenizer.ggml.merges", kStringType, (1u << 22) + 1,
                    std::vector<std::byte>(((1u << 22) + 1) * 8));
  }));
}

void add_lengths(HostileFiles& files) {
  for (const std::uint64_t length :
       {std::uint64_t{9}, std::uint64_t{1} << 32, std::uint64_t{1} << 63, kAllOnes - 7, kAllOnes}) {
    files.push_back(changed("container/string-length-" + number(length), "G2", "", [=](ModelDraft& d) {
      d.tensors.clear();  // nothing behind it that it could reach into
      d.set_raw("x", kStringType, claimed_string(length));
    }));
    files.push_back(changed("container/tensor-name-length-" + number(length), "G2", "",
                            [=](ModelDraft& d) { d.tensors.back().name_length = length + 60; }));
  }
  files.push_back(changed("container/string-over-its-cap", "G2", "at most 16777216", [](ModelDraft& d) {
    d.set_raw("x", kStringType, claimed_string((16u << 20) + 1));
  }));
  files.push_back(changed("container/template-over-its-cap", "G2", "at most 1048576", [](ModelDraft& d) {
    d.set_string("tokenizer.chat_template", std::string((1u << 20) + 1, 'x'));
  }));
  files.push_back(changed("container/key-over-its-cap", "G2", "at most 65535",
                          [](ModelDraft& d) { d.set_u32(std::string(65'536, 'k'), 1); }));
  files.push_back(changed("container/tensor-name-over-its-cap", "G2", "at most 64",
                          [](ModelDraft& d) { d.tensors.back().name = std::string(65, 'n'); }));
  files.push_back(
      changed("container/token-length-too-long", "G2", "tokenizer.ggml.tokens", [](ModelDraft& d) {
        d.set_raw_array("tokenizer.ggml.tokens", kStringType, 2,
                        ByteWriter().string("a").number(kAllOnes).bytes());
      }));
  files.push_back(changed("container/keys-in-all-too-long", "G10", "more than 16 MiB", [](ModelDraft& d) {
    for (int i = 0; i < 280; ++i) d.set_u32(std::string(60'000, 'k') + std::to_string(i), 1);
  }));
  files.push_back(changed("container/general-name-of-a-mebibyte", "G10", "general.name",
                          [](ModelDraft& d) { d.set_string("general.name", std::string(1u << 20, 'n')); }));
}

void add_shapes(HostileFiles& files) {
  const auto shape = [&](const std::string& name, const std::string& sentence,
                         std::vector<std::uint64_t> dimensions) {
    files.push_back(changed("container/shape-" + name, "G3", sentence,
                            [=](ModelDraft& d) { d.tensors.back().dimensions = dimensions; }));
  };
  shape("zero", "has a dimension of 0", {0});
  shape("zero-of-two", "has a dimension of 0", {64, 0});
  shape("all-zero", "has a dimension of 0", {0, 0, 0, 0});
  shape("minus-one", "has a dimension of 18446744073709551615", {kAllOnes});
  shape("smallest-negative", "has a dimension of 9223372036854775808", {std::uint64_t{1} << 63});
  shape("over-the-cap", "has a dimension of 1099511627777", {(std::uint64_t{1} << 40) + 1});
  shape("elements-wrap", "more elements than 64 bits", {std::uint64_t{1} << 40, std::uint64_t{1} << 40});
  shape("elements-wrap-to-zero", "more elements than 64 bits",
        {std::uint64_t{1} << 32, std::uint64_t{1} << 32, 1, 1});
  shape("elements-wrap-late", "more elements than 64 bits",
        {std::uint64_t{1} << 30, std::uint64_t{1} << 30, 4, 4});
  shape("no-dimensions", "has 0 dimensions", {});
  shape("five-dimensions", "has 5 dimensions", {64, 1, 1, 1, 1});
  files.push_back(changed("container/shape-count-4294967295", "G3", "has 4294967295 dimensions",
                          [](ModelDraft& d) { d.tensors.back().num_dimensions = 0xffffffffu; }));
  files.push_back(changed("container/bytes-wrap", "G3", "is outside the file", [](ModelDraft& d) {
    d.tensors.back().dimensions = {std::uint64_t{1} << 40, std::uint64_t{1} << 21};
  }));
  files.push_back(changed("container/bytes-wrap-64-bits", "G3", "more bytes than 64 bits", [](ModelDraft& d) {
    d.tensors.back().dimensions = {std::uint64_t{1} << 40, std::uint64_t{1} << 22};
  }));
  files.push_back(
      changed("container/rows-are-no-whole-blocks", "G3", "cannot divide into blocks of 32",
              [](ModelDraft& d) { d.tensors.back().type = 8, d.tensors.back().dimensions = {33}; }));
  files.push_back(changed("container/rows-shorter-than-a-block", "G3", "cannot divide into blocks of 256",
                          [](ModelDraft& d) { d.tensors.back().type = 12; }));
  for (const auto& [type, columns, block] :
       std::vector<std::tuple<std::uint32_t, std::uint64_t, std::string>>{{16, 128, "256"},
                                                                          {18, 128, "256"},
                                                                          {21, 288, "256"},
                                                                          {29, 257, "256"},
                                                                          {34, 64, "256"},
                                                                          {40, 32, "64"},
                                                                          {41, 64, "128"},
                                                                          {42, 96, "64"}}) {
    files.push_back(changed(
        "container/rows-of-type-" + std::to_string(type), "G3", "cannot divide into blocks of " + block,
        [=](ModelDraft& d) { d.tensors.back().type = type, d.tensors.back().dimensions = {columns}; }));
  }
  // Number 42 with blocks of 128 in 34 bytes, as some wrote it: its tensors end where the next begin not.
  files.push_back(changed("container/q2_0-in-larger-blocks", "G5", "is listed at", [](ModelDraft& d) {
    d.set_tensor("blk.0.attn_q.weight", 42, {64, 64}, std::vector<std::byte>(64 * 64 / 128 * 34));
  }));
}

void add_places(HostileFiles& files) {
  const auto offset = [&](const std::string& name, std::size_t from_the_end, std::uint64_t at,
                          std::string rule = "G5") {
    files.push_back(changed("container/offset-" + name, rule, "is listed at", [=](ModelDraft& d) {
      d.tensors[d.tensors.size() - 1 - from_the_end].offset = at;
    }));
  };
  offset("zero", 0, 0);
  offset("one", 0, 1);
  offset("all-ones", 0, kAllOnes);
  offset("half", 0, std::uint64_t{1} << 63);
  offset("wraps", 0, kAllOnes - 31);
  offset("wraps-of-the-first", 11 - 1, kAllOnes - 31);
  offset("hole", 0, 1u << 20);
  files.push_back(changed("container/offsets-swapped", "G5", "is listed at",
                          [](ModelDraft& d) { d.tensors[0].offset = 4096, d.tensors[1].offset = 0; }));
  files.push_back(changed("container/sum-of-sizes-wraps", "G4", "is outside the file", [](ModelDraft& d) {
    for (std::size_t i : {0u, 1u}) d.tensors[i].dimensions = {std::uint64_t{1} << 40, std::uint64_t{1} << 20};
  }));
  files.push_back(changed("container/padding-wraps", "G4", "", [](ModelDraft& d) {
    d.tensors[0].type = 24, d.tensors[0].dimensions = {std::uint64_t{1} << 40, 1u << 20, 8 - 1, 1};
  }));
  files.push_back(
      changed("container/last-tensor-one-byte-short", "G5", "is outside the file", [](ModelDraft& d) {
        d.alignment = 1, d.tensors.resize(1), d.tensors[0].bytes.pop_back(),
        d.tensors[0].dimensions = {d.tensors[0].bytes.size() / 4 + 1}, d.tensors[0].name = "x";
      }));
  files.push_back(changed("container/no-data", "G5", "is outside the file", [](ModelDraft& d) {
    for (ModelDraft::Tensor& each : d.tensors)
      each.bytes.clear(), each.offset = &each == &d.tensors[0] ? 0 : kAllOnes;
  }));
  for (const std::uint32_t alignment :
       {0u, 1u, 2u, 4u, 7u, 12u, 24u, 33u, 65'537u, 131'072u, 0x80000000u, 0xffffffffu}) {
    files.push_back(changed("container/alignment-" + number(alignment), "G6",
                            "general.alignment is " + number(alignment),
                            [=](ModelDraft& d) { d.set_u32("general.alignment", alignment); }));
  }
  files.push_back(changed("container/alignment-u64", "G6", "general.alignment has type u64",
                          [](ModelDraft& d) { d.set_u64("general.alignment", 32); }));
  files.push_back(changed("container/alignment-i32", "G6", "general.alignment has type i32",
                          [](ModelDraft& d) { d.set_i32("general.alignment", 32); }));
  files.push_back(changed("container/alignment-f32", "G6", "general.alignment has type f32",
                          [](ModelDraft& d) { d.set_f32("general.alignment", 32); }));
  files.push_back(changed("container/alignment-string", "G6", "general.alignment has type string",
                          [](ModelDraft& d) { d.set_string("general.alignment", "32"); }));
  files.push_back(changed("container/alignment-array", "G6", "general.alignment has type array",
                          [](ModelDraft& d) { d.set_array<std::uint32_t>("general.alignment", {32}); }));
  files.push_back(changed("container/alignment-of-another-file", "G6", "",
                          [](ModelDraft& d) { d.set_u32("general.alignment", 4096); }));
}

void add_types(HostileFiles& files) {
  for (const std::uint32_t type : {13u, 255u, 0x80000000u, 0xffffffffu}) {
    files.push_back(changed("container/value-type-" + number(type), "G8", "has value type " + number(type),
                            [=](ModelDraft& d) { d.set_raw("x", type, std::vector<std::byte>(8)); }));
    files.push_back(
        changed("container/element-type-" + number(type), "G8", "has value type " + number(type),
                [=](ModelDraft& d) { d.set_raw_array("x", type, 1, std::vector<std::byte>(8)); }));
  }
  files.push_back(changed("container/array-of-arrays", "G8", "array of arrays", [](ModelDraft& d) {
    d.set_raw_array("x", kArrayType, 1, ByteWriter().number(4u).number(std::uint64_t{1}).number(7u).bytes());
  }));
  files.push_back(changed("container/arrays-a-thousand-deep", "G8", "array of arrays", [](ModelDraft& d) {
    ByteWriter nested;
    for (int i = 0; i < 1000; ++i) nested.number(kArrayType).number(std::uint64_t{1});
    d.set_raw_array("x", kArrayType, 1, nested.bytes());
  }));
  for (const int value : {2, 3, 128, 255}) {
    files.push_back(changed("container/boolean-" + std::to_string(value), "G8", "but booleans must be 0 or 1",
                            [=](ModelDraft& d) { d.set_bool("x", static_cast<std::uint8_t>(value)); }));
  }
  files.push_back(
      changed("container/boolean-in-an-array", "G8", "but booleans must be 0 or 1", [](ModelDraft& d) {
        d.set_raw_array("x", 7, 200'000, std::vector<std::byte>(200'000, std::byte{2}));
      }));
}

void add_names(HostileFiles& files) {
  files.push_back(changed("container/duplicate-key-equal", "G9", "appears twice",
                          [](ModelDraft& d) { d.keys.push_back(d.keys[2]); }));
  files.push_back(changed("container/duplicate-key-other-value", "G9", "appears twice", [](ModelDraft& d) {
    d.keys.push_back(d.keys[2]);
    d.keys.back().value[0] = std::byte{9};
  }));
  files.push_back(changed("container/duplicate-key-other-type", "G9", "appears twice", [](ModelDraft& d) {
    d.add_raw("llama.block_count", kStringType, ByteWriter().string("1").bytes());
  }));
  files.push_back(changed("container/duplicate-key-unknown", "G9", "appears twice", [](ModelDraft& d) {
    d.set_u32("nobody.reads.this", 1).add_raw("nobody.reads.this", 4, ByteWriter().number(1u).bytes());
  }));
  files.push_back(changed("container/duplicate-alignment", "G9", "appears twice", [](ModelDraft& d) {
    d.set_u32("general.alignment", 32).add_raw("general.alignment", 4, ByteWriter().number(64u).bytes());
  }));
  files.push_back(changed("container/duplicate-tensor-equal", "G9", "appears twice",
                          [](ModelDraft& d) { d.tensors.push_back(d.tensors[1]); }));
  files.push_back(changed("container/duplicate-tensor-other-shape", "G9", "appears twice", [](ModelDraft& d) {
    d.tensors.push_back(d.tensors[1]);
    d.tensors.back().dimensions = {32, 2};
  }));
  files.push_back(changed("container/duplicate-tensor-unknown", "G9", "appears twice", [](ModelDraft& d) {
    for (int i = 0; i < 2; ++i) d.add_tensor("nobody.reads.this", 0, {1}, std::vector<std::byte>(4));
  }));
  files.push_back(changed("container/empty-key", "G9", "is empty", [](ModelDraft& d) { d.set_u32("", 1); }));
  files.push_back(changed("container/empty-tensor-name", "G9", "has no name",
                          [](ModelDraft& d) { d.add_tensor("", 0, {1}, std::vector<std::byte>(4)); }));
  const auto name = [&](const std::string& what, const std::string& text) {
    files.push_back(changed("container/key-named-with-" + what, "G9", "appears twice", [=](ModelDraft& d) {
      d.set_u32(text, 1).add_raw(text, 4, ByteWriter().number(1u).bytes());
    }));
    files.push_back(changed("container/tensor-named-with-" + what, "G9", "has a dimension of 0",
                            [=](ModelDraft& d) { d.add_tensor(text, 0, {0}, {}); }));
  };
  name("a-line-break", "a\nb\r\nc");
  name("a-zero-byte", std::string("a\0b", 3));
  name("terminal-sequences", "\x1b[2J\x1b[31m\x1b]0;title\x07");
  name("a-c1-control",
       "\xc2\x9b"
       "31m");
  name("reversed-text",
       "\xe2\x80\xae"
       "gniht");
  name("invalid-utf-8", "\xff\xfe\xc0\x80");
  name("a-line-separator",
       "a\xe2\x80\xa8"
       "b");
  name("format-specifiers", "%n%s%p%99999999d");
}

}  // namespace

void add_container_files(HostileFiles& files) {
  add_beginnings(files);
  add_counts(files);
  add_lengths(files);
  add_shapes(files);
  add_places(files);
  add_types(files);
  add_names(files);
}

}  // namespace octavo::test
