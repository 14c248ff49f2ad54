#include "app/server/messages.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tests/server/typed_stream.h"

namespace octavo::app {
namespace {

constexpr std::string_view kAskMessages =
    R"({"model":"tiny","max_tokens":64,"messages":[{"role":"user","content":"What?"}]})";
constexpr std::string_view kStreamMessages =
    R"({"model":"tiny","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"What?"}]})";

class Messages : public TypedProtocol {
 protected:
  ChatPrompt prompt_of(std::string_view body) const {
    auto call = parse(parse_message_call, body);
    EXPECT_TRUE(call) << (call ? "" : call.error().message);
    return call ? std::get<ChatPrompt>(call->requests.at(0).prompt) : ChatPrompt{};
  }
  SamplingParams sampling_of(std::string_view body) const {
    auto call = parse(parse_message_call, body);
    EXPECT_TRUE(call) << (call ? "" : call.error().message);
    return call ? call->requests.at(0).sampling : SamplingParams{};
  }
  // "user: Hi" of each message.
  static std::vector<std::string> lines_of(const ChatPrompt& prompt) {
    std::vector<std::string> lines;
    for (const ChatMessage& message : prompt.messages)
      lines.push_back(std::string(role_name(message.role)) + ": " + message.content);
    return lines;
  }
  std::vector<std::string> lines_of_messages(const std::string& messages,
                                             const std::string& more = {}) const {
    return lines_of(prompt_of(R"({"max_tokens":1,"messages":)" + messages + more + "}"));
  }
  std::string refused(const std::string& more,
                      const std::string& messages = R"([{"role":"user","content":"a"}])") {
    return refused_place(parse_message_call, R"({"max_tokens":1,"messages":)" + messages + more + "}");
  }
};

using MessageLines = std::vector<std::string>;

// ---- answers

TEST_F(Messages, AStreamIsTheseEvents) {
  const std::string stream =
      stream_of(parse_message_call, kStreamMessages, {.num_cached_tokens = 1, .tokens = {"Hel", "lo."}});
  EXPECT_EQ(
      stream,
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"id":"msg_00ff","type":"message","role":"assistant",)"
      R"("model":"tiny","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,)"
      R"("cache_creation_input_tokens":0,"cache_read_input_tokens":1,"output_tokens":0,"output_tokens_details":{"thinking_tokens":0}}}})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo."}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":0})"
      "\n\nevent: message_delta\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},)"
      R"("usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":1,)"
      R"("output_tokens":2,"output_tokens_details":{"thinking_tokens":0}}})"
      "\n\nevent: message_stop\n"
      R"(data: {"type":"message_stop"})"
      "\n\n");
}

TEST_F(Messages, ThinkingIsABlockOfItsOwnBeforeTheText) {
  const std::string stream = stream_of(parse_message_call, kStreamMessages,
                                       {.tokens = {"<think>", "\nHm", "m.", "\n</think>", "\n\n", "Yes."}});
  const std::vector<TypedEvent> events = typed_events(stream);
  EXPECT_EQ(
      names_of(events),
      (MessageLines{"message_start", "content_block_start", "content_block_delta", "content_block_delta",
                    "content_block_delta", "content_block_stop", "content_block_start", "content_block_delta",
                    "content_block_stop", "message_delta", "message_stop"}));
  EXPECT_EQ(dump(events[1].data["content_block"]), R"({"type":"thinking","thinking":"","signature":""})");
  EXPECT_EQ(dump(events[2].data["delta"]), R"({"type":"thinking_delta","thinking":"Hm"})");
  EXPECT_EQ(dump(events[3].data["delta"]), R"({"type":"thinking_delta","thinking":"m."})");
  EXPECT_EQ(events[4].data["delta"]["type"], "signature_delta");
  EXPECT_NE(events[4].data["delta"]["signature"], "");
  EXPECT_EQ(events[6].data["index"], 1);
  EXPECT_EQ(dump(events[7].data["delta"]), R"({"type":"text_delta","text":"Yes."})");
}

TEST_F(Messages, APromptThatEndsWithTheMarkBeginsTheThinking) {
  const ScriptedAnswer script{.prompt = {"What", "?", "<think>", "\n"},
                              .tokens = {"Hm.", "</think>", "Yes."}};
  const Json content = body_of(parse_message_call, kAskMessages, script)["content"];
  EXPECT_EQ(dump(content), R"([{"type":"thinking","thinking":"Hm.","signature":"octavo"},)"
                           R"({"type":"text","text":"Yes."}])");
}

