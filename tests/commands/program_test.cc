// The program from outside: what it prints, on which stream, and with which exit status.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"
#include "tests/support/run_program.h"
#include "tests/support/tiny_draft.h"

namespace octavo::tests {
namespace {

using nlohmann::json;

std::string scratch_file(const std::string& name, const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("octavo_" + std::to_string(getpid()) + "_" + name);
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

json golden() {
  std::ifstream file(test::source_folder() / "tests/golden/smollm2-135m-instruct-q4_1.json");
  return json::parse(file);
}

// One line on standard error that holds `word`, nothing on standard output, this status.
void expect_one_line(const ProgramResult& result, int status, const std::string& word) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
  EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
}

TEST(CommandLine, AWrongOptionIsNamedOnOneLineWithStatusTwo) {
  expect_one_line(run_program({"generate", "--prompt", "x", "--temprature", "1"}), 2, "--temprature");
  expect_one_line(run_program({"generate", "--prompt", "x", "--temperature", "warm"}), 2, "--temperature");
  expect_one_line(run_program({"generate", "--prompt", "x", "--temperature", "-1"}), 2, "temperature");
  expect_one_line(run_program({"generate", "--threads", "many"}), 2, "is 'many', which is not a number");
  expect_one_line(run_program({"serve", "--port", "99999"}), 2, "--port is '99999', which is out of range");
  expect_one_line(run_program({"modles"}), 2, "no command and no file 'modles'");
  expect_one_line(run_program({testing::TempDir()}), 2, "is a folder; a model's is opened by --model");
  expect_one_line(run_program({"generate", "--prompt", "x", "--top-p", "1.5"}), 2, "top");
  expect_one_line(run_program({"generate", "--prompt", "x", "--n", "0"}), 2, "n");
  expect_one_line(run_program({"generate", "--prompt", "x", "--chat-template-kwargs", "{}"}), 2,
                  "--messages-file");
  expect_one_line(run_program({"chat", "--chat-template-kwargs", "{"}), 2, "--chat-template-kwargs");
  expect_one_line(run_program({"chat", "--chat-template-kwargs", "{\"tools\": 1}"}), 2, "tools");
  expect_one_line(run_program({"generate", "--prompt", "x", "--device", "tpu"}), 2, "--device");
  expect_one_line(run_program({"generate", "--prompt", "x", "--block-size", "0"}), 2, "block-size");
  expect_one_line(run_program({"generate", "--prompt", "x", "--logit-bias", "seven"}), 2, "--logit-bias");
  expect_one_line(run_program({"generate"}), 2, "--prompt");
  expect_one_line(run_program({"no-such-command"}), 2, "no-such-command");
  expect_one_line(
      run_program({"generate", "--prompt", "x", "--num-kv-blocks", "10", "--kv-cache-memory", "10"}), 2,
      "kv");
}

TEST(CommandLine, PartsThatAreNotBuiltAreRefusedNotIgnored) {
  for (const std::vector<std::string>& option :
       std::vector<std::vector<std::string>>{{"--tensor-parallel-size", "2"}, {"--device", "cuda"}}) {
    std::vector<std::string> arguments = {"generate", "--prompt", "x"};
    arguments.insert(arguments.end(), option.begin(), option.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_NE(result.status, 0) << option[0];
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
  }
}

TEST(CommandLine, HelpAndVersionGoToStandardOutput) {
  const ProgramResult help = run_program({"generate", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* option : {"--model",
                             "--device",
                             "--threads",
                             "--dtype",
                             "--activation-dtype",
                             "--block-size",
                             "--kv-cache-dtype",
                             "--num-kv-blocks",
                             "--kv-cache-memory",
                             "--gpu-memory-utilization",
                             "--swap-space",
                             "--max-model-len",
                             "--max-num-seqs",
                             "--max-num-batched-tokens",
                             "--target-step-ms",
                             "--enable-prefix-caching",
                             "--preemption-mode",
                             "--speculative",
                             "--deterministic",
                             "--cuda-graphs",
                             "--tensor-parallel-size",
                             "--record",
                             "--n",
                             "--temperature",
                             "--top-p",
                             "--top-k",
                             "--min-p",
                             "--presence-penalty",
                             "--frequency-penalty",
                             "--repetition-penalty",
                             "--seed",
                             "--max-tokens",
                             "--min-tokens",
                             "--stop",
                             "--stop-token-ids",
                             "--ignore-eos",
                             "--logprobs",
                             "--prompt-logprobs",
                             "--logit-bias",
                             "--beam-width",
                             "--length-penalty",
                             "--early-stopping"}) {
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
  }
  const ProgramResult version = run_program({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_NE(version.out.find("cpu"), std::string::npos);
  EXPECT_NE(version.out.find("portable"), std::string::npos);
}

TEST(CommandLine, WithoutADisplayItNamesTheTerminalChat) {
  expect_one_line(run_program({}, {.environment = {{"DISPLAY", ""}, {"WAYLAND_DISPLAY", ""}}}), 1,
                  "octavo chat");
}

TEST(CommandLine, AModelThatIsMissingOrDamagedIsOneLineWithStatusOne) {
  expect_one_line(run_program({"generate", "--prompt", "x", "--model", "/nowhere/model.gguf"}), 1,
                  "/nowhere/model.gguf");
  expect_one_line(run_program({"generate", "--prompt", "x", "--model", scratch_file("empty.gguf", "")}), 1,
                  "empty.gguf");
  expect_one_line(run_program({"generate", "--prompt", "x", "--model",
                               scratch_file("damaged.gguf", "GGUF\x03\0\0\0 and then nonsense")}),
                  1, "damaged.gguf");
  expect_one_line(run_program({"generate", "--prompt", "x", "--model", testing::TempDir()}), 1, "");
  expect_one_line(
      run_program({"generate", "--prompt", "x", "--model", scratch_file("es\x1b[31mcape.gguf", "no")}), 1,
      "\\x1b");
  expect_one_line(run_program({"generate", "--prompt-file", "/nowhere/prompt.txt"}), 1,
                  "/nowhere/prompt.txt");
  expect_one_line(run_program({"inspect", "/nowhere/model.gguf"}), 1, "/nowhere/model.gguf");
  expect_one_line(run_program({"tokenize", "--model", "/nowhere/model.gguf", "x"}), 1, "/nowhere/model.gguf");
}

TEST(CommandLine, ShapesGiveThePapersSizes) {
  const ProgramResult opt = run_program(
      {"inspect", "--shape", "opt-30b", "--precision", "2", "--tokens", "1024", "--batch", "128"});
  EXPECT_EQ(opt.status, 0) << opt.err;
  EXPECT_NE(opt.out.find("168 GiB"), std::string::npos) << opt.out;
  const ProgramResult gpt =
      run_program({"inspect", "--shape", "gpt2-xl", "--precision", "4", "--tokens", "6", "--batch", "1"});
  EXPECT_EQ(gpt.status, 0) << gpt.err;
  EXPECT_NE(gpt.out.find("3.515625 MiB"), std::string::npos) << gpt.out;
}

// Everything below runs the default model.
class WithModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(default_model()))
      GTEST_SKIP() << "the default model is not installed; packaging/setup installs it";
  }
};

TEST_F(WithModel, GenerateAnswersAndPrintsNothingElse) {
  const ProgramResult result = run_program(
      {"generate", "--prompt", "The capital of France is", "--max-tokens", "16", "--temperature", "0"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("Paris"), std::string::npos) << result.out;
  EXPECT_EQ(result.err, "");
}

TEST_F(WithModel, JsonHasEveryFieldOfTheContract) {
  const ProgramResult result = run_program(
      {"generate", "--prompt", "The capital of France is", "--prompt", "One two three", "--max-tokens", "5",
       "--temperature", "0", "--n", "2", "--json", "--logprobs", "3", "--prompt-logprobs", "--seed", "7"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["device"], "cpu");
  EXPECT_TRUE(answer["model"].is_string());
  EXPECT_TRUE(answer["isa"].is_string());
  ASSERT_EQ(answer["requests"].size(), 2u);
  for (const json& request : answer["requests"]) {
    EXPECT_EQ(request["seed"], 7);
    EXPECT_TRUE(request["num_cached_tokens"].is_number_integer());
    ASSERT_EQ(request["prompt_logprobs"].size(), request["prompt_token_ids"].size());
    EXPECT_TRUE(request["prompt_logprobs"][0].is_null());
    EXPECT_LT(request["prompt_logprobs"][1].get<double>(), 0.0);
    ASSERT_EQ(request["outputs"].size(), 2u);
    for (const json& output : request["outputs"]) {
      ASSERT_EQ(output["token_ids"].size(), 5u);
      ASSERT_EQ(output["logprobs"].size(), 5u);
      ASSERT_EQ(output["top_logprobs"].size(), 5u);
      double sum = 0.0;
      for (std::size_t i = 0; i < 5; ++i) {
        ASSERT_EQ(output["top_logprobs"][i].size(), 3u);
        EXPECT_EQ(output["top_logprobs"][i][0][0], output["token_ids"][i]) << "greedy takes the best";
        EXPECT_EQ(output["top_logprobs"][i][0][1], output["logprobs"][i]);
        sum += output["logprobs"][i].get<double>();
      }
      EXPECT_NEAR(output["cumulative_logprob"].get<double>(), sum, 1e-4);
      EXPECT_EQ(output["finish_reason"], "length");
      EXPECT_TRUE(output["stop_reason"].is_null());
    }
    for (const char* figure : {"queue_ms", "ttft_ms", "tpot_ms", "e2e_ms", "num_preemptions"})
      EXPECT_TRUE(request["metrics"][figure].is_number()) << figure;
  }
  for (const char* figure :
       {"block_size", "num_blocks", "num_host_blocks", "bytes_per_block", "peak_used_blocks",
        "peak_logical_blocks", "cow_copies", "swapped_out_blocks", "swapped_in_blocks", "preempted_swap",
        "preempted_recompute", "evicted_cached_blocks", "prefix_hit_tokens"}) {
    EXPECT_TRUE(answer["kv"][figure].is_number_integer()) << figure;
  }
  EXPECT_EQ(answer["kv"]["bytes_per_block"], 16 * 23040);
  EXPECT_TRUE(answer["timing"]["load_ms"].is_number());
  EXPECT_TRUE(answer["timing"]["total_ms"].is_number());
}

json first_request(const std::vector<std::string>& options) {
  std::vector<std::string> words = {"generate", "--prompt",     "The capital of France is",
                                    "--json",   "--max-tokens", "6"};
  if (std::ranges::find(options, "--temperature") == options.end()) {
    words.insert(words.end(), {"--temperature", "0"});
  }
  words.insert(words.end(), options.begin(), options.end());
  const ProgramResult result = run_program(words);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.status == 0 ? json::parse(result.out)["requests"][0] : json();
}

TEST_F(WithModel, PromptLogprobsHaveAlternativesWhenANumberIsGiven) {
  const json request = first_request({"--prompt-logprobs", "2"});
  ASSERT_EQ(request["prompt_top_logprobs"].size(), request["prompt_token_ids"].size());
  EXPECT_TRUE(request["prompt_top_logprobs"][0].empty());
  for (std::size_t i = 1; i < request["prompt_token_ids"].size(); ++i) {
    const json& top = request["prompt_top_logprobs"][i];
    ASSERT_EQ(top.size(), 2u);
    EXPECT_GE(top[0][1].get<double>(), top[1][1].get<double>());
    EXPECT_GE(top[0][1].get<double>(), request["prompt_logprobs"][i].get<double>());
    if (top[0][0] == request["prompt_token_ids"][i]) {
      EXPECT_EQ(top[0][1], request["prompt_logprobs"][i]);
    }
  }
  const json plain = first_request({"--prompt-logprobs"});
  EXPECT_EQ(plain["prompt_logprobs"], request["prompt_logprobs"]);
  EXPECT_FALSE(plain.contains("prompt_top_logprobs"));
}

TEST_F(WithModel, WhatMayBeGeneratedIsLimitedByWordsAndByTokens) {
  const json plain = first_request({});
  const std::string text = plain["outputs"][0]["text"];
  ASSERT_NE(text.find("Paris"), std::string::npos) << text;
  const std::string without = first_request({"--bad-words", "Paris"})["outputs"][0]["text"];
  EXPECT_EQ(without.find("Paris"), std::string::npos) << without;
  const json limited = first_request({"--allowed-token-ids", "260,300", "--logprob-token-ids", "300,5"});
  for (const json& id : limited["outputs"][0]["token_ids"]) EXPECT_TRUE(id == 260 || id == 300) << id;
  for (const json& top : limited["outputs"][0]["top_logprobs"]) {
    ASSERT_EQ(top.size(), 2u);
    EXPECT_EQ(top[0][0], 300);
    EXPECT_EQ(top[1][0], 5);
  }
  const json best = first_request({"--temperature", "1", "--seed", "3", "--best-of", "4", "--n", "2"});
  ASSERT_EQ(best["outputs"].size(), 2u);
  EXPECT_GE(best["outputs"][0]["cumulative_logprob"], best["outputs"][1]["cumulative_logprob"]);
}

TEST_F(WithModel, TheTextOfAStopIsKeptWhenAsked) {
  const std::string stop = "Paris";
  const std::string without = first_request({"--stop", stop})["outputs"][0]["text"];
  const std::string with =
      first_request({"--stop", stop, "--include-stop-str-in-output"})["outputs"][0]["text"];
  EXPECT_EQ(with, without + stop);
}

TEST_F(WithModel, OneBadRequestLeavesTheOthersAlone) {
  const std::string file = scratch_file(
      "requests.jsonl",
      "{\"prompt\": \"The sky is\", \"sampling\": {\"temperature\": 0, \"max_tokens\": 3}}\n"
      "{\"prompt\": \"x\", \"sampling\": {\"temperatur\": 0}}\n"
      "\n"
      "{\"prompt_token_ids\": [99999999]}\n"
      "not json\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], \"sampling\": {\"max_tokens\": 2}, "
      "\"chat_template_kwargs\": {\"enable_thinking\": false}}\n"
      "{\"prompt\": \"x\", \"chat_template_kwargs\": {}}\n");
  const ProgramResult result = run_program({"generate", "--requests-file", file, "--json"});
  EXPECT_EQ(result.status, 1) << result.err;
  const json requests = json::parse(result.out)["requests"];
  ASSERT_EQ(requests.size(), 6u);
  EXPECT_EQ(requests[0]["outputs"][0]["token_ids"].size(), 3u);
  EXPECT_EQ(requests[1]["error"]["code"], "invalid_argument");
  EXPECT_NE(requests[1]["error"]["message"].get<std::string>().find("temperatur"), std::string::npos);
  EXPECT_TRUE(requests[2].contains("error"));
  EXPECT_TRUE(requests[3].contains("error"));
  EXPECT_FALSE(requests[4].contains("error"));
  EXPECT_EQ(requests[4]["outputs"][0]["token_ids"].size(), 2u);
  EXPECT_NE(requests[5]["error"]["message"].get<std::string>().find("chat_template_kwargs"),
            std::string::npos);
}

TEST_F(WithModel, ARequestThatCanNeverFitFailsWithTheNumbers) {
  std::string long_prompt;
  for (int i = 0; i < 400; ++i) long_prompt += "word ";
  const ProgramResult result =
      run_program({"generate", "--prompt", long_prompt, "--json", "--max-model-len", "128"});
  EXPECT_EQ(result.status, 1);
  const json error = json::parse(result.out)["requests"][0]["error"];
  EXPECT_EQ(error["code"], "too_long");
  EXPECT_NE(error["message"].get<std::string>().find("128"), std::string::npos) << error;
}

TEST_F(WithModel, StandardInputIsAPrompt) {
  const ProgramResult result =
      run_program({"generate", "--prompt", "-", "--max-tokens", "4", "--temperature", "0", "--json"},
                  {.input = "The capital of France is"});
  ASSERT_EQ(result.status, 0) << result.err;
  const ProgramResult direct = run_program({"generate", "--prompt", "The capital of France is",
                                            "--max-tokens", "4", "--temperature", "0", "--json"});
  EXPECT_EQ(json::parse(result.out)["requests"][0]["outputs"][0]["token_ids"],
            json::parse(direct.out)["requests"][0]["outputs"][0]["token_ids"]);
}

TEST_F(WithModel, TokenizeGivesTheReferencesIds) {
  for (const json& entry : golden()) {
    ProgramResult result;
    if (entry.contains("messages")) {
      result = run_program(
          {"tokenize", "--json", "--messages-file", scratch_file("messages.json", entry["messages"].dump())});
    } else {
      result = run_program({"tokenize", "--json", "--prompt-file",
                            scratch_file("prompt.txt", entry["text"].get<std::string>())});
    }
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(json::parse(result.out)["token_ids"], entry["token_ids"]) << entry["name"];
  }
}

TEST_F(WithModel, AStopStringEndsTheTextBeforeIt) {
  const ProgramResult result = run_program({"generate", "--prompt", "Count: one, two, three,", "--max-tokens",
                                            "24", "--temperature", "0", "--stop", "six", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json output = json::parse(result.out)["requests"][0]["outputs"][0];
  EXPECT_EQ(output["finish_reason"], "stop") << output;
  EXPECT_EQ(output["stop_reason"], "six");
  EXPECT_EQ(output["text"].get<std::string>().find("six"), std::string::npos);
}

TEST_F(WithModel, AnInterruptedRunSaysSoByItsStatus) {
  const ProgramResult result = run_program(
      {"generate", "--prompt", "Once upon a time", "--max-tokens", "8000", "--ignore-eos", "--json"},
      {.interrupt_after_ms = 3000});
  EXPECT_EQ(result.status, 130) << result.err;
  EXPECT_EQ(json::parse(result.out)["requests"][0]["outputs"][0]["finish_reason"], "abort");
}

TEST_F(WithModel, ModelTextCannotControlTheTerminal) {
  // The token of the escape character is forced; on a terminal it must not come out.
  const ProgramResult ids = run_program({"tokenize", "--json", "--prompt", "\x1b"});
  const std::string escape_id = json::parse(ids.out)["token_ids"][0].dump();
  const std::vector<std::string> arguments = {
      "generate",     "--prompt",        "x", "--max-tokens", "4", "--temperature", "0",
      "--logit-bias", escape_id + "=100"};
  const ProgramResult piped = run_program(arguments);
  EXPECT_NE(piped.out.find('\x1b'), std::string::npos) << "the test must force the escape character";
  const ProgramResult shown = run_program(arguments, {.output_is_terminal = true});
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(shown.out.find('\x1b'), std::string::npos);
}

TEST_F(WithModel, ATerminalChatIsResumed) {
  const std::string file = scratch_file("chat.json", "");
  std::filesystem::remove(file);
  const std::vector<std::string> arguments = {"chat", "--conversation", file, "--temperature",
                                              "0",    "--max-tokens",   "12", "--activation-dtype",
                                              "f32"};
  const ProgramResult first = run_program(arguments, {.input = "What is the capital of France?\n"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_NE(first.out.find("Paris"), std::string::npos) << first.out;
  std::vector<std::string> resumed = arguments;
  resumed.push_back("--resume");
  const ProgramResult second = run_program(resumed, {.input = "/history\n"});
  EXPECT_NE(second.out.find("user: What is the capital of France?"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("Paris"), std::string::npos);
}

TEST(Chat, FollowsTheModelsAdviceUnlessToldOtherwise) {
  test::ModelDraft draft = test::tiny_draft();
  const std::string plain = scratch_file("plain.gguf", ""), advising = scratch_file("advising.gguf", "");
  draft.write(plain);
  draft.set_f32("general.sampling.temp", 20.0f).write(advising);
  const auto answer = [&](const std::string& model, std::vector<std::string> options) {
    std::vector<std::string> arguments = {
        "chat", "--model",      model, "--conversation", scratch_file("talk.json", ""), "--seed",
        "3",    "--max-tokens", "24"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProgramResult result = run_program(arguments, {.input = "hello\n"});
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string advised = answer(plain, {"--temperature", "20"}), usual = answer(plain, {});
  ASSERT_NE(advised, usual);
  EXPECT_EQ(answer(advising, {}), advised);
  EXPECT_EQ(answer(advising, {"--temperature", "0.7"}), usual);
}

}  // namespace
}  // namespace octavo::tests
