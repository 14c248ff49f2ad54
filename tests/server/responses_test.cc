#include "app/server/responses.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/server/typed_stream.h"

namespace octavo::app {
namespace {

constexpr std::string_view kAskResponses = R"({"model":"tiny","input":"What?"})";
constexpr std::string_view kStreamResponses = R"({"model":"tiny","input":"What?","stream":true})";

using ResponseLines = std::vector<std::string>;

class Responses : public TypedProtocol {
 protected:
  GenerationRequest request_of(std::string_view body) const {
    auto call = parse(parse_response_call, body);
    EXPECT_TRUE(call) << (call ? "" : call.error().message);
    return call ? call->requests.at(0) : GenerationRequest{};
  }
  // "user: Hi" of each message.
  ResponseLines lines_of_input(const std::string& input, const std::string& more = {}) const {
    const GenerationRequest request = request_of(R"({"input":)" + input + more + "}");
    ResponseLines lines;
    for (const ChatMessage& message : std::get<ChatPrompt>(request.prompt).messages)
      lines.push_back(std::string(role_name(message.role)) + ": " + message.content);
    return lines;
  }
  std::string refused(const std::string& more, const std::string& input = R"("a")") const {
    return refused_place(parse_response_call, R"({"input":)" + input + more + "}");
  }
};

// ---- answers

TEST_F(Responses, AStreamIsTheseEvents) {
  const std::string stream = stream_of(parse_response_call, kStreamResponses, {.tokens = {"Hel", "lo."}});
  const std::vector<TypedEvent> events = typed_events(stream);
  ASSERT_EQ(names_of(events),
            (ResponseLines{"response.created", "response.in_progress", "response.output_item.added",
                           "response.content_part.added", "response.output_text.delta",
                           "response.output_text.delta", "response.output_text.done",
                           "response.content_part.done", "response.output_item.done", "response.completed"}));
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].data["sequence_number"], i);
  const std::string part = R"({"type":"output_text","text":"Hello.","annotations":[],"logprobs":[]})";
  const std::string item =
      R"({"id":"msg_00ff_0","type":"message","status":"completed","role":"assistant","content":[)" + part +
      "]}";
  EXPECT_EQ(
      dump(events[2].data),
      R"({"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":)"
      R"({"id":"msg_00ff_0","type":"message","status":"in_progress","role":"assistant","content":[]}})");
  EXPECT_EQ(
      dump(events[3].data),
      R"({"type":"response.content_part.added","sequence_number":3,"item_id":"msg_00ff_0","output_index":0,)"
      R"("content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}})");
  EXPECT_EQ(
      dump(events[4].data),
      R"({"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_00ff_0","output_index":0,)"
      R"("content_index":0,"delta":"Hel","logprobs":[]})");
  EXPECT_EQ(events[5].data["delta"], "lo.");
  EXPECT_EQ(
      dump(events[6].data),
      R"({"type":"response.output_text.done","sequence_number":6,"item_id":"msg_00ff_0","output_index":0,)"
      R"("content_index":0,"text":"Hello.","logprobs":[]})");
  EXPECT_EQ(dump(events[7].data["part"]), part);
  EXPECT_EQ(dump(events[8].data["item"]), item);
  EXPECT_EQ(dump(events[9].data["response"]["output"]), "[" + item + "]");
}

TEST_F(Responses, AWholeAnswerIsOneObject) {
  const Json body = body_of(parse_response_call,
                            R"({"model":"tiny","input":"What?","instructions":"be kind","metadata":{"k":"v"},
                                      "temperature":0.5,"max_output_tokens":9,"store":true,"tool_choice":"none"})",
                            {.num_cached_tokens = 1, .tokens = {"Hel", "lo."}});
  EXPECT_EQ(
      dump(body),
      R"({"id":"resp_00ff","object":"response","created_at":7,"status":"completed","background":false,)"
      R"("error":null,"incomplete_details":null,"instructions":"be kind","max_output_tokens":9,)"
      R"("model":"tiny","output":[{"id":"msg_00ff_0","type":"message","status":"completed",)"
      R"("role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[],)"
      R"("logprobs":[]}]}],"parallel_tool_calls":true,"previous_response_id":null,)"
      R"("reasoning":{"effort":null,"summary":null},"store":false,"temperature":0.5,)"
      R"("text":{"format":{"type":"text"}},"tool_choice":"none","tools":[],"top_p":1.0,)"
      R"("truncation":"disabled","usage":{"input_tokens":2,"input_tokens_details":{"cached_tokens":1,"cache_write_tokens":0},)"
      R"("output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":4},)"
      R"("metadata":{"k":"v"}})");
}

