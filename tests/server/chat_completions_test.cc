#include "app/server/chat_completions.h"

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

constexpr const char* kQuestion = R"({"messages": [{"role": "user", "content": "hi"}])";

Call chat(const TestModel& model, std::string_view body) {
  return call_of(parse_chat_completion, model, body);
}
// With further fields behind the question.
Call asked(const TestModel& model, const std::string& further = {}) {
  return chat(model, kQuestion + (further.empty() ? "" : ", " + further) + "}");
}
const ChatPrompt& prompt_of(const Call& call) { return std::get<ChatPrompt>(call.requests.at(0).prompt); }

TEST(ChatCompletions, ASmallAnswerToTheLetter) {
  const TestModel model;
  Call call = asked(model, R"("temperature": 0)");
  EXPECT_EQ(call.requests[0].sampling.temperature, 0.0);
  EXPECT_EQ(body_of(*call.answer, {{0, accepted({1, 2, 3})},
                                   {0, admitted(2)},
                                   {0, generated(0, {4, 5}, "Hello")},
                                   {0, generated(0, {2}, "")},
                                   {0, ended(0, FinishReason::kStop)},
                                   {0, finished()}}),
            R"({"id":"chatcmpl-00112233445566778899aabbccddeeff","object":"chat.completion",)"
            R"("created":1700000000,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant",)"
            R"("content":"Hello"},"logprobs":null,"finish_reason":"stop","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":3,"total_tokens":6,"completion_tokens":3,)"
            R"("prompt_tokens_details":{"cached_tokens":2}}})");
}

TEST(ChatCompletions, AStreamToTheLetter) {
  const TestModel model;
  Call call = asked(model, R"("stream": true, "stream_options": {"include_usage": true})");
  const std::string head =
      R"(data: {"id":"chatcmpl-00112233445566778899aabbccddeeff","object":"chat.completion.chunk",)"
      R"("created":1700000000,"model":"tiny","choices":[)";
  EXPECT_EQ(
      stream_of(*call.answer, {{0, accepted({1, 2, 3})},
                               {0, generated(0, {4}, "")},
                               {0, generated(0, {5}, "Hello")},
                               {0, ended(0, FinishReason::kLength)},
                               {0, finished()}}),
      head +
          R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]})" +
          "\n\n" + head +
          R"({"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}]})" + "\n\n" +
          head + R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null}]})" +
          "\n\n" + head +
          R"(],"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2,"prompt_tokens_details":null}})" +
          "\n\ndata: [DONE]\n\n");
}

TEST(ChatCompletions, MessagesOfAllRolesAndForms) {
  const TestModel model;
  const Call call = chat(model, R"({"messages": [
      {"role": "system", "content": "s"}, {"role": "developer", "content": "d", "name": "n"},
      {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
      {"role": "assistant", "content": "c", "tool_calls": [], "refusal": null},
      {"role": "tool", "content": "t", "tool_call_id": "1"},
      {"role": "system", "content": "in the middle"}, {"role": "user", "content": []}]})");
  const std::vector<std::pair<Role, std::string>> expected = {
      {Role::kSystem, "s"},    {Role::kSystem, "d"}, {Role::kUser, "a\nb"},
      {Role::kAssistant, "c"}, {Role::kTool, "t"},   {Role::kSystem, "in the middle"},
      {Role::kUser, ""}};
  ASSERT_EQ(prompt_of(call).messages.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(prompt_of(call).messages[i].role, expected[i].first) << i;
    EXPECT_EQ(prompt_of(call).messages[i].content, expected[i].second) << i;
  }
  EXPECT_FALSE(prompt_of(call).continue_answer);
}

TEST(ChatCompletions, ThinkingInTheHistoryIsTheModelsAgain) {
  const TestModel model;
  for (const char* name : {"reasoning_content", "reasoning"}) {
    const Call call = chat(model, std::string(R"({"messages": [{"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", ")") +
                                      name + R"(": "t"},
        {"role": "assistant", "content": null, ")" +
                                      name + R"(": "only"},
        {"role": "user", "content": "q", ")" +
                                      name + R"(": "no"}]})");
    EXPECT_EQ(prompt_of(call).messages[1].content, "<think>\nt\n</think>\n\na");
    EXPECT_EQ(prompt_of(call).messages[2].content, "<think>\nonly\n</think>\n\n");
    EXPECT_EQ(prompt_of(call).messages[3].content, "q");
  }
}

