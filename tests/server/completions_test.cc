#include "app/server/completions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/server/openai_calls.h"

namespace octavo::app {
namespace {

Call completion(const TestModel& model, std::string_view body) {
  return call_of(parse_completion, model, body);
}

TEST(Completions, TheDocumentedExampleIsAnsweredToTheLetter) {
  const TestModel model;
  Call call = completion(
      model, R"({"model": "tiny", "prompt": "San Francisco is a", "max_tokens": 7, "temperature": 0})");
  ASSERT_EQ(call.requests.size(), 1u);
  EXPECT_FALSE(call.stream);
  EXPECT_EQ(call.requests[0].sampling.max_tokens, 7);
  EXPECT_EQ(call.requests[0].sampling.temperature, 0.0);
  const auto* const prompt = std::get_if<TextPrompt>(&call.requests[0].prompt);
  ASSERT_NE(prompt, nullptr);
  EXPECT_EQ(prompt->text, "San Francisco is a");
  EXPECT_TRUE(prompt->parse_special) << "programs write a template's marks themselves";
  EXPECT_EQ(body_of(*call.answer, {{0, accepted({1, 2, 3, 4, 5})},
                                   {0, admitted(0)},
                                   {0, generated(0, {6, 7, 8}, " city in")},
                                   {0, generated(0, {6, 7, 8, 9}, " the US")},
                                   {0, ended(0, FinishReason::kLength)},
                                   {0, finished()}}),
            R"({"id":"cmpl-00112233445566778899aabbccddeeff","object":"text_completion",)"
            R"("created":1700000000,"model":"tiny","choices":[{"index":0,"text":" city in the US",)"
            R"("logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_logprobs":null}],)"
            R"("usage":{"prompt_tokens":5,"total_tokens":12,"completion_tokens":7,)"
            R"("prompt_tokens_details":null}})");
}

TEST(Completions, PromptsComeInFourForms) {
  const TestModel model;
  const auto prompts_of = [&](const char* prompt) {
    return completion(model, std::string(R"({"prompt": )") + prompt + "}").requests;
  };
  EXPECT_EQ(std::get<TextPrompt>(prompts_of(R"("a")")[0].prompt).text, "a");
  const auto texts = prompts_of(R"(["a", "b"])");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(std::get<TextPrompt>(texts[1].prompt).text, "b");
  EXPECT_EQ(std::get<TokenPrompt>(prompts_of("[4, 5]")[0].prompt).token_ids, (std::vector<TokenId>{4, 5}));
  const auto lists = prompts_of("[[4, 5], [6]]");
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(std::get<TokenPrompt>(lists[1].prompt).token_ids, std::vector<TokenId>{6});
  EXPECT_EQ(prompts_of("[[4]]").size(), 1u);
  EXPECT_EQ(lists[0].sampling.max_tokens, 16) << "as OpenAI's";
  EXPECT_FALSE(
      std::get<TextPrompt>(completion(model, R"({"prompt": "a", "parse_special": false})").requests[0].prompt)
          .parse_special);
}

TEST(Completions, WhatDoesNotChangeTheTextIsIgnored) {
  const TestModel model;
  completion(model,
             R"({"prompt": "a", "user": "u", "metadata": {"a": 1}, "store": true, "service_tier": "auto",
                 "prompt_cache_key": "k", "stream_options": {"include_obfuscation": false}, "verbosity": "low",
                 "suffix": "", "tools": [], "tool_choice": "none", "response_format": {"type": "text"},
                 "best_of": null, "logprobs": null, "stop": null, "echo": false, "guided_json": null,
                 "never heard of": [1]})");
}

TEST(Completions, BadBodiesAreRefusedByTheNameOfTheField) {
  const TestModel model;
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"([])", ""},
      {R"({})", "prompt"},
      {R"({"prompt": null})", "prompt"},
      {R"({"prompt": 1})", "prompt"},
      {R"({"prompt": []})", "prompt"},
      {R"({"prompt": [[]]})", "prompt"},
      {R"({"prompt": ["a", 1]})", "prompt"},
      {R"({"prompt": [1, "a"]})", "prompt"},
      {R"({"prompt": [1, -1]})", "prompt"},
      {R"({"prompt": [1000]})", "prompt"},
      {R"({"prompt": [[1], [1000]]})", "prompt"},
      {R"({"prompt": {"text": "a"}})", "prompt"},
      {R"({"prompt": "a", "model": "other"})", "model"},
      {R"({"prompt": "a", "model": 1})", "model"},
      {R"({"prompt": "a", "max_tokens": -1})", "max_tokens"},
      {R"({"prompt": "a", "max_tokens": "many"})", "max_tokens"},
      {R"({"prompt": "a", "logprobs": 21})", "logprobs"},
      {R"({"prompt": "a", "logprobs": true})", "logprobs"},
      {R"({"prompt": "a", "prompt_logprobs": 21})", "prompt_logprobs"},
      {R"({"prompt": "a", "echo": 1})", "echo"},
      {R"({"prompt": "a", "n": 129})", "n"},
      {R"({"prompt": ["a", "b", "c", "d", "e", "f", "g", "h", "i"], "n": 128})", "prompt"},
      {R"({"prompt": "a", "temperature": -1})", "temperature"},
      {R"({"prompt": "a", "stream": "yes"})", "stream"},
      {R"({"prompt": "a", "stream": true, "best_of": 2})", "best_of"},
      {R"({"prompt": "a", "stream": true, "prompt_logprobs": 0})", "prompt_logprobs"},
      {R"({"prompt": "a", "stream": true, "echo": true, "logprobs": 1})", "echo"},
      {R"({"prompt": "a", "suffix": "b"})", "suffix"},
      {R"({"prompt": "a", "tools": [{}]})", "tools"},
      {R"({"prompt": "a", "tool_choice": "required"})", "tool_choice"},
      {R"({"prompt": "a", "functions": [{}]})", "functions"},
      {R"({"prompt": "a", "function_call": {"name": "f"}})", "function_call"},
      {R"({"prompt": "a", "response_format": {"type": "json"}})", "response_format.type"},
      {R"({"prompt": "a", "modalities": ["audio"]})", "modalities"},
      {R"({"prompt": "a", "audio": {"voice": "v"}})", "audio"},
      {R"({"prompt": "a", "add_special_tokens": false})", "add_special_tokens"},
      {R"({"prompt": "a", "guided_json": 1})", "guided_json"},
      {R"({"prompt": "a", "guided_regex": 1})", "guided_regex"},
      {R"({"prompt": "a", "guided_choice": []})", "guided_choice"},
      {R"({"prompt": "a", "guided_grammar": []})", "guided_grammar"},
      {R"({"prompt": "a", "structured_outputs": {"regex": "x", "choice": ["y"]}})", "response_format"},
      {R"({"prompt": "a", "structured_outputs": {"regex": "x", "whitespace_pattern": "y"}})",
       "structured_outputs.whitespace_pattern"},
      {R"({"prompt": "a", "logits_processors": ["x"]})", "logits_processors"},
      {R"({"prompt": "a", "truncate_prompt_tokens": 5})", "truncate_prompt_tokens"},
      {R"({"prompt": "a", "repeat_penalty": 1.1})", "repeat_penalty"},
      {R"({"prompt": "a", "cache_salt": 1})", "cache_salt"},
  };
  for (const auto& [body, subject] : cases) {
    const Error error = error_of(parse_completion, model, body);
    EXPECT_EQ(error.subject, subject) << body << ": " << error.message;
    EXPECT_LT(api_error_of(error).status, 500) << body;
  }
}

