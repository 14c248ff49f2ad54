// Every hostile file through the program, as a person would meet it: one line that names what is wrong, exit
// status 1, little memory, soon.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>

#include "tests/hostile/hostile_files.h"
#include "tests/hostile/measured_program.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_folder.h"

namespace octavo::test {
namespace {

#if defined(__has_feature)
#define OCTAVO_HAS_FEATURE(feature) __has_feature(feature)
#else
#define OCTAVO_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || OCTAVO_HAS_FEATURE(address_sanitizer)
constexpr long kMostKibibytesAbove = 1024 * 1024;  // the sanitizer's own memory counts, too
#else
constexpr long kMostKibibytesAbove = 64 * 1024;
#endif
constexpr double kMostSeconds = 10.0;  // the aim is one; a busy machine may take longer

std::vector<std::string> inspect(const std::filesystem::path& path) { return {"inspect", path.string()}; }

std::vector<std::string> generate(const std::filesystem::path& path) {
  return {"generate", "--model",   path.string(), "--prompt",        "the", "--max-tokens",
          "4",        "--threads", "1",           "--num-kv-blocks", "8"};
}

std::vector<std::string> generate_from_messages(const std::filesystem::path& path,
                                                const std::filesystem::path& messages) {
  return {"generate",
          "--model",
          path.string(),
          "--messages-file",
          messages.string(),
          "--max-tokens",
          "4",
          "--threads",
          "1",
          "--num-kv-blocks",
          "8"};
}

bool is_printable_line(const std::string& text) {
  if (text.empty() || text.back() != '\n') return false;
  for (std::size_t i = 0; i + 1 < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    if (!c.valid || c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0) ||
        (c.value >= 0x200e && c.value <= 0x200f) || (c.value >= 0x2028 && c.value <= 0x202e) ||
        (c.value >= 0x2066 && c.value <= 0x2069)) {
      return false;
    }
    i += c.length;
  }
  return true;
}

void expect_one_line(const HostileFile& file, const Measured& run, long base_kibibytes) {
  EXPECT_EQ(run.status, 1) << run.err << run.out;
  EXPECT_EQ(run.err.rfind("octavo: ", 0), 0u) << run.err;
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_TRUE(is_printable_line(run.err)) << run.err;
  EXPECT_NE(run.err.find(file.sentence), std::string::npos) << run.err;
  EXPECT_LE(run.peak_kibibytes, base_kibibytes + kMostKibibytesAbove);
  EXPECT_LE(run.seconds, kMostSeconds);
}

TEST(HostileFiles, EachIsOneTypedLineWithStatusOneInLittleMemory) {
  const TemporaryFolder base_folder;
  const std::string messages = (base_folder / "messages.json").string();
  std::ofstream(messages) << R"([{"role": "user", "content": "hello"}])";
  const auto unharmed = unharmed_file().make(base_folder.path());
  const Measured seen = run_measured(inspect(unharmed), base_folder.path().string());
  const Measured used = run_measured(generate(unharmed), base_folder.path().string());
  const Measured chatted =
      run_measured(generate_from_messages(unharmed, messages), base_folder.path().string());
  ASSERT_EQ(seen.status, 0) << seen.err;
  ASSERT_EQ(used.status, 0) << used.err;
  ASSERT_EQ(chatted.status, 0) << chatted.err;

  const HostileFiles files = some_of(all_hostile_files(), 3);  // all: tests/long/run hostile
  double slowest = 0.0;
  long most_kibibytes = 0;
  std::string slowest_name, largest_name;
  for (const HostileFile& file : files) {
    SCOPED_TRACE(file.name);
    const TemporaryFolder folder;
    const auto path = file.make(folder.path());
    const Measured looked = run_measured(inspect(path), folder.path().string());
    if (file.refused == Refused::kOpening || file.refused == Refused::kMessages) {
      expect_one_line(file, looked, seen.peak_kibibytes);
    } else {
      EXPECT_EQ(looked.status, 0) << looked.err;
    }
    const Measured run = run_measured(
        file.refused == Refused::kMessages ? generate_from_messages(path, messages) : generate(path),
        folder.path().string());
    expect_one_line(file, run, used.peak_kibibytes);
    if (const double seconds = std::max(looked.seconds, run.seconds); seconds > slowest)
      slowest = seconds, slowest_name = file.name;
    const long above =
        std::max(looked.peak_kibibytes - seen.peak_kibibytes, run.peak_kibibytes - used.peak_kibibytes);
    if (above > most_kibibytes) most_kibibytes = above, largest_name = file.name;
  }
  RecordProperty("files", static_cast<int>(files.size()));
  std::printf("%zu hostile files; slowest run %.2f s (%s); most memory above a valid file %.1f MiB (%s)\n",
              files.size(), slowest, slowest_name.c_str(), static_cast<double>(most_kibibytes) / 1024.0,
              largest_name.c_str());
}

TEST(HostileFiles, AreManyAndEachHasItsNameAndRule) {
  std::set<std::string> names, rules;
  for (const HostileFile& file : all_hostile_files()) {
    EXPECT_TRUE(names.insert(file.name).second) << file.name << " stands in the table twice";
    rules.insert(file.rule);
  }
  EXPECT_GE(names.size(), 250u);
  for (const char* rule : {"G1",  "G2",  "G3",  "G4", "G5", "G6", "G7", "G8", "G9", "G10",
                           "G11", "G13", "G14", "M1", "M2", "M4", "M5", "M7", "M8", "S6"}) {
    EXPECT_TRUE(rules.contains(rule)) << "no file for " << rule;
  }
}

// ---- what looks odd and holds

TEST(HostileFiles, WhatIsOnlyOddLoads) {
  const TemporaryFolder folder;
  const auto expect_loads = [&](const char* what, const std::function<void(ModelDraft&)>& change) {
    SCOPED_TRACE(what);
    ModelDraft draft = tiny_draft();
    change(draft);
    draft.write(folder / "m.gguf");
    const Measured looked = run_measured(inspect(folder / "m.gguf"), folder.path().string());
    EXPECT_EQ(looked.status, 0) << looked.err;
    EXPECT_EQ(looked.out.find('\x1b'), std::string::npos);
    const Measured run = run_measured(generate(folder / "m.gguf"), folder.path().string());
    EXPECT_EQ(run.status, 0) << run.err;
  };
  expect_loads("version 2", [](ModelDraft& d) { d.version = 2; });
  expect_loads("keys that nobody reads", [](ModelDraft& d) {
    d.set_string("x.y", "z").set_array<std::uint64_t>("x", std::vector<std::uint64_t>(100'000));
  });
  expect_loads("keys in another order", [](ModelDraft& d) { std::reverse(d.keys.begin(), d.keys.end()); });
  expect_loads("tensors in another order",
               [](ModelDraft& d) { std::reverse(d.tensors.begin(), d.tensors.end()); });
  expect_loads("a stale vocabulary size", [](ModelDraft& d) { d.set_u32("llama.vocab_size", 7); });
  expect_loads("a name with terminal sequences",
               [](ModelDraft& d) { d.set_string("general.name", "\x1b[2J\n\x1b]0;x\x07"); });
  expect_loads("an alignment of 65536",
               [](ModelDraft& d) { d.alignment = 65'536, d.set_u32("general.alignment", 65'536); });
  expect_loads("an alignment of 8",
               [](ModelDraft& d) { d.alignment = 8, d.set_u32("general.alignment", 8); });
  expect_loads("a context of millions of tokens",
               [](ModelDraft& d) { d.set_u32("llama.context_length", 1u << 22); });
  expect_loads("counts as other integers", [](ModelDraft& d) {
    d.set_u64("llama.block_count", 1)
        .set_number<std::uint16_t>("llama.attention.head_count", 4)
        .set_i32("llama.embedding_length", 64);
  });
  expect_loads("a long text that nobody reads",
               [](ModelDraft& d) { d.set_string("tokenizer.huggingface.json", std::string(8u << 20, 'x')); });
}

TEST(HostileFiles, HugeValuesThatNobodyReadsCostNoMemory) {
  const TemporaryFolder folder;
  const auto unharmed = unharmed_file().make(folder.path());
  const Measured base = run_measured(inspect(unharmed), folder.path().string());
  // 400 MiB of numbers under a key that nobody reads, as a hole in the file.
  const ModelDraft draft = tiny_draft();
  ModelDraft keys = draft;
  keys.tensors.clear();
  keys.claimed_keys = draft.keys.size() + 1;
  keys.claimed_tensors = draft.tensors.size();
  constexpr std::uint64_t kHole = std::uint64_t{400} << 20;
  ByteWriter before;
  before.raw(keys.header_bytes()).string("x").number(9u).number(0u).number(kHole);
  ModelDraft none = draft;
  none.keys.clear();
  const std::vector<std::byte> list = none.header_bytes();
  ByteWriter data;
  for (const ModelDraft::Tensor& each : draft.tensors) data.raw(each.bytes).pad_to_multiple(32);
  const auto write_at = [&](std::uint64_t offset, std::span<const std::byte> bytes) {
    std::fstream file(folder / "m.gguf", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  std::ofstream(folder / "m.gguf").flush();
  const std::uint64_t list_offset = before.size() + kHole, list_bytes = list.size() - 24;
  write_at(0, before.bytes());
  write_at(list_offset, std::span(list).subspan(24));
  write_at((list_offset + list_bytes + 31) / 32 * 32, data.bytes());
  const Measured run = run_measured(inspect(folder / "m.gguf"), folder.path().string());
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_LE(run.peak_kibibytes, base.peak_kibibytes + kMostKibibytesAbove);
}

}  // namespace
}  // namespace octavo::test