TEST(ChatCompletions, WithoutALimitAnAnswerGoesToTheEndOfTheContext) {
  const TestModel model;
  const auto limit_of = [&](const std::string& further) {
    return asked(model, further).requests[0].sampling.max_tokens;
  };
  EXPECT_EQ(limit_of(""), 4096);
  EXPECT_EQ(limit_of(R"("max_tokens": 5)"), 5);
  EXPECT_EQ(limit_of(R"("max_completion_tokens": 6)"), 6);
  EXPECT_EQ(limit_of(R"("max_completion_tokens": 6, "max_tokens": 5)"), 6);
  EXPECT_EQ(limit_of(R"("max_completion_tokens": null, "max_tokens": null)"), 4096);
}

TEST(ChatCompletions, WhatDoesNotChangeTheTextIsIgnored) {
  const TestModel model;
  asked(model,
        R"("model": "alias", "user": "u", "metadata": {}, "store": false, "service_tier": "auto",
           "prompt_cache_key": "k", "verbosity": "low", "parallel_tool_calls": true, "safety_identifier": "x",
           "stream_options": {"include_obfuscation": false}, "tools": [], "tool_choice": "auto",
           "functions": [], "response_format": {"type": "text"}, "modalities": ["text"], "audio": null,
           "logprobs": false, "top_logprobs": null, "reasoning_effort": "low", "prediction": {"type": "content"},
           "never heard of": 1)");
}

TEST(ChatCompletions, BadBodiesAreRefusedByTheNameOfTheField) {
  const TestModel model;
  const std::vector<std::pair<std::string, const char*>> bodies = {
      {R"("x")", ""},
      {R"({})", "messages"},
      {R"({"messages": null})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"messages": "hi"})", "messages"},
      {R"({"messages": ["hi"]})", "messages[0]"},
      {R"({"messages": [{"content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "wizard", "content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "function", "content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": 1, "content": "hi"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": null}]})", "messages[0].content"},
      {R"({"messages": [{"role": "assistant", "content": null}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": 1}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": {}}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": ["hi"]}]})", "messages[0].content[0]"},
      {R"({"messages": [{"role": "user", "content": [{"text": "hi"}]}]})", "messages[0].content[0].type"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": 1}]}]})",
       "messages[0].content[0].text"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "look"},
           {"type": "image_url", "image_url": {"url": "data:"}}]}]})",
       "messages[0].content[1].type"},
      {R"({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]})",
       "messages[0].content[0].type"},
      {R"({"messages": [{"role": "user", "content": "q"},
           {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}]})",
       "messages[1].tool_calls[0].function"},
      {R"({"messages": [{"role": "assistant", "content": "a", "reasoning_content": 1}]})",
       "messages[0].reasoning_content"},
  };
  for (const auto& [body, subject] : bodies) {
    const Error error = error_of(parse_chat_completion, model, body);
    EXPECT_EQ(error.subject, subject) << body << ": " << error.message;
    EXPECT_EQ(api_error_of(error).status, 400);
  }
  const std::vector<std::pair<std::string, const char*>> fields = {
      {R"("model": "other")", "model"},
      {R"("max_tokens": 0)", "max_tokens"},
      {R"("max_completion_tokens": 0)", "max_completion_tokens"},
      {R"("max_completion_tokens": "5")", "max_completion_tokens"},
      {R"("logprobs": 5)", "logprobs"},
      {R"("top_logprobs": 5)", "top_logprobs"},
      {R"("logprobs": true, "top_logprobs": 21)", "top_logprobs"},
      {R"("n": 129)", "n"},
      {R"("top_p": 2)", "top_p"},
      {R"("stream": true, "best_of": 2)", "best_of"},
      {R"("stream": true, "prompt_logprobs": 1)", "prompt_logprobs"},
      {R"("tools": [{"type": "function"}])", "tools[0].function"},
      {R"("tool_choice": "required")", "tool_choice"},
      {R"("tool_choice": {"type": "function"})", "tool_choice.name"},
      {R"("tool_choice": {"type": "function", "function": {"name": "f"}})", "tool_choice"},
      {R"("tool_choice": {"type": "allowed_tools"})", "tool_choice"},
      {R"("functions": [{}])", "functions"},
      {R"("function_call": "f")", "function_call"},
      {R"("response_format": {"type": "xml"})", "response_format.type"},
      {R"("response_format": {"type": "json_schema"})", "response_format.json_schema"},
      {R"("response_format": {"type": "json_schema", "json_schema": {}})",
       "response_format.json_schema.schema"},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})",
       "response_format.json_schema.schema"},
      {R"("response_format": {"type": "json_object"}, "guided_regex": "a")", "response_format"},
      {R"("modalities": ["text", "audio"])", "modalities"},
      {R"("audio": {"voice": "v"})", "audio"},
      {R"("web_search_options": {})", "web_search_options"},
      {R"("documents": [{}])", "documents"},
      {R"("chat_template": "x")", "chat_template"},
      {R"("add_special_tokens": true)", "add_special_tokens"},
      {R"("echo": true)", "echo"},
      {R"("suffix": "x")", "suffix"},
      {R"("include_reasoning": false)", "include_reasoning"},
      {R"("thinking_token_budget": 5)", "thinking_token_budget"},
      {R"("guided_json": {"uniqueItems": true})", "guided_json"},
      {R"("guided_choice": [])", "guided_choice"},
      {R"("guided_whitespace_pattern": "x")", "guided_whitespace_pattern"},
      {R"("structured_outputs": {})", "structured_outputs"},
      {R"("structured_outputs": {"json": 7})", "structured_outputs.json"},
      {R"("logits_processors": ["x"])", "logits_processors"},
      {R"("chat_template_kwargs": [])", "chat_template_kwargs"},
      {R"("reasoning_effort": 1)", "reasoning_effort"},
      {R"("continue_final_message": true)", "continue_final_message"},
      {R"("add_generation_prompt": false)", "add_generation_prompt"},
  };
  for (const auto& [field, subject] : fields) {
    const Error error = error_of(parse_chat_completion, model, kQuestion + (", " + field + "}"));
    EXPECT_EQ(error.subject, subject) << field << ": " << error.message;
    EXPECT_LT(api_error_of(error).status, 500);
  }
}