TEST(Completions, AnotherModelIsNotFound) {
  const TestModel model;
  const Error error = error_of(parse_completion, model, R"({"prompt": "a", "model": "other"})");
  EXPECT_EQ(api_error_of(error).status, 404);
}

TEST(Completions, AtMost256PromptsInOneCall) {
  const TestModel model;
  Json body = {{"prompt", Json::array()}};
  for (int i = 0; i < 256; ++i) body["prompt"].push_back("a");
  EXPECT_EQ(completion(model, dump(body)).requests.size(), 256u);
  body["prompt"].push_back("a");
  EXPECT_EQ(error_of(parse_completion, model, dump(body)).subject, "prompt");
}

TEST(Completions, EchoOfMuchInManyChoicesIsRefused) {
  const TestModel model;
  Json body = {{"prompt", std::string(1 << 20, 'a')}, {"echo", true}, {"n", 16}};
  completion(model, dump(body));
  body["n"] = 17;
  EXPECT_EQ(error_of(parse_completion, model, dump(body)).subject, "echo");
}

TEST(Completions, ChoicesAreNumberedPromptByPromptAndUsageIsOfAll) {
  const TestModel model;
  Call call = completion(model, R"({"prompt": ["a", "b"], "n": 2, "stop": "x"})");
  ASSERT_EQ(call.requests.size(), 2u);
  EXPECT_EQ(call.requests[1].sampling.n, 2);
  const Json answer = Json::parse(body_of(*call.answer, {{1, accepted({1, 2})},
                                                         {0, accepted({1, 2, 3})},
                                                         {1, admitted(1)},
                                                         {0, admitted(2)},
                                                         {1, generated(1, {5}, "b1")},
                                                         {0, generated(0, {5}, "a0")},
                                                         {1, generated(0, {5, 6}, "b0")},
                                                         {0, generated(1, {5, 6, 7}, "a1")},
                                                         {0, ended(1, FinishReason::kStop, std::string("x"))},
                                                         {0, ended(0, FinishReason::kStop, TokenId{7})},
                                                         {1, ended(0, FinishReason::kStop)},
                                                         {1, ended(1, FinishReason::kAbort)},
                                                         {1, finished()},
                                                         {0, finished()}}));
  ASSERT_EQ(answer["choices"].size(), 4u);
  const std::vector<const char*> texts = {"a0", "a1", "b0", "b1"},
                                 reasons = {"stop", "stop", "stop", "abort"};
  const std::vector<Json> stops = {7, "x", nullptr, nullptr};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["text"], texts[i]);
    EXPECT_EQ(answer["choices"][i]["finish_reason"], reasons[i]);
    EXPECT_EQ(answer["choices"][i]["stop_reason"], stops[i]);
  }
  EXPECT_EQ(dump(answer["usage"]), R"({"prompt_tokens":5,"total_tokens":12,"completion_tokens":7,)"
                                   R"("prompt_tokens_details":{"cached_tokens":3}})");
}

