#include "app/commands/inspect.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_writer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

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

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void expect_one_line_on_stderr(const Outcome& outcome, int status) {
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err.rfind("octavo: ", 0), 0u) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(Inspect, ComputesShapesWithoutAFile) {
  const Outcome opt =
      inspect({"--shape", "opt-30b", "--precision", "2", "--tokens", "1024", "--batch", "128"});
  EXPECT_EQ(opt.status, 0) << opt.err;
  EXPECT_TRUE(contains(opt.out, "168 GiB (180,388,626,432 bytes), 1,024 tokens x batch 128")) << opt.out;
  const Outcome gpt2 = inspect({"--shape", "gpt2-xl", "--precision", "4", "--tokens", "6", "--batch", "1"});
  EXPECT_TRUE(contains(gpt2.out, "3.515625 MiB (3,686,400 bytes)")) << gpt2.out;
}

TEST(Inspect, ShapesAsJson) {
  const Outcome outcome =
      inspect({"--shape", "llama-3-8b", "--tokens", "8192", "--memory", "24GiB", "--json"});
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
  test::make_tiny_llama(1, {.weight_type = test::TensorType::kQ4_1, .context_length = 100})
      .write(folder / "m.gguf");
  const Outcome text = inspect({(folder / "m.gguf").string(), "--memory", "1MiB"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"tiny llama", "llama, mostly Q4_1", "2 layers, each 2 x 2 heads x 16 dimensions x 2 bytes",
        "256 B (256 bytes)", "25 KiB (25,600 bytes), 100 tokens", "blk.1.ffn_down.weight", "128 x 64",
        "5 KiB"}) {
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

// 4 value heads of 16 x 16 numbers and 3 tokens of 128 channels, in two layers.
TEST(Inspect, SaysWhatRecurrentLayersTakeAndWhatIsNotUsed) {
  const test::TemporaryFolder folder;
  test::make_tiny_model(test::tiny_model("qwen35moe")).write(folder / "m.gguf");
  const std::string path = (folder / "m.gguf").string();
  const Outcome text = inspect({path, "--memory", "2MiB", "--batch", "3"});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"recurrent       2 of the layers, 1 have attention",
        "not used        1 layer that guesses further tokens, ",
        "KV shape        1 layers, each 2 x 2 heads x 24 dimensions", "KV per token    192 B (192 bytes)",
        "state           11 KiB (11,264 bytes) for each sequence, whatever its length",
        " and states of 33 KiB"}) {
    EXPECT_TRUE(contains(text.out, part)) << part << " in\n" << text.out;
  }
  const auto json = nlohmann::json::parse(inspect({path, "--json"}).out);
  EXPECT_EQ(json["model"]["num_layers"], 3);
  EXPECT_EQ(json["model"]["num_recurrent_layers"], 2);
  EXPECT_EQ(json["model"]["num_skipped_layers"], 1);
  EXPECT_EQ(json["kv"]["bytes_per_state"], 2 * 4 * (4 * 16 * 16 + 3 * 128));
}

TEST(Inspect, CountsLayersWithAttentionWhateverElseTheyHave) {
  const test::TemporaryFolder folder;
  for (const auto& [name, text] :
       {std::pair{"falcon-h1", "recurrent       2 of the layers, 2 have attention"},
        {"nemotron_h", "recurrent       3 of the layers, 1 have attention"}}) {
    test::make_tiny_model(test::tiny_model(name)).write(folder / name);
    const Outcome outcome = inspect({(folder / name).string()});
    EXPECT_TRUE(contains(outcome.out, text)) << outcome.out << outcome.err;
  }
}

TEST(Inspect, NamesInFilesCannotControlTheTerminal) {
  const test::TemporaryFolder folder;
  test::GgufWriter writer = test::make_tiny_llama(1);
  writer.add_tensor_f32("evil\x1b[2J\nname", {1}, {0.0f}).write(folder / "m.gguf");
  const Outcome outcome = inspect({(folder / "m.gguf").string()});  // nothing uses it: it is refused by name
  expect_one_line_on_stderr(outcome, 1);
  EXPECT_FALSE(contains(outcome.err, "\x1b"));
  EXPECT_TRUE(contains(outcome.err, "evil\\x1b[2J\\x0aname"));
}