TEST(ChatCompletions, TenThousandMessagesAndNotOneMore) {
  const TestModel model;
  Json body = {{"messages", std::vector<Json>(10'000, {{"role", "user"}, {"content", "x"}})}};
  EXPECT_EQ(prompt_of(chat(model, dump(body))).messages.size(), 10'000u);
  body["messages"].push_back(body["messages"][0]);
  EXPECT_EQ(error_of(parse_chat_completion, model, dump(body)).subject, "messages");
}

TEST(ChatCompletions, AModelWithoutATemplateSaysWhereToGo) {
  TestModel model;
  model.served.description.model.has_chat_template = false;
  const Error error = error_of(parse_chat_completion, model, kQuestion + std::string("}"));
  EXPECT_EQ(api_error_of(error).status, 400);
  EXPECT_NE(error.message.find("chat template"), std::string::npos);
  EXPECT_NE(error.message.find("/v1/completions"), std::string::npos);
}

TEST(ChatCompletions, TheTemplateIsToldWhatTheClientSays) {
  TestModel model;
  model.served.description.model.template_switches = {
      {SwitchKind::kThinking, "enable_thinking", {true, false}, 0},
      {SwitchKind::kEffort, "reasoning_effort", {std::string("low"), std::string("high")}, 0}};
  const Call call =
      asked(model, R"("reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": false})");
  EXPECT_EQ(prompt_of(call).template_values,
            (TemplateValues{{"enable_thinking", false}, {"reasoning_effort", std::string("high")}}));
}

TEST(ChatCompletions, AnAnswerThatHasBegunIsContinued) {
  const TestModel model;
  const std::string begun = R"({"messages": [{"role": "user", "content": "q"},
                                             {"role": "assistant", "content": "a"}])";
  EXPECT_FALSE(prompt_of(chat(model, begun + "}")).continue_answer);
  for (const char* way : {R"(, "continue_final_message": true})", R"(, "add_generation_prompt": false})",
                          R"(, "continue_final_message": true, "add_generation_prompt": false})"})
    EXPECT_TRUE(prompt_of(chat(model, begun + way)).continue_answer) << way;
  EXPECT_EQ(error_of(parse_chat_completion, model,
                     begun + R"(, "continue_final_message": true, "add_generation_prompt": true})")
                .subject,
            "add_generation_prompt");
}

TEST(ChatCompletions, WhatIsThoughtIsToldApart) {
  const TestModel model;
  const CallEvents events = {{0, accepted({1})},
                             {0, generated(0, {4}, "<thi")},
                             {0, generated(0, {4}, "nk>\nlet me")},
                             {0, generated(0, {4}, " see\n</think>")},
                             {0, generated(0, {4}, "\n\nYes")},
                             {0, ended(0, FinishReason::kStop)},
                             {0, finished()}};
  Call whole = asked(model);
  EXPECT_EQ(dump(Json::parse(body_of(*whole.answer, events))["choices"][0]["message"]),
            R"({"role":"assistant","content":"Yes","reasoning_content":"let me see"})");
  Call stream = asked(model, R"("stream": true)");
  std::vector<std::string> deltas;
  for (const Json& frame : frames_of(stream_of(*stream.answer, events)))
    if (frame.is_object()) deltas.push_back(dump(frame["choices"][0]["delta"]));
  EXPECT_EQ(deltas, (std::vector<std::string>{
                        R"({"role":"assistant","content":""})", R"({"reasoning_content":"let me"})",
                        R"({"reasoning_content":" see"})", R"({"content":"Yes"})", "{}"}));
}

TEST(ChatCompletions, APromptMayHaveBegunTheThinking) {
  TestModel model;
  const TokenId think = model.tokenizer.token("<think>"), line = model.tokenizer.token("\n");
  const auto message_of = [&](std::vector<TokenId> prompt) {
    Call call = asked(model);
    return dump(Json::parse(body_of(*call.answer, {{0, accepted(std::move(prompt))},
                                                   {0, generated(0, {4}, "so</think>yes")},
                                                   {0, ended(0, FinishReason::kStop)},
                                                   {0, finished()}}))["choices"][0]["message"]);
  };
  EXPECT_EQ(message_of({line, think, line}),
            R"({"role":"assistant","content":"yes","reasoning_content":"so"})");
  EXPECT_EQ(message_of({line}), R"({"role":"assistant","content":"so</think>yes"})");
}

TEST(ChatCompletions, AContinuedAnswerMayBeInItsThinking) {
  const TestModel model;
  Call call = chat(model, R"({"continue_final_message": true, "messages": [{"role": "user", "content": "q"},
                              {"role": "assistant", "content": "<think>\nwell"}]})");
  EXPECT_EQ(dump(Json::parse(body_of(*call.answer, {{0, accepted({1})},
                                                    {0, generated(0, {4}, " so</think>yes")},
                                                    {0, ended(0, FinishReason::kStop)},
                                                    {0, finished()}}))["choices"][0]["message"]),
            R"({"role":"assistant","content":"yes","reasoning_content":" so"})");
}

