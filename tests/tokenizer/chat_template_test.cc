#include "engine/chat_template/chat_template.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/tokenizer/encoding.h"
#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

const ChatTemplateConstants kConstants = {"<s>", "</s>"};

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

// gpt-oss refuses an answer that has its channels in it, and the second question of every chat with it.
TEST(ChatTemplate, WhatAnAnswerThoughtIsGivenApartWhereTheTemplateReadsItSo) {
  const std::string thinks = "<think>\nhm\n</think>\n\nok";
  const std::string in_channels =
      "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>ok";
  const auto printed = [](const std::string& source, const std::string& answer) {
    const std::vector<ChatMessage> messages = {
        {Role::kUser, "a"}, {Role::kAssistant, answer}, {Role::kUser, "b"}};
    const auto spans = render(source, messages);
    EXPECT_TRUE(spans) << source;
    for (const PromptSpan& span : *spans) {
      if (span.text.find("hm") != std::string::npos || span.text == "ok") {
        EXPECT_TRUE(span.is_input) << span.text;
      }
    }
    return text_of(*spans);
  };
  const std::string apart =
      "{% for m in messages %}[{{ m.reasoning_content or m.thinking }}|{{ m.content }}]{% endfor %}";
  const std::string finds = apart + "{# </think> #}",
                    reads_text = "{% for m in messages %}[{{ m.content }}]{% endfor %}";
  EXPECT_EQ(printed(apart, thinks), "[|a][hm|ok][|b]");
  EXPECT_EQ(printed(apart, in_channels), "[|a][hm|ok][|b]");
  EXPECT_EQ(printed(finds, thinks), "[|a][|" + thinks + "][|b]") << "it looks for the marks itself";
  EXPECT_EQ(printed(finds, in_channels), "[|a][hm|ok][|b]");
  EXPECT_EQ(printed(reads_text, thinks), "[a][" + thinks + "][b]") << "it reads nothing apart";
  EXPECT_EQ(printed(apart, "plain"), "[|a][|plain][|b]");
  EXPECT_EQ(printed(apart, "<think>hm"), "[|a][|<think>hm][|b]") << "nothing was said";
  EXPECT_EQ(printed(apart, "<|channel|>analysis<|message|>hm"), "[|a][hm|][|b]");
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

TEST(ChatTemplate, EndsBehindTheMessagesWithoutAGenerationPrompt) {
  TemplateInputs inputs;
  for (const bool adds : {true, false}) {
    inputs.add_generation_prompt = adds;
    const auto spans = ChatTemplate::parse("vicuna")->render(std::vector<ChatMessage>{{Role::kUser, "Hi"}},
                                                             kConstants, inputs);
    ASSERT_TRUE(spans) << spans.error().message;
    EXPECT_EQ(text_of(*spans).ends_with("USER: Hi ASSISTANT:"), adds);
    EXPECT_EQ(text_of(*spans).ends_with("USER: Hi "), !adds) << text_of(*spans);
  }
}

// Templates that we carry, and the one that is built in.
std::vector<std::string> all_sources() {
  std::vector<std::string> sources = {"vicuna"};
  const nlohmann::json golden = load_golden("chat_templates.json");
  for (const auto& entry : golden["templates"]) {
    sources.push_back(read_golden_text("templates/" + entry["name"].get<std::string>()));
  }
  EXPECT_GE(sources.size(), 20u);
  return sources;
}

Result<std::vector<PromptSpan>> render_any(std::string_view source,
                                           const std::vector<ChatMessage>& messages) {
  OCTAVO_TRY(const ChatTemplate parsed, ChatTemplate::parse(source));
  return parsed.render_any(messages, kConstants, 0);
}

// What a template prints of the messages, in order.
std::string input_of(const std::vector<PromptSpan>& spans) {
  std::string text;
  for (const PromptSpan& span : spans) {
    if (span.is_input) text += span.text;
  }
  return text;
}

constexpr auto kSystem = Role::kSystem;
constexpr auto kUser = Role::kUser;
constexpr auto kAnswer = Role::kAssistant;

// Contents are digits, so that none is a part of a template's own words about roles.
TEST(ChatTemplate, NoChatIsRefusedForAnAnswerThatIsMissingOrEmpty) {
  const std::vector<std::vector<ChatMessage>> chats = {
      {{kUser, "771"}, {kAnswer, ""}, {kUser, "772"}},
      {{kUser, "771"}, {kAnswer, "772"}, {kUser, "773"}, {kAnswer, ""}},
      {{kUser, "771"}, {kUser, "772"}},
      {{kUser, "771"}, {kUser, "772"}, {kAnswer, "773"}, {kUser, "774"}, {kUser, "775"}, {kUser, "776"}},
      {{kUser, "771"}, {kAnswer, "772"}, {kAnswer, "773"}, {kUser, "774"}},
      {{kAnswer, "771"}, {kUser, "772"}},
      {{kAnswer, "771"}},
      {{kUser, ""}, {kUser, "771"}, {kUser, ""}},
      {{kUser, "771"}},
  };
  for (const std::string& source : all_sources()) {
    for (std::size_t i = 0; i < chats.size(); ++i) {
      std::string words;
      for (const ChatMessage& message : chats[i]) words += message.content;
      const auto spans = render_any(source, chats[i]);
      ASSERT_TRUE(spans) << "chat " << i << " of\n" << source << "\n" << spans.error().message;
      std::string printed = input_of(*spans);
      std::erase(printed, '\n');
      if (source.find("message.content|length") == std::string::npos) {
        EXPECT_EQ(printed, words) << "chat " << i << " of\n" << source;
      }
    }
  }
}

// Where a template puts system text is its affair.
TEST(ChatTemplate, NoChatIsRefusedForItsSystemMessage) {
  const std::vector<std::vector<ChatMessage>> chats = {
      {{kSystem, "770"}},
      {{kSystem, "770"}, {kAnswer, "771"}},
      {{kSystem, "770"}, {kUser, "771"}, {kUser, "772"}},
      {{kSystem, "770"}, {kAnswer, "771"}, {kUser, "772"}, {kAnswer, ""}, {kUser, "773"}},
  };
  for (const std::string& source : all_sources()) {
    for (std::size_t i = 0; i < chats.size(); ++i) {
      const auto spans = render_any(source, chats[i]);
      ASSERT_TRUE(spans) << "chat " << i << " of\n" << source << "\n" << spans.error().message;
      for (const ChatMessage& message : chats[i]) {
        // Mistral's newer templates put it into a question that stands last, and nowhere else.
        if (message.role == kSystem && chats[i].back().role == kAnswer) continue;
        EXPECT_NE(text_of(*spans).find(message.content), std::string::npos)
            << message.content << " in chat " << i << " of\n"
            << source;
      }
    }
  }
}

TEST(ChatTemplate, WhatATemplateAcceptsIsGivenToItAsItIs) {
  const nlohmann::json golden = load_golden("chat_templates.json");
  int num_compared = 0;
  for (const std::string& source : all_sources()) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_TRUE(parsed);
    for (const auto& chat : golden["chats"]) {
      const auto messages = to_messages(chat);
      const auto plain = parsed->render(messages, kConstants, 0);
      if (!plain || input_of(*plain).empty()) continue;
      EXPECT_EQ(text_of(*parsed->render_any(messages, kConstants, 0)), text_of(*plain)) << source;
      ++num_compared;
    }
  }
  EXPECT_GT(num_compared, 200);
}