TEST(Inspect, FailuresAreOneLineWithTheRightStatus) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "bad.gguf", std::vector<std::byte>(100));
  expect_one_line_on_stderr(inspect({(folder / "none.gguf").string()}), 1);
  expect_one_line_on_stderr(inspect({(folder / "bad.gguf").string()}), 1);
  expect_one_line_on_stderr(inspect({folder.path().string()}), 1);
  const Outcome unknown = inspect({"--shape", "gpt-17"});
  expect_one_line_on_stderr(unknown, 2);
  EXPECT_TRUE(contains(unknown.err, ", gpt2, ")) << unknown.err;
  expect_one_line_on_stderr(inspect({"--shape", "opt-13b", "--memory", "much"}), 2);
  expect_one_line_on_stderr(
      inspect({"--shape", "opt-175b", "--tokens", "1099511627776", "--batch", "1099511627776"}), 2);
}

TEST(Inspect, ImpossibleOptionsAreRefused) {
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--precision", "0"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--tokens", "0"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--tokens", "-1"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--batch", "x"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "model.gguf"}).status, 2);
  EXPECT_EQ(inspect({"--shape", "opt-13b", "--colour", "red"}).status, 2);
}

// ---- recordings

// Sequence 1 computes two blocks, sequence 2 forks from it and copies the second; then 1 ends, and a third
// sequence finds its first block again and is swapped out.
void write_recording(const std::filesystem::path& path) {
  using Kind = BlockEventKind;
  const auto recorder = std::make_shared<metrics::StepRecorder>(
      metrics::PoolShape{.block_size = 4, .num_blocks = 10, .num_host_blocks = 2});
  auto file = metrics::RecordingFile::open(path);
  ASSERT_TRUE(file.has_value());
  metrics::RecordingHeader header;
  header.bytes_per_block = 1024;
  header.model = "toy\x1b[31m";
  const metrics::RecordingWriter writer(std::move(*file), header, recorder,
                                        [](const Error& error) { ADD_FAILURE() << error.message; });
  const auto step = [&](StepRecord record, std::vector<BlockEvent> events) {
    record.begin_us = record.step * 1'000'000;
    for (BlockEvent& event : events) {
      event.step = record.step;
      event.time_us = record.begin_us + 500'000;
    }
    recorder->record(record, events);
  };
  const auto event = [](Kind kind, std::uint64_t sequence, std::int32_t block, std::int32_t aux = 0) {
    return BlockEvent{.sequence = sequence, .block = block, .aux = aux, .kind = kind};
  };
  step({.step = 1,
        .num_prefill_tokens = 6,
        .num_running = 1,
        .used_blocks = 2,
        .free_blocks = 8,
        .logical_blocks = 4,
        .filled_slots = 6},
       {event(Kind::kStepBegin, 0, -1, 6), event(Kind::kAlloc, 1, 0), event(Kind::kAlloc, 1, 1),
        event(Kind::kFill, 1, 0, 4), event(Kind::kFill, 1, 1, 2), event(Kind::kSeal, 1, 0),
        event(Kind::kFork, 1, -1, 2), event(Kind::kShare, 2, 0, 2), event(Kind::kShare, 2, 1, 2),
        event(Kind::kStepEnd, 0, -1, 2)});
  step({.step = 2,
        .num_decode_tokens = 2,
        .num_running = 1,
        .used_blocks = 2,
        .cached_blocks = 0,
        .free_blocks = 8,
        .logical_blocks = 2,
        .num_block_copies = 1,
        .filled_slots = 7},
       {event(Kind::kStepBegin, 0, -1, 2), event(Kind::kAlloc, 2, 2), event(Kind::kCopyOnWrite, 2, 1, 2),
        event(Kind::kUnref, 2, 1, 1), event(Kind::kFill, 1, 1, 3), event(Kind::kFill, 2, 2, 3),
        event(Kind::kStepEnd, 0, -1, 3), event(Kind::kUnref, 1, 1, 0), event(Kind::kFree, 1, 1),
        event(Kind::kUnref, 1, 0, 1)});
  step({.step = 3,
        .num_prefill_tokens = 1,
        .num_running = 2,
        .used_blocks = 2,
        .cached_blocks = 0,
        .free_blocks = 8,
        .logical_blocks = 3,
        .filled_slots = 7},
       {event(Kind::kStepBegin, 0, -1, 1), event(Kind::kHit, 3, 0, 2), event(Kind::kStepEnd, 0, -1, 2)});
  step({.step = 4,
        .num_running = 1,
        .num_waiting = 1,
        .used_blocks = 2,
        .free_blocks = 8,
        .logical_blocks = 2,
        .num_preempted = 1,
        .num_swapped_out = 1,
        .filled_slots = 7,
        .host_used_blocks = 1},
       {event(Kind::kStepBegin, 0, -1, 1), event(Kind::kPreempt, 3, -1, 1), event(Kind::kSwapOut, 3, 0, 1),
        event(Kind::kUnref, 3, 0, 1), event(Kind::kStepEnd, 0, -1, 2)});
}