TEST(ChatCompletions, LogprobsHaveOneEntryForEachToken) {
  TestModel model;
  const TokenId half = model.tokenizer.token("\xe2\x82"), a = model.tokenizer.token("a");
  Call call = asked(model, R"("logprobs": true, "top_logprobs": 2)");
  EXPECT_EQ(call.requests[0].sampling.logprobs, 2);
  const TokensGenerated tokens{.request_id = {},
                               .output_index = 0,
                               .token_ids = {half, a},
                               .logprobs = {-0.5f, -std::numeric_limits<float>::infinity()},
                               .top_logprobs = {{{half, -0.5f}, {a, -1.5f}}, {{half, -0.25f}}},
                               .text = "x"};
  const CallEvents events = {
      {0, accepted({1})}, {0, tokens}, {0, ended(0, FinishReason::kLength)}, {0, finished()}};
  const std::string bad = "\xef\xbf\xbd";
  const std::string expected =
      R"({"content":[{"token":")" + bad + R"(","logprob":-0.5,"bytes":[226,130],"top_logprobs":[{"token":")" +
      bad + R"(","logprob":-0.5,"bytes":[226,130]},{"token":"a","logprob":-1.5,"bytes":[97]}]},)" +
      R"({"token":"a","logprob":-9999.0,"bytes":[97],"top_logprobs":[{"token":")" + bad +
      R"(","logprob":-0.25,"bytes":[226,130]}]}]})";
  EXPECT_EQ(dump(Json::parse(body_of(*call.answer, events))["choices"][0]["logprobs"]), expected);

  Call stream = asked(model, R"("logprobs": true, "top_logprobs": 2, "stream": true)");
  EXPECT_EQ(dump(frames_of(stream_of(*stream.answer, events))[1]["choices"][0]["logprobs"]), expected);

  Call without_top = asked(model, R"("logprobs": true)");
  EXPECT_EQ(without_top.requests[0].sampling.logprobs, 0);
  const Json entries = Json::parse(body_of(*without_top.answer, events))["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(dump(entries[0]["top_logprobs"]), "[]");
}

