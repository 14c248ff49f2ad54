// The tree of a chat against what the chat itself says, on random trees.

#include "app/window/chat/branch_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace octavo::app {
namespace {

TEST(BranchTree, IsEmptyForAnEmptyChat) { EXPECT_TRUE(branch_tree(Chat{}, ChatId{1})->messages.empty()); }

TEST(BranchTree, HoldsEveryMessageOnceBelowItsParent) {
  const unsigned seed = 71;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Chat chat;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i)
      chat.append(MessageId{random() % (chat.messages().size() + 1)}, Role::kUser, "text");
    chat.activate(MessageId{1 + random() % count});
    const auto tree = branch_tree(chat, ChatId{1});
    const auto& rows = tree->messages;
    ASSERT_EQ(rows.size(), count);
    const std::vector<MessageId> path = chat.active_path();
    std::int32_t num_leaves = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Message& message = *chat.find(rows[i].id);
      const bool is_first = message.parent == kRootMessage;
      EXPECT_EQ(rows[i].parent == i, is_first);
      if (!is_first) {
        EXPECT_LT(rows[i].parent, i);
        EXPECT_EQ(rows[rows[i].parent].id, message.parent);
        const bool alone = chat.find(message.parent)->children.size() == 1;
        EXPECT_EQ(rows[i].lane, rows[rows[i].parent].lane + (alone ? 0 : 1));
        const std::size_t above = rows[rows[i].parent].branching_ancestor;
        const std::size_t inherited = above == rows[i].parent ? i : above;
        EXPECT_EQ(rows[i].branching_ancestor, alone ? inherited : rows[i].parent);
        if (alone) {
          EXPECT_EQ(rows[i].parent, i - 1);  // the row above: so lines need no gap
        }
      }
      const MessageId last = message.children.empty() ? message.id : message.children.back();
      EXPECT_EQ(rows[rows[i].last_child].id, last);
      const bool shown = std::find(path.begin(), path.end(), message.id) != path.end();
      EXPECT_EQ(rows[i].on_shown_path, shown);
      const bool goes_on = shown && message.active_child != kRootMessage;
      EXPECT_EQ(rows[rows[i].shown_child].id, goes_on ? message.active_child : message.id);
      num_leaves += message.children.empty() ? 1 : 0;
    }
    EXPECT_EQ(tree->num_branches, num_leaves);
  }
}

TEST(BranchTree, AnExcerptIsOneLineAndANoteNamesTheModelAndTheTime) {
  Chat chat;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "  first\nsecond\n\nthird");
  const MessageId answer = chat.append(question, Role::kAssistant, std::string(1'000, 'x'));
  Message& message = *chat.find(answer);
  message.model = "Small";
  message.finish_reason = FinishReason::kStop;
  message.metrics = AnswerMetrics{};
  message.metrics->request.e2e_us = 2'300'000;
  const auto tree = branch_tree(chat, ChatId{1});
  EXPECT_EQ(tree->messages[0].excerpt, "first second  third");
  EXPECT_EQ(tree->messages[0].note, "");
  EXPECT_LT(tree->messages[1].excerpt.size(), 200u);
  EXPECT_EQ(tree->messages[1].note, "Small · 2.3 s");
}

TEST(BranchTree, AVersionChangesWithWhatIsShown) {
  Chat chat;
  const auto version = [&] { return tree_version(chat, ChatId{1}); };
  TreeVersion before = version();
  const auto expect_change = [&](const char* what) {
    EXPECT_FALSE(before == version()) << what;
    before = version();
  };
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  expect_change("a message");
  const MessageId first = chat.append(question, Role::kAssistant, "");
  const MessageId second = chat.append(question, Role::kAssistant, "");
  before = version();
  chat.find(second)->content += "growing";
  expect_change("text");
  chat.find(second)->finish_reason = FinishReason::kStop;
  expect_change("an end");
  chat.activate(first);
  expect_change("the path");
}

}  // namespace
}  // namespace octavo::app