TEST(InspectRecording, SummarisesWhatHappened) {
  const test::TemporaryFolder folder;
  write_recording(folder / "events.rec");
  const Outcome text = inspect({(folder / "events.rec").string()});
  ASSERT_EQ(text.status, 0) << text.err;
  for (const char* part :
       {"events.rec, complete", "10 blocks of 4 tokens, 10 KiB; host pool 2 blocks, 2 KiB",
        "steps           4, 1 to 4", "7 prefilled, 2 decoded",
        "sequences       3, including 1 forked; at most 2 requests ran and 1 waited",
        "used blocks     at most 3, 30.0 % of the pool", "logical blocks  at most 4",
        "at most 2.00 logical blocks per used block, and 2 blocks saved, 2 KiB",
        "copies          1 on write, 0 of part of a block", "prefix hits     1 blocks, 4 tokens",
        "preemptions     1 requests; 0 sequences recomputed, 1 swapped",
        "swaps           1 blocks out, 1 KiB; 0 in", "copy_on_write   1\n",
        "consistent: the events reproduce every recorded level", "3.500 s"}) {
    EXPECT_TRUE(contains(text.out, part)) << part << " in\n" << text.out;
  }
  EXPECT_FALSE(contains(text.out, "\x1b")) << "what a file says does not control the terminal";
  const auto json = nlohmann::json::parse(inspect({(folder / "events.rec").string(), "--json"}).out);
  EXPECT_EQ(json["consistent"], true);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["inconsistency"], nullptr);
  EXPECT_EQ(json["peak_used_blocks"], 3);
  EXPECT_EQ(json["peak_sharing_ratio"], 2.0);
  EXPECT_EQ(json["swap"]["bytes_out"], 1024);
  EXPECT_EQ(json["events"]["alloc"], 3);
  EXPECT_EQ(json["duration_us"], 3'500'000);
  EXPECT_EQ(json["timeline"]["used_blocks"].size(), json["timeline"]["cached_blocks"].size());
}

TEST(InspectRecording, ShowsThePoolsAtAStep) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "events.rec").string();
  write_recording(path);
  const Outcome first = inspect({path, "--at-step", "1"});
  ASSERT_EQ(first.status, 0) << first.err;
  for (const char* part : {"2 used, 0 cached, 8 free", "sequence 1, 2 blocks: 0-1",
                           "sequence 2, 2 blocks: 0-1", "0-1 by sequences 1, 2", "6 filled of 8"}) {
    EXPECT_TRUE(contains(first.out, part)) << part << " in\n" << first.out;
  }
  const auto json = nlohmann::json::parse(inspect({path, "--at-step", "2", "--json"}).out);
  EXPECT_EQ(json["sequences"], nlohmann::json::parse(R"([{"sequence_id": 2, "block_table": [0, 2]}])"));
  EXPECT_EQ(
      json["blocks"][0],
      nlohmann::json::parse(
          R"({"block": 0, "state": "used", "ref_count": 1, "num_pins": 0, "filled": 4, "findable": true, "owners": [2]})"));
  const Outcome none = inspect({path, "--at-step", "9"});
  expect_one_line_on_stderr(none, 1);
  EXPECT_TRUE(contains(none.err, "has no step 9: its steps are 1 to 4")) << none.err;
}