TEST_F(Messages, AWholeAnswerIsOneObject) {
  EXPECT_EQ(dump(body_of(parse_message_call, kAskMessages, {.tokens = {"Hel", "lo."}})),
            R"({"id":"msg_00ff","type":"message","role":"assistant","model":"tiny",)"
            R"("content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,)"
            R"("usage":{"input_tokens":2,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)"
            R"("output_tokens":2,"output_tokens_details":{"thinking_tokens":0}}})");
}

TEST_F(Messages, SaysWhatEndedTheAnswer) {
  const auto ended = [&](FinishReason reason, StopReason stop) {
    const Json body = body_of(parse_message_call, kAskMessages,
                              {.tokens = {"a"}, .finish_reason = reason, .stop_reason = std::move(stop)});
    return dump(body["stop_reason"]) + " " + dump(body["stop_sequence"]);
  };
  EXPECT_EQ(ended(FinishReason::kStop, {}), R"("end_turn" null)");
  EXPECT_EQ(ended(FinishReason::kStop, TokenId{2}), R"("end_turn" null)");
  EXPECT_EQ(ended(FinishReason::kStop, std::string("END")), R"("stop_sequence" "END")");
  EXPECT_EQ(ended(FinishReason::kLength, {}), R"("max_tokens" null)");
}

TEST_F(Messages, WhatWasReadFromTheCacheAndTheRestAddUpToThePrompt) {
  const Json usage =
      body_of(parse_message_call, kAskMessages,
              {.prompt = {"a", "b", "c", "d", "e"}, .num_cached_tokens = 3, .tokens = {"f"}})["usage"];
  EXPECT_EQ(usage["input_tokens"], 2);
  EXPECT_EQ(usage["cache_read_input_tokens"], 3);
  EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
}

TEST_F(Messages, ThinkingIsCountedWithItsMarks) {
  const ScriptedAnswer script{.tokens = {"<think>", "Hm", "m.", "</think>", "Yes", "."}};
  const Json usage = body_of(parse_message_call, kAskMessages, script)["usage"];
  EXPECT_EQ(usage["output_tokens"], 6);
  EXPECT_EQ(usage["output_tokens_details"]["thinking_tokens"], 4);
}

// What begins as an answer and is thinking by its end is told otherwise in a stream: the next test.
TEST_F(Messages, TheBlocksOfAStreamAreThoseOfTheWholeAnswer) {
  std::size_t num_long = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ScriptedAnswer script{.tokens = mixed_answer(seed)};
    Json blocks = Json::array();
    bool is_open = false;
    for (const TypedEvent& event : typed_events(stream_of(parse_message_call, kStreamMessages, script))) {
      if (event.name == "content_block_start") {
        EXPECT_FALSE(is_open) << seed;
        EXPECT_EQ(event.data["index"], blocks.size()) << seed;
        blocks.push_back(event.data["content_block"]);
        is_open = true;
      } else if (event.name == "content_block_delta") {
        EXPECT_TRUE(is_open) << seed;
        for (const auto& [field, text] : event.data["delta"].items()) {
          if (field == "type") continue;
          EXPECT_NE(text, "") << seed;
          blocks.back()[field] = blocks.back()[field].get<std::string>() + text.get<std::string>();
        }
      } else if (event.name == "content_block_stop") {
        EXPECT_TRUE(std::exchange(is_open, false)) << seed;
      }
    }
    EXPECT_FALSE(is_open) << seed;
    EXPECT_EQ(dump(blocks), dump(body_of(parse_message_call, kAskMessages, script)["content"])) << seed;
    if (blocks.size() > 2) ++num_long;
  }
  EXPECT_GT(num_long, 10u);
}

TEST_F(Messages, ThinkingThatNobodyMarkedIsThinkingUnlessAStreamHasToldIt) {
  const ScriptedAnswer script{.tokens = {"Hm", "m.", "\n", "</think>", "\n\n", "Yes."}};
  EXPECT_EQ(dump(body_of(parse_message_call, kAskMessages, script)["content"]),
            R"([{"type":"thinking","thinking":"Hmm.","signature":"octavo"},{"type":"text","text":"Yes."}])");
  MessageLines texts;
  for (const TypedEvent& event : typed_events(stream_of(parse_message_call, kStreamMessages, script))) {
    if (event.name == "content_block_delta") texts.push_back(dump(event.data["delta"]["text"]));
    if (event.name == "content_block_stop") texts.push_back("stop");
  }
  EXPECT_EQ(texts, (MessageLines{"\"Hm\"", "\"m.\"", "stop", "\"Yes.\"", "stop"}));
}

