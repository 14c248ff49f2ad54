#include "app/conversation/conversation.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace octavo::app {
namespace {

std::vector<std::string> texts(const Conversation& conversation) {
  std::vector<std::string> result;
  for (const MessageId id : conversation.active_path()) result.push_back(conversation.find(id)->content);
  return result;
}

TEST(Conversation, MessagesFormAPath) {
  Conversation conversation;
  const MessageId question = conversation.append(kRootMessage, Role::kUser, "q");
  conversation.append(question, Role::kAssistant, "a");
  EXPECT_EQ(texts(conversation), (std::vector<std::string>{"q", "a"}));
  EXPECT_EQ(conversation.display_title(), "q");
}

TEST(Conversation, AnotherAnswerIsABranchAndNothingIsLost) {
  Conversation conversation;
  const MessageId question = conversation.append(kRootMessage, Role::kUser, "q");
  const MessageId first = conversation.append(question, Role::kAssistant, "a1");
  conversation.append(first, Role::kUser, "deeper");
  const MessageId second = conversation.append(question, Role::kAssistant, "a2");
  EXPECT_EQ(texts(conversation), (std::vector<std::string>{"q", "a2"}));
  EXPECT_EQ(conversation.position_among_siblings(second).index, 1);
  EXPECT_EQ(conversation.position_among_siblings(second).count, 2);
  EXPECT_EQ(conversation.sibling(second, -1), first);
  EXPECT_EQ(conversation.sibling(second, +1), second);
  conversation.activate(first);
  EXPECT_EQ(texts(conversation), (std::vector<std::string>{"q", "a1", "deeper"}));
}

TEST(Conversation, EditedFirstQuestionIsASiblingAtTheRoot) {
  Conversation conversation;
  conversation.append(kRootMessage, Role::kUser, "old");
  const MessageId edited = conversation.append(kRootMessage, Role::kUser, "new");
  EXPECT_EQ(conversation.position_among_siblings(edited).count, 2);
  EXPECT_EQ(texts(conversation), std::vector<std::string>{"new"});
}

TEST(Conversation, EngineGetsTheSystemPromptAndThePathUpToTheQuestion) {
  Conversation conversation;
  conversation.system_prompt = "be brief";
  const MessageId question = conversation.append(kRootMessage, Role::kUser, "q");
  const MessageId answer = conversation.append(question, Role::kAssistant, "a");
  conversation.find(answer)->token_ids = {1, 2};
  const MessageId second = conversation.append(answer, Role::kUser, "q2");
  const MessageId failed = conversation.append(second, Role::kAssistant, "");
  const MessageId third = conversation.append(failed, Role::kUser, "q3");
  const auto messages = conversation.chat_messages(third);
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0].role, Role::kSystem);
  EXPECT_EQ(messages[2].token_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(messages[3].content, "q2");
  EXPECT_EQ(messages[4].content, "q3");
}

TEST(Conversation, TitleIsOneShortLine) {
  Conversation conversation;
  conversation.append(kRootMessage, Role::kUser, "\n  " + std::string(100, 'x') + "\nsecond");
  EXPECT_EQ(conversation.display_title(10), "xxxxxxxxxx…");
  EXPECT_EQ(first_line("äöü", 2), "äö…");
  EXPECT_EQ(first_line("  \n ", 5), "");
  conversation.title = "Mine";
  EXPECT_EQ(conversation.display_title(), "Mine");
}

// Against a plain model: parent and chosen child per node in maps.
TEST(Conversation, RandomTreesAgreeWithAPlainModel) {
  std::mt19937 random(42);
  Conversation conversation;
  std::map<std::uint64_t, std::uint64_t> parent, chosen;
  const auto choose = [&](std::uint64_t id) {
    for (; id != 0; id = parent[id]) chosen[parent[id]] = id;
  };
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t count = conversation.messages().size();
    if (count > 0 && random() % 3 == 0) {
      const std::uint64_t id = 1 + random() % count;
      conversation.activate(MessageId{id});
      choose(id);
    } else {
      const std::uint64_t above = random() % (count + 1);
      const MessageId id = conversation.append(MessageId{above}, Role::kUser, "x");
      parent[id.value] = above;
      choose(id.value);
    }
    std::vector<MessageId> expected;
    for (std::uint64_t id = chosen[0]; id != 0; id = chosen.contains(id) ? chosen[id] : 0)
      expected.push_back(MessageId{id});
    ASSERT_EQ(conversation.active_path(), expected) << "step " << i;
  }
}

}  // namespace
}  // namespace octavo::app