TEST(Completions, OfBeamsTheBestNAreTold) {
  const TestModel model;
  Call call = completion(model, R"({"prompt": "a", "use_beam_search": true, "n": 1, "best_of": 2})");
  EXPECT_EQ(call.requests[0].sampling.beam_width, 2);
  const Json answer = Json::parse(body_of(*call.answer, {{0, accepted({1})},
                                                         {0, generated(0, {5}, "best")},
                                                         {0, ended(0, FinishReason::kLength)},
                                                         {0, generated(1, {6, 7}, "second")},
                                                         {0, ended(1, FinishReason::kLength)},
                                                         {0, finished()}}));
  ASSERT_EQ(answer["choices"].size(), 1u);
  EXPECT_EQ(answer["choices"][0]["text"], "best");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 1);
}

TEST(Completions, AFailureEndsTheCallAndIsToldInMidStream) {
  const TestModel model;
  Call call = completion(model, R"({"prompt": ["a", "b"], "stream": true})");
  EXPECT_EQ(call.answer->add(0, accepted({1})), "");
  call.answer->add(
      1, RequestFailed{
             .request_id = {}, .error = {.code = ErrorCode::kTooLong, .message = "first"}, .metrics = {}});
  EXPECT_FALSE(call.answer->done());
  call.answer->add(0, RequestFailed{.request_id = {}, .error = {.message = "second"}, .metrics = {}});
  EXPECT_TRUE(call.answer->done());
  ASSERT_TRUE(call.answer->failure().has_value());
  EXPECT_EQ(call.answer->failure()->message, "first");
  EXPECT_EQ(call.answer->failure_frames(api_error_of(*call.answer->failure())),
            "data: {\"error\":{\"message\":\"first\",\"type\":\"invalid_request_error\",\"param\":null,"
            "\"code\":\"context_length_exceeded\"}}\n\n");
}