TEST(ChatCompletions, PromptLogprobsStandBesideTheChoices) {
  TestModel model;
  const TokenId a = model.tokenizer.token("a");
  Call call = asked(model, R"("prompt_logprobs": 0)");
  const Json answer =
      Json::parse(body_of(*call.answer, {{0, accepted({a, a})},
                                         {0, ended(0, FinishReason::kLength)},
                                         {0, RequestFinished{RequestId{}, {std::nullopt, -0.5f}, {}, {}}}}));
  EXPECT_EQ(dump(answer["prompt_logprobs"]),
            "[null,{\"" + std::to_string(a) + R"(":{"logprob":-0.5,"rank":null,"decoded_token":"a"}}])");
}

TEST(ChatCompletions, BlankAnswersAreNotLost) {
  const TestModel model;
  const CallEvents events = {{0, accepted({1})},
                             {0, generated(0, {4}, " \n")},
                             {0, ended(0, FinishReason::kLength)},
                             {0, finished()}};
  Call whole = asked(model);
  EXPECT_EQ(Json::parse(body_of(*whole.answer, events))["choices"][0]["message"]["content"], " \n");
  Call stream = asked(model, R"("stream": true)");
  EXPECT_EQ(frames_of(stream_of(*stream.answer, events))[1]["choices"][0]["delta"]["content"], " \n");
}

// The same answer, thinking and all, in whatever pieces it comes.
TEST(ChatCompletions, StreamsReassembledEqualTheWholeAnswer) {
  const TestModel model;
  const std::vector<std::string> texts = {
      "plain text, with < and <b> and trailing blank \n",
      "<think>\n\nwell\n\n  so \n</think>\n\n  yes, <think> is a mark\n",
      "<think>one</think>\n<think>two</think>three",
      "<think>never ends ",
      "<|channel|>analysis<|message|>hm <|end|><|start|>assistant<|channel|>final<|message|>Yes.<|end|>",
      "\n<thin",
      ""};
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t n = 1 + random() % 3;
    CallEvents events = {{0, accepted({1, 2})}};
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < n; ++i) rest.push_back(texts[random() % texts.size()]);
    for (int step = 0; step < 400; ++step) {
      const std::size_t output = random() % n;
      const std::size_t length = std::min<std::size_t>(rest[output].size(), random() % 6);
      events.push_back(
          {0, generated(static_cast<std::int32_t>(output), {4}, rest[output].substr(0, length))});
      rest[output].erase(0, length);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto output = static_cast<std::int32_t>(i);
      events.push_back({0, generated(output, {4}, rest[i])});
      events.push_back({0, ended(output, FinishReason::kStop, std::string("!"))});
    }
    events.push_back({0, finished()});

    std::string fields = "\"n\": " + std::to_string(n);
    const bool with_logprobs = random() % 2 == 0;
    if (with_logprobs) fields += ", \"logprobs\": true";
    const Json whole = Json::parse(body_of(*asked(model, fields).answer, events));
    const std::vector<Json> frames =
        frames_of(stream_of(*asked(model, fields + ", \"stream\": true").answer, events));
    std::vector<Json> messages(n), logprobs(n, Json::array()), reasons(n);
    ASSERT_EQ(frames.back(), "[DONE]");
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
      const Json& choice = frames[i]["choices"][0];
      const auto index = choice["index"].get<std::size_t>();
      EXPECT_TRUE(reasons[index].is_null());
      for (const auto& [name, text] : choice["delta"].items()) {
        Json& member = messages[index][name];
        member = (member.is_null() ? std::string() : member.get<std::string>()) + text.get<std::string>();
      }
      for (const auto& [name, list] : choice["logprobs"].items())
        for (const Json& entry : list) logprobs[index].push_back(entry);
      reasons[index] = choice["finish_reason"];
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Json& expected = whole["choices"][i];
      EXPECT_EQ(messages[i], expected["message"]);
      EXPECT_EQ(reasons[i], "stop");
      if (with_logprobs) {
        EXPECT_EQ(logprobs[i], expected["logprobs"]["content"]);
      }
    }
  }
}

}  // namespace
}  // namespace octavo::app
