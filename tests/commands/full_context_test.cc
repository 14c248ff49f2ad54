// `octavo chat` past its context: a tiny random model that holds 512 tokens.

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "app/chat/chat_json.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace octavo::tests {
namespace {

class TerminalFullContext : public ::testing::Test {
 protected:
  TerminalFullContext() {
    test::make_tiny_llama(7, {.context_length = 512, .tied_output = false}).write(folder_ / "m.gguf");
  }

  ProgramResult talk(const std::string& input, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"chat",
                                          "--model",
                                          folder_ / "m.gguf",
                                          "--system",
                                          "Be kind.",
                                          "--conversation",
                                          file_,
                                          "--seed",
                                          "3",
                                          "--max-tokens",
                                          "24",
                                          "--min-tokens",
                                          "6"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, {.input = input});
  }
  static std::string questions(int count) {
    std::string input;
    for (int i = 0; i < count; ++i) input += "question " + std::to_string(i) + " of many\n";
    return input;
  }
  app::Chat saved() const {
    std::ifstream file(file_);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    auto chat = app::chat_from_json(text, "saved");
    EXPECT_TRUE(chat.has_value()) << text;
    return chat ? *std::move(chat) : app::Chat();
  }

  test::TemporaryFolder folder_;
  const std::string file_ = folder_ / "chat.json";
};

TEST_F(TerminalFullContext, SixtyQuestionsAreAnswered) {
  const ProgramResult result = talk(questions(60) + "/context\n/history\n");
  EXPECT_EQ(result.status, 0) << result.err;
  const app::Chat chat = saved();
  EXPECT_EQ(chat.active_path().size(), 120u);
  for (const app::Message& message : chat.messages()) EXPECT_EQ(message.error, "");
  EXPECT_NE(result.out.find(" of 512 tokens; policy: roll\n"), std::string::npos);
  EXPECT_NE(result.out.find(" earlier messages are no longer in the context; they stay in the chat"),
            std::string::npos);
}

TEST_F(TerminalFullContext, WhatCanNeverFitIsRefusedAndNotKept) {
  const ProgramResult result = talk(std::string(2'000, 'x') + "\nhello\n");
  EXPECT_NE(result.err.find("Cut about "), std::string::npos) << result.err;
  const app::Chat chat = saved();
  ASSERT_EQ(chat.messages().size(), 2u);
  EXPECT_EQ(chat.messages()[0].content, "hello");
}

TEST_F(TerminalFullContext, SummariesAreKeptWithTheChat) {
  const ProgramResult result =
      talk(questions(30) + "/summary\n/summary They asked.\n", {"--context-policy", "summarise"});
  EXPECT_EQ(result.status, 0) << result.err;
  const app::Chat chat = saved();
  EXPECT_EQ(chat.context_policy, ContextPolicy::kSummarise);
  ASSERT_GE(chat.summaries().size(), 2u);
  EXPECT_EQ(chat.summaries().rbegin()->second, "They asked.");
}

TEST_F(TerminalFullContext, StopSaysThatTheContextIsFullAndHowToGoOn) {
  const ProgramResult stopped = talk(questions(30), {"--context-policy", "stop"});
  EXPECT_NE(stopped.err.find("The context of 512 tokens is full"), std::string::npos) << stopped.err;
  const std::size_t before = saved().messages().size();
  EXPECT_LT(before, 60u);
  const ProgramResult went_on = talk("/context roll\none more\n", {"--resume"});
  EXPECT_EQ(went_on.status, 0) << went_on.err;
  EXPECT_EQ(saved().messages().size(), before + 2);
}

TEST_F(TerminalFullContext, AnAnswerThatWasCutOffContinues) {
  const ProgramResult result = talk("hello\n/continue\n/continue\n", {"--ignore-eos"});
  EXPECT_EQ(result.status, 0) << result.err;
  const app::Chat chat = saved();
  ASSERT_EQ(chat.messages().size(), 2u);
  EXPECT_GE(chat.messages()[1].token_ids.size(), 72u);
  const ProgramResult nothing = talk("/continue\n");
  EXPECT_NE(nothing.err.find("there is no answer that was cut off"), std::string::npos) << nothing.err;
}

TEST_F(TerminalFullContext, AnUnknownPolicyIsRefused) {
  const ProgramResult result = talk("", {"--context-policy", "forget"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
}

}  // namespace
}  // namespace octavo::tests