TEST_F(Responses, ReasoningIsAnItemOfItsOwnBeforeTheMessage) {
  const ScriptedAnswer script{.tokens = {"<think>", "\nHm", "m.", "\n</think>", "\n\n", "Yes", "."}};
  const std::vector<TypedEvent> events =
      typed_events(stream_of(parse_response_call, kStreamResponses, script));
  ASSERT_EQ(names_of(events),
            (ResponseLines{
                "response.created", "response.in_progress", "response.output_item.added",
                "response.content_part.added", "response.reasoning_text.delta",
                "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part.done",
                "response.output_item.done", "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.delta", "response.output_text.done",
                "response.content_part.done", "response.output_item.done", "response.completed"}));
  EXPECT_EQ(dump(events[4].data),
            R"({"type":"response.reasoning_text.delta","sequence_number":4,"item_id":"rs_00ff_0",)"
            R"("output_index":0,"content_index":0,"delta":"Hm"})");
  EXPECT_EQ(events[6].data["text"], "Hmm.");
  EXPECT_EQ(dump(events[8].data["item"]),
            R"({"id":"rs_00ff_0","type":"reasoning","status":"completed","summary":[],)"
            R"("content":[{"type":"reasoning_text","text":"Hmm."}]})");
  EXPECT_EQ(events[9].data["output_index"], 1);
  EXPECT_EQ(events[9].data["item"]["id"], "msg_00ff_1");
  const Json usage = events.back().data["response"]["usage"];
  EXPECT_EQ(usage["output_tokens"], 7);
  // What closes the thinking belongs to it, and the blank space behind.
  EXPECT_EQ(usage["output_tokens_details"]["reasoning_tokens"], 5);
  EXPECT_EQ(usage["total_tokens"], 9);
}

TEST_F(Responses, AStreamEndsWithTheWholeAnswer) {
  std::size_t num_long = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const ScriptedAnswer script{.tokens = mixed_answer(seed)};
    const std::vector<TypedEvent> events =
        typed_events(stream_of(parse_response_call, kStreamResponses, script));
    Json items = Json::array();
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Json& data = events[i].data;
      EXPECT_EQ(data["sequence_number"], i) << seed;
      if (events[i].name == "response.output_item.added") {
        EXPECT_EQ(data["output_index"], items.size()) << seed;
        items.push_back(data["item"]);
      } else if (data.contains("item_id")) {
        ASSERT_FALSE(items.empty()) << seed;
        Json& item = items.back();
        EXPECT_EQ(data["item_id"], item["id"]) << seed;
        EXPECT_EQ(data["output_index"], items.size() - 1) << seed;
        EXPECT_EQ(data["content_index"], 0) << seed;
        if (events[i].name == "response.content_part.added") item["content"].push_back(data["part"]);
        if (data.contains("delta")) {
          Json& text = item["content"][0]["text"];
          text = text.get<std::string>() + data["delta"].get<std::string>();
        }
        EXPECT_EQ(data.value("text", item["content"][0]["text"]), item["content"][0]["text"]) << seed;
      } else if (events[i].name == "response.output_item.done") {
        items.back()["status"] = "completed";
        EXPECT_EQ(dump(data["item"]), dump(items.back())) << seed;
      }
    }
    const Json body = body_of(parse_response_call, kAskResponses, script);
    EXPECT_EQ(dump(items), dump(body["output"])) << seed;
    EXPECT_EQ(dump(events.back().data["response"]), dump(body)) << seed;
    if (items.size() > 2) ++num_long;
  }
  EXPECT_GT(num_long, 10u);
}

TEST_F(Responses, AnAnswerThatWasCutIsIncomplete) {
  const ScriptedAnswer script{.tokens = {"a"}, .finish_reason = FinishReason::kLength};
  const std::vector<TypedEvent> events =
      typed_events(stream_of(parse_response_call, kStreamResponses, script));
  EXPECT_EQ(events.back().name, "response.incomplete");
  const Json body = body_of(parse_response_call, kAskResponses, script);
  EXPECT_EQ(dump(events.back().data["response"]), dump(body));
  EXPECT_EQ(body["status"], "incomplete");
  EXPECT_EQ(dump(body["incomplete_details"]), R"({"reason":"max_output_tokens"})");
  EXPECT_EQ(body["output"][0]["status"], "incomplete");
}

