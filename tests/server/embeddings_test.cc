#include "app/server/embeddings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/server/chat_completions.h"
#include "app/server/completions.h"
#include "tests/server/openai_calls.h"

namespace octavo::app {
namespace {

class Embeddings : public ::testing::Test {
 protected:
  Embeddings() { model_.served.description.model.embedding_length = 3; }

  Call call(std::string_view body) { return call_of(parse_embedding, model_, body); }
  static EngineEvent computed(std::vector<float> values) {
    return EmbeddingComputed{RequestId{}, std::move(values)};
  }

  TestModel model_;
};

TEST_F(Embeddings, AListIsAnsweredInItsOrderToTheLetter) {
  Call call = this->call(R"({"model": "tiny", "input": ["a", "b"]})");
  ASSERT_EQ(call.requests.size(), 2u);
  EXPECT_FALSE(call.stream);
  for (const GenerationRequest& request : call.requests) {
    ASSERT_TRUE(request.embedding);
    EXPECT_EQ(request.embedding->pooling, Pooling::kLast);
    EXPECT_TRUE(request.embedding->normalise);
  }
  EXPECT_EQ(std::get<TextPrompt>(call.requests[1].prompt).text, "b");
  EXPECT_EQ(body_of(*call.answer, {{1, accepted({4, 5})},
                                   {0, accepted({1, 2, 3})},
                                   {0, admitted(2)},
                                   {1, computed({0.0f, -1.0f, 0.0f})},
                                   {1, finished()},
                                   {0, computed({1.0f, 0.0f, 0.0f})},
                                   {0, finished()}}),
            R"({"id":"embd-00112233445566778899aabbccddeeff","object":"list","created":1700000000,)"
            R"("model":"tiny","pooling":"last","data":[)"
            R"({"object":"embedding","index":0,"embedding":[1.0,0.0,0.0]},)"
            R"({"object":"embedding","index":1,"embedding":[0.0,-1.0,0.0]}],)"
            R"("usage":{"prompt_tokens":5,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":2}}})");
}

TEST_F(Embeddings, InputsComeInFourForms) {
  EXPECT_EQ(call(R"({"input": "a"})").requests.size(), 1u);
  EXPECT_EQ(call(R"({"input": ["a", "b", "c"]})").requests.size(), 3u);
  EXPECT_EQ(std::get<TokenPrompt>(call(R"({"input": [4, 5]})").requests[0].prompt).token_ids,
            (std::vector<TokenId>{4, 5}));
  EXPECT_EQ(call(R"({"input": [[4, 5], [6]]})").requests.size(), 2u);
}

TEST_F(Embeddings, TheWayOfPoolingIsChosenAndTold) {
  Call mean = call(R"({"input": "a", "pooling": "mean", "normalize": false, "cache_salt": "s"})");
  EXPECT_EQ(mean.requests[0].embedding->pooling, Pooling::kMean);
  EXPECT_FALSE(mean.requests[0].embedding->normalise);
  EXPECT_EQ(mean.requests[0].cache_salt, "s");
  const Json body = *parse_json(body_of(*mean.answer, {{0, computed({1.0f})}, {0, finished()}}), "answer");
  EXPECT_EQ(body["pooling"], "mean");
  const Json told = embedding_description(model_.served);
  EXPECT_EQ(told["dimensions"], 3);
  EXPECT_EQ(told["pooling"][0], pooling_name(EmbeddingParams{}.pooling)) << "the default comes first";
}

// Python's struct.pack("<3f", 1, -2.5, 1e-3), base64; and of one and two numbers.
TEST_F(Embeddings, Base64IsOfLittleEndianFloats) {
  const auto encoded = [&](std::vector<float> values) {
    Call base64 = call(R"({"input": "a", "encoding_format": "base64"})");
    const std::string body = body_of(*base64.answer, {{0, computed(std::move(values))}, {0, finished()}});
    return (*parse_json(body, "answer"))["data"][0]["embedding"].get<std::string>();
  };
  EXPECT_EQ(encoded({1.0f, -2.5f, 1e-3f}), "AACAPwAAIMBvEoM6");
  EXPECT_EQ(encoded({1.0f}), "AACAPw==");
  EXPECT_EQ(encoded({1.0f, -2.5f}), "AACAPwAAIMA=");
}

