// What goes into the store comes out of it, compared with maps in memory.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "tests/store/worker_fixture.h"

namespace octavo::testing {
namespace {

using app::Chat;
using app::kRootMessage;
using app::Message;
using app::changes::AppendToAnswer;
using app::changes::EraseChat;
using app::changes::EraseFolder;
using app::changes::SaveChat;
using app::changes::SaveChoices;
using app::changes::SaveFolder;
using app::changes::SaveMessage;
using app::changes::SavePreset;
using app::changes::SaveSummary;

class RoundTrip : public WorkerTest {
 protected:
  void expect_holds(const PlainStore& plain) {
    ASSERT_TRUE(contents_.has_value());
    ASSERT_EQ(contents_->chats.size(), plain.chats.size());
    for (const app::ChatHead& head : contents_->chats) {
      SCOPED_TRACE(head.id.value);
      ASSERT_TRUE(plain.chats.contains(head.id.value));
      const app::ChatHead& expected = plain.chats.at(head.id.value);
      EXPECT_EQ(head.title, expected.title);
      EXPECT_EQ(head.draft, expected.draft);
      EXPECT_EQ(head.folder, expected.folder);
      EXPECT_EQ(head.pinned, expected.pinned);
      EXPECT_EQ(head.position, expected.position);
      EXPECT_EQ(head.created_ms, expected.created_ms);
      EXPECT_EQ(head.updated_ms, expected.updated_ms);
      EXPECT_EQ(head.trashed_ms, expected.trashed_ms);
      const auto tree = load(head.id.value);
      ASSERT_TRUE(tree.has_value());
      expect_same(*tree, plain.trees.at(head.id.value));
    }
    ASSERT_EQ(contents_->folders.size(), plain.folders.size());
    for (const auto& folder : contents_->folders)
      EXPECT_EQ(folder.name, plain.folders.at(folder.id.value).name);
    ASSERT_EQ(contents_->presets.size(), plain.presets.size());
    for (const auto& preset : contents_->presets) {
      EXPECT_EQ(preset.system_prompt, plain.presets.at(preset.id.value).system_prompt);
      expect_same(preset.sampling, plain.presets.at(preset.id.value).sampling);
      EXPECT_EQ(preset.template_values, plain.presets.at(preset.id.value).template_values);
    }
  }
};

TEST_F(RoundTrip, EveryFieldOfAMessageComesBack) {
  open();
  Chat tree = some_chat(1, 1);
  Message& answer = *tree.find(MessageId{2});
  answer.seed = ~std::uint64_t{0};
  answer.error = "it failed, and says so";
  answer.model = "SmolLM2 135M";
  answer.interrupted = true;
  answer.created_ms = 1'795'491'165'123;
  answer.context_full = true;
  answer.stop_text = "END";
  answer.edited = true;
  answer.finish_reason = FinishReason::kAbort;
  answer.metrics = app::AnswerMetrics{12,
                                      4,
                                      {.queue_us = 1,
                                       .ttft_us = 2,
                                       .tpot_us = 3,
                                       .e2e_us = 4,
                                       .num_preemptions = 5,
                                       .prefix_miss = {.cause = MissCause::kEvicted, .position = 6}}};
  answer.thinking = {.begun_by_prompt = true, .durations_us = {3'200'000, 0}};
  answer.stopped_repeating = true;
  answer.token_ids = {0, 1, 2147483647};
  answer.content = std::string("a\0b\r\n\t😀", 10);
  tree.append(kRootMessage, Role::kSystem, "");
  app::ChatHead head = some_head(1);
  tree.title = head.title, tree.system_prompt = head.system_prompt, tree.sampling = head.sampling;
  tree.context_policy = head.context_policy;
  tree.template_values = head.template_values;
  tree.set_summary(MessageId{2}, "they said ü");
  push_all(changes_for(head, tree));
  wait_ms(200);
  reopen();
  const auto loaded = load(1);
  ASSERT_TRUE(loaded.has_value());
  expect_same(*loaded, tree);
}

TEST_F(RoundTrip, ErasedMessagesKeepTheirPlacesAndNothingElse) {
  open();
  Chat tree = some_chat(1, 3);
  push_all(changes_for(some_head(1), tree));
  const app::ErasedMessages erased = tree.erase(MessageId{3}, app::EraseExtent::kMessage);
  push(SaveMessage{ChatId{1}, *tree.find(MessageId{4})});
  push(SaveMessage{ChatId{1}, tree.messages()[2]});
  push(SaveChoices{ChatId{1}, {{MessageId{2}, MessageId{4}}}});
  tree.erase(MessageId{5}, app::EraseExtent::kBranch);
  push(SaveMessage{ChatId{1}, tree.messages()[5]});
  push(SaveMessage{ChatId{1}, tree.messages()[4]});
  push(SaveChoices{ChatId{1}, {{MessageId{4}, MessageId{0}}}});
  wait_ms(200);
  reopen();
  const auto loaded = load(1);
  ASSERT_TRUE(loaded.has_value());
  ASSERT_EQ(loaded->messages().size(), 6u);
  EXPECT_EQ(loaded->active_path(), (std::vector<MessageId>{MessageId{1}, MessageId{2}, MessageId{4}}));
  EXPECT_EQ(loaded->find(MessageId{3}), nullptr);
  EXPECT_EQ(loaded->find(MessageId{6}), nullptr);
  for (std::size_t i = 0; i < 6; ++i) expect_same(loaded->messages()[i], tree.messages()[i]);
}

// Its time is known before what it cost is.
TEST_F(RoundTrip, ThinkingOfAnAnswerThatHasNotEndedComesBack) {
  open();
  Chat tree = some_chat(1, 1);
  Message& answer = *tree.find(MessageId{2});
  answer.thinking.durations_us = {1'500'000};
  const app::ChatHead head = some_head(1);
  push_all(changes_for(head, tree));
  wait_ms(200);
  reopen();
  const auto loaded = load(1);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(loaded->find(MessageId{2})->thinking, answer.thinking);
  EXPECT_FALSE(loaded->find(MessageId{2})->metrics.has_value());
}

TEST_F(RoundTrip, RandomOperationsAcrossRestartsMatchMapsInMemory) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::uint64_t n) {
    return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random);
  };
  PlainStore plain;
  open();
  std::uint64_t next_chat = 1, next_folder = 1;
  for (int step = 0; step < 1500; ++step) {
    const std::uint64_t what = below(100);
    if (plain.chats.empty() || what < 5) {
      const std::uint64_t id = next_chat++;
      plain.chats[id] = some_head(id);
      Chat& tree = plain.trees[id];
      tree.title = plain.chats[id].title, tree.system_prompt = plain.chats[id].system_prompt;
      tree.sampling = plain.chats[id].sampling;
      tree.context_policy = plain.chats[id].context_policy;
      tree.template_values = plain.chats[id].template_values;
      push(SaveChat{plain.chats[id]});
      continue;
    }
    auto chat = plain.chats.begin();
    std::advance(chat, static_cast<std::ptrdiff_t>(below(plain.chats.size())));
    Chat& tree = plain.trees[chat->first];
    const ChatId chat_id{chat->first};
    const auto save_choices = [&](MessageId id) {
      if (const Message* message = tree.find(id); message != nullptr && message->parent != kRootMessage) {
        push(SaveChoices{chat_id, {{message->parent, id}}});
      }
      const auto path = tree.active_path();
      chat->second.active_root_child = path.empty() ? kRootMessage : path.front();
      push(SaveChat{chat->second});
    };
    if (what < 60) {
      const MessageId parent{below(tree.messages().size() + 1)};
      const MessageId id =
          tree.append(parent, below(2) == 0 ? Role::kUser : Role::kAssistant, std::string(below(9000), 'x'));
      tree.find(id)->finish_reason = FinishReason::kLength;
      push(SaveMessage{chat_id, *tree.find(id)}, below(10) == 0);
      std::vector<std::pair<MessageId, MessageId>> choices;
      for (const Message* m = tree.find(id); m != nullptr; m = tree.find(m->parent))
        choices.emplace_back(m->parent, m->id);
      push(SaveChoices{chat_id, choices});
      save_choices(id);
    } else if (what < 75 && !tree.messages().empty()) {
      const MessageId id{1 + below(tree.messages().size())};
      const MessageId other = tree.sibling(id, below(2) == 0 ? 1 : -1);
      tree.choose_child(other);
      save_choices(other);
    } else if (what < 80) {
      chat->second.trashed_ms = below(2) == 0 ? std::optional<std::int64_t>(5) : std::nullopt;
      chat->second.pinned = !chat->second.pinned;
      push(SaveChat{chat->second});
    } else if (what < 82) {
      push(EraseChat{chat_id});
      plain.trees.erase(chat->first);
      plain.chats.erase(chat);
    } else if (what < 86) {
      const FolderId id{next_folder++};
      plain.folders[id.value] = {id, "folder ü " + std::to_string(id.value), 0};
      push(SaveFolder{plain.folders[id.value]});
    } else if (what < 88 && !plain.folders.empty()) {
      const FolderId id = plain.folders.begin()->second.id;
      plain.folders.erase(id.value);
      for (auto& [unused, head] : plain.chats) {
        if (head.folder == id) head.folder = {};
      }
      push(EraseFolder{id});
    } else if (what < 92) {
      const PresetId id{below(5) + 1};
      plain.presets[id.value] = {
          id, "preset", "prompt " + std::to_string(step), {}, {{"reasoning_effort", step}}};
      push(SavePreset{plain.presets[id.value]});
    } else if (what < 95) {
      now_us_ += static_cast<std::int64_t>(below(300'000));
      step_until_idle();
    } else if (what < 96 && !tree.messages().empty()) {
      const MessageId after{1 + below(tree.messages().size())};
      tree.set_summary(after, below(3) == 0 ? "" : "summary " + std::to_string(step));
      push(SaveSummary{chat_id, after, tree.summary_after(after)});
    } else if (what < 97) {
      reopen();
      expect_holds(plain);
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
  }
  reopen();
  expect_holds(plain);
  EXPECT_EQ(contents_->last_chat.value, next_chat - 1);
  EXPECT_FALSE(problem_) << problem_.sentence;
  EXPECT_TRUE(notices_.empty());
}

TEST_F(RoundTrip, IdsOfErasedChatsAreNotGivenAgain) {
  open();
  push(SaveChat{some_head(7)});
  push(EraseChat{ChatId{7}}, true);
  step_until_idle();
  reopen();
  EXPECT_TRUE(contents_->chats.empty());
  EXPECT_EQ(contents_->last_chat, ChatId{7});
}

TEST_F(RoundTrip, PiecesOfARunningAnswerBecomeAnInterruptedMessage) {
  open();
  Chat tree;
  const MessageId question = tree.append(kRootMessage, Role::kUser, "q");
  const MessageId answer = tree.append(question, Role::kAssistant, "");
  push_all(changes_for(some_head(1), tree));
  const AppendToAnswer first{ChatId{1}, answer, 0, "one ", 0, {1, 2}};
  push(first);
  wait_ms(150);
  push(first);  // written twice is written once
  push(AppendToAnswer{ChatId{1}, answer, 4, "two", 2, {3}});
  wait_ms(150);
  const auto check = [&] {
    const auto loaded = load(1);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->messages().back().content, "one two");
    EXPECT_EQ(loaded->messages().back().token_ids, (std::vector<TokenId>{1, 2, 3}));
    EXPECT_TRUE(loaded->messages().back().interrupted);
    EXPECT_FALSE(loaded->messages().back().finish_reason.has_value());
  };
  check();
  reopen();
  check();
  worker_->search(1, "two");
  step_until_idle();
  EXPECT_EQ(hits_.size(), 1u) << "search reads messages: pieces must have become part of theirs";
}

TEST_F(RoundTrip, AWholeMessageTakesThePlaceOfItsPieces) {
  open();
  Chat tree = some_chat(1, 1);
  push(AppendToAnswer{ChatId{1}, MessageId{2}, 0, "draft of it", 0, {9}});
  wait_ms(150);
  push_all(changes_for(some_head(1), tree));
  wait_ms(150);
  reopen();
  EXPECT_EQ(load(1)->messages().back().content, tree.messages().back().content);
}

TEST_F(RoundTrip, APieceBehindALostOneIsLostToo) {
  open();
  Chat tree;
  const MessageId question = tree.append(kRootMessage, Role::kUser, "q");
  const MessageId answer = tree.append(question, Role::kAssistant, "");
  push_all(changes_for(some_head(1), tree));
  wait_ms(150);
  push(AppendToAnswer{ChatId{1}, answer, 0, "one ", 0, {1, 2}});
  push(AppendToAnswer{ChatId{1}, answer, 9, "three", 4, {5}});
  wait_ms(150);
  EXPECT_EQ(load(1)->messages().back().content, "one ");
  EXPECT_EQ(load(1)->messages().back().token_ids, (std::vector<TokenId>{1, 2}));
}

TEST_F(RoundTrip, AnInterruptedAnswerThatIsFinishedLaterIsInterruptedNoMore) {
  open();
  Chat tree = some_chat(1, 1);
  Message& answer = *tree.find(MessageId{2});
  for (const bool interrupted : {true, false}) {
    answer.interrupted = interrupted;
    push_all(changes_for(some_head(1), tree));
    wait_ms(150);
    reopen();
    EXPECT_EQ(load(1)->messages().back().interrupted, interrupted);
  }
}

TEST_F(RoundTrip, ChangesWaitForTheBatchUnlessTheyAreUrgent) {
  open();
  const auto soon = push(SaveChat{some_head(1)});
  step_until_idle();
  EXPECT_LT(worker_->committed(), soon);
  const auto now = push(SaveChat{some_head(2)}, true);
  step_until_idle();
  EXPECT_EQ(worker_->committed(), now);
  const auto later = push(SaveChat{some_head(3)});
  wait_ms(99);
  EXPECT_LT(worker_->committed(), later);
  wait_ms(1);
  EXPECT_EQ(worker_->committed(), later);
}

TEST_F(RoundTrip, FilesCanBeReadByTheirOwnerOnly) {
  open();
  fill(1, 1);
  reopen();
  push(SaveChat{some_head(2)}, true);
  step_until_idle();
  const auto mode = [](const std::filesystem::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 0777;
  };
  EXPECT_EQ(mode(database_path().parent_path()), 0700u);
  EXPECT_EQ(mode(database_path()), 0600u);
  EXPECT_EQ(mode(database_path().string() + "-wal"), 0600u);
  const auto backups = options().paths.existing_backups();
  ASSERT_EQ(backups.size(), 1u);
  EXPECT_EQ(mode(backups[0].second), 0600u);
}

TEST_F(RoundTrip, ErasedTextIsNotInTheFile) {
  open();
  Chat tree;
  const MessageId question = tree.append(kRootMessage, Role::kUser, "the secret of the ancient mariner");
  const MessageId running = tree.append(question, Role::kAssistant, "");
  push_all(changes_for(some_head(1), tree));
  wait_ms(200);
  push(AppendToAnswer{ChatId{1}, running, 0, "with my cross-bow I shot the albatross", 0, {1}});
  wait_ms(200);
  push(EraseChat{ChatId{1}}, true);
  step_until_idle();
  close();
  std::ifstream file(database_path(), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(bytes.size(), 4096u);
  EXPECT_EQ(bytes.find("ancient mariner"), std::string::npos);
  EXPECT_EQ(bytes.find("albatross"), std::string::npos) << "of an answer that was under way";
}

TEST_F(RoundTrip, SearchFindsTextInEveryCaseAndNamesTheBranch) {
  open();
  Chat tree;
  const MessageId question = tree.append(kRootMessage, Role::kUser, "ÜBER die Straße");
  tree.append(question, Role::kAssistant, "erste Antwort");
  tree.append(question, Role::kAssistant, "zweite ANTWORT");
  push_all(changes_for(some_head(1), tree));
  push_all(changes_for(some_head(2), some_chat(2, 1)));
  wait_ms(200);
  worker_->search(1, "antwort");
  step_until_idle();
  ASSERT_EQ(hits_.size(), 2u);
  EXPECT_TRUE(search_done_);
  EXPECT_EQ(hits_[0].message_id, MessageId{2});
  EXPECT_EQ(hits_[0].branch.index, 0);
  EXPECT_EQ(hits_[0].branch.count, 2);
  EXPECT_FALSE(hits_[0].on_active_path);
  EXPECT_TRUE(hits_[1].on_active_path);
  EXPECT_EQ(hits_[1].match.excerpt.substr(hits_[1].match.begin, hits_[1].match.end - hits_[1].match.begin),
            "ANTWORT");
  hits_.clear();
  worker_->search(2, "STRASSE über");
  worker_->search(3, "straße über");
  step_until_idle();
  ASSERT_EQ(hits_.size(), 1u);
  EXPECT_EQ(hits_[0].chat_id, ChatId{1});
}

}  // namespace
}  // namespace octavo::testing