TEST_F(Responses, AFailureIsToldWithItsCode) {
  const auto failed = [&](Error error) {
    auto call = parse(parse_response_call, kStreamResponses);
    EXPECT_TRUE(call);
    std::string stream = call->answer->first_frames();
    stream += call->answer->add(0, RequestFailed{.request_id = {}, .error = error, .metrics = {}});
    EXPECT_TRUE(call->answer->done());
    EXPECT_TRUE(call->answer->failure());
    stream += call->answer->failure_frames(api_error_of(*call->answer->failure()));
    const std::vector<TypedEvent> events = typed_events(stream);
    EXPECT_EQ(names_of(events),
              (ResponseLines{"response.created", "response.in_progress", "response.failed"}));
    EXPECT_EQ(events.back().data["sequence_number"], 2);
    EXPECT_EQ(events.back().data["response"]["status"], "failed");
    EXPECT_EQ(events.back().data["response"]["id"], events.front().data["response"]["id"]);
    return dump(events.back().data["response"]["error"]);
  };
  EXPECT_EQ(failed({ErrorCode::kTooLong, "9 tokens"}),
            R"({"code":"context_length_exceeded","message":"9 tokens"})");
  EXPECT_EQ(failed({ErrorCode::kDevice, "it broke"}), R"({"code":"server_error","message":"it broke"})");
  EXPECT_EQ(failed({ErrorCode::kInvalidArgument, "no"}), R"({"code":"invalid_prompt","message":"no"})");
}

TEST_F(Responses, ACancelledAnswerIsNoAnswer) {
  auto call = parse(parse_response_call, kAskResponses);
  ASSERT_TRUE(call);
  for (const EngineEvent& event : events_of({.tokens = {"a"}, .finish_reason = FinishReason::kAbort}))
    call->answer->add(0, event);
  EXPECT_TRUE(call->answer->failure());
}

// ---- requests

TEST_F(Responses, InputIsATextOrMessagesInTheirOrderBehindTheInstructions) {
  EXPECT_EQ(lines_of_input(R"("a")"), ResponseLines{"user: a"});
  EXPECT_EQ(lines_of_input(R"([{"role":"user","content":"a"},
                               {"type":"message","role":"assistant","id":"m","status":"completed",
                                "content":[{"type":"output_text","text":"b","annotations":[]}]},
                               {"type":"message","role":"developer","content":[{"type":"input_text","text":"c"}]},
                               {"type":"message","role":"user",
                                "content":[{"type":"input_text","text":"d"},{"type":"input_text","text":"e"}]}])",
                           R"(,"instructions":"be kind")"),
            (ResponseLines{"system: be kind", "user: a", "assistant: b", "system: c", "user: d\ne"}));
}

TEST_F(Responses, ReasoningAndItemsOfOthersAreDropped) {
  EXPECT_EQ(lines_of_input(R"([{"role":"user","content":"a"},
                               {"type":"reasoning","id":"r","summary":[],"content":7,"encrypted_content":"x"},
                               {"type":"web_search_call","id":"w"},{"role":"user","content":"b"}])"),
            (ResponseLines{"user: a", "user: b"}));
}

TEST_F(Responses, AnAnswerAtTheEndIsNotContinued) {
  const GenerationRequest request =
      request_of(R"({"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})");
  EXPECT_FALSE(std::get<ChatPrompt>(request.prompt).continue_answer);
}

TEST_F(Responses, TheFieldsOfCodexAreTaken) {
  const auto call =
      parse(parse_response_call, R"({"model":"tiny","instructions":"i","stream":true,"store":false,
      "input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}],
      "tools":[{"type":"custom","name":"apply_patch"},{"type":"web_search"},{"type":"local_shell"},
               {"type":"namespace"},{"type":"image_generation"},{"type":"mcp"}],
      "tool_choice":"auto","parallel_tool_calls":false,"reasoning":{"effort":"medium","summary":"auto"},
      "include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"a":"b"}})");
  ASSERT_TRUE(call) << call.error().message;
  EXPECT_TRUE(call->stream);
}

TEST_F(Responses, SamplingIsWhatTheClientSays) {
  const SamplingParams given =
      request_of(R"({"input":"a","max_output_tokens":9,"temperature":0.5,"top_p":0.9})").sampling;
  EXPECT_EQ(given.max_tokens, 9);
  EXPECT_EQ(given.temperature, 0.5);
  EXPECT_EQ(given.top_p, 0.9);
  const SamplingParams usual = request_of(kAskResponses).sampling;
  EXPECT_EQ(usual.max_tokens, model_.description.max_model_len);
  EXPECT_EQ(usual.temperature, 1.0);
  EXPECT_EQ(usual.top_p, 1.0);
}

TEST_F(Responses, WhatBenchmarksSayOfAnAnswersLengthHolds) {
  const SamplingParams given =
      request_of(R"({"input":"a","max_output_tokens":9,"stop":null,"ignore_eos":true,"min_tokens":3})")
          .sampling;
  EXPECT_TRUE(given.ignore_eos);
  EXPECT_TRUE(given.stop.empty());
  EXPECT_EQ(given.min_tokens, 3);
  EXPECT_EQ(request_of(R"({"input":"a","stop":"end"})").sampling.stop, std::vector<std::string>{"end"});
  EXPECT_EQ(refused(R"(,"ignore_eos":1)"), "ignore_eos");
}

