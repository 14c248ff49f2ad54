#include "engine/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

const ChatTemplateConstants kConstants = {"<s>", "</s>"};

std::vector<ChatMessage> to_messages(const nlohmann::json& json) {
  std::vector<ChatMessage> messages;
  for (const auto& message : json) {
    messages.push_back(
        {*parse_role(message["role"].get<std::string>()), message["content"].get<std::string>()});
  }
  return messages;
}

std::string text_of(const std::vector<PromptSpan>& spans) {
  std::string text;
  for (const PromptSpan& span : spans) text += span.text;
  return text;
}

Result<std::vector<PromptSpan>> render(std::string_view source, const std::vector<ChatMessage>& messages,
                                       std::int64_t now = 0) {
  OCTAVO_TRY(const ChatTemplate parsed, ChatTemplate::parse(source));
  return parsed.render(messages, kConstants, now);
}

TEST(ChatTemplate, RealTemplatesPrintWhatJinja2Prints) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    const std::string source = read_golden_text("templates/" + name);
    for (std::size_t i = 0; i < golden["chats"].size(); ++i) {
      const auto messages = to_messages(golden["chats"][i]);
      const auto spans = render(source, messages, golden["now"].get<std::int64_t>());
      const auto& expected = entry["texts"][i];
      if (expected.is_null()) {
        EXPECT_FALSE(spans) << name << " " << i;
      } else {
        ASSERT_TRUE(spans) << name << " " << i << ": " << spans.error().message;
        EXPECT_EQ(text_of(*spans), expected.get<std::string>()) << name << " " << i;
      }
    }
  }
}

// Each message is a run of characters that no template contains: exactly those are input.
TEST(ChatTemplate, ExactlyTheMessagesAreInput) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  for (const auto& entry : golden["templates"]) {
    const auto name = entry["name"].get<std::string>();
    if (name == "macros.jinja") continue;  // prints lengths of messages
    const std::vector<ChatMessage> messages = {
        {Role::kUser, "\u0416\u0416"}, {Role::kAssistant, "\u0416"}, {Role::kUser, "\u0416\u0416\u0416"}};
    const auto spans = render(read_golden_text("templates/" + name), messages);
    ASSERT_TRUE(spans) << name << ": " << spans.error().message;
    std::set<std::int32_t> seen;
    for (const PromptSpan& span : *spans) {
      EXPECT_EQ(span.is_input, span.text.find("\u0416") != std::string::npos) << name << ": " << span.text;
      if (!span.is_input) continue;
      ASSERT_GE(span.message_index, 0) << name;
      EXPECT_EQ(span.text, messages[static_cast<std::size_t>(span.message_index)].content);
      seen.insert(span.message_index);
    }
    EXPECT_EQ(seen.size(), 3u) << name;
  }
}

TEST(ChatTemplate, AChangedMessageHasNoIndex) {
  const auto index_in = [](const char* source, const std::string& content) {
    const auto spans = render(source, {{Role::kAssistant, content}});
    EXPECT_TRUE(spans);
    for (const PromptSpan& span : *spans) {
      if (span.is_input) return span.message_index;
    }
    return -2;
  };
  EXPECT_EQ(index_in("{{ messages[0].content|trim }}", "as it is"), 0);
  EXPECT_EQ(index_in("{{ messages[0].content|trim }}", " padded "), -1);
  EXPECT_EQ(index_in("{{ messages[0].content.split('</think>')[-1] }}", "<think>x</think>y"), -1);
  EXPECT_EQ(index_in("{{ messages[0].content.split('</think>')[-1] }}", "y"), 0);
  EXPECT_EQ(index_in("{{ messages[0].content|lower }}", "lower"), -1);
}

TEST(ChatTemplate, WithoutOneContentsAreJoinedByLineBreaks) {
  const std::vector<ChatMessage> messages = {{Role::kSystem, "a"}, {Role::kUser, ""}, {Role::kUser, "b"}};
  const std::vector<PromptSpan> spans = plain_completion(messages);
  EXPECT_EQ(text_of(spans), "a\n\nb");
  EXPECT_TRUE(spans.front().is_input);
  EXPECT_EQ(spans.back().message_index, 2);
}

TEST(ChatTemplate, VicunaIsBuiltIn) {
  const auto short_form = render(
      "vicuna", {{Role::kSystem, "S."}, {Role::kUser, "u"}, {Role::kAssistant, "a"}, {Role::kUser, "v"}});
  ASSERT_TRUE(short_form) << short_form.error().message;
  EXPECT_EQ(text_of(*short_form), "S. USER: u ASSISTANT: a</s>USER: v ASSISTANT:");
  const auto with_default = render("vicuna", {{Role::kUser, "Hi"}});
  ASSERT_TRUE(with_default);
  EXPECT_EQ(
      text_of(*with_default),
      "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
      "detailed, and polite answers to the user's questions. USER: Hi ASSISTANT:");
}

// Gemma's template refuses the system role; a user who set a system prompt gets an answer all the same.
TEST(ChatTemplate, ASystemMessageThatIsRefusedStandsBeforeTheFirstUserMessage) {
  const auto parsed = ChatTemplate::parse(read_golden_text("templates/gemma.jinja"));
  ASSERT_TRUE(parsed);
  const auto folded = [&](const std::vector<ChatMessage>& messages) {
    return parsed->render_folding_system(messages, kConstants, 0);
  };
  const std::vector<ChatMessage> chat = {
      {Role::kSystem, "Be brief."}, {Role::kUser, "Hi"}, {Role::kAssistant, "Yes"}, {Role::kUser, "So"}};
  EXPECT_FALSE(parsed->render(chat, kConstants, 0));
  const auto spans = folded(chat);
  ASSERT_TRUE(spans) << spans.error().message;
  EXPECT_EQ(text_of(*spans),
            "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nYes<end_of_turn>\n"
            "<start_of_turn>user\nSo<end_of_turn>\n<start_of_turn>model\n");
  std::vector<std::int32_t> indices;
  for (const PromptSpan& span : *spans) {
    if (span.is_input) indices.push_back(span.message_index);
  }
  EXPECT_EQ(indices, (std::vector<std::int32_t>{0, 1, 2, 3}));

  const std::vector<ChatMessage> alone = {{Role::kSystem, "s"}};
  EXPECT_EQ(text_of(*folded(alone)), "<s><start_of_turn>user\ns<end_of_turn>\n<start_of_turn>model\n");
  const std::vector<ChatMessage> empty = {{Role::kSystem, ""}, {Role::kUser, "u"}};
  EXPECT_EQ(text_of(*folded(empty)), "<s><start_of_turn>user\nu<end_of_turn>\n<start_of_turn>model\n");
  const std::vector<ChatMessage> unsalvageable = {
      {Role::kSystem, "s"}, {Role::kUser, "u"}, {Role::kUser, "v"}};
  const auto refused = folded(unsalvageable);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("System role not supported"), std::string::npos)
      << refused.error().message;
}

TEST(ChatTemplate, TheDateIsTheOneThatWasGiven) {
  const auto spans = render("{{ strftime_now('%d %b %Y') }}", {}, 951782400);
  ASSERT_TRUE(spans);
  EXPECT_EQ(text_of(*spans), "29 Feb 2000");
}

}  // namespace
}  // namespace octavo::tokenizer
