// What of an answer is thinking: by the marks that models write, whole and as it grows.

#include "engine/chat_template/answer_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "engine/chat_template/chat_template.h"
#include "tests/support/paths.h"

namespace octavo::app {
namespace {

// "T(...)" is thinking, "t(...)" thinking that has not ended, "A(...)" what is said.
std::string shown(std::string_view text, bool is_final = true,
                  AnswerBeginning beginning = AnswerBeginning::kUnknown) {
  std::string result;
  for (const AnswerPart& part : answer_parts(text, is_final, beginning)) {
    result += part.kind == PartKind::kAnswer ? "A(" : part.open ? "t(" : "T(";
    result += std::string(text.substr(part.begin, part.end - part.begin)) + ")";
  }
  return result;
}

TEST(AnswerParts, AnswersWithoutMarksAreOnePartByteForByte) {
  EXPECT_EQ(shown("Hello *there*."), "A(Hello *there*.)");
  EXPECT_EQ(shown("\n  indented\n"), "A(\n  indented\n)");
  EXPECT_EQ(shown(""), "");
  EXPECT_EQ(shown(" \n"), "");
}

TEST(AnswerParts, ThinkingStandsBetweenItsMarks) {
  EXPECT_EQ(shown("<think>\nHm, 2.\n</think>\n\nIt is 2."), "T(Hm, 2.)A(It is 2.)");
  EXPECT_EQ(shown("<think>a</think>b"), "T(a)A(b)");
  EXPECT_EQ(shown("<think>a</think>\n<think>b</think>\nc"), "T(a)T(b)A(c)");
  EXPECT_EQ(shown("<think>\n\n</think>\n\nOnly an answer."), "T()A(Only an answer.)");
  EXPECT_EQ(shown("<think>a</think>\n\n    code\n"), "T(a)A(    code\n)");
}

TEST(AnswerParts, ThinkingThatThePromptBeganEndsWithItsMark) {
  EXPECT_EQ(shown("Hm.\n</think>\n\nTwo."), "T(Hm.)A(Two.)");
  EXPECT_EQ(shown("Hm.", /*is_final=*/true, AnswerBeginning::kThinking), "t(Hm.)");
  EXPECT_EQ(shown("Hm.</think>Two.", /*is_final=*/true, AnswerBeginning::kThinking), "T(Hm.)A(Two.)");
  EXPECT_EQ(shown("<think>Hm.</think>Two.", /*is_final=*/true, AnswerBeginning::kThinking), "T(Hm.)A(Two.)");
  EXPECT_TRUE(begins_thinking("<|Assistant|><think>\n"));
  EXPECT_FALSE(begins_thinking("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(begins_thinking(""));
}

TEST(AnswerParts, ThinkingThatWasCutIsOpen) {
  EXPECT_EQ(shown("<think>\nHm, 2"), "t(Hm, 2)");
  EXPECT_EQ(shown("<think>"), "t()");
  EXPECT_EQ(shown("<think>Hm</thi"), "t(Hm</thi)");
}

TEST(AnswerParts, AnswersThatTalkAboutTheMarksAreText) {
  for (const char* const text : {"Models write <think> and </think>.", "Use `</think>` to end it.",
                                 "```\n<think>\nx\n</think>\n```\n", "The tag <think>\n</think>\nis one.",
                                 "a < b and c </ d", "See <|channel|>analysis<|message|>x<|end|>."}) {
    EXPECT_EQ(shown(text), "A(" + std::string(text) + ")");
  }
}

TEST(AnswerParts, OfChannelsOnlyAnalysisIsThinking) {
  EXPECT_EQ(shown("<|channel|>analysis<|message|>User asks.<|end|><|start|>assistant<|channel|>final"
                  "<|message|>Hello!<|return|>"),
            "T(User asks.)A(Hello!)");
  EXPECT_EQ(shown("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>"
                  "I look it up.<|end|><|start|>assistant<|channel|>final<|message|>b"),
            "T(a)A(I look it up.)A(b)");
  EXPECT_EQ(shown("<|channel|>analysis<|message|>cut"), "t(cut)");
  EXPECT_EQ(shown("<|channel|>anal"), "");
  EXPECT_EQ(shown("<|channel|>final<|message|>a <b> c <|x"), "A(a <b> c <|x)");
  EXPECT_EQ(shown("<|start|>" + std::string(600, 'x')), "A(<|start|>" + std::string(600, 'x') + ")");
}

// The prompt ended with <|start|>assistant.
TEST(AnswerParts, WhatAModelTellsItselfIsThinking) {
  EXPECT_EQ(shown(" to=self<|message|>User asks.<|eom|><|start|>assistant to=user<|message|>Hello!<|eot|>"),
            "T(User asks.)A(Hello!)");
  EXPECT_EQ(shown(" to=user<|message|>Hello!"), "A(Hello!)");
  EXPECT_EQ(
      shown(" to=self<|message|>a<|eom|><|start|>assistant to=get.weather<|message|><atem:function_calls>"
            "x</atem:function_calls><|eot|>"),
      "T(a)A(<atem:function_calls>x</atem:function_calls>)");
  EXPECT_EQ(shown(" to=self<|message|>a<|eom|><|start|>assistant to=self<|message|>b<|eom|>"), "T(a)T(b)");
  EXPECT_EQ(shown(" to=selfish<|message|>a"), "A(a)");
  EXPECT_EQ(shown(" to=self<|message|>cut"), "t(cut)");
  EXPECT_EQ(shown(" to=self<|mess", /*is_final=*/false), "");
  EXPECT_EQ(shown(" to=sel", /*is_final=*/false), "");
  EXPECT_EQ(shown(" to=user<|message|>Hi <|eo", /*is_final=*/false), "A(Hi )");
  EXPECT_EQ(shown("to=self is a header."), "A(to=self is a header.)");
  EXPECT_EQ(shown("to=x<y"), "A(to=x<y)");
  EXPECT_EQ(shown("to=" + std::string(600, 'x')), "A(to=" + std::string(600, 'x') + ")");
  EXPECT_EQ(shown("to=functions.f<|channel|>commentary json<|message|>{}<|call|>"), "A({})");
  EXPECT_EQ(shown("Say to=self<|message|>x<|eom|>."), "A(Say to=self<|message|>x<|eom|>.)");
}

TEST(AnswerParts, GemmasThoughtsStandInAChannelThatEndsWithAMarkOfItsOwn) {
  EXPECT_EQ(shown("<|channel>thought\nHm, 2.\n<channel|>It is 2."), "T(Hm, 2.)A(It is 2.)");
  EXPECT_EQ(shown("<|channel>thought\n<channel|>Only an answer."), "T()A(Only an answer.)");
  EXPECT_EQ(shown("<|channel>thought\na</think>b<channel|>c"), "T(a</think>b)A(c)")
      << "the mark that opened it";
  EXPECT_EQ(shown("<think>a<channel|>b</think>c"), "T(a<channel|>b)A(c)");
  EXPECT_EQ(shown("<|channel>thought\na<channel|>\n<|channel>thought\nb<channel|>c"), "T(a)T(b)A(c)");
  EXPECT_EQ(shown("<|channel>thought\ncut"), "t(cut)");
  EXPECT_EQ(shown("<|channel>thou", /*is_final=*/false), "");
  EXPECT_EQ(shown("<|channel>thought\nHm <chan", /*is_final=*/false), "t(Hm)");
  EXPECT_EQ(shown("<|channel>other"), "A(<|channel>other)");
  EXPECT_EQ(shown("Models write <|channel>thought and <channel|>."),
            "A(Models write <|channel>thought and <channel|>.)");
  EXPECT_EQ(shown("Hm.<channel|>Two.", /*is_final=*/true, AnswerBeginning::kThinking), "T(Hm.)A(Two.)");
  EXPECT_TRUE(begins_thinking("<|turn>model\n<|channel>thought\n"));
  EXPECT_FALSE(begins_thinking("<|turn>model\n<|channel>thought\n<channel|>"));
}

TEST(AnswerParts, TheBeginningOfAMarkIsNotShownWhileMoreMayCome) {
  EXPECT_EQ(shown("<th", /*is_final=*/false), "");
  EXPECT_EQ(shown("<th", /*is_final=*/true), "A(<th)");
  EXPECT_EQ(shown("<think>Hm </th", /*is_final=*/false), "t(Hm)");
  EXPECT_EQ(shown("Hm.\n</thi", /*is_final=*/false), "A(Hm.\n)");
  EXPECT_EQ(shown("<think>a</think>\n<thi", /*is_final=*/false), "T(a)");
  EXPECT_EQ(shown("<think>a</think>\n<thi", /*is_final=*/true), "T(a)A(<thi)");
  EXPECT_EQ(shown("<|channel|>final<|message|>Hello<|re", /*is_final=*/false), "A(Hello)");
}

std::string random_text(std::mt19937& random) {
  constexpr std::array<std::string_view, 33> kPieces = {"to=self",
                                                        " to=user",
                                                        "to=",
                                                        "<|eom|>",
                                                        "<|eot|>",
                                                        "<|channel>thought",
                                                        "<channel|>",
                                                        "<|channel>",
                                                        "thought",
                                                        "<think>",
                                                        "</think>",
                                                        "<|channel|>",
                                                        "analysis",
                                                        "final",
                                                        "<|message|>",
                                                        "<|end|>",
                                                        "<|start|>",
                                                        "assistant",
                                                        "<|return|>",
                                                        "\n",
                                                        "\n\n",
                                                        " ",
                                                        "a",
                                                        "Hm, \xc3\xa9",
                                                        "<",
                                                        "</",
                                                        "<|",
                                                        "`",
                                                        "<thi",
                                                        "nk>",
                                                        "\xe4\xbd\xa0",
                                                        "  - x\n",
                                                        "<|call|>"};
  std::string text;
  for (auto left = random() % 14; left > 0; --left) text += kPieces[random() % kPieces.size()];
  return text;
}

TEST(AnswerParts, AGrowingTextHasThePartsOfItsWholeAtEveryMoment) {
  for (std::uint32_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::string text = random_text(random);
    const auto beginning = random() % 4 == 0 ? AnswerBeginning::kThinking : AnswerBeginning::kUnknown;
    AnswerReader grown(beginning);
    for (std::size_t size = 0; size <= text.size(); size += 1 + random() % 5) {
      const std::string_view so_far = std::string_view(text).substr(0, size);
      const bool is_final = random() % 8 == 0;  // one that was stopped and goes on
      ASSERT_EQ(grown.read(so_far, is_final), answer_parts(so_far, is_final, beginning)) << so_far;
    }
    const auto parts = grown.read(text, /*is_final=*/true);
    ASSERT_EQ(parts, answer_parts(text, /*is_final=*/true, beginning)) << text;
    std::size_t end = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ASSERT_GE(parts[i].begin, end) << text;
      ASSERT_GE(parts[i].end, parts[i].begin) << text;
      ASSERT_LE(parts[i].end, text.size()) << text;
      ASSERT_TRUE(!parts[i].open || i + 1 == parts.size()) << text;
      end = parts[i].end;
    }
  }
}

TEST(AnswerParts, GrowthCostsItsOwnLength) {
  for (const std::string beginning : {"<think>", "plain ", "<|channel|>final<|message|>"}) {
    std::string text = beginning;
    AnswerReader reader;
    for (int i = 0; i < 10'000; ++i) {
      text += i % 7 == 0 ? "< b\n" : "word ";
      reader.read(text, /*is_final=*/false);
    }
    EXPECT_LT(reader.num_bytes_read(), 3 * text.size()) << beginning;
  }
}

// Templates take the text as the model wrote it, and strip what it thought; what is left is what is shown.
TEST(AnswerParts, TemplatesThatStripThinkingGetTheTextThatTheyExpect) {
  for (const char* const name : {"qwen3.jinja", "deepseek-r1.jinja", "gemma4.jinja"}) {
    const bool is_gemma = std::string_view(name) == "gemma4.jinja";
    std::ifstream file(test::source_folder() / "tests/golden/templates" / name);
    const std::string source((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto parsed = tokenizer::ChatTemplate::parse(source);
    ASSERT_TRUE(parsed.has_value()) << name << ": " << parsed.error().message;
    const auto prompt_with = [&](const std::string& answer) {
      const std::vector<ChatMessage> messages = {
          {Role::kUser, "1+1?"}, {Role::kAssistant, answer}, {Role::kUser, "Sure?"}};
      const auto spans = parsed->render(messages, {"<s>", "</s>"}, 0);
      EXPECT_TRUE(spans.has_value()) << name;
      std::string prompt;
      if (!spans) return prompt;
      for (const auto& span : *spans) prompt += span.text;
      return prompt;
    };
    const std::vector<std::string> answers =
        is_gemma
            ? std::vector<std::string>{"<|channel>thought\nHm.\n<channel|>Two.", "Two."}
            : std::vector<std::string>{"<think>\nHm.\n</think>\n\nTwo.", "Hm.\n</think>\n\nTwo.", "Two."};
    for (const std::string& answer : answers) {
      const std::string prompt = prompt_with(answer);
      EXPECT_EQ(prompt.find("Hm."), std::string::npos) << name << ": " << prompt;
      const auto parts = answer_parts(answer, /*is_final=*/true);
      const std::string said = answer.substr(parts.back().begin, parts.back().end - parts.back().begin);
      EXPECT_EQ(said, "Two.");
      EXPECT_NE(prompt.find(said), std::string::npos) << name << ": " << prompt;
    }
  }
}

}  // namespace
}  // namespace octavo::app
