#include "app/chat/chat_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace octavo::app {
namespace {

Chat example() {
  Chat chat;
  chat.title = "Paging";
  chat.system_prompt = "Be patient.";
  chat.sampling.temperature = 0.7;
  chat.sampling.seed = 9;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "Why blocks? \xe2\x82\xac \"quoted\"\n");
  const MessageId first = chat.append(question, Role::kAssistant, "Because.");
  Message& answer = *chat.find(first);
  answer.token_ids = {10, 20, 30};
  answer.finish_reason = FinishReason::kLength;
  answer.seed = 18'446'744'073'709'551'615u;
  answer.context_full = true;
  answer.stop_text = "END";
  answer.edited = true;
  answer.created_ms = 1'795'491'165'123;
  answer.metrics =
      AnswerMetrics{560, 512, {.queue_us = 1500, .ttft_us = 38'250, .tpot_us = 24'000, .e2e_us = 900'000}};
  answer.thinking = {.begun_by_prompt = true, .durations_us = {3'200'000, 0}};
  answer.stopped_repeating = true;
  const MessageId deeper = chat.append(first, Role::kUser, "And?");
  chat.append(question, Role::kAssistant, "second");
  chat.find(chat.append(question, Role::kAssistant, ""))->error = "it failed";
  chat.append(deeper, Role::kAssistant, "deep");
  chat.activate(MessageId{4});
  chat.context_policy = ContextPolicy::kSummarise;
  chat.template_values = {
      {"enable_thinking", false}, {"budget", std::int64_t{-3}}, {"reasoning_effort", "low"}};
  chat.set_summary(first, "They asked why.");
  return chat;
}

TEST(ChatJson, EverythingComesBack) {
  const Chat before = example();
  const auto after = chat_from_json(chat_to_json(before), "test");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(chat_to_json(*after), chat_to_json(before));
  EXPECT_EQ(after->active_path(), before.active_path());
  const Message& answer = *after->find(MessageId{2});
  EXPECT_EQ(answer.token_ids, (std::vector<TokenId>{10, 20, 30}));
  EXPECT_EQ(answer.seed, 18'446'744'073'709'551'615u);
  EXPECT_EQ(answer.metrics->request.ttft_us, 38'250);
  EXPECT_TRUE(answer.context_full);
  EXPECT_TRUE(answer.edited);
  EXPECT_EQ(answer.stop_text, "END");
  EXPECT_EQ(answer.created_ms, 1'795'491'165'123);
  EXPECT_EQ(answer.active_child, MessageId{3});
  EXPECT_EQ(answer.thinking, before.find(MessageId{2})->thinking);
  EXPECT_TRUE(answer.stopped_repeating);
  EXPECT_EQ(after->context_policy, ContextPolicy::kSummarise);
  EXPECT_EQ(after->template_values, before.template_values);
  EXPECT_EQ(after->summary_after(MessageId{2}), "They asked why.");
}

TEST(ChatJson, WhatWasErasedIsInNoFile) {
  Chat chat = example();
  const MessageId gone = chat.append(MessageId{2}, Role::kUser, "nobody reads this");
  chat.append(MessageId{2}, Role::kUser, "but this");
  chat.erase(gone, EraseExtent::kBranch);
  const std::string text = chat_to_json(chat);
  EXPECT_EQ(text.find("nobody"), std::string::npos);
  const auto after = chat_from_json(text, "test");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->find(after->active_leaf())->content, "but this");
}

// Long enough to be read in batches, on more than one thread.
TEST(ChatJson, ALongChatComesBackInItsOrder) {
  Chat before;
  MessageId last = kRootMessage;
  for (int i = 0; i < 10'000; ++i) {
    const MessageId parent = i % 1'000 == 999 ? MessageId{1} : last;  // a branch now and then
    last = before.append(parent, i % 2 == 0 ? Role::kUser : Role::kAssistant, "message " + std::to_string(i));
  }
  const auto after = chat_from_json(chat_to_json(before), "test");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(chat_to_json(*after), chat_to_json(before));
}

TEST(ChatJson, TheFirstWrongMessageOfALongChatIsNamed) {
  Chat chat;
  for (int i = 0; i < 10'000; ++i)
    chat.append(MessageId{static_cast<std::uint64_t>(i)}, Role::kUser, "text " + std::to_string(i) + ".");
  std::string json = chat_to_json(chat);
  for (const char* text : {"text 4999.", "text 9998."}) {
    const std::size_t role = json.find("user", json.find(text));  // keys are in the order of the alphabet
    ASSERT_NE(role, std::string::npos);
    json.replace(role, 4, "none");
  }
  const auto read = chat_from_json(json, "long.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "long.json: message 5000 has an unknown role; this is not an Octavo chat");
}

TEST(ChatJson, WrongFilesAreRefusedInOneSentence) {
  for (
      const std::string text :
      {"", "[]", "7", "{}", R"({"format":"octavo-conversation","version":2,"messages":[]})",
       R"({"format":"octavo-conversation","version":1})",
       R"({"format":"octavo-conversation","version":1,"messages":[1]})",
       R"({"format":"octavo-conversation","version":1,"messages":[{"id":2,"parent":0,"role":"user"}]})",
       R"({"format":"octavo-conversation","version":1,"messages":[{"id":1,"parent":1,"role":"user"}]})",
       R"({"format":"octavo-conversation","version":1,"messages":[{"id":1,"parent":0,"role":"robot"}]})",
       R"({"format":"octavo-conversation","version":1,"messages":[{"id":1,"parent":0,"role":"user","token_ids":[-1]}]})",
       R"({"format":"octavo-conversation","version":1,"messages":[{"id":1,"parent":0,"role":"user","metrics":{"ttft_ms":-1}}]})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"context_policy":"forget"})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"template_values":[]})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"template_values":{"a":1.5}})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"template_values":{"a":18446744073709551615}})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"template_values":{"messages":true}})",
       R"({"format":"octavo-conversation","version":1,"messages":[],"sampling":{"top_p":3}})"}) {
    const auto read = chat_from_json(text, "bad\nname.json");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message.find('\n'), std::string::npos) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kDamagedFile) << text;
  }
}

TEST(ChatJson, EveryCutAndRandomDamageIsHandled) {
  const std::string text = chat_to_json(example());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(chat_from_json(std::string_view(text).substr(0, length), "cut"));
  }
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = text;
    for (int n = 0; n < 3; ++n) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    (void)chat_from_json(damaged, "damaged");
  }
}

