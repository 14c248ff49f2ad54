#include "app/chat/chat.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "app/chat/context_plan.h"

namespace octavo::app {
namespace {

std::vector<std::string> texts(const Chat& chat) {
  std::vector<std::string> result;
  for (const MessageId id : chat.active_path()) result.push_back(chat.find(id)->content);
  return result;
}

TEST(Chat, MessagesFormAPath) {
  Chat chat;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  chat.append(question, Role::kAssistant, "a");
  EXPECT_EQ(texts(chat), (std::vector<std::string>{"q", "a"}));
  EXPECT_EQ(chat.display_title(), "q");
}

TEST(Chat, AnotherAnswerIsABranchAndNothingIsLost) {
  Chat chat;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  const MessageId first = chat.append(question, Role::kAssistant, "a1");
  chat.append(first, Role::kUser, "deeper");
  const MessageId second = chat.append(question, Role::kAssistant, "a2");
  EXPECT_EQ(texts(chat), (std::vector<std::string>{"q", "a2"}));
  EXPECT_EQ(chat.position_among_siblings(second).index, 1);
  EXPECT_EQ(chat.position_among_siblings(second).count, 2);
  EXPECT_EQ(chat.sibling(second, -1), first);
  EXPECT_EQ(chat.sibling(second, +1), second);
  chat.activate(first);
  EXPECT_EQ(texts(chat), (std::vector<std::string>{"q", "a1", "deeper"}));
}

TEST(Chat, EditedFirstQuestionIsASiblingAtTheRoot) {
  Chat chat;
  chat.append(kRootMessage, Role::kUser, "old");
  const MessageId edited = chat.append(kRootMessage, Role::kUser, "new");
  EXPECT_EQ(chat.position_among_siblings(edited).count, 2);
  EXPECT_EQ(texts(chat), std::vector<std::string>{"new"});
}

TEST(Chat, EngineGetsTheSystemPromptAndThePathUpToTheQuestion) {
  Chat chat;
  chat.system_prompt = "be brief";
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  const MessageId answer = chat.append(question, Role::kAssistant, "a");
  chat.find(answer)->token_ids = {1, 2};
  const MessageId second = chat.append(answer, Role::kUser, "q2");
  const MessageId failed = chat.append(second, Role::kAssistant, "");
  const MessageId third = chat.append(failed, Role::kUser, "q3");
  const auto messages = whole_prompt(context_question(chat, third, 512));
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[2].token_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(messages[3].content, "q2");
  EXPECT_EQ(messages[4].content, "q3");
}

TEST(Chat, TitleIsOneShortLine) {
  Chat chat;
  chat.append(kRootMessage, Role::kUser, "\n  " + std::string(100, 'x') + "\nsecond");
  EXPECT_EQ(chat.display_title(10), "xxxxxxxxxx…");
  EXPECT_EQ(first_line("äöü", 2), "äö…");
  EXPECT_EQ(first_line("  \n ", 5), "");
  chat.title = "Mine";
  EXPECT_EQ(chat.display_title(), "Mine");
}

// Against a plain model: parent and chosen child per node in maps.
TEST(Chat, RandomTreesAgreeWithAPlainModel) {
  std::mt19937 random(42);
  Chat chat;
  std::map<std::uint64_t, std::uint64_t> parent, chosen;
  const auto choose = [&](std::uint64_t id) {
    for (; id != 0; id = parent[id]) chosen[parent[id]] = id;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t count = chat.messages().size();
    if (count > 0 && random() % 3 == 0) {
      const std::uint64_t id = 1 + random() % count;
      chat.activate(MessageId{id});
      choose(id);
    } else {
      const std::uint64_t above = random() % (count + 1);
      const MessageId id = chat.append(MessageId{above}, Role::kUser, "x");
      parent[id.value] = above;
      choose(id.value);
    }
    std::vector<MessageId> expected;
    for (std::uint64_t id = chosen[0]; id != 0; id = chosen.contains(id) ? chosen[id] : 0)
      expected.push_back(MessageId{id});
    ASSERT_EQ(chat.active_path(), expected) << "step " << i;
  }
}

TEST(Chat, AddedMessagesAreChosenAmongSiblingsAndNothingAbove) {
  Chat chat;
  const MessageId a = chat.append(kRootMessage, Role::kUser, "a");
  const MessageId b = chat.append(kRootMessage, Role::kUser, "b");
  Message below;
  below.parent = a;
  const MessageId added = chat.add(below);
  EXPECT_EQ(chat.find(a)->active_child, added);
  EXPECT_EQ(chat.active_first(), b);
  chat.activate(added);
  EXPECT_EQ(chat.active_path(), (std::vector<MessageId>{a, added}));
}

TEST(Chat, AFailedQuestionIsNotSentAgainWithTheNextOne) {
  Chat chat;
  chat.append(kRootMessage, Role::kUser, "first");
  chat.append(chat.active_leaf(), Role::kAssistant, "answer");
  const MessageId failed = chat.append(chat.active_leaf(), Role::kUser, "too much");
  Message& answer = *chat.find(chat.append(failed, Role::kAssistant, ""));
  answer.finish_reason = FinishReason::kError;
  const MessageId next = chat.append(chat.active_leaf(), Role::kUser, "next");
  const auto contents = [&](MessageId last) {
    std::vector<std::string> texts;
    for (const PathMessage& entry : context_question(chat, last, 512).path)
      texts.push_back(entry.message.content);
    return texts;
  };
  EXPECT_EQ(contents(next), (std::vector<std::string>{"first", "answer", "next"}));
  EXPECT_EQ(contents(failed), (std::vector<std::string>{"first", "answer", "too much"}))
      << "it can be asked again";
  EXPECT_EQ(contents(answer.id), (std::vector<std::string>{"first", "answer", "too much"}));
}

// The tree as it can be seen, with nothing that only keeps a place.
std::string seen(const Chat& chat) {
  std::string text;
  const auto describe = [&](const auto& self, MessageId id, const std::string& indent) -> void {
    const Message& message = *chat.find(id);
    text += indent + (chat.is_chosen(id) ? "*" : " ") + std::to_string(id.value) + message.content +
            chat.summary_after(id) + "\n";
    for (const MessageId child : message.children) self(self, child, indent + "  ");
  };
  for (const Message& message : chat.messages()) {
    if (!message.erased && message.parent == kRootMessage) describe(describe, message.id, "");
  }
  return text;
}

TEST(Chat, AnErasedMessageLeavesItsPlaceAndWhatFollowsMovesUp) {
  Chat chat;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  const MessageId first = chat.append(question, Role::kAssistant, "a");
  const MessageId second = chat.append(question, Role::kAssistant, "b");
  const MessageId next = chat.append(first, Role::kUser, "n");
  chat.set_summary(next, "told");
  const ErasedMessages erased = chat.erase(first, EraseExtent::kMessage);
  EXPECT_EQ(erased.messages.size(), 1u);
  EXPECT_EQ(chat.find(first), nullptr);
  EXPECT_EQ(chat.messages().size(), 4u) << "every other message keeps its id";
  EXPECT_EQ(chat.find(question)->children, (std::vector<MessageId>{second, next}));
  EXPECT_EQ(chat.active_path(), (std::vector<MessageId>{question, next}));
  EXPECT_EQ(chat.summary_after(next), "") << "it told of what is gone";
  EXPECT_EQ(chat.append(chat.active_leaf(), Role::kAssistant, "c"), MessageId{5});
}

TEST(Chat, AnErasedBranchMakesWayForItsNeighbour) {
  Chat chat;
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  const MessageId first = chat.append(question, Role::kAssistant, "a");
  const MessageId second = chat.append(question, Role::kAssistant, "b");
  chat.append(second, Role::kUser, "n");
  chat.context_begin = MessageId{4};
  EXPECT_EQ(chat.erase(second, EraseExtent::kBranch).messages.size(), 2u);
  EXPECT_EQ(chat.active_path(), (std::vector<MessageId>{question, first}));
  EXPECT_EQ(chat.context_begin, kRootMessage);
  chat.erase(question, EraseExtent::kBranch);
  EXPECT_TRUE(chat.active_path().empty());
  EXPECT_EQ(chat.display_title(), "New chat");
}

TEST(Chat, WhateverIsErasedComesBackAsItWas) {
  std::mt19937 random(7);
  Chat chat;
  for (int i = 0; i < 60; ++i) {
    const MessageId above{random() % (chat.messages().size() + 1)};
    const MessageId id = chat.append(above, Role::kUser, " x" + std::to_string(i));
    if (random() % 3 == 0) chat.set_summary(id, " summary");
  }
  for (int i = 0; i < 500; ++i) {
    const MessageId id{1 + random() % chat.messages().size()};
    if (random() % 2 == 0 && chat.find(id) != nullptr) chat.activate(id);
    if (chat.find(id) == nullptr) continue;
    const std::string before = seen(chat);
    const auto extent = random() % 2 == 0 ? EraseExtent::kMessage : EraseExtent::kBranch;
    ErasedMessages erased = chat.erase(id, extent);
    ASSERT_NE(seen(chat), before);
    ASSERT_EQ(seen(without_erased(chat)).size() > 0, seen(chat).size() > 0);
    for (const MessageId shown : chat.active_path()) ASSERT_NE(chat.find(shown), nullptr);
    if (random() % 8 == 0) continue;  // it stays erased
    chat.restore(std::move(erased));
    ASSERT_EQ(seen(chat), before) << "step " << i;
  }
}

TEST(Chat, ACopyWithoutErasedMessagesHasIdsOfItsOwn) {
  Chat chat;
  chat.title = "T";
  const MessageId gone = chat.append(kRootMessage, Role::kUser, "gone");
  const MessageId question = chat.append(kRootMessage, Role::kUser, "q");
  const MessageId first = chat.append(question, Role::kAssistant, "a");
  chat.append(question, Role::kAssistant, "b");
  chat.activate(first);
  chat.set_summary(first, "s");
  chat.erase(gone, EraseExtent::kBranch);
  const Chat copy = without_erased(chat);
  EXPECT_EQ(copy.title, "T");
  ASSERT_EQ(copy.messages().size(), 3u);
  EXPECT_EQ(copy.active_path(), (std::vector<MessageId>{MessageId{1}, MessageId{2}}));
  EXPECT_EQ(copy.summary_after(MessageId{2}), "s");
  EXPECT_EQ(copy.find(MessageId{3})->content, "b");
}

}  // namespace
}  // namespace octavo::app