TEST_F(Embeddings, WhatSaysNothingIsTaken) {
  call(R"({"input": "a", "encoding_format": "float", "dimensions": 3, "user": "u", "stream": false,
           "dimensions": null, "pooling": null, "messages": []})");
  EXPECT_EQ(call(R"({"input": "a", "dimensions": 3})").requests.size(), 1u) << "as many as there are";
}

TEST_F(Embeddings, BadBodiesAreRefusedByTheNameOfTheField) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": [[]]})", "input"},
      {R"({"input": 5})", "input"},
      {R"({"input": [1000]})", "input"},
      {R"({"input": "a", "model": "other"})", "model"},
      {R"({"input": "a", "dimensions": 2})", "dimensions"},
      {R"({"input": "a", "dimensions": "many"})", "dimensions"},
      {R"({"input": "a", "pooling": "max"})", "pooling"},
      {R"({"input": "a", "encoding_format": "int8"})", "encoding_format"},
      {R"({"input": "a", "normalize": 1})", "normalize"},
      {R"({"input": "a", "stream": true})", "stream"},
      {R"({"input": "a", "truncate_prompt_tokens": 5})", "truncate_prompt_tokens"},
      {R"({"messages": [{"role": "user", "content": "a"}]})", "messages"}};
  for (const auto& [body, subject] : cases)
    EXPECT_EQ(error_of(parse_embedding, model_, body).subject, subject) << body;
  Json many = {{"input", Json::array()}};
  for (int i = 0; i < 2049; ++i) many["input"].push_back("a");
  EXPECT_EQ(error_of(parse_embedding, model_, dump(many)).subject, "input");
}

TEST_F(Embeddings, AnInputThatFailsIsTheAnswer) {
  Call call = this->call(R"({"input": ["a", "b"]})");
  call.answer->add(1, RequestFailed{RequestId{}, {.code = ErrorCode::kTooLong, .message = "too long"}, {}});
  ASSERT_TRUE(call.answer->failure());
  EXPECT_EQ(call.answer->failure()->message, "too long");
}

// ---- progress of prompts, which streams of completions and chats tell who asks

TEST(PromptProgressFrames, ComeWithLlamaServersNamesForWhoAsks) {
  const TestModel model;
  const EngineEvent progress = PromptProgress{RequestId{}, 100, 20, 60, 1234567};
  for (const auto& [parse, body] :
       {std::pair<ParseCall, const char*>{parse_completion,
                                          R"({"prompt": "a", "stream": true, "return_progress": true})"},
        {parse_chat_completion,
         R"({"messages": [{"role": "user", "content": "a"}], "stream": true, "return_progress": true})"}}) {
    Call call = call_of(parse, model, body);
    EXPECT_TRUE(call.requests[0].reports_prompt_progress);
    const auto frames = frames_of(call.answer->add(0, progress));
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(dump(frames[0]["prompt_progress"]),
              R"({"total":100,"cache":20,"processed":60,"time_ms":1234})");
    EXPECT_TRUE(frames[0]["choices"].empty());
  }
  EXPECT_FALSE(call_of(parse_completion, model, R"({"prompt": "a", "stream": true})")
                   .requests[0]
                   .reports_prompt_progress);
  EXPECT_FALSE(call_of(parse_completion, model, R"({"prompt": "a", "return_progress": true})")
                   .requests[0]
                   .reports_prompt_progress)
      << "without a stream nobody would be told";
}

}  // namespace
}  // namespace octavo::app
