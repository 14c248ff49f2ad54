// The tree of a conversation against what the conversation itself says, on random trees.

#include "app/window/conversation_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace octavo::app {
namespace {

TEST(ConversationTree, IsEmptyForAnEmptyChat) {
  EXPECT_TRUE(conversation_tree(Conversation{}, ui::SessionId{1})->messages.empty());
}

TEST(ConversationTree, HoldsEveryMessageOnceBelowItsParent) {
  const unsigned seed = 71;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    Conversation conversation;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i)
      conversation.append(MessageId{random() % (conversation.messages().size() + 1)}, Role::kUser, "text");
    conversation.activate(MessageId{1 + random() % count});
    const auto tree = conversation_tree(conversation, ui::SessionId{1});
    const auto& rows = tree->messages;
    ASSERT_EQ(rows.size(), count);
    const std::vector<MessageId> path = conversation.active_path();
    std::int32_t num_leaves = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Message& message = *conversation.find(MessageId{rows[i].id});
      const bool is_first = message.parent == kRootMessage;
      EXPECT_EQ(rows[i].parent == i, is_first);
      if (!is_first) {
        EXPECT_LT(rows[i].parent, i);
        EXPECT_EQ(MessageId{rows[rows[i].parent].id}, message.parent);
        const bool alone = conversation.find(message.parent)->children.size() == 1;
        EXPECT_EQ(rows[i].lane, rows[rows[i].parent].lane + (alone ? 0 : 1));
        const std::size_t above = rows[rows[i].parent].branching_ancestor;
        const std::size_t inherited = above == rows[i].parent ? i : above;
        EXPECT_EQ(rows[i].branching_ancestor, alone ? inherited : rows[i].parent);
        if (alone) {
          EXPECT_EQ(rows[i].parent, i - 1);  // the row above: so lines need no gap
        }
      }
      const MessageId last = message.children.empty() ? message.id : message.children.back();
      EXPECT_EQ(MessageId{rows[rows[i].last_child].id}, last);
      const bool shown = std::find(path.begin(), path.end(), message.id) != path.end();
      EXPECT_EQ(rows[i].on_shown_path, shown);
      const bool goes_on = shown && message.active_child != kRootMessage;
      EXPECT_EQ(MessageId{rows[rows[i].shown_child].id}, goes_on ? message.active_child : message.id);
      num_leaves += message.children.empty() ? 1 : 0;
    }
    EXPECT_EQ(tree->num_branches, num_leaves);
  }
}

TEST(ConversationTree, AnExcerptIsOneLineAndANoteNamesTheModelAndTheTime) {
  Conversation conversation;
  const MessageId question = conversation.append(kRootMessage, Role::kUser, "  first\nsecond\n\nthird");
  const MessageId answer = conversation.append(question, Role::kAssistant, std::string(1'000, 'x'));
  Message& message = *conversation.find(answer);
  message.model = "Small";
  message.finish_reason = FinishReason::kStop;
  message.metrics = AnswerMetrics{};
  message.metrics->request.e2e_us = 2'300'000;
  const auto tree = conversation_tree(conversation, ui::SessionId{1});
  EXPECT_EQ(tree->messages[0].excerpt, "first second  third");
  EXPECT_EQ(tree->messages[0].note, "");
  EXPECT_LT(tree->messages[1].excerpt.size(), 200u);
  EXPECT_EQ(tree->messages[1].note, "Small · 2.3 s");
}

TEST(ConversationTree, AVersionChangesWithWhatIsShown) {
  Conversation conversation;
  const auto version = [&] { return tree_version(conversation, ui::SessionId{1}); };
  TreeVersion before = version();
  const auto expect_change = [&](const char* what) {
    EXPECT_FALSE(before == version()) << what;
    before = version();
  };
  const MessageId question = conversation.append(kRootMessage, Role::kUser, "q");
  expect_change("a message");
  const MessageId first = conversation.append(question, Role::kAssistant, "");
  const MessageId second = conversation.append(question, Role::kAssistant, "");
  before = version();
  conversation.find(second)->content += "growing";
  expect_change("text");
  conversation.find(second)->finish_reason = FinishReason::kStop;
  expect_change("an end");
  conversation.activate(first);
  expect_change("the path");
}

}  // namespace
}  // namespace octavo::app