TEST_F(Responses, EffortIsTheSwitchOfTheModelsTemplate) {
  const auto values = [&](const std::string& effort) {
    const GenerationRequest request = request_of(R"({"input":"a","reasoning":{"effort":)" + effort + "}}");
    return std::get<ChatPrompt>(request.prompt).template_values;
  };
  EXPECT_TRUE(values(R"("high")").empty());  // a model without one answers as ever
  model_.description.model.template_switches = {{.kind = SwitchKind::kEffort,
                                                 .name = "reasoning_effort",
                                                 .choices = {std::string("low"), std::string("high")},
                                                 .usual = 2}};
  EXPECT_EQ(values(R"("high")"), (TemplateValues{{"reasoning_effort", std::string("high")}}));
  EXPECT_TRUE(values("null").empty());
  EXPECT_EQ(refused(R"(,"reasoning":{"effort":"loud"})"), "reasoning.effort");
}

TEST_F(Responses, WhatIsWrongIsRefusedWithItsPlace) {
  EXPECT_EQ(refused("", R"([{"role":"user","content":[{"type":"input_image","image_url":"u"}]}])"),
            "input[0].content[0]");
  EXPECT_EQ(refused("", R"([{"role":"user","content":[{"type":"input_text"}]}])"),
            "input[0].content[0].text");
  EXPECT_EQ(refused("", R"([{"role":"user","content":[{"text":"a"}]}])"), "input[0].content[0].type");
  EXPECT_EQ(refused("", R"([{"role":"user","content":[7]}])"), "input[0].content[0]");
  EXPECT_EQ(refused("", R"([{"role":"user","content":7}])"), "input[0].content");
  EXPECT_EQ(refused("", R"([{"role":"user"}])"), "input[0].content");
  EXPECT_EQ(refused("", R"([{"role":"tool","content":"a"}])"), "input[0].role");
  EXPECT_EQ(refused("", R"([{"content":"a"}])"), "input[0].role");
  EXPECT_EQ(refused("", R"([7])"), "input[0]");
  EXPECT_EQ(refused("", R"([{"type":"item_reference","id":"m"}])"), "input[0]");
  EXPECT_EQ(refused("", R"([{"role":"user","content":"a"},{"type":"function_call","name":"read"}])"),
            "input[1].call_id");
  EXPECT_EQ(refused("", "[]"), "input");
  EXPECT_EQ(refused("", R"([{"type":"reasoning"}])"), "input");
  EXPECT_EQ(refused("", "7"), "input");
  EXPECT_EQ(refused("", "null"), "input");
  EXPECT_EQ(refused(R"(,"instructions":7)"), "instructions");
  EXPECT_EQ(refused(R"(,"previous_response_id":"resp_1")"), "previous_response_id");
  EXPECT_EQ(refused(R"(,"conversation":"conv_1")"), "conversation");
  EXPECT_EQ(refused(R"(,"background":true)"), "background");
  EXPECT_EQ(refused(R"(,"text":{"format":{"type":"json_schema","name":"n"}})"), "text.format.schema");
  EXPECT_EQ(refused(R"(,"text":{"format":{"type":"grammar"}})"), "text.format.type");
  EXPECT_EQ(refused(R"(,"tools":[{"type":"web_search"},{"type":"function","name":"a b"}])"), "tools[1].name");
  EXPECT_EQ(refused(R"(,"tools":[7])"), "tools[0]");
  EXPECT_EQ(refused(R"(,"max_output_tokens":0)"), "max_output_tokens");
  EXPECT_EQ(refused(R"(,"temperature":"hot")"), "temperature");
  EXPECT_EQ(refused(R"(,"top_p":2)"), "top_p");
  EXPECT_EQ(refused(R"(,"stream":1)"), "stream");
  EXPECT_EQ(refused(R"(,"store":"no")"), "store");
  EXPECT_EQ(refused(R"(,"metadata":[])"), "metadata");
  EXPECT_EQ(refused(R"(,"reasoning":"much")"), "reasoning");
  EXPECT_EQ(refused(R"(,"previous_response_id":null,"text":{"format":{"type":"text"},"verbosity":"low"},
                       "background":false,"tools":[],"reasoning":null)"),
            "not refused");
}

TEST_F(Responses, AnUnknownModelIsNotFoundAndTheOneThatIsThereIsNamed) {
  const auto call = parse(parse_response_call, R"({"model":"big","input":"a"})");
  ASSERT_FALSE(call);
  EXPECT_EQ(api_error_of(call.error()).status, 404);
  EXPECT_NE(call.error().message.find("'tiny'"), std::string::npos) << call.error().message;
}

}  // namespace
}  // namespace octavo::app