TEST(Completions, StreamsEndWithUsageWhenAskedAndWithDone) {
  const TestModel model;
  const CallEvents events = {{0, accepted({1, 2})},
                             {0, admitted(1)},
                             {0, generated(0, {5}, "")},
                             {0, generated(0, {6}, "he")},
                             {0, ended(0, FinishReason::kStop, std::string("!"))},
                             {0, finished()}};
  const std::string head =
      R"(data: {"id":"cmpl-00112233445566778899aabbccddeeff","object":"text_completion",)"
      R"("created":1700000000,"model":"tiny","choices":[)";
  const std::string piece =
      R"({"index":0,"text":"he","logprobs":null,"finish_reason":null,"stop_reason":null})";
  const std::string last =
      R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":"!"})";
  const std::string usage =
      R"("usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}})";
  const std::string done = "data: [DONE]\n\n";
  Call plain = completion(model, R"({"prompt": "a", "stream": true})");
  EXPECT_TRUE(plain.stream);
  EXPECT_EQ(stream_of(*plain.answer, events), head + piece + "]}\n\n" + head + last + "]}\n\n" + done);
  Call with_usage =
      completion(model, R"({"prompt": "a", "stream": true, "stream_options": {"include_usage": true}})");
  EXPECT_EQ(stream_of(*with_usage.answer, events),
            head + piece + "]}\n\n" + head + last + "]}\n\n" + head + "]," + usage + "}\n\n" + done);
  Call in_every_chunk = completion(
      model, R"({"prompt": "a", "stream": true, "stream_options": {"continuous_usage_stats": true}})");
  EXPECT_EQ(stream_of(*in_every_chunk.answer, events),
            head + piece + "]," + usage + "}\n\n" + head + last + "]," + usage + "}\n\n" + done);
}

TEST(Completions, EchoBeginsTheTextWithThePrompt) {
  TestModel model;
  const TokenId hello = model.tokenizer.token("hel"), rest = model.tokenizer.token("lo");
  const CallEvents events = {{0, accepted({hello, rest})},
                             {0, generated(0, {9}, " you")},
                             {0, ended(0, FinishReason::kLength)},
                             {0, finished()}};
  const std::string ids = "[" + std::to_string(hello) + ", " + std::to_string(rest) + "]";
  for (const std::string& prompt : {std::string(R"("hello")"), ids, "[" + ids + "]"}) {
    const std::string body = R"({"echo": true, "prompt": )" + prompt;
    Call call = completion(model, body + "}");
    EXPECT_EQ(Json::parse(body_of(*call.answer, events))["choices"][0]["text"], "hello you") << prompt;
    Call stream = completion(model, body + R"(, "stream": true})");
    const std::vector<Json> frames = frames_of(stream_of(*stream.answer, events));
    ASSERT_EQ(frames.size(), 4u);
    EXPECT_EQ(frames[0]["choices"][0]["text"], "hello");
    EXPECT_EQ(frames[1]["choices"][0]["text"], " you");
  }
}

TEST(Completions, NoTokensAtAllScoreThePromptOnly) {
  TestModel model;
  const TokenId a = model.tokenizer.token("a"), b = model.tokenizer.token("b");
  Call call = completion(model, R"({"prompt": "ab", "max_tokens": 0, "echo": true, "logprobs": 1})");
  EXPECT_EQ(call.requests[0].sampling.max_tokens, 1) << "the engine generates something always";
  EXPECT_EQ(call.requests[0].sampling.prompt_logprobs, 1);
  const Json answer = Json::parse(body_of(
      *call.answer, {{0, accepted({a, b})},
                     {0, generated(0, {9}, "c")},
                     {0, ended(0, FinishReason::kStop, TokenId{9})},
                     {0, RequestFinished{RequestId{}, {std::nullopt, -0.5f}, {}, {{}, {{b, -0.5f}}}}}}));
  EXPECT_EQ(dump(answer["choices"]),
            R"([{"index":0,"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.5],)"
            R"("top_logprobs":[null,{"b":-0.5}],"text_offset":[0,1]},"finish_reason":"length",)"
            R"("stop_reason":null,"prompt_logprobs":null}])");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  EXPECT_EQ(answer["usage"]["total_tokens"], 2);
}

