// `octavo compare-models` from outside.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace octavo::tests {
namespace {

using nlohmann::json;

constexpr const char* kText = "The other dog and the fox are in the house, and then the fox is out again.";

class CompareModels : public testing::Test {
 protected:
  CompareModels() {
    test::make_tiny_llama(7, {}).write(path("a.gguf"));
    test::make_tiny_llama(8, {}).write(path("b.gguf"));
    write("text.txt", kText);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  ProgramResult run(std::vector<std::string> options, const ProgramOptions& how = {}) const {
    std::vector<std::string> arguments = {"compare-models", path("a.gguf"), path("b.gguf")};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return run_program(arguments, how);
  }
  static void expect_refused(const ProgramResult& result, int status, const std::string& part) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(CompareModels, PrintsEveryTokenAsJson) {
  const ProgramResult result = run({"--text", path("text.txt"), "--json", "--worst", "3", "--context", "32"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json report = json::parse(result.out);
  EXPECT_EQ(report["context"], 32);
  EXPECT_EQ(report["a"]["path"], path("a.gguf"));
  EXPECT_EQ(report["b"]["path"], path("b.gguf"));
  const std::size_t num_tokens = report["token_ids"].size();
  ASSERT_GT(num_tokens, 32u) << "more than one window";
  ASSERT_EQ(report["tokens"].size(), num_tokens - 1) << "nothing comes before the first";
  std::string text;
  double sum = 0.0, nll = 0.0, worst = 0.0;
  std::size_t num_same = 0;
  for (std::size_t i = 0; i < report["tokens"].size(); ++i) {
    const json& token = report["tokens"][i];
    EXPECT_EQ(token["index"], i + 1);
    text += token["text"].get<std::string>();
    EXPECT_GE(token["kl"].get<double>(), 0.0);
    sum += token["kl"].get<double>();
    worst = std::max(worst, token["kl"].get<double>());
    nll -= token["b"]["logprob"].get<double>();
    num_same += token["same_top"].get<bool>() ? 1 : 0;
    EXPECT_EQ(token["same_top"], token["a"]["top"][0]["token_id"] == token["b"]["top"][0]["token_id"]);
    EXPECT_EQ(token["a"]["top"].size(), 5u);
    EXPECT_GE(token["a"]["rank"], 1);
  }
  EXPECT_EQ(std::string(kText).substr(1), text) << "the first token is the T";
  const auto count = static_cast<double>(num_tokens - 1);
  const json& summary = report["summary"];
  EXPECT_EQ(summary["num_tokens"], num_tokens - 1);
  EXPECT_NEAR(summary["mean_kl"]["value"], sum / count, 1e-12);
  EXPECT_NEAR(summary["perplexity_b"]["value"], std::exp(nll / count), 1e-6);
  EXPECT_NEAR(summary["same_top"]["value"], static_cast<double>(num_same) / count, 1e-12);
  ASSERT_EQ(report["worst"].size(), 3u);
  EXPECT_EQ(report["tokens"][report["worst"][0].get<std::size_t>() - 1]["kl"], worst);
}

TEST_F(CompareModels, PrintsATableForPeople) {
  const ProgramResult result = run({"--text", "-", "--worst", "2"}, {.input = kText});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* const part :
       {"tiny llama", "perplexity of A", "KL divergence, mean", "same likeliest token", "rank B"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  const std::string table = result.out.substr(result.out.find("rank B"));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 3) << table;
  const ProgramResult none = run({"--text", "-", "--worst", "0"}, {.input = kText});
  EXPECT_EQ(none.out.find("rank B"), std::string::npos) << none.out;
}

TEST_F(CompareModels, RefusesInOneSentence) {
  expect_refused(run({}), 2, "--text");
  expect_refused(run_program({"compare-models", path("a.gguf"), "--text", path("text.txt")}), 2, "--model-b");
  expect_refused(run({"--text", path("text.txt"), "--context", "1"}), 2, "--context");
  expect_refused(run({"--text", path("text.txt"), "--context", "513"}), 2, "--context is 513");
  expect_refused(run({"--text", path("text.txt"), "--worst", "-1"}), 2, "--worst");
  expect_refused(run({"--text", path("text.txt"), "--threads", "-1"}), 2, "--threads");
  expect_refused(run({"--text", path("nowhere.txt")}), 1, "nowhere.txt");
  write("short.txt", "T");
  expect_refused(run({"--text", path("short.txt")}), 2, "longer text");
  expect_refused(
      run_program({"compare-models", path("a.gguf"), path("text.txt"), "--text", path("text.txt")}), 1,
      "text.txt");
}

TEST_F(CompareModels, RefusesModelsOfOtherVocabularies) {
  test::ModelDraft other = test::make_tiny_llama(8, {}).draft();
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(test::gpt2_spelling(byte));
  for (const char* merged : {"Ġt", "he", "Ġa", "in", "Ġthe", "er", "on", "re", "Ġs", "ou"})
    tokens.push_back(merged);
  std::swap(tokens[0], tokens[1]);
  other.set_strings("tokenizer.ggml.tokens", tokens).write(path("b.gguf"));
  expect_refused(run({"--text", path("text.txt")}), 1, "different vocabularies");
}

TEST_F(CompareModels, StopsAtCtrlC) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += kText;
  write("long.txt", text);
  const ProgramResult result = run({"--text", path("long.txt"), "--json"}, {.interrupt_after_ms = 700});
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.out, "");
}

}  // namespace
}  // namespace octavo::tests