TEST_F(Messages, AnEmptyAnswerHasNoBlocks) {
  EXPECT_EQ(names_of(typed_events(stream_of(parse_message_call, kStreamMessages, {}))),
            (MessageLines{"message_start", "message_delta", "message_stop"}));
}

TEST_F(Messages, AFailureInAStreamIsAnErrorEvent) {
  auto call = parse(parse_message_call, kStreamMessages);
  ASSERT_TRUE(call);
  call->answer->add(
      0, RequestFailed{.request_id = {}, .error = {ErrorCode::kDevice, "it broke"}, .metrics = {}});
  EXPECT_TRUE(call->answer->done());
  ASSERT_TRUE(call->answer->failure());
  EXPECT_EQ(call->answer->failure_frames(api_error_of(*call->answer->failure())),
            "event: error\n"
            R"(data: {"type":"error","error":{"type":"api_error","message":"it broke"}})"
            "\n\n");
}

TEST_F(Messages, ACancelledAnswerIsNoAnswer) {
  auto call = parse(parse_message_call, kAskMessages);
  ASSERT_TRUE(call);
  for (const EngineEvent& event : events_of({.tokens = {"a"}, .finish_reason = FinishReason::kAbort}))
    call->answer->add(0, event);
  EXPECT_TRUE(call->answer->done());
  EXPECT_TRUE(call->answer->failure());
}

// ---- requests

TEST_F(Messages, MessagesStayInTheirOrderAndBlocksAreLinesOfOne) {
  EXPECT_EQ(
      lines_of_messages(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                                  {"role":"assistant","content":"c"},
                                  {"role":"system","content":"it is late"},
                                  {"role":"user","content":"d"}])",
                        R"(,"system":"be kind")"),
      (MessageLines{"system: be kind", "user: a\nb", "assistant: c", "system: it is late", "user: d"}));
}

TEST_F(Messages, CacheControlAndTheFormOfATextDoNotChangeThePrompt) {
  const MessageLines plain = lines_of_messages(R"([{"role":"user","content":"a"}])", R"(,"system":"s")");
  EXPECT_EQ(plain, (MessageLines{"system: s", "user: a"}));
  EXPECT_EQ(
      lines_of_messages(
          R"([{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}])",
          R"(,"cache_control":{"type":"ephemeral"},
                   "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}])"),
      plain);
}

TEST_F(Messages, WhatWasThoughtInEarlierTurnsIsDropped) {
  EXPECT_EQ(lines_of_messages(R"([{"role":"user","content":"a"},
                                  {"role":"assistant","content":[{"type":"thinking","thinking":7,"signature":"x"},
                                    {"type":"redacted_thinking","data":"zz"},{"type":"text","text":"b"}]},
                                  {"role":"user","content":"c"}])"),
            (MessageLines{"user: a", "assistant: b", "user: c"}));
}

TEST_F(Messages, ABillingLineIsDroppedWholeWhereverSystemTextHasIt) {
  const std::string line = "x-anthropic-billing-header: cc_version=2.1.36.b7a; cc_entrypoint=cli; cch=0a1b2;";
  const std::string ask = R"([{"role":"user","content":"a"}])";
  const MessageLines kept{"system: be kind", "user: a"};
  const std::string blocks = R"([{"type":"text","text":")" + line + R"("},{"type":"text","text":"be kind"}])";
  EXPECT_EQ(lines_of_messages(ask, R"(,"system":)" + blocks), kept);
  EXPECT_EQ(lines_of_messages(ask, R"(,"system":")" + line + R"(\nbe kind")"), kept);
  EXPECT_EQ(lines_of_messages(ask, R"(,"system":")" + line + R"(")"), MessageLines{"user: a"});
  EXPECT_EQ(
      lines_of_messages(R"([{"role":"system","content":)" + blocks + R"(},{"role":"user","content":"a"}])"),
      kept);
  // Of a user it is a text like any other.
  EXPECT_EQ(lines_of_messages(R"([{"role":"user","content":")" + line + R"("}])"),
            MessageLines{"user: " + line});
}

