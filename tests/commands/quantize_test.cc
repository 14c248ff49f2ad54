// `octavo quantize` as a person runs it: what it writes, and that nothing is left of what it cannot finish.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace octavo::tests {
namespace {

namespace fs = std::filesystem;

class QuantizeCommand : public testing::Test {
 protected:
  QuantizeCommand() {
    test::make_tiny_llama(1, {.weight_type = kernels::TensorType::kF16}).write(folder_ / "model.gguf");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  ProgramResult run(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"quantize", path("model.gguf")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  // Beside the model.
  std::size_t num_files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const fs::directory_entry& entry : fs::directory_iterator(folder_.path())) ++count;
    return count - 1;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(QuantizeCommand, WritesASmallerModelThatAnswers) {
  for (const char* const type : {"Q8_0", "Q4_0", "q4_k"}) {
    const ProgramResult written = run({path(std::string(type) + ".gguf"), "--type", type});
    ASSERT_EQ(written.status, 0) << written.err;
    EXPECT_NE(written.out.find("matrices"), std::string::npos) << written.out;
    EXPECT_LT(fs::file_size(path(std::string(type) + ".gguf")), fs::file_size(path("model.gguf")));
    const ProgramResult answered = run_program({"generate", "--model", path(std::string(type) + ".gguf"),
                                                "--prompt", "a", "--max-tokens", "3", "--json"});
    EXPECT_EQ(answered.status, 0) << answered.err;
  }
  EXPECT_EQ(num_files(), 3u);  // and nothing unfinished
}

TEST_F(QuantizeCommand, OverwritesOnlyWhenItMay) {
  std::ofstream(path("there.gguf")) << "something";
  const ProgramResult refused = run({path("there.gguf"), "--type", "Q8_0"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  EXPECT_EQ(fs::file_size(path("there.gguf")), 9u);
  EXPECT_EQ(run({path("there.gguf"), "--type", "Q8_0", "--force"}).status, 0);
  EXPECT_GT(fs::file_size(path("there.gguf")), 1000u);
  const ProgramResult itself = run({path("model.gguf"), "--type", "Q8_0", "--force"});
  EXPECT_EQ(itself.status, 2);
  EXPECT_NE(itself.err.find("the model itself"), std::string::npos) << itself.err;
}

TEST_F(QuantizeCommand, RefusesInOneSentenceAndLeavesNothing) {
  const std::vector<std::vector<std::string>> wrong = {{path("o.gguf")},
                                                       {path("o.gguf"), "--type", "Q9"},
                                                       {folder_.path().string(), "--type", "Q8_0"},
                                                       {path("missing/o.gguf"), "--type", "Q8_0"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const ProgramResult result = run(arguments);
    EXPECT_NE(result.status, 0) << arguments.back();
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
  }
  EXPECT_EQ(run({path("q.gguf"), "--type", "Q8_0"}).status, 0);
  const ProgramResult again = run_program({"quantize", path("q.gguf"), path("o.gguf"), "--type", "Q4_0"});
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("start from a file with F32"), std::string::npos) << again.err;
  EXPECT_EQ(num_files(), 1u);
}

// A model quantised at load gives what its quantised file gives.
TEST_F(QuantizeCommand, LoadingQuantisedIsTheSameModel) {
  ASSERT_EQ(run({path("q.gguf"), "--type", "Q4_0"}).status, 0);
  const auto answer = [&](std::vector<std::string> model) {
    std::vector<std::string> arguments = {"generate", "--prompt",      "abc", "--max-tokens",
                                          "12",       "--temperature", "0"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  EXPECT_EQ(answer({"--model", path("model.gguf"), "--quantization", "Q4_0"}),
            answer({"--model", path("q.gguf")}));
}

}  // namespace
}  // namespace octavo::tests