TEST(ChatTemplate, QuestionsInARowAreOneForATemplateThatWantsAnAnswerBetween) {
  const std::string gemma = read_golden_text("templates/gemma.jinja");
  const std::vector<ChatMessage> chat = {{kUser, "Hi"}, {kUser, "So"}, {kAnswer, "Yes"}, {kUser, "Why"}};
  EXPECT_FALSE(render(gemma, chat));
  const auto spans = render_any(gemma, chat);
  ASSERT_TRUE(spans) << spans.error().message;
  EXPECT_EQ(text_of(*spans),
            "<s><start_of_turn>user\nHi\n\nSo<end_of_turn>\n<start_of_turn>model\nYes<end_of_turn>\n"
            "<start_of_turn>user\nWhy<end_of_turn>\n<start_of_turn>model\n");
  const auto begun_by_the_model = render_any(gemma, {{kAnswer, "Welcome"}, {kUser, "Hi"}});
  EXPECT_EQ(text_of(*begun_by_the_model),
            "<s><start_of_turn>user\n<end_of_turn>\n<start_of_turn>model\nWelcome<end_of_turn>\n"
            "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(text_of(*render_any("vicuna", {{kSystem, "S."}, {kUser, "u"}, {kUser, "v"}})),
            "S. USER: u\n\nv ASSISTANT:");
}

// Gemma's template refuses the system role; a user who set a system prompt gets an answer all the same.
TEST(ChatTemplate, ASystemMessageThatIsRefusedStandsBeforeTheFirstUserMessage) {
  const std::string gemma = read_golden_text("templates/gemma.jinja");
  const std::vector<ChatMessage> chat = {
      {kSystem, "Be brief."}, {kUser, "Hi"}, {kAnswer, "Yes"}, {kUser, "So"}};
  EXPECT_FALSE(render(gemma, chat));
  const auto spans = render_any(gemma, chat);
  ASSERT_TRUE(spans) << spans.error().message;
  EXPECT_EQ(text_of(*spans),
            "<s><start_of_turn>user\nBe brief.\n\nHi<end_of_turn>\n<start_of_turn>model\nYes<end_of_turn>\n"
            "<start_of_turn>user\nSo<end_of_turn>\n<start_of_turn>model\n");
  std::vector<std::int32_t> indices;
  for (const PromptSpan& span : *spans) {
    if (span.is_input) indices.push_back(span.message_index);
  }
  EXPECT_EQ(indices, (std::vector<std::int32_t>{0, 1, 2, 3}));

  EXPECT_EQ(text_of(*render_any(gemma, {{kSystem, "s"}})),
            "<s><start_of_turn>user\ns<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(text_of(*render_any(gemma, {{kSystem, ""}, {kUser, "u"}})),
            "<s><start_of_turn>user\nu<end_of_turn>\n<start_of_turn>model\n");
  // Llama 2's keeps its marks around system text as long as there is a question; alone, it prints none of it.
  EXPECT_EQ(
      text_of(*render_any(read_golden_text("templates/llama2.jinja"), {{kSystem, "s"}, {kAnswer, "a"}})),
      "<s>[INST] <<SYS>>\ns\n<</SYS>> [/INST] a </s>");
  EXPECT_EQ(text_of(*render_any(read_golden_text("templates/llama2.jinja"), {{kSystem, "s"}})),
            "<s>[INST] s [/INST]");
}

TEST(ChatTemplate, WhatNoOrderCanSaveIsRefusedAsItIs) {
  const auto refused = render_any(read_golden_text("templates/gemma.jinja"),
                                  {{kSystem, "s"}, {kUser, "u"}, {kAnswer, "a"}, {Role::kTool, "t"}});
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