TEST_F(Messages, KnowsWhetherABillingLineWasDropped) {
  const std::string line = R"("x-anthropic-billing-header: cch=0a1b2;\nbe kind")";
  EXPECT_TRUE(has_billing_line(json_of(R"({"system":)" + line + "}")));
  EXPECT_TRUE(has_billing_line(json_of(R"({"system":[{"type":"text","text":)" + line + "}]}")));
  EXPECT_TRUE(has_billing_line(json_of(R"({"messages":[{"role":"system","content":)" + line + "}]}")));
  EXPECT_FALSE(has_billing_line(json_of(R"({"messages":[{"role":"user","content":)" + line + "}]}")));
  EXPECT_FALSE(has_billing_line(json_of(R"({"system":"be kind"})")));
  for (const char* const odd :
       {"7", "[]", R"({"system":7})", R"({"system":[7,{"text":7}],"messages":[7,{"role":7}]})"})
    EXPECT_FALSE(has_billing_line(json_of(odd))) << odd;
}

TEST_F(Messages, AnAnswerAtTheEndIsContinued) {
  const ChatPrompt prompt = prompt_of(R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},
                                          {"role":"assistant","content":"{"}]})");
  EXPECT_TRUE(prompt.continue_answer);
  EXPECT_EQ(lines_of(prompt), (MessageLines{"user: a", "assistant: {"}));
  EXPECT_FALSE(prompt_of(kAskMessages).continue_answer);
}

TEST_F(Messages, TheBeginningThatAClientGaveIsNotToldAgain) {
  const auto content = [&](const std::string& begun, ScriptedAnswer script) {
    const std::string body =
        R"({"max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":")" +
        begun + R"("}]})";
    return dump(body_of(parse_message_call, body, script)["content"]);
  };
  EXPECT_EQ(content("{", {.prompt = {"a", "{"}, .tokens = {"}"}}), R"([{"type":"text","text":"}"}])");
  // Inside of thinking that the template, or the client itself, began.
  const std::string thinking =
      R"([{"type":"thinking","thinking":"d","signature":"octavo"},{"type":"text","text":"e"}])";
  EXPECT_EQ(content("Well", {.prompt = {"a", "<think>", "\n", "We", "ll"}, .tokens = {"d", "</think>", "e"}}),
            thinking);
  EXPECT_EQ(content("<think>", {.prompt = {"a", "<think>"}, .tokens = {"d", "</think>", "e"}}), thinking);
}

TEST_F(Messages, SamplingIsWhatTheClientSays) {
  const SamplingParams given = sampling_of(
      R"({"max_tokens":9,"temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["x","y"],"messages":
          [{"role":"user","content":"a"}],"metadata":{"user_id":"u"},"service_tier":"auto","betas":["b"]})");
  EXPECT_EQ(given.max_tokens, 9);
  EXPECT_EQ(given.temperature, 0.5);
  EXPECT_EQ(given.top_p, 0.9);
  EXPECT_EQ(given.top_k, 40);
  EXPECT_EQ(given.stop, (MessageLines{"x", "y"}));
  const SamplingParams usual = sampling_of(kAskMessages);
  EXPECT_EQ(usual.temperature, 1.0);
  EXPECT_EQ(usual.top_p, 1.0);
  EXPECT_EQ(usual.top_k, 0);
  EXPECT_TRUE(usual.stop.empty());
}

// What the protocol has no word for is taken by vLLM's.
TEST_F(Messages, WhatOtherProtocolsSayOfAnAnswerHolds) {
  const SamplingParams given = sampling_of(
      R"({"max_tokens":9,"ignore_eos":true,"min_tokens":3,"stop":"end","presence_penalty":0.5,
          "repetition_penalty":1.1,"messages":[{"role":"user","content":"a"}]})");
  EXPECT_TRUE(given.ignore_eos);
  EXPECT_EQ(given.min_tokens, 3);
  EXPECT_EQ(given.stop, (MessageLines{"end"}));
  EXPECT_EQ(given.presence_penalty, 0.5);
  EXPECT_EQ(given.repetition_penalty, 1.1);
  const SamplingParams both = sampling_of(
      R"({"max_tokens":9,"stop":"end","stop_sequences":["x"],"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(both.stop, (MessageLines{"x"})) << "its own word comes first";
}