// A chat shows one answer: what asks for more, or for what no chat keeps, is left out however it is written.
TEST(ChatJson, OptionsThatAChatCannotShowAreDropped) {
  const auto read = chat_from_json(
      R"({"format":"octavo-conversation","version":1,"messages":[],
          "sampling":{"n":4,"beam_width":3,"logprobs":5,"logit_bias":{"1":2},"temperature":0.5}})",
      "new");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->sampling.n, 1);
  EXPECT_FALSE(read->sampling.beam_width.has_value());
  EXPECT_EQ(read->sampling.logprobs, SamplingParams{}.logprobs);
  EXPECT_TRUE(read->sampling.logit_bias.empty());
  EXPECT_EQ(read->sampling.temperature, 0.5);
}

TEST(ChatJson, EachMessageIsALine) {
  const std::string text = chat_to_json(example());
  std::size_t num_lines = 0;
  for (auto at = text.find("\n  {\""); at != std::string::npos; at = text.find("\n  {\"", at + 1))
    ++num_lines;
  EXPECT_EQ(num_lines, example().messages().size());
}

TEST(ChatJson, UnknownKeysArePassedOver) {
  const auto read = chat_from_json(
      R"({"format":"octavo-conversation","version":1,"later":{"x":1},"messages":[{"id":1,"parent":0,"role":"user","content":"hi","mood":2,"active":true}]})",
      "new");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->find(read->active_leaf())->content, "hi");
}

}  // namespace
}  // namespace octavo::app
