// Pieces of answers as the servers of anchors really send them.

#include "app/remote/answer_stream.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo::app {
namespace {

AnswerChunk read(const std::string& data) {
  const auto chunk = read_answer_chunk(data);
  EXPECT_TRUE(chunk) << data << ": " << (chunk ? "" : chunk.error().message);
  return chunk ? *chunk : AnswerChunk{};
}

TEST(AnswerStream, TextOfChatsAndCompletions) {
  const AnswerChunk chat = read(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"}}]})");
  ASSERT_EQ(chat.pieces.size(), 1u);
  EXPECT_EQ(chat.pieces[0].text, "Hi");
  EXPECT_EQ(chat.pieces[0].finish_reason, "");
  const AnswerChunk completion =
      read(R"({"choices":[{"index":1,"text":" Paris","finish_reason":"length"}]})");
  EXPECT_EQ(completion.pieces[0].index, 1);
  EXPECT_EQ(completion.pieces[0].text, " Paris");
  EXPECT_EQ(completion.pieces[0].finish_reason, "length");
  EXPECT_TRUE(read("[DONE]").is_last);
}

TEST(AnswerStream, ThinkingHasTwoNames) {
  EXPECT_EQ(read(R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})").pieces[0].thinking, "hm");
  EXPECT_EQ(read(R"({"choices":[{"delta":{"reasoning":"hm","content":null}}]})").pieces[0].thinking, "hm");
}

TEST(AnswerStream, UsageWithOrWithoutChoices) {
  const AnswerChunk last = read(
      R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}})");
  ASSERT_TRUE(last.usage);
  EXPECT_EQ(last.usage->num_prompt_tokens, 9);
  EXPECT_EQ(last.usage->num_output_tokens, 4);
  EXPECT_EQ(last.usage->num_cached_tokens, 8);
  const AnswerChunk silent =
      read(R"({"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":null}})");
  EXPECT_FALSE(silent.usage->num_cached_tokens) << "not told is not zero";
  EXPECT_FALSE(read(R"({"choices":[{"delta":{}}],"usage":null})").usage);
}

TEST(AnswerStream, LogProbabilitiesOfBothForms) {
  const AnswerChunk chat = read(R"({"choices":[{"delta":{"content":"é"},"logprobs":{"content":[
      {"token":"\ufffd","bytes":[195],"logprob":-0.5,"top_logprobs":[{"token":"x","logprob":-0.1,"bytes":null}]},
      {"token":"\ufffd","bytes":[169],"logprob":-0.25,"top_logprobs":[]}]}}]})");
  ASSERT_EQ(chat.pieces[0].scores.size(), 2u);
  EXPECT_EQ(chat.pieces[0].scores[0].token.text, "\xc3");
  EXPECT_EQ(chat.pieces[0].scores[1].token.text, "\xa9");
  EXPECT_DOUBLE_EQ(chat.pieces[0].scores[0].token.logprob, -0.5);
  ASSERT_EQ(chat.pieces[0].scores[0].top.size(), 1u);
  EXPECT_EQ(chat.pieces[0].scores[0].top[0].text, "x");
  const AnswerChunk completion = read(
      R"({"choices":[{"text":" a","logprobs":{"tokens":[" a"],"token_logprobs":[-1.5],
          "top_logprobs":[{" b":-2.0," a":-1.5}],"text_offset":[0]}}]})");
  ASSERT_EQ(completion.pieces[0].scores.size(), 1u);
  EXPECT_EQ(completion.pieces[0].scores[0].token.text, " a");
  EXPECT_EQ(completion.pieces[0].scores[0].top.front().text, " a") << "best first";
}

TEST(AnswerStream, AnErrorWithinTheStreamIsOne) {
  const auto error = read_answer_chunk(R"({"error":{"message":"out of memory","type":"server_error"}})");
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().message, "the server gave up: out of memory");
  EXPECT_FALSE(read_answer_chunk(R"({"error":"plain"})"));
}

TEST(AnswerStream, NothingThatAServerSendsIsFatal) {
  for (const char* const data :
       {"", "{", "7", "null", "[]", "{}", R"({"choices":7})", R"({"choices":null})", "\xff\xfe"}) {
    EXPECT_FALSE(read_answer_chunk(data)) << data;
  }
  for (const char* const data :
       {R"({"choices":[]})", R"({"choices":[7,null,"x"]})",
        R"({"choices":[{"delta":7,"text":9,"index":"a"}]})", R"({"choices":[{"delta":{"content":{"a":1}}}]})",
        R"({"choices":[{"index":-4,"logprobs":7}]})",
        R"({"choices":[{"index":1e300,"logprobs":{"content":[7,{"token":1}]}}]})",
        R"({"choices":[{"logprobs":{"tokens":[1],"token_logprobs":["x"],"top_logprobs":3}}]})",
        R"({"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":1e99}})"}) {
    EXPECT_TRUE(read_answer_chunk(data)) << data;
  }
  EXPECT_LT(read(R"({"choices":[{"index":1e12}]})").pieces[0].index, 2'000);
}

}  // namespace
}  // namespace octavo::app