TEST(InspectRecording, WhatIsDamagedOrContradictsItselfFails) {
  const test::TemporaryFolder folder;
  write_recording(folder / "events.rec");
  const auto size = std::filesystem::file_size(folder / "events.rec");
  std::filesystem::copy_file(folder / "events.rec", folder / "cut");
  std::filesystem::resize_file(folder / "cut", size - 1);
  const Outcome cut = inspect({(folder / "cut").string()});
  EXPECT_EQ(cut.status, 0) << cut.err;
  EXPECT_TRUE(contains(cut.out, "truncated; showing what was recorded")) << cut.out;
  std::fstream file(folder / "events.rec", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size / 2));
  file.put('?').flush();
  expect_one_line_on_stderr(inspect({(folder / "events.rec").string()}), 1);

  {
    const auto recorder = std::make_shared<metrics::StepRecorder>(metrics::PoolShape{.num_blocks = 2});
    auto odd = metrics::RecordingFile::open(folder / "odd");
    ASSERT_TRUE(odd.has_value());
    const metrics::RecordingWriter writer(std::move(*odd), {}, recorder, [](const Error&) {});
    recorder->record(StepRecord{.step = 1, .used_blocks = 1, .free_blocks = 1}, {});
  }
  const Outcome odd = inspect({(folder / "odd").string()});
  EXPECT_EQ(odd.status, 1);
  EXPECT_TRUE(contains(odd.out, "replay          inconsistent: step 1 recorded 1 used blocks")) << odd.out;
  EXPECT_TRUE(contains(odd.err, "is inconsistent: step 1 recorded 1 used blocks, but its events give 0\n"))
      << odd.err;
}

TEST(InspectRecording, OnlyARecordingHasSteps) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(1).write(folder / "m.gguf");
  const Outcome outcome = inspect({(folder / "m.gguf").string(), "--at-step", "1"});
  expect_one_line_on_stderr(outcome, 2);
  EXPECT_TRUE(contains(outcome.err, "--at-step")) << outcome.err;
}

// ---- a whole run

TEST(RecordOption, WritesARunThatCanBeReplayed) {
  if (!std::filesystem::exists(tests::default_model())) GTEST_SKIP() << "the default model is not installed";
  const test::TemporaryFolder folder;
  const std::string path = (folder / "run.rec").string();
  const std::vector<std::string> arguments = {"generate",
                                              "--prompt",
                                              "Once upon a time there was",
                                              "--n",
                                              "4",
                                              "--seed",
                                              "1",
                                              "--max-tokens",
                                              "40",
                                              "--num-kv-blocks",
                                              "12",
                                              "--json",
                                              "--record",
                                              path};
  const auto run = tests::run_program(arguments);
  ASSERT_EQ(run.status, 0) << run.err;
  const auto kv = nlohmann::json::parse(run.out)["kv"];
  const Outcome summary = inspect({path, "--json"});
  ASSERT_EQ(summary.status, 0) << summary.err;
  const auto json = nlohmann::json::parse(summary.out);
  EXPECT_EQ(json["complete"], true);
  for (const char* figure :
       {"peak_used_blocks", "peak_logical_blocks", "cow_copies", "evicted_cached_blocks"}) {
    EXPECT_EQ(json[figure], kv[figure]) << figure;
  }
  EXPECT_EQ(json["swap"]["blocks_out"], kv["swapped_out_blocks"]);
  EXPECT_EQ(json["recording"]["bytes_per_block"], kv["bytes_per_block"]);
  EXPECT_GT(json["decode_tokens"], 0);
}

TEST(RecordOption, APathThatCannotBeWrittenIsRefusedAtTheStart) {
  if (!std::filesystem::exists(tests::default_model())) GTEST_SKIP() << "the default model is not installed";
  const test::TemporaryFolder folder;
  for (const std::string& path :
       {folder.path().string(), (folder / "no/folder/x.rec").string(), tests::default_model().string()}) {
    const auto run = tests::run_program({"generate", "--prompt", "x", "--record", path});
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.num_error_lines(), 1u) << run.err;
    EXPECT_TRUE(contains(run.err, "cannot record to")) << run.err;
  }
}

TEST(RecordOption, AFullDiskIsToldOnceAndChangesNothing) {
  if (!std::filesystem::exists(tests::default_model())) GTEST_SKIP() << "the default model is not installed";
  const std::vector<std::string> arguments = {
      "generate", "--prompt", "The capital of France is", "--max-tokens", "8", "--temperature", "0"};
  std::vector<std::string> recorded = arguments;
  recorded.insert(recorded.end(), {"--record", "/dev/full"});
  const auto plain = tests::run_program(arguments), full = tests::run_program(recorded);
  EXPECT_EQ(full.status, 0);
  EXPECT_EQ(full.out, plain.out);
  EXPECT_EQ(full.num_error_lines(), 1u) << full.err;
  EXPECT_TRUE(
      contains(full.err, "octavo: recording to /dev/full ended after step 0: No space left on device"))
      << full.err;
}

}  // namespace
}  // namespace octavo::app