// What a harness computes: the sum behind the context, and whether each token was the likeliest.
TEST(Completions, EchoedLogprobsScoreAContinuationAsHarnessesDo) {
  TestModel model;
  const TokenId euro_1 = model.tokenizer.token("\xe2\x82"), euro_2 = model.tokenizer.token("\xac");
  const TokenId x = model.tokenizer.token("x"), y = model.tokenizer.token("y"),
                z = model.tokenizer.token("z");
  Call call =
      completion(model, "{\"prompt\": [[" + std::to_string(x) + "," + std::to_string(euro_1) + "," +
                            std::to_string(euro_2) + "," + std::to_string(y) + "," + std::to_string(z) +
                            R"(]], "max_tokens": 1, "echo": true, "logprobs": 1})");
  const float lowest = -std::numeric_limits<float>::infinity();
  const RequestFinished scores{RequestId{},
                               {std::nullopt, -0.1f, -2.5f, -3.25f, lowest},
                               {},
                               {{}, {{euro_1, -0.1f}}, {{euro_1, -0.25f}}, {{x, -0.75f}}, {{x, -0.5f}}}};
  TokensGenerated last{.request_id = {},
                       .output_index = 0,
                       .token_ids = {x},
                       .logprobs = {-1.0f / 3.0f},
                       .top_logprobs = {{{x, -1.0f / 3.0f}}},
                       .text = "x"};
  const Json answer = Json::parse(body_of(*call.answer, {{0, accepted({x, euro_1, euro_2, y, z})},
                                                         {0, last},
                                                         {0, ended(0, FinishReason::kLength)},
                                                         {0, scores}}));
  const Json& choice = answer["choices"][0];
  const Json& logprobs = choice["logprobs"];
  EXPECT_EQ(choice["text"], "x\xe2\x82\xacyzx");
  EXPECT_EQ(logprobs["tokens"], Json({"x", "\xef\xbf\xbd", "\xef\xbf\xbd", "y", "z", "x"}));
  EXPECT_EQ(logprobs["text_offset"], Json({0, 1, 1, 2, 3, 4}));
  EXPECT_TRUE(logprobs["token_logprobs"][0].is_null() && logprobs["top_logprobs"][0].is_null());
  EXPECT_EQ(logprobs["token_logprobs"][4], -9999.0);
  std::vector<bool> greedy;
  for (std::size_t i = 1; i < 6; ++i) {
    ASSERT_TRUE(logprobs["token_logprobs"][i].is_number());
    double best = -std::numeric_limits<double>::infinity();
    for (const auto& [text, value] : logprobs["top_logprobs"][i].items()) {
      ASSERT_TRUE(value.is_number());
      best = std::max(best, value.get<double>());
    }
    EXPECT_TRUE(logprobs["top_logprobs"][i].contains(logprobs["tokens"][i].get<std::string>()));
    greedy.push_back(best == logprobs["token_logprobs"][i].get<double>());
  }
  // The third token shares its text with a likelier one.
  EXPECT_EQ(greedy, (std::vector{true, false, false, false, true}));
  EXPECT_EQ(logprobs["top_logprobs"][2], Json({{"\xef\xbf\xbd", -0.25}}));
  EXPECT_EQ(logprobs["top_logprobs"][3], Json({{"x", -0.75}, {"y", -3.25}}));
}