TEST_F(Messages, ThinkingIsTheSwitchOfTheModelsTemplate) {
  const auto values = [&](const std::string& thinking) {
    return prompt_of(R"({"max_tokens":9,"messages":[{"role":"user","content":"a"}],"thinking":)" + thinking +
                     "}")
        .template_values;
  };
  EXPECT_TRUE(
      values(R"({"type":"enabled","budget_tokens":1024})").empty());  // a model without one answers as ever
  model_.description.model.template_switches = {
      {.kind = SwitchKind::kThinking, .name = "enable_thinking", .choices = {true, false}, .usual = 0}};
  EXPECT_EQ(values(R"({"type":"enabled","budget_tokens":1024})"),
            (TemplateValues{{"enable_thinking", true}}));
  EXPECT_EQ(values(R"({"type":"adaptive"})"), (TemplateValues{{"enable_thinking", true}}));
  EXPECT_EQ(values(R"({"type":"disabled"})"), (TemplateValues{{"enable_thinking", false}}));
  EXPECT_TRUE(values(R"({"type":"between_tools"})").empty());
  EXPECT_TRUE(values("null").empty());
}

TEST_F(Messages, WhatIsWrongIsRefusedWithItsPlace) {
  const auto content = [&](const std::string& blocks) {
    return refused("", R"([{"role":"user","content":"a"},{"role":"user","content":)" + blocks + "}]");
  };
  EXPECT_EQ(content(R"([{"type":"text","text":"a"},{"type":"image","source":{}}])"),
            "messages[1].content[1]");
  EXPECT_EQ(content(R"([{"type":"document"}])"), "messages[1].content[0]");
  EXPECT_EQ(content(R"([{"type":"tool_use","id":"t","name":"n","input":{}}])"), "messages[1].content[0]");
  EXPECT_EQ(content(R"([{"type":"tool_result"}])"), "messages[1].content[0].tool_use_id");
  EXPECT_EQ(content(R"([{"type":"text"}])"), "messages[1].content[0].text");
  EXPECT_EQ(content(R"([{"text":"a"}])"), "messages[1].content[0].type");
  EXPECT_EQ(content(R"([7])"), "messages[1].content[0]");
  EXPECT_EQ(content("7"), "messages[1].content");
  EXPECT_EQ(content("null"), "messages[1].content");
  EXPECT_EQ(refused("", "[]"), "messages");
  EXPECT_EQ(refused("", "7"), "messages");
  EXPECT_EQ(refused("", "[7]"), "messages[0]");
  EXPECT_EQ(refused("", R"([{"content":"a"}])"), "messages[0].role");
  EXPECT_EQ(refused("", R"([{"role":"tool","content":"a"}])"), "messages[0].role");
  EXPECT_EQ(refused("", R"([{"role":"assistant","content":"a"}])"), "messages");
  EXPECT_EQ(refused(R"(,"system":[{"type":"image"}])"), "system[0]");
  EXPECT_EQ(refused(R"(,"system":7)"), "system");
  EXPECT_EQ(refused(R"(,"thinking":{"type":"often"})"), "thinking.type");
  EXPECT_EQ(refused(R"(,"thinking":{})"), "thinking.type");
  EXPECT_EQ(refused(R"(,"output_config":{"format":{"type":"json_schema"}})"), "output_config.format.schema");
  EXPECT_EQ(refused(R"(,"output_format":{"type":"xml"})"), "output_format.type");
  EXPECT_EQ(refused(R"(,"stop_sequences":[1])"), "stop_sequences");
  EXPECT_EQ(refused(R"(,"temperature":-1)"), "temperature");
  EXPECT_EQ(refused(R"(,"top_p":2)"), "top_p");
  EXPECT_EQ(refused(R"(,"top_k":0.5)"), "top_k");
  EXPECT_EQ(refused(R"(,"stream":"yes")"), "stream");
  const std::string ask = R"({"messages":[{"role":"user","content":"a"}])";
  EXPECT_EQ(refused_place(parse_message_call, ask + "}"), "max_tokens");
  EXPECT_EQ(refused_place(parse_message_call, ask + R"(,"max_tokens":0})"), "max_tokens");
  EXPECT_EQ(refused_place(parse_message_call, R"({"max_tokens":1})"), "messages");
  EXPECT_EQ(refused(R"(,"tools":[],"thinking":null,"output_config":{})"), "not refused");
}

