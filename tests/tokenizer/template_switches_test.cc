// What templates let a person choose about thinking is found by trying them, and what they are told reaches
// them.
#include "engine/chat_template/template_switches.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

const ChatTemplateConstants kConstants = {"<s>", "</s>"};
const std::vector<ChatMessage> kQuestion = {{.role = Role::kUser, .content = "hi"}};

ChatTemplate parsed(const std::string& source) {
  auto result = ChatTemplate::parse(source);
  EXPECT_TRUE(result) << source;
  return *std::move(result);
}

std::vector<TemplateSwitch> switches_of(const std::string& source) {
  return find_template_switches(parsed(source), kConstants);
}

TemplateSwitch effort(std::vector<TemplateValue> choices, std::size_t usual) {
  TemplateSwitch one;
  one.kind = SwitchKind::kEffort;
  one.name = "reasoning_effort";
  one.choices = std::move(choices);
  one.usual = usual;
  return one;
}

std::string text_of(const ChatTemplate& chat_template, const TemplateValues& values) {
  const auto spans = chat_template.render(kQuestion, kConstants, {0, values});
  EXPECT_TRUE(spans);
  std::string text;
  for (const PromptSpan& span : *spans) text += span.text;
  return text;
}

TEST(TemplateSwitches, TheThinkingOfQwen3CanBeSwitchedOff) {
  const std::string source = read_golden_text("templates/qwen3.jinja");
  const auto switches = switches_of(source);
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_EQ(switches[0].kind, SwitchKind::kThinking);
  EXPECT_EQ(switches[0].name, "enable_thinking");
  EXPECT_EQ(switches[0].choices, (std::vector<TemplateValue>{true, false}));
  EXPECT_EQ(switches[0].usual, 0u);
  const std::string on = text_of(parsed(source), {{"enable_thinking", true}});
  EXPECT_EQ(on, text_of(parsed(source), {}));
  EXPECT_EQ(text_of(parsed(source), {{"enable_thinking", false}}), on + "<think>\n\n</think>\n\n");
}

TEST(TemplateSwitches, TheThinkingOfGemma4CanBeSwitchedOn) {
  const std::string source = read_golden_text("templates/gemma4.jinja");
  const auto switches = switches_of(source);
  ASSERT_EQ(switches.size(), 1u);
  EXPECT_EQ(switches[0].kind, SwitchKind::kThinking);
  EXPECT_EQ(switches[0].name, "enable_thinking");
  EXPECT_EQ(switches[0].choices, (std::vector<TemplateValue>{true, false}));
  EXPECT_EQ(switches[0].usual, 1u);
  EXPECT_EQ(text_of(parsed(source), {}),
            "<s><|turn>user\nhi<turn|>\n<|turn>model\n<|channel>thought\n<channel|>");
  EXPECT_EQ(text_of(parsed(source), {{"enable_thinking", true}}),
            "<s><|turn>system\n<|think|>\n<turn|>\n<|turn>user\nhi<turn|>\n<|turn>model\n");
}

TEST(TemplateSwitches, TemplatesWithoutOneHaveNone) {
  for (const char* name : {"smollm2", "llama3.1", "gemma3", "mistral", "phi4", "vicuna"}) {
    EXPECT_TRUE(switches_of(read_golden_text("templates/" + std::string(name) + ".jinja")).empty()) << name;
  }
}

TEST(TemplateSwitches, WhatIsRefusedIsNoChoiceAndWhatPrintsTheSameIsOne) {
  const std::string messages = "{{ messages[-1].content }}";
  EXPECT_EQ(
      switches_of("{% set e = reasoning_effort | default('max') %}{% if e not in ['low', 'high', 'max'] %}"
                  "{{ raise_exception('no') }}{% endif %}{{ 'E' if e == 'low' else 'F' }}" +
                  messages),
      std::vector{effort({"low", "high"}, 1)})
      << "max prints what high prints, and is the usual one";
  EXPECT_EQ(switches_of("{% if reasoning_effort %}{% if reasoning_effort == 'none' %}0{% else %}1{% endif %}"
                        "{% endif %}" +
                        messages),
            std::vector{effort({"none", "high"}, 2)})
      << "neither is the usual one";
  EXPECT_TRUE(switches_of("{{ 'x' if reasoning_effort else 'x' }}" + messages).empty());
}

// Any word would do: those that models are made for are offered.
TEST(TemplateSwitches, OfATemplateThatPrintsTheWordTheUsualThreeAreChoices) {
  EXPECT_EQ(switches_of("Effort: {{ reasoning_effort | default('medium') }}\n{{ messages[-1].content }}"),
            std::vector{effort({"low", "medium", "high"}, 1)});
}

TEST(TemplateSwitches, TwoNamesOfOneThingAreOneSwitch) {
  const auto switches = switches_of(
      "{% set on = thinking if thinking is defined else enable_thinking %}{{ 'T' if on }}{% for m in "
      "messages "
      "%}{{ m.content if keep_past_thinking else m.content[-6:] }}{% endfor %}");
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(switches[0].name, "enable_thinking");
  EXPECT_EQ(switches[1].kind, SwitchKind::kEarlierThinking);
  EXPECT_EQ(switches[1].name, "keep_past_thinking");
}

TEST(TemplateSwitches, ATemplateThatRefusesEverythingHasNone) {
  EXPECT_TRUE(switches_of("{{ raise_exception(enable_thinking) }}").empty());
  EXPECT_TRUE(switches_of("{% for i in range(99999) %}{% for j in range(99999) %}{{ enable_thinking }}"
                          "{% endfor %}{% endfor %}")
                  .empty())
      << "it runs out of its budget";
}

TEST(TemplateSwitches, WhatATemplateIsToldIsInputAndNoTemplateText) {
  const ChatTemplate chat_template = parsed("<|im_start|>{{ reasoning_effort }}{{ budget + 1 }}");
  const auto spans = chat_template.render(
      kQuestion, kConstants, {0, {{"reasoning_effort", "<|im_end|>"}, {"budget", std::int64_t{41}}}});
  ASSERT_TRUE(spans);
  ASSERT_EQ(spans->size(), 3u);
  EXPECT_FALSE((*spans)[0].is_input);
  EXPECT_EQ((*spans)[1].text, "<|im_end|>");
  EXPECT_TRUE((*spans)[1].is_input);
  EXPECT_EQ((*spans)[2].text, "42");
}

}  // namespace
}  // namespace octavo::tokenizer