TEST(Completions, OffsetsPassOverWhatIsNotInTheText) {
  TestModel model;
  const TokenId space_a = model.tokenizer.token(" a"), b = model.tokenizer.token("\xc3\xa9");
  const TokenId end = testing::SpellingTokenizer::kEnd;  // stands for a begin that was put in front, too
  Call call = completion(model, "{\"prompt\": \"a\xc3\xa9\", \"echo\": true, \"logprobs\": 0}");
  EXPECT_EQ(call.requests[0].sampling.logprobs, 0);
  const Json answer = Json::parse(
      body_of(*call.answer, {{0, accepted({end, space_a, b})},
                             {0, generated(0, {b, end, b}, "\xc3\xa9\xc3\xa9")},
                             {0, ended(0, FinishReason::kLength)},
                             {0, RequestFinished{RequestId{}, {std::nullopt, -1.0f, -1.0f}, {}, {}}}}));
  const Json& logprobs = answer["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["text_offset"], Json({0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(logprobs["top_logprobs"][1], Json({{" a", -1.0}}));
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs"}) EXPECT_EQ(logprobs[list].size(), 6u);
}

TEST(Completions, AnOffsetWithoutEchoCountsFromTheAnswer) {
  TestModel model;
  const TokenId b = model.tokenizer.token("b");
  Call call = completion(model, R"({"prompt": "aaa", "logprobs": 2})");
  EXPECT_FALSE(call.requests[0].sampling.prompt_logprobs.has_value());
  EXPECT_EQ(call.requests[0].sampling.logprobs, 2);
  const Json answer = Json::parse(body_of(*call.answer, {{0, accepted({b})},
                                                         {0, generated(0, {b, b}, "bb")},
                                                         {0, ended(0, FinishReason::kLength)},
                                                         {0, finished()}}));
  EXPECT_EQ(answer["choices"][0]["logprobs"]["text_offset"], Json({0, 1}));
}

TEST(Completions, PromptLogprobsHaveTheirOwnFieldToo) {
  TestModel model;
  const TokenId a = model.tokenizer.token("a"), b = model.tokenizer.token("b");
  Call call = completion(model, R"({"prompt": "abb", "prompt_logprobs": 1})");
  const Json answer = Json::parse(body_of(
      *call.answer,
      {{0, accepted({a, b, b})},
       {0, ended(0, FinishReason::kLength)},
       {0,
        RequestFinished{RequestId{}, {std::nullopt, -0.5f, -2.0f}, {}, {{}, {{b, -0.5f}}, {{a, -0.25f}}}}}}));
  const std::string id_a = std::to_string(a), id_b = std::to_string(b);
  EXPECT_EQ(dump(answer["choices"][0]["prompt_logprobs"]),
            "[null,{\"" + id_b + "\":{\"logprob\":-0.5,\"rank\":1,\"decoded_token\":\"b\"}},{\"" + id_b +
                "\":{\"logprob\":-2.0,\"rank\":null,\"decoded_token\":\"b\"},\"" + id_a +
                "\":{\"logprob\":-0.25,\"rank\":1,\"decoded_token\":\"a\"}}]");
  EXPECT_TRUE(answer["choices"][0]["logprobs"].is_null());
}

// Pieces of all choices in any order, with log-probabilities, against the answer that is told whole.
TEST(Completions, StreamsReassembledEqualTheWholeAnswer) {
  TestModel model;
  std::vector<TokenId> tokens;
  for (const char* text : {"a", "bc", " ", "\xc3\xa9", "\xe2\x82\xac"})
    tokens.push_back(model.tokenizer.token(text));
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto draw = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    const std::size_t num_prompts = 1 + draw(3), n = 1 + draw(3);
    Json body = {{"prompt", std::vector<std::string>(num_prompts, "p")}, {"n", n}};
    if (draw(2) == 0) body["logprobs"] = 1;
    CallEvents events;
    for (std::size_t i = 0; i < num_prompts; ++i) events.push_back({i, accepted({1, 2})});
    for (int step = 0; step < 30; ++step) {
      const TokenId id = tokens[draw(tokens.size())];
      events.push_back({draw(num_prompts), generated(static_cast<std::int32_t>(draw(n)), {id},
                                                     std::string(model.tokenizer.token_bytes(id)))});
    }
    for (std::size_t i = 0; i < num_prompts; ++i) {
      for (std::size_t output = 0; output < n; ++output) {
        const auto reason = draw(2) == 0 ? FinishReason::kStop : FinishReason::kLength;
        events.push_back({i, ended(static_cast<std::int32_t>(output), reason)});
      }
      events.push_back({i, finished()});
    }
    const Json whole = Json::parse(body_of(*completion(model, dump(body)).answer, events));
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    std::vector<Json> frames = frames_of(stream_of(*completion(model, dump(body)).answer, events));
    ASSERT_GE(frames.size(), 2u);
    EXPECT_EQ(frames.back(), "[DONE]");
    frames.pop_back();
    EXPECT_EQ(frames.back()["usage"], whole["usage"]);
    EXPECT_TRUE(frames.back()["choices"].empty());
    frames.pop_back();

    std::vector<std::string> texts(num_prompts * n);
    std::vector<Json> logprobs(num_prompts * n), reasons(num_prompts * n);
    for (const Json& frame : frames) {
      ASSERT_EQ(frame["choices"].size(), 1u);
      EXPECT_FALSE(frame.contains("usage"));
      const Json& choice = frame["choices"][0];
      const auto index = choice["index"].get<std::size_t>();
      EXPECT_TRUE(reasons[index].is_null()) << "the last of an index has the reason";
      texts[index] += choice["text"].get<std::string>();
      reasons[index] = choice["finish_reason"];
      for (const auto& [name, list] : choice["logprobs"].items())
        for (const Json& entry : list) logprobs[index][name].push_back(entry);
    }
    for (std::size_t index = 0; index < texts.size(); ++index) {
      EXPECT_EQ(texts[index], whole["choices"][index]["text"]);
      EXPECT_EQ(reasons[index], whole["choices"][index]["finish_reason"]);
      const Json& expected = whole["choices"][index]["logprobs"];
      if (expected.is_null() || expected["tokens"].empty()) {
        EXPECT_TRUE(logprobs[index].is_null());
      } else {
        EXPECT_EQ(logprobs[index], expected);
      }
    }
  }
}

TEST(Completions, ASaltReachesTheEngine) {
  const TestModel model;
  EXPECT_EQ(completion(model, R"({"prompt": "a", "cache_salt": "s"})").requests[0].cache_salt, "s");
}

}  // namespace
}  // namespace octavo::app
