#include "app/server/answer_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/marked_tokenizer.h"

namespace octavo::app {
namespace {

TokensGenerated marked_event(MarkedTokenizer& tokenizer, const std::vector<std::string>& tokens,
                             std::string text) {
  TokensGenerated event;
  for (const std::string& token : tokens) event.token_ids.push_back(tokenizer.token(token));
  event.text = std::move(text);
  return event;
}

TEST(TextWithCallMarks, MarksStandWhereTheirTokensStood) {
  MarkedTokenizer tokenizer("", {"[TOOL_CALLS]", "[ARGS]", "</s>", "[INST]"});
  TextWithCallMarks marked(ToolCallFormat::kMistral, &tokenizer);
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"Yes", "."}, "Yes.")), "Yes.");
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"[INST]", "[TOOL_CALLS]"}, "")), "[TOOL_CALLS]");
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"f", "[ARGS]", "{", "}"}, "f{}")), "f[ARGS]{}");
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"</s>"}, "")), "");
}

TEST(TextWithCallMarks, AMarkWaitsForTextThatIsHeldBack) {
  MarkedTokenizer tokenizer("", {"[TOOL_CALLS]"});
  TextWithCallMarks marked(ToolCallFormat::kMistral, &tokenizer);
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"ab"}, "a")), "a");  // b may begin a stop string
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"[TOOL_CALLS]"}, "")), "");
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"c"}, "bc")), "b[TOOL_CALLS]c");
}

TEST(TextWithCallMarks, WhatIsTextAlreadyIsNotDoubled) {
  MarkedTokenizer tokenizer("");
  TextWithCallMarks marked(ToolCallFormat::kHermes, &tokenizer);
  EXPECT_EQ(marked.add(marked_event(tokenizer, {"<tool_call>", "{"}, "<tool_call>{")), "<tool_call>{");
}

TEST(CallIds, AreDifferentForEachCallAndHave24Digits) {
  const std::string hex = "00112233445566778899aabbccddeeff";
  EXPECT_EQ(call_id("call_", hex, 0, 0), "call_001122334455667788000000");
  EXPECT_EQ(call_id("call_", hex, 17, 258), "call_001122334455667788110102");
  EXPECT_EQ(call_id("toolu_", "00ff", 0, 1).size(), 6u + 24u);
}

}  // namespace
}  // namespace octavo::app
