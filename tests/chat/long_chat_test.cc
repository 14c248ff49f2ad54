// Chats that outgrow a context of 512 tokens, on a real engine with a tiny random model, under every chat
// template that tests/golden carries.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "app/chat/chat.h"
#include "app/chat/context_plan.h"
#include "engine/engine.h"
#include "engine/output_collector.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/model_draft.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::int32_t kContext = 512;
constexpr std::int32_t kBlockSize = 16;
constexpr std::int64_t kToday = 1'800'000'000;
constexpr const char* kSystem = "Be kind.";

std::vector<fs::path> templates() {
  std::set<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(test::source_folder() / "tests/golden/templates")) {
    if (entry.path().stem() != "macros") paths.insert(entry.path());  // a test of the language, for no model
  }
  return {paths.begin(), paths.end()};
}

// A tiny llama with this template. What the template writes around messages are tokens of their own, as in
// the models that it comes from; they stand where the vocabulary has bytes that no text here needs.
std::unique_ptr<Engine> open_with(const std::string& chat_template, const fs::path& path) {
  test::TinyLlamaOptions options;
  options.chat_template = chat_template;
  options.context_length = 4 * kContext;
  options.tied_output = false;
  test::ModelDraft draft = test::make_tiny_llama(3, options).draft();
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(test::gpt2_spelling(byte));
  for (const char* merged : {"Ġt", "he", "Ġa", "in", "Ġthe", "er", "on", "re", "Ġs", "ou"})
    tokens.emplace_back(merged);
  std::vector<std::int32_t> kinds(tokens.size(), 1);
  std::fill_n(kinds.begin(), 3, 3);
  std::set<std::string> markers;
  const std::regex marker(R"(<[^<>\s{}'"]{2,40}>|\[/?[A-Z_]+\])");
  for (std::sregex_iterator at(chat_template.begin(), chat_template.end(), marker), end; at != end; ++at)
    markers.insert(at->str());
  std::size_t place = 3 + 128;
  for (const std::string& text : markers) {
    if (std::find(tokens.begin(), tokens.end(), text) != tokens.end()) continue;
    kinds[place] = 3;
    tokens[place++] = text;
  }
  draft.set_strings("tokenizer.ggml.tokens", tokens).set_array("tokenizer.ggml.token_type", kinds);
  draft.write(path);
  auto engine =
      Engine::create({.model = path.string(), .threads = 1, .num_kv_blocks = 64, .max_model_len = kContext});
  if (!engine) ADD_FAILURE() << engine.error().message;
  return engine ? *std::move(engine) : nullptr;
}

RequestOutput run(Engine& engine, const ChatPrompt& prompt, std::int32_t max_tokens, std::uint64_t seed) {
  GenerationRequest request;
  request.prompt = prompt;
  request.sampling.max_tokens = max_tokens;
  request.sampling.min_tokens = std::min(6, max_tokens);
  request.sampling.temperature = 1;
  request.sampling.seed = seed;
  for (TokenId token_id = 0; token_id < engine.tokenizer().vocabulary_size(); ++token_id) {
    // Answers of a random model would be of markers else, which are no text.
    if (engine.tokenizer().is_control(token_id)) request.sampling.logit_bias[token_id] = -100;
  }
  const RequestId id = engine.submit(std::move(request));
  OutputCollector collector;
  collector.expect(id, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine.poll(std::chrono::seconds(1))) collector.add(event);
  }
  return std::move(collector.take().front());
}

void keep(Chat& chat, MessageId question, const RequestOutput& output) {
  const CompletionOutput& completion = output.outputs.front();
  const MessageId id = chat.append(question, Role::kAssistant, completion.text);
  chat.find(id)->token_ids = completion.token_ids;
  chat.find(id)->finish_reason = completion.finish_reason;
}