TEST_F(Messages, AToolThatAServerWouldRunIsRefusedByName) {
  const auto call = parse(
      parse_message_call,
      R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]})");
  ASSERT_FALSE(call);
  EXPECT_NE(call.error().message.find("'web_search'"), std::string::npos) << call.error().message;
}

TEST_F(Messages, AnUnknownModelIsNotFoundAndTheOneThatIsThereIsNamed) {
  const auto call = parse(parse_message_call,
                          R"({"model":"big","max_tokens":1,"messages":[{"role":"user","content":"a"}]})");
  ASSERT_FALSE(call);
  const ApiError error = api_error_of(call.error());
  EXPECT_EQ(error.status, 404);
  const Json told = anthropic_error(error, "req_1");
  EXPECT_EQ(told["error"]["type"], "not_found_error");
  EXPECT_NE(told["error"]["message"].get<std::string>().find("'tiny'"), std::string::npos);
  EXPECT_TRUE(parse(parse_message_call,
                    R"({"model":"other-name","max_tokens":1,"messages":[{"role":"user","content":"a"}]})"));
}

TEST_F(Messages, WhatIsCountedIsWhatWouldBeAsked) {
  const Json body = json_of(R"({"system":"s","messages":[{"role":"user","content":"a"},
                               {"role":"assistant","content":"b"}],"thinking":{"type":"disabled"}})");
  model_.description.model.template_switches = {
      {.kind = SwitchKind::kThinking, .name = "enable_thinking", .choices = {true, false}, .usual = 0}};
  const auto counted = parse_counted_messages(body, model_);
  ASSERT_TRUE(counted) << counted.error().message;
  Json asked = body;
  asked["max_tokens"] = 1;
  const ChatPrompt prompt = prompt_of(dump(asked));
  EXPECT_EQ(lines_of(*counted), (MessageLines{"system: s", "user: a", "assistant: b"}));
  EXPECT_EQ(lines_of(*counted), lines_of(prompt));
  EXPECT_EQ(counted->continue_answer, prompt.continue_answer);
  EXPECT_EQ(counted->template_values, prompt.template_values);
  EXPECT_EQ(counted->template_values.size(), 1u);

  const auto refused = parse_counted_messages(
      json_of(R"({"messages":[{"role":"user","content":[{"type":"image"}]}]})"), model_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, "messages[0].content[0]");
}

// ---- errors

TEST_F(Messages, AnErrorHasTheTypeOfItsStatus) {
  const auto type = [](int status) {
    return anthropic_error({.status = status, .message = "no"}, "")["error"]["type"].get<std::string>();
  };
  EXPECT_EQ(type(400), "invalid_request_error");
  EXPECT_EQ(type(401), "authentication_error");
  EXPECT_EQ(type(413), "request_too_large");
  EXPECT_EQ(type(429), "rate_limit_error");
  EXPECT_EQ(type(500), "api_error");
  EXPECT_EQ(type(529), "overloaded_error");
  EXPECT_EQ(
      dump(anthropic_error({.status = 401, .message = "no key"}, "req_1")),
      R"({"type":"error","error":{"type":"authentication_error","message":"no key"},"request_id":"req_1"})");
}

TEST_F(Messages, APromptThatIsTooLongHasTheWordsThatAgentsLookFor) {
  const auto told = [](const char* sentence) {
    const ApiError error = api_error_of({ErrorCode::kTooLong, sentence});
    return anthropic_error(error, "")["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(told("the prompt has 162,284 tokens; the limit is 8,192 including at least one generated token: "
                 "shorten the prompt or raise --max-model-len"),
            "prompt is too long: 162284 tokens > 8191 maximum");
  // What has no such numbers stays as it is said.
  for (const std::string sentence :
       {"the prompt has 4,194,305 bytes; the 128 tokens that there is room for can hold at most 4,194,304: "
        "cut "
        "at least 1",
        "the request needs at least 20 KV blocks of 16 tokens; the pool has 10", "the prompt has , tokens"})
    EXPECT_EQ(told(sentence.c_str()), "prompt is too long: " + sentence);
}

}  // namespace
}  // namespace octavo::app
