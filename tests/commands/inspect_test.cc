#include "app/commands/inspect.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

// Through the command line's parser, in this process. What CLI11 refuses has status 2, as in `octavo`.
Outcome inspect(std::vector<std::string> arguments) {
  CLI::App program("octavo");
  Outcome outcome;
  add_inspect_command(program, outcome.status);
  arguments.insert(arguments.begin(), "inspect");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    program.parse(arguments);
  } catch (const CLI::ParseError&) {
    outcome.status = 2;
  }
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void expect_one_line_on_stderr(const Outcome& outcome, int status) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("octavo: ", 0), 0u) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Inspect, ComputesShapesWithoutAFile) {
  const Outcome opt = inspect({"--shape", "opt-30b", "--precision", "2", "--tokens", "1024", "--batch", "128"});
  EXPECT_EQ(opt.status, 0) << opt.err;
  EXPECT_TRUE(contains(opt.out, "168 GiB (180,388,626,432 bytes), 1,024 tokens x batch 128")) << opt.out;
  const Outcome gpt2 = inspect({"--shape", "gpt2-xl", "--precision", "4", "--tokens", "6", "--batch", "1"});
  EXPECT_TRUE(contains(gpt2.out, "3.515625 MiB (3,686,400 bytes)")) << gpt2.out;
}

TEST(Inspect, ShapesAsJson) {
  const Outcome outcome = inspect({"--shape", "llama-3-8b", "--tokens", "8192", "--memory", "24GiB", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["shape"], "llama-3-8b");
  EXPECT_EQ(json["kv"]["bytes_per_token"], 131'072);
  EXPECT_EQ(json["kv"]["total"], "1 GiB");
  const std::uint64_t left = (std::uint64_t{24} << 30) - 2 * 8'030'261'248u;
  EXPECT_EQ(json["kv"]["memory"]["kv_bytes"], left);
  EXPECT_EQ(json["kv"]["memory"]["num_blocks"], left / (16 * 131'072));
}

TEST(Inspect, ListsWhatAFileHolds) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(1, {.weight_type = test::TensorType::kQ4_1, .context_length = 100}).write(folder / "m.gguf");
  const Outcome text = inspect({(folder / "m.gguf").string(), "--memory", "1MiB"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part : {"tiny llama", "llama, mostly Q4_1", "2 layers, each 2 x 2 heads x 16 dimensions x 2 bytes", "256 B (256 bytes)",
                           "25 KiB (25,600 bytes), 100 tokens", "blk.1.ffn_down.weight", "128 x 64", "5 KiB"}) {
    EXPECT_TRUE(contains(text.out, part)) << part << " in\n" << text.out;
  }
  const auto json = nlohmann::json::parse(inspect({(folder / "m.gguf").string(), "--json"}).out);
  EXPECT_EQ(json["model"]["num_layers"], 2);
  EXPECT_EQ(json["kv"]["bytes_per_token_and_layer"], 128);
  EXPECT_EQ(json["tensors"].size(), 20u);
  EXPECT_EQ(json["tensors"][9]["name"], "blk.0.ffn_down.weight");
  EXPECT_EQ(json["tensors"][9]["shape"], (std::vector<int>{128, 64}));
  EXPECT_EQ(json["types"]["Q4_1"]["num_tensors"], 15);
}

TEST(Inspect, NamesInFilesCannotControlTheTerminal) {
  const test::TemporaryFolder folder;
  test::GgufWriter writer = test::make_tiny_llama(1);
  writer.add_tensor_f32("evil\x1b[2J\nname", {1}, {0.0f}).write(folder / "m.gguf");
  const Outcome outcome = inspect({(folder / "m.gguf").string()});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_FALSE(contains(outcome.out, "\x1b"));
  EXPECT_TRUE(contains(outcome.out, "evil\\x1b[2J\\x0aname"));
}

TEST(Inspect, FailuresAreOneLineWithTheRightStatus) {
  const test::TemporaryFolder folder;
  test::GgufWriter::write_file(folder / "bad.gguf", std::vector<std::byte>(100));
  expect_one_line_on_stderr(inspect({(folder / "none.gguf").string()}), 1);
  expect_one_line_on_stderr(inspect({(folder / "bad.gguf").string()}), 1);
  expect_one_line_on_stderr(inspect({folder.path().string()}), 1);
  const Outcome unknown = inspect({"--shape", "gpt-17"});
  expect_one_line_on_stderr(unknown, 2);
  EXPECT_TRUE(contains(unknown.err, "known are gpt2, ")) << unknown.err;
  expect_one_line_on_stderr(inspect({"--shape", "opt-13b", "--memory", "much"}), 2);
  expect_one_line_on_stderr(inspect({"--shape", "opt-175b", "--tokens", "1099511627776", "--batch", "1099511627776"}), 2);
}

TEST(Inspect, ImpossibleOptionsAreRefused) {
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--precision", "0"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--tokens", "0"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--tokens", "-1"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--batch", "x"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "model.gguf"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--colour", "red"}).status, 2);
}

}  // namespace
}  // namespace octavo::app