class LongChat : public ::testing::TestWithParam<fs::path> {
 protected:
  static std::string source(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ContextPlan plan_question(Chat& chat, const std::string& text, std::int32_t context_len = kContext) {
    ContextQuestion question = context_question(chat, chat.active_leaf(), context_len);
    question.path.push_back({{}, {Role::kUser, text}, {}});
    return plan_context(question, *counts_, kToday);
  }
  void open(const std::string& chat_template) {
    engine_ = open_with(chat_template, folder_.path() / "m.gguf");
    if (engine_ != nullptr) counts_ = std::make_unique<TokenCounts>(engine_->tokenizer());
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<TokenCounts> counts_;
};

TEST_P(LongChat, SixtyTurnsAreAnswered) {
  open(source(GetParam()));
  ASSERT_NE(engine_, nullptr);
  Chat chat;
  chat.system_prompt = kSystem;
  chat.sampling.max_tokens = 24;
  MessageId begin_before;
  int num_cuts = 0;
  std::int32_t prompt_before = 0;
  for (std::uint64_t turn = 0; turn < 60; ++turn) {
    const std::string text = "question " + std::to_string(turn) + " of the sixty";
    const ContextPlan plan = plan_question(chat, text);
    ASSERT_EQ(plan.refusal, "") << "turn " << turn;
    ASSERT_EQ(plan.prompt.messages.front().role, Role::kSystem);
    ASSERT_EQ(plan.prompt.messages.front().content, kSystem);
    const RequestOutput output = run(*engine_, plan.prompt, chat.sampling.max_tokens, turn);
    ASSERT_FALSE(output.error.has_value()) << "turn " << turn << ": " << output.error->message;
    EXPECT_EQ(static_cast<std::int32_t>(output.prompt_token_ids.size()), plan.num_tokens) << "turn " << turn;
    ASSERT_FALSE(output.outputs.front().text.empty()) << "turn " << turn;
    EXPECT_GE(static_cast<std::int32_t>(output.outputs.front().token_ids.size()), 6);
    if (turn > 0 && plan.begin == begin_before) {
      // All of the prompt before was found, but for its last block and what the template had at its end.
      EXPECT_GE(output.num_cached_tokens + 2 * kBlockSize, prompt_before) << "turn " << turn;
    } else if (turn > 0) {
      ++num_cuts;
    }
    begin_before = plan.begin;
    prompt_before = plan.num_tokens;
    keep(chat, chat.append(chat.active_leaf(), Role::kUser, text), output);
  }
  EXPECT_GE(num_cuts, 2);
  EXPECT_LE(num_cuts, 20) << "cuts leave room for more than the next turns";
  EXPECT_EQ(chat.messages().size(), 120u) << "nothing is deleted";
}

INSTANTIATE_TEST_SUITE_P(Templates, LongChat, ::testing::ValuesIn(templates()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

class OneLongChat : public LongChat {
 protected:
  OneLongChat() { open(test::TinyLlamaOptions().chat_template); }
  void fill(Chat& chat, std::size_t num_turns) {
    for (std::size_t i = 0; i < num_turns; ++i) {
      const std::string number = std::to_string(i);
      chat.append(chat.active_leaf(), Role::kUser, "question " + number);
      chat.append(chat.active_leaf(), Role::kAssistant, "answer " + number + " that has some length");
    }
  }
};

TEST_F(OneLongChat, ABranchHasTheCutsOfItsOwnPath) {
  Chat chat;
  fill(chat, 40);
  const ContextPlan late = plan_question(chat, "x");
  EXPECT_GT(late.num_left, 0);
  chat.activate(chat.append(MessageId{4}, Role::kUser, "another way"));
  EXPECT_EQ(plan_question(chat, "x").num_left, 0);
}

TEST_F(OneLongChat, TheSameChatGivesTheSamePlan) {
  Chat chat;
  fill(chat, 40);
  const ContextPlan first = plan_question(chat, "x");
  TokenCounts others(engine_->tokenizer());
  ContextQuestion question = context_question(chat, chat.active_leaf(), kContext);
  question.path.push_back({{}, {Role::kUser, "x"}, {}});
  const ContextPlan second = plan_context(question, others, kToday);
  EXPECT_EQ(first.begin, second.begin);
  EXPECT_EQ(first.num_tokens, second.num_tokens);
}

TEST_F(OneLongChat, AMessageThatCanNeverFitIsRefusedWithHowMuchToCut) {
  Chat chat;
  fill(chat, 3);
  const std::string text(1'000, 'q');
  const ContextPlan plan = plan_question(chat, text);
  EXPECT_NE(plan.refusal.find("Cut about "), std::string::npos) << plan.refusal;
  // What it says is enough.
  const std::size_t at = plan.refusal.find("(") + 1;
  const std::size_t cut = std::stoul(plan.refusal.substr(at));
  ASSERT_LT(cut, text.size());
  EXPECT_EQ(plan_question(chat, text.substr(cut + 4)).refusal, "");
  EXPECT_NE(plan_question(chat, text.substr(cut - 40)).refusal, "");
}

TEST_F(OneLongChat, APastedBookIsRefusedWithoutBeingCounted) {
  Chat chat;
  const ContextPlan plan = plan_question(chat, std::string(std::size_t{30} << 20, 'b'));
  EXPECT_NE(plan.refusal.find("Cut about 31,"), std::string::npos) << plan.refusal;
}

TEST_F(OneLongChat, ASystemPromptThatFillsTheContextIsNamed) {
  Chat chat;
  chat.system_prompt = std::string(600, 's');
  const ContextPlan plan = plan_question(chat, "x");
  EXPECT_TRUE(plan.refusal.starts_with("Shorten the system prompt by about ")) << plan.refusal;
}

TEST_F(OneLongChat, StopRefusesWhatDoesNotFit) {
  Chat chat;
  chat.context_policy = ContextPolicy::kStop;
  fill(chat, 4);
  EXPECT_EQ(plan_question(chat, "x").refusal, "");
  fill(chat, 20);
  const ContextPlan plan = plan_question(chat, "x");
  EXPECT_TRUE(plan.refusal.starts_with("The context of 512 tokens is full")) << plan.refusal;
}

TEST_F(OneLongChat, SummariesAreWrittenOnceAndSent) {
  Chat chat;
  chat.system_prompt = kSystem;
  chat.context_policy = ContextPolicy::kSummarise;
  chat.sampling.max_tokens = 64;
  fill(chat, 5);
  EXPECT_FALSE(plan_question(chat, "x").summary.has_value());
  int num_summaries = 0;
  for (int turn = 0; turn < 30; ++turn) {
    ContextPlan plan = plan_question(chat, "x");
    ASSERT_EQ(plan.refusal, "");
    if (plan.summary) {
      ++num_summaries;
      const RequestOutput output = run(*engine_, plan.summary->prompt, plan.summary->max_tokens, 1);
      ASSERT_FALSE(output.error.has_value()) << output.error->message;
      chat.set_summary(plan.summary->after, "summary " + std::to_string(num_summaries));
      plan = plan_question(chat, "x");
      EXPECT_FALSE(plan.summary.has_value());
    }
    if (num_summaries > 0) {
      EXPECT_EQ(plan.prompt.messages.front().content,
                std::string(kSystem) + "\n\nSummary of the earlier part of this chat:\nsummary " +
                    std::to_string(num_summaries));
    }
    fill(chat, 1);
  }
  EXPECT_GE(num_summaries, 2);
}

// In a context where what is asked for, of bytes as tokens here, leaves room for what it is about.
TEST_F(OneLongChat, ASummaryTellsOfAllThatLeftSinceTheOneBefore) {
  Chat chat;
  chat.system_prompt = kSystem;
  chat.context_policy = ContextPolicy::kSummarise;
  std::int32_t num_told = 0;  // messages
  for (const char* before : {"", "the first summary"}) {
    ContextPlan plan;
    while (!plan.summary) {
      const std::size_t turn = chat.messages().size() / 2;
      ASSERT_LT(turn, 500u);
      chat.append(chat.active_leaf(), Role::kUser, "question " + std::to_string(turn));
      chat.append(chat.active_leaf(), Role::kAssistant, "an answer that has some length");
      plan = plan_question(chat, "x", 8 * kContext);
    }
    const std::vector<ChatMessage>& asked = plan.summary->prompt.messages;
    EXPECT_TRUE(asked.front().content.ends_with(before)) << asked.front().content;
    ASSERT_EQ(asked.size(), static_cast<std::size_t>(1 + plan.num_left - num_told + 1));
    EXPECT_EQ(asked[1].content, "question " + std::to_string(num_told / 2));
    num_told = plan.num_left;
    chat.set_summary(plan.summary->after, "the first summary");
  }
}

// The instruction alone would have the model invent a chat.
TEST_F(OneLongChat, ATurnThatIsTooLongForItsSummaryIsSummarisedFromItsEnd) {
  Chat chat;
  chat.system_prompt = kSystem;
  chat.context_policy = ContextPolicy::kSummarise;
  chat.sampling.max_tokens = 32;
  const std::string question = "the beginning of a question " + std::string(150, '?') + " and how it ends";
  const std::string answer = "the beginning of an answer " + std::string(150, '!') + " and how that ends";
  chat.append(kRootMessage, Role::kUser, question);
  chat.append(chat.active_leaf(), Role::kAssistant, answer);
  const ContextPlan plan = plan_question(chat, std::string(100, 'x'));
  ASSERT_EQ(plan.num_left, 2);
  ASSERT_TRUE(plan.summary.has_value());
  const std::vector<ChatMessage>& asked = plan.summary->prompt.messages;
  ASSERT_EQ(asked.size(), 4u);
  EXPECT_EQ(asked[0].content, kSystem);
  EXPECT_TRUE(question.ends_with(asked[1].content) && asked[1].content.size() > 10) << asked[1].content;
  EXPECT_TRUE(answer.ends_with(asked[2].content) && asked[2].content.size() > 10) << asked[2].content;
  EXPECT_LT(asked[1].content.size() + asked[2].content.size(), question.size() + answer.size());
  const RequestOutput output = run(*engine_, plan.summary->prompt, plan.summary->max_tokens, 1);
  EXPECT_FALSE(output.error.has_value()) << output.error->message;
}

// Counts of single messages are estimates, and a person may write a summary of any length: what is sent is
// counted once more as it is, and more leaves.
TEST_F(OneLongChat, WhatIsSentIsCountedAsItIs) {
  Chat chat;
  chat.context_policy = ContextPolicy::kSummarise;
  chat.sampling.max_tokens = 64;
  fill(chat, 40);
  const ContextPlan before = plan_question(chat, "x");
  ASSERT_TRUE(before.summary.has_value());
  chat.set_summary(before.summary->after, std::string(340, 's'));
  const ContextPlan plan = plan_question(chat, "x");
  EXPECT_EQ(plan.refusal, "");
  EXPECT_LE(plan.num_tokens + chat.sampling.max_tokens / 2, kContext);
  EXPECT_GT(plan.num_left, before.num_left);
}

TEST_F(OneLongChat, AnAnswerThatFilledTheContextContinues) {
  Chat chat;
  chat.sampling.max_tokens = 1'000;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "tell me all");
  const ContextPlan first = plan_context(context_question(chat, question, kContext), *counts_, kToday);
  GenerationRequest request;
  request.prompt = first.prompt;
  request.sampling.max_tokens = 1'000;
  request.sampling.ignore_eos = true;
  request.sampling.seed = 4;
  request.sampling.temperature = 1;
  const RequestId id = engine_->submit(std::move(request));
  OutputCollector collector;
  collector.expect(id, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine_->poll(std::chrono::seconds(1))) collector.add(event);
  }
  const RequestOutput output = std::move(collector.take().front());
  ASSERT_EQ(output.outputs.front().finish_reason, FinishReason::kLength);
  keep(chat, question, output);
  for (int more = 0; more < 3; ++more) {
    ContextQuestion asked = context_question(chat, chat.active_leaf(), kContext);
    asked.continue_answer = true;
    const ContextPlan plan = plan_context(asked, *counts_, kToday);
    ASSERT_EQ(plan.refusal, "");
    ASSERT_TRUE(plan.prompt.continue_answer);
    EXPECT_EQ(plan.prompt.messages.front().content, "tell me all");
    const RequestOutput rest = run(*engine_, plan.prompt, 100, static_cast<std::uint64_t>(more));
    ASSERT_FALSE(rest.error.has_value()) << rest.error->message;
    EXPECT_GE(rest.outputs.front().token_ids.size(), 6u);
    Message& answer = *chat.find(chat.active_leaf());
    answer.content += rest.outputs.front().text;
    answer.token_ids.clear();
  }
}

}  // namespace
}  // namespace octavo::app
