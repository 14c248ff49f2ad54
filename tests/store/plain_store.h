// What the store should hold, kept in the plainest way: changes applied to maps. And chats to fill it with.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "app/store/records.h"

namespace octavo::testing {

struct PlainStore {
  std::map<std::uint64_t, app::ChatHead> chats;
  std::map<std::uint64_t, app::Chat> trees;
  std::map<std::uint64_t, app::FolderRecord> folders;
  std::map<std::uint64_t, app::PresetRecord> presets;
};

inline void expect_same(const SamplingParams& a, const SamplingParams& b) {
  EXPECT_EQ(a.temperature, b.temperature);
  EXPECT_EQ(a.top_p, b.top_p);
  EXPECT_EQ(a.max_tokens, b.max_tokens);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.stop, b.stop);
}

inline void expect_same(const app::Message& a, const app::Message& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.role, b.role);
  EXPECT_EQ(a.content, b.content);
  EXPECT_EQ(a.token_ids, b.token_ids);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.interrupted, b.interrupted);
  EXPECT_EQ(a.created_ms, b.created_ms);
  EXPECT_EQ(a.context_full, b.context_full);
  EXPECT_EQ(a.stop_text, b.stop_text);
  EXPECT_EQ(a.edited, b.edited);
  EXPECT_EQ(a.erased, b.erased);
  EXPECT_EQ(a.thinking, b.thinking);
  EXPECT_EQ(a.stopped_repeating, b.stopped_repeating);
  EXPECT_EQ(a.children, b.children);
  EXPECT_EQ(a.active_child, b.active_child);
  ASSERT_EQ(a.metrics.has_value(), b.metrics.has_value());
  if (!a.metrics) return;
  EXPECT_EQ(a.metrics->num_prompt_tokens, b.metrics->num_prompt_tokens);
  EXPECT_EQ(a.metrics->num_cached_tokens, b.metrics->num_cached_tokens);
  EXPECT_EQ(a.metrics->request.queue_us, b.metrics->request.queue_us);
  EXPECT_EQ(a.metrics->request.ttft_us, b.metrics->request.ttft_us);
  EXPECT_EQ(a.metrics->request.tpot_us, b.metrics->request.tpot_us);
  EXPECT_EQ(a.metrics->request.e2e_us, b.metrics->request.e2e_us);
  EXPECT_EQ(a.metrics->request.num_preemptions, b.metrics->request.num_preemptions);
  EXPECT_EQ(a.metrics->request.prefix_miss.cause, b.metrics->request.prefix_miss.cause);
  EXPECT_EQ(a.metrics->request.prefix_miss.position, b.metrics->request.prefix_miss.position);
}

inline void expect_same(const app::Chat& a, const app::Chat& b) {
  EXPECT_EQ(a.title, b.title);
  EXPECT_EQ(a.system_prompt, b.system_prompt);
  expect_same(a.sampling, b.sampling);
  EXPECT_EQ(a.context_policy, b.context_policy);
  EXPECT_EQ(a.template_values, b.template_values);
  EXPECT_EQ(a.summaries(), b.summaries());
  EXPECT_EQ(a.active_path(), b.active_path());
  ASSERT_EQ(a.messages().size(), b.messages().size());
  for (std::size_t i = 0; i < a.messages().size(); ++i) expect_same(a.messages()[i], b.messages()[i]);
}

// A head with everything set, derived from the number.
inline app::ChatHead some_head(std::uint64_t id) {
  app::ChatHead head;
  head.id = ChatId{id};
  head.title = "Title \"" + std::to_string(id) + "\" ü 你好 ##%n";
  head.shown_title = head.title;
  head.system_prompt = std::string("line\nwith a NUL \0 in it", 23);
  head.sampling.temperature = 0.1 + 1e-9 * static_cast<double>(id);
  head.sampling.max_tokens = 77;
  head.sampling.seed = ~std::uint64_t{0} - id;
  head.sampling.stop = {"END"};
  head.context_policy = static_cast<ContextPolicy>(id % 3);
  head.template_values = {
      {"enable_thinking", id % 2 == 0}, {"budget", std::int64_t{1} << 40}, {"reasoning_effort", "\"ü\""}};
  head.draft = "half a thou";
  head.folder = FolderId{id % 3};
  head.pinned = id % 2 == 0;
  head.position = static_cast<std::int64_t>(id) * 10;
  head.created_ms = 1'700'000'000'000 + static_cast<std::int64_t>(id);
  head.updated_ms = head.created_ms + 5;
  head.model_path = "/models/ü.gguf";
  return head;
}

inline app::changes::SaveMessage save_message(ChatId chat, const app::Chat& tree, MessageId id) {
  return {chat, *tree.find(id)};
}

// A chat of question and answer pairs whose texts name the chat and the place.
inline app::Chat some_chat(std::uint64_t chat, int num_pairs, std::size_t answer_length = 60) {
  app::Chat tree;
  for (int i = 0; i < num_pairs; ++i) {
    const std::string where = std::to_string(chat) + "." + std::to_string(i);
    tree.append(tree.active_leaf(), Role::kUser, "question " + where);
    std::string text = "answer " + where + " ";
    while (text.size() < answer_length) text += "lorem ipsum ";
    const MessageId id = tree.append(tree.active_leaf(), Role::kAssistant, std::move(text));
    tree.find(id)->finish_reason = FinishReason::kStop;
    tree.find(id)->token_ids = {1, 2, 3, i};
  }
  return tree;
}

// Everything that brings a chat into an empty store.
inline std::vector<app::StoreChange> changes_for(app::ChatHead head, const app::Chat& tree) {
  std::vector<app::StoreChange> changes;
  const auto path = tree.active_path();
  head.active_root_child = path.empty() ? app::kRootMessage : path.front();
  for (const app::Message& message : tree.messages())
    changes.push_back(app::changes::SaveMessage{head.id, message});
  for (const auto& [after, summary] : tree.summaries())
    changes.push_back(app::changes::SaveSummary{head.id, after, summary});
  changes.push_back(app::changes::SaveChat{std::move(head)});
  return changes;
}

}  // namespace octavo::testing
