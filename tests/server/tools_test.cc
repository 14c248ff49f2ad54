// Functions in the three protocols: what is offered, called and answered.
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/server/chat_completions.h"
#include "app/server/messages.h"
#include "app/server/responses.h"
#include "tests/server/marked_tokenizer.h"
#include "tests/server/openai_calls.h"
#include "tests/server/typed_stream.h"

namespace octavo::app {
namespace {

const std::string kChatTools =
    R"("tools":[{"type":"function","function":{"name":"clock","description":"time","parameters":)"
    R"({"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]},"strict":true}}])";
const std::string kToolsOfPrompt =
    R"([{"type":"function","function":{"name":"clock","description":"time","parameters":)"
    R"({"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}}}])";
const std::string kMessageTools =
    R"("tools":[{"name":"clock","description":"time","input_schema":)"
    R"({"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]},"cache_control":{"type":"ephemeral"}}])";
const std::string kResponseTools =
    R"("tools":[{"type":"web_search"},{"type":"function","name":"clock","description":"time","parameters":)"
    R"({"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]},"strict":true},{"type":"custom","name":"patch"}])";

const std::vector<std::string> kCallingTokens = {"Let",
                                                 " me",
                                                 " see.\n\n",
                                                 "<tool_call>",
                                                 "\n{\"name\": \"clock\", ",
                                                 "\"arguments\": {\"zone\"",
                                                 ": \"UTC\"}}",
                                                 "\n",
                                                 "</tool_call>"};
const std::vector<std::string> kCallingTwice = {
    "<tool_call>", "{\"name\": \"clock\", \"arguments\": {\"zone\": \"UTC\"}}", "</tool_call>", "\n",
    "<tool_call>", "{\"name\": \"clock\", \"arguments\": {\"zone\": \"CET\"}}", "</tool_call>"};

class Tools : public TypedProtocol {
 protected:
  std::string refused_chat(const std::string& more,
                           const std::string& messages = R"([{"role":"user","content":"a"}])") {
    return refused_place(parse_chat_completion, R"({"messages":)" + messages + more + "}");
  }
  std::string refused_messages(const std::string& more,
                               const std::string& messages = R"([{"role":"user","content":"a"}])") {
    return refused_place(parse_message_call, R"({"max_tokens":1,"messages":)" + messages + more + "}");
  }
  ChatPrompt prompt_of(ParseCall parse_call, const std::string& body) {
    auto call = parse(parse_call, body);
    EXPECT_TRUE(call) << (call ? "" : call.error().message);
    return call ? std::get<ChatPrompt>(call->requests.at(0).prompt) : ChatPrompt{};
  }
  // "assistant: text [id name arguments] <id>" of each message.
  static std::vector<std::string> told(const ChatPrompt& prompt) {
    std::vector<std::string> lines;
    for (const ChatMessage& message : prompt.messages) {
      std::string line = std::string(role_name(message.role)) + ": " + message.content;
      for (const ToolCall& call : message.tool_calls)
        line += " [" + call.id + " " + call.name + " " + call.arguments + "]";
      if (!message.tool_call_id.empty()) line += " <" + message.tool_call_id + ">";
      lines.push_back(std::move(line));
    }
    return lines;
  }
};

using ToolLines = std::vector<std::string>;

std::string ask_chat(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"What time?"}],)" + more + "}";
}
std::string ask_messages(const std::string& more) {
  return R"({"max_tokens":64,"messages":[{"role":"user","content":"What time?"}],)" + more + "}";
}
std::string ask_responses(const std::string& more) { return R"({"input":"What time?",)" + more + "}"; }

// ---- chat completions

TEST_F(Tools, AChatIsToldTheToolsInOpenAisForm) {
  model_.description.model.has_chat_template = true;
  EXPECT_EQ(prompt_of(parse_chat_completion, ask_chat(kChatTools)).tools, kToolsOfPrompt);
  EXPECT_EQ(prompt_of(parse_chat_completion, ask_chat(kChatTools + R"(,"tool_choice":"none")")).tools,
            kToolsOfPrompt);
  EXPECT_EQ(prompt_of(parse_chat_completion, ask_chat(R"("tools":[],"tool_choice":"auto")")).tools, "");
  EXPECT_EQ(
      prompt_of(parse_chat_completion, ask_chat(R"("tools":[{"type":"function","function":{"name":"now"}}])"))
          .tools,
      R"([{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}])");
}

TEST_F(Tools, AChatAnswerThatCalls) {
  model_.description.model.has_chat_template = true;
  const Json choice =
      body_of(parse_chat_completion, ask_chat(kChatTools), {.tokens = kCallingTokens})["choices"][0];
  EXPECT_EQ(
      dump(choice),
      R"({"index":0,"message":{"role":"assistant","content":"Let me see.","tool_calls":[)"
      R"({"id":"call_00ff00000000000000000000","type":"function","function":{"name":"clock",)"
      R"("arguments":"{\"zone\": \"UTC\"}"}}]},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null})");
  const Json twice = body_of(parse_chat_completion, ask_chat(kChatTools),
                             {.tokens = kCallingTwice})["choices"][0]["message"];
  EXPECT_EQ(twice["content"], nullptr);
  ASSERT_EQ(twice["tool_calls"].size(), 2u);
  EXPECT_EQ(twice["tool_calls"][1]["id"], "call_00ff00000000000000000001");
  EXPECT_EQ(twice["tool_calls"][1]["function"]["arguments"], R"({"zone": "CET"})");
}

TEST_F(Tools, AChatStreamThatCalls) {
  model_.description.model.has_chat_template = true;
  std::vector<std::string> deltas;
  Json last;
  for (const Json& frame : frames_of(stream_of(
           parse_chat_completion, ask_chat(kChatTools + R"(,"stream":true)"), {.tokens = kCallingTokens}))) {
    if (!frame.is_object()) continue;
    deltas.push_back(dump(frame["choices"][0]["delta"]));
    last = frame["choices"][0];
  }
  EXPECT_EQ(deltas,
            (ToolLines{R"({"role":"assistant","content":""})", R"({"content":"Let"})", R"({"content":" me"})",
                       R"({"content":" see."})",
                       R"({"tool_calls":[{"index":0,"id":"call_00ff00000000000000000000","type":"function",)"
                       R"("function":{"name":"clock","arguments":""}}]})",
                       R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"zone\""}}]})",
                       R"({"tool_calls":[{"index":0,"function":{"arguments":": \"UTC\"}"}}]})", "{}"}));
  EXPECT_EQ(last["finish_reason"], "tool_calls");
}

TEST_F(Tools, OfAChatStreamsCallsEachHasItsIndex) {
  model_.description.model.has_chat_template = true;
  std::vector<int> indexes;
  for (const Json& frame : frames_of(stream_of(
           parse_chat_completion, ask_chat(kChatTools + R"(,"stream":true)"), {.tokens = kCallingTwice}))) {
    if (!frame.is_object() || !frame["choices"][0]["delta"].contains("tool_calls")) continue;
    indexes.push_back(frame["choices"][0]["delta"]["tool_calls"][0]["index"].get<int>());
  }
  EXPECT_EQ(indexes, (std::vector<int>{0, 0, 1, 1}));
}

TEST_F(Tools, WithoutParallelCallsOnlyTheFirstIsTold) {
  model_.description.model.has_chat_template = true;
  const Json chat = body_of(parse_chat_completion, ask_chat(kChatTools + R"(,"parallel_tool_calls":false)"),
                            {.tokens = kCallingTwice});
  EXPECT_EQ(chat["choices"][0]["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(chat["choices"][0]["message"]["content"], nullptr);
  const Json message = body_of(
      parse_message_call,
      ask_messages(kMessageTools + R"(,"tool_choice":{"type":"auto","disable_parallel_tool_use":true})"),
      {.tokens = kCallingTwice});
  EXPECT_EQ(message["content"].size(), 1u);
  const Json response =
      body_of(parse_response_call, ask_responses(kResponseTools + R"(,"parallel_tool_calls":false)"),
              {.tokens = kCallingTwice});
  EXPECT_EQ(response["output"].size(), 1u);
}

TEST_F(Tools, WhatTheModelWritesWithoutToolsOrWithChoiceNoneIsText) {
  model_.description.model.has_chat_template = true;
  std::string text;
  for (const std::string& token : kCallingTokens) text += token;
  for (const std::string& fields : {std::string(R"("tools":[])"), kChatTools + R"(,"tool_choice":"none")"}) {
    const Json choice =
        body_of(parse_chat_completion, ask_chat(fields), {.tokens = kCallingTokens})["choices"][0];
    EXPECT_EQ(choice["message"]["content"], text);
    EXPECT_FALSE(choice["message"].contains("tool_calls"));
    EXPECT_EQ(choice["finish_reason"], "stop");
  }
  EXPECT_EQ(body_of(parse_message_call, ask_messages(kMessageTools + R"(,"tool_choice":{"type":"none"})"),
                    {.tokens = kCallingTokens})["content"][0]["text"],
            text);
  EXPECT_EQ(body_of(parse_response_call, ask_responses(kResponseTools + R"(,"tool_choice":"none")"),
                    {.tokens = kCallingTokens})["output"][0]["content"][0]["text"],
            text);
}

TEST_F(Tools, AnAnswerThatWasCutSaysSo) {
  model_.description.model.has_chat_template = true;
  const ScriptedAnswer whole{.tokens = kCallingTokens, .finish_reason = FinishReason::kLength};
  EXPECT_EQ(body_of(parse_chat_completion, ask_chat(kChatTools), whole)["choices"][0]["finish_reason"],
            "length");
  EXPECT_EQ(body_of(parse_message_call, ask_messages(kMessageTools), whole)["stop_reason"], "max_tokens");
  const ScriptedAnswer broken{.tokens = {"<tool_call>", "{\"name\": \"clock\", \"arguments\": {\"zo"},
                              .finish_reason = FinishReason::kLength};
  const Json message = body_of(parse_chat_completion, ask_chat(kChatTools), broken)["choices"][0]["message"];
  EXPECT_EQ(message["content"], R"(<tool_call>{"name": "clock", "arguments": {"zo)");
  EXPECT_FALSE(message.contains("tool_calls"));
}

TEST_F(Tools, CallsAndResultsInAChatsHistoryAreKeptAsTheyWere) {
  model_.description.model.has_chat_template = true;
  const ChatPrompt prompt = prompt_of(parse_chat_completion, R"({"messages":[{"role":"user","content":"a"},
      {"role":"assistant","content":null,"tool_calls":[
        {"id":"c1","type":"function","function":{"name":"clock","arguments":"{ \"zone\":\"UTC\"}"}},
        {"id":"c2","type":"function","function":{"name":"clock","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c1","content":"12:00"},
      {"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"13:00"}]}]})");
  EXPECT_EQ(told(prompt), (ToolLines{"user: a", R"(assistant:  [c1 clock { "zone":"UTC"}] [c2 clock {}])",
                                     "tool: 12:00 <c1>", "tool: 13:00 <c2>"}));
}

TEST_F(Tools, WhatIsWrongWithThemInAChatIsRefusedWithItsPlace) {
  model_.description.model.has_chat_template = true;
  const auto of_tool = [&](const std::string& tool) { return refused_chat(R"(,"tools":[)" + tool + "]"); };
  EXPECT_EQ(of_tool(R"({"type":"web_search"})"), "tools[0].type");
  EXPECT_EQ(of_tool(R"({"type":"function","function":{"name":"a b"}})"), "tools[0].function.name");
  EXPECT_EQ(of_tool(R"({"type":"function","function":{"name":"a.b"}})"), "tools[0].function.name");
  EXPECT_EQ(of_tool(R"({"type":"function","function":{"name":")" + std::string(65, 'a') + R"("}})"),
            "tools[0].function.name");
  EXPECT_EQ(of_tool(R"({"type":"function","function":{"name":"a","parameters":[]}})"),
            "tools[0].function.parameters");
  std::string many = R"({"type":"function","function":{"name":"a"}})";
  for (int i = 1; i < 128; ++i) many += R"(,{"type":"function","function":{"name":"a"}})";
  EXPECT_EQ(of_tool(many), "not refused");
  EXPECT_EQ(of_tool(many + R"(,{"type":"function","function":{"name":"a"}})"), "tools");
  for (const char* const choice : {R"("required")", R"({"type":"function","function":{"name":"clock"}})"}) {
    EXPECT_EQ(refused_chat(std::string(R"(,"tool_choice":)") + choice + "," + kChatTools), "not refused");
  }
  const auto of_call = [&](const std::string& call) {
    return refused_chat("", R"([{"role":"user","content":"a"},{"role":"assistant","tool_calls":[)" + call +
                                R"(]},{"role":"tool","tool_call_id":"c","content":"r"}])");
  };
  EXPECT_EQ(of_call(R"({"function":{"name":"f","arguments":"{}"}})"), "messages[1].tool_calls[0].id");
  EXPECT_EQ(of_call(R"({"id":"c","type":"custom"})"), "messages[1].tool_calls[0].type");
  EXPECT_EQ(of_call(R"({"id":"c","function":{"arguments":"{}"}})"),
            "messages[1].tool_calls[0].function.name");
  for (const char* const arguments : {"\"\"", "\"[1]\"", "\"{\"", "{}"}) {
    EXPECT_EQ(of_call(R"({"id":"c","function":{"name":"f","arguments":)" + std::string(arguments) + "}}"),
              "messages[1].tool_calls[0].function.arguments");
  }
  EXPECT_EQ(refused_chat("", R"([{"role":"tool","content":"r"}])"), "messages[0].tool_call_id");
  EXPECT_EQ(refused_chat("", R"([{"role":"tool","tool_call_id":7,"content":"r"}])"),
            "messages[0].tool_call_id");
  EXPECT_EQ(refused_chat("", R"([{"role":"user","content":"a","tool_calls":[{}]}])"),
            "messages[0].tool_calls");
}

// ---- the marks of other models

TEST_F(Tools, MarksThatAreControlTokensAreSeen) {
  MarkedTokenizer mistral("[TOOL_CALLS]", {"[TOOL_CALLS]", "[ARGS]"});
  model_.description.model.has_chat_template = true;
  model_.tokenizer = &mistral;
  auto call = parse(parse_chat_completion, ask_chat(kChatTools));
  ASSERT_TRUE(call);
  call->answer->add(0, RequestAccepted{.request_id = {}, .prompt_token_ids = {1}});
  TokensGenerated event;
  for (const char* const token : {"Yes.", "[TOOL_CALLS]", "clock", "[ARGS]", "{\"zone\": \"UTC\"}"})
    event.token_ids.push_back(mistral.token(token));
  event.text = "Yes.clock{\"zone\": \"UTC\"}";
  call->answer->add(0, event);
  call->answer->add(0, OutputFinished{.request_id = {}, .finish_reason = FinishReason::kStop});
  call->answer->add(0, RequestFinished{});
  const Json message = json_of(call->answer->body())["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Yes.");
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], R"({"zone": "UTC"})");
}

TEST_F(Tools, TheMessagesOfGptOssCallByTheirHeaders) {
  MarkedTokenizer harmony("<|channel|>commentary <|message|>");
  model_.description.model.has_chat_template = true;
  model_.tokenizer = &harmony;
  const ScriptedAnswer script{.tokens = {"<|channel|>",
                                         "analysis",
                                         "<|message|>",
                                         "Hm",
                                         "m",
                                         "<|end|>",
                                         "<|start|>assistant",
                                         "<|channel|>",
                                         "commentary",
                                         "<|message|>",
                                         "I look.",
                                         "<|end|>",
                                         "<|start|>assistant",
                                         "<|channel|>",
                                         "commentary to=functions.clock ",
                                         "<|constrain|>",
                                         "json",
                                         "<|message|>",
                                         "{\"zone\":",
                                         "\"UTC\"}"}};
  const Json chat = body_of(parse_chat_completion, ask_chat(kChatTools), script)["choices"][0]["message"];
  EXPECT_EQ(dump(chat),
            R"({"role":"assistant","content":"I look.","reasoning_content":"Hmm","tool_calls":[)"
            R"({"id":"call_00ff00000000000000000000","type":"function","function":{"name":"clock",)"
            R"("arguments":"{\"zone\":\"UTC\"}"}}]})");
  const Json content = body_of(parse_message_call, ask_messages(kMessageTools), script)["content"];
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[1]["text"], "I look.");
  EXPECT_EQ(dump(content[2]["input"]), R"({"zone":"UTC"})");
  std::string arguments;
  for (const Json& frame :
       frames_of(stream_of(parse_chat_completion, ask_chat(kChatTools + R"(,"stream":true)"), script))) {
    if (frame.is_object() && frame["choices"][0]["delta"].contains("tool_calls"))
      arguments += frame["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(arguments, R"({"zone":"UTC"})");
}

TEST_F(Tools, CallsThatAreOnlyThoughtOfAreNone) {
  model_.description.model.has_chat_template = true;
  std::vector<std::string> tokens = {"<think>"};
  tokens.insert(tokens.end(), kCallingTokens.begin(), kCallingTokens.end());
  tokens.insert(tokens.end(), {"</think>", "\n\n", "Noon."});
  const Json message =
      body_of(parse_chat_completion, ask_chat(kChatTools), {.tokens = tokens})["choices"][0]["message"];
  EXPECT_EQ(message["content"], "Noon.");
  EXPECT_FALSE(message.contains("tool_calls"));
}

// ---- messages

TEST_F(Tools, AMessageStreamThatCalls) {
  const std::vector<TypedEvent> events = typed_events(stream_of(
      parse_message_call, ask_messages(kMessageTools + R"(,"stream":true)"), {.tokens = kCallingTokens}));
  EXPECT_EQ(names_of(events), (ToolLines{"message_start", "content_block_start", "content_block_delta",
                                         "content_block_delta", "content_block_delta", "content_block_stop",
                                         "content_block_start", "content_block_delta", "content_block_delta",
                                         "content_block_stop", "message_delta", "message_stop"}));
  EXPECT_EQ(dump(events[6].data),
            R"({"type":"content_block_start","index":1,"content_block":{"type":"tool_use",)"
            R"("id":"toolu_00ff00000000000000000000","name":"clock","input":{}}})");
  EXPECT_EQ(dump(events[7].data),
            R"({"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta",)"
            R"("partial_json":"{\"zone\""}})");
  EXPECT_EQ(events[8].data["delta"]["partial_json"], ": \"UTC\"}");
  EXPECT_EQ(events[10].data["delta"]["stop_reason"], "tool_use");
}

TEST_F(Tools, AMessageThatCalls) {
  const Json body = body_of(parse_message_call, ask_messages(kMessageTools), {.tokens = kCallingTokens});
  EXPECT_EQ(dump(body["content"]),
            R"([{"type":"text","text":"Let me see."},{"type":"tool_use",)"
            R"("id":"toolu_00ff00000000000000000000","name":"clock","input":{"zone":"UTC"}}])");
  EXPECT_EQ(body["stop_reason"], "tool_use");
}

TEST_F(Tools, MessagesAreToldTheToolsInOpenAisForm) {
  EXPECT_EQ(prompt_of(parse_message_call, ask_messages(kMessageTools)).tools, kToolsOfPrompt);
  const auto counted = parse_counted_messages(
      json_of(R"({"messages":[{"role":"user","content":"a"}],)" + kMessageTools + "}"), model_);
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->tools, kToolsOfPrompt);
}

TEST_F(Tools, ToolUsesAndResultsInMessagesStandInTheirOrder) {
  const ChatPrompt prompt = prompt_of(parse_message_call, R"({"max_tokens":1,"messages":[
      {"role":"user","content":"a"},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"b"},
        {"type":"tool_use","id":"t1","name":"clock","input":{"zone":"UTC","n":1}},
        {"type":"tool_use","id":"t2","name":"clock","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"12:00"},
        {"type":"tool_result","tool_use_id":"t2","is_error":true,
         "content":[{"type":"text","text":"no"},{"type":"text","text":"zone"}]},
        {"type":"text","text":"c"}]},
      {"role":"assistant","content":[{"type":"tool_use","id":"t3","name":"clock","input":{}}]},
      {"role":"user","content":[{"type":"text","text":"d"},{"type":"tool_result","tool_use_id":"t3"}]}]})");
  EXPECT_EQ(told(prompt),
            (ToolLines{"user: a", R"(assistant: b [t1 clock {"zone":"UTC","n":1}] [t2 clock {}])",
                       "tool: 12:00 <t1>", "tool: Error: no\nzone <t2>", "user: c",
                       "assistant:  [t3 clock {}]", "user: d", "tool:  <t3>"}));
  EXPECT_FALSE(prompt.continue_answer);
}

TEST_F(Tools, WhatIsWrongWithThemInMessagesIsRefusedWithItsPlace) {
  const auto of_tool = [&](const std::string& tool) {
    return refused_messages(R"(,"tools":[)" + tool + "]");
  };
  EXPECT_EQ(of_tool(R"({"type":"web_search_20250305","name":"web_search"})"), "tools[0]");
  EXPECT_EQ(of_tool(R"({"type":"custom","name":"a","input_schema":{}})"), "not refused");
  EXPECT_EQ(of_tool(R"({"name":"a"})"), "tools[0].input_schema");
  EXPECT_EQ(of_tool(R"({"name":"a/b","input_schema":{}})"), "tools[0].name");
  EXPECT_EQ(of_tool("7"), "tools[0]");
  EXPECT_EQ(refused_messages(R"(,"mcp_servers":[{"name":"m"}])"), "mcp_servers[0]");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"any"},)" + kMessageTools), "not refused");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"tool","name":"clock"},)" + kMessageTools),
            "not refused");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"tool","name":"hammer"},)" + kMessageTools),
            "tool_choice");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"tool"},)" + kMessageTools), "tool_choice.name");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"some"},)" + kMessageTools), "tool_choice.type");
  EXPECT_EQ(refused_messages(R"(,"tool_choice":{"type":"any"})"), "tool_choice");
  const auto of_blocks = [&](const std::string& role, const std::string& block) {
    return refused_messages("", R"([{"role":"user","content":"a"},{"role":")" + role + R"(","content":[)" +
                                    block + R"(]},{"role":"user","content":"b"}])");
  };
  EXPECT_EQ(of_blocks("assistant", R"({"type":"tool_use","name":"n","input":{}})"),
            "messages[1].content[0].id");
  EXPECT_EQ(of_blocks("assistant", R"({"type":"tool_use","id":"t","name":"n","input":"{}"})"),
            "messages[1].content[0].input");
  EXPECT_EQ(of_blocks("assistant", R"({"type":"tool_result","tool_use_id":"t"})"), "messages[1].content[0]");
  EXPECT_EQ(of_blocks("user", R"({"type":"tool_use","id":"t","name":"n","input":{}})"),
            "messages[1].content[0]");
  EXPECT_EQ(of_blocks("user", R"({"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]})"),
            "messages[1].content[0].content[0]");
  EXPECT_EQ(refused_messages("", R"([{"role":"user","content":"a"},
                {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}])"),
            "messages");
}

// ---- responses

TEST_F(Tools, AResponseStreamThatCalls) {
  const std::vector<TypedEvent> events = typed_events(stream_of(
      parse_response_call, ask_responses(kResponseTools + R"(,"stream":true)"), {.tokens = kCallingTokens}));
  EXPECT_EQ(names_of(events),
            (ToolLines{"response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.delta", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done", "response.output_item.done",
                       "response.output_item.added", "response.function_call_arguments.delta",
                       "response.function_call_arguments.delta", "response.function_call_arguments.done",
                       "response.output_item.done", "response.completed"}));
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].data["sequence_number"], i);
  const std::string head = R"({"id":"fc_00ff_1","type":"function_call","status":)";
  const std::string name = R"("call_id":"call_00ff00000000000000000000","name":"clock","arguments":)";
  EXPECT_EQ(dump(events[10].data),
            R"({"type":"response.output_item.added","sequence_number":10,"output_index":1,"item":)" + head +
                R"("in_progress",)" + name + R"(""}})");
  EXPECT_EQ(dump(events[11].data),
            R"({"type":"response.function_call_arguments.delta","sequence_number":11,"item_id":"fc_00ff_1",)"
            R"("output_index":1,"delta":"{\"zone\""})");
  EXPECT_EQ(events[12].data["delta"], ": \"UTC\"}");
  EXPECT_EQ(dump(events[13].data),
            R"({"type":"response.function_call_arguments.done","sequence_number":13,"item_id":"fc_00ff_1",)"
            R"("output_index":1,"name":"clock","arguments":"{\"zone\": \"UTC\"}"})");
  EXPECT_EQ(dump(events[14].data["item"]), head + R"("completed",)" + name + R"("{\"zone\": \"UTC\"}"})");
  const Json whole = body_of(parse_response_call, ask_responses(kResponseTools), {.tokens = kCallingTokens});
  EXPECT_EQ(dump(events[15].data["response"]), dump(whole));
  EXPECT_EQ(whole["output"].size(), 2u);
  EXPECT_EQ(dump(whole["tools"]),
            R"([{"type":"function","name":"clock","description":"time","parameters":{"type":"object",)"
            R"("properties":{"zone":{"type":"string"}},"required":["zone"]},"strict":true}])");
}

TEST_F(Tools, AResponseIsToldItsFunctionsAndWhatCameOfThem) {
  const ChatPrompt prompt = prompt_of(parse_response_call, R"({"input":[{"role":"user","content":"a"},
        {"type":"reasoning","summary":[]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},
        {"type":"function_call","id":"fc_1","call_id":"c1","name":"clock","arguments":"{ }","status":"completed"},
        {"type":"function_call","call_id":"c2","name":"clock","arguments":"{}"},
        {"type":"function_call_output","call_id":"c1","output":"12:00"},
        {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"13:00"}]},
        {"type":"custom_tool_call","call_id":"c9","name":"patch","input":"x"},
        {"type":"function_call","call_id":"c3","name":"clock","arguments":"{}"},
        {"type":"function_call_output","call_id":"c3","output":""}],)" +
                                                               kResponseTools + "}");
  EXPECT_EQ(prompt.tools, kToolsOfPrompt);
  EXPECT_EQ(told(prompt),
            (ToolLines{"user: a", "assistant: b [c1 clock { }] [c2 clock {}]", "tool: 12:00 <c1>",
                       "tool: 13:00 <c2>", "assistant:  [c3 clock {}]", "tool:  <c3>"}));
}

TEST_F(Tools, WhatIsWrongWithThemInResponsesIsRefusedWithItsPlace) {
  const auto refused = [&](const std::string& more, const std::string& input = R"("a")") {
    return refused_place(parse_response_call, R"({"input":)" + input + more + "}");
  };
  EXPECT_EQ(refused(R"(,"tools":[{"type":"function"}])"), "tools[0].name");
  EXPECT_EQ(refused(R"(,"tool_choice":"required",)" + kResponseTools), "not refused");
  EXPECT_EQ(refused(R"(,"tool_choice":{"type":"function","name":"clock"},)" + kResponseTools), "not refused");
  EXPECT_EQ(refused(R"(,"tool_choice":{"type":"function","name":"saw"},)" + kResponseTools), "tool_choice");
  EXPECT_EQ(refused(R"(,"tool_choice":"required")"), "tool_choice");
  EXPECT_EQ(refused("", R"([{"type":"function_call","call_id":"c","name":"f","arguments":"x"}])"),
            "input[0].arguments");
  EXPECT_EQ(refused("", R"([{"type":"function_call_output","output":"x"}])"), "input[0].call_id");
  EXPECT_EQ(refused("", R"([{"type":"function_call_output","call_id":"c"}])"), "input[0].output");
}

// Calls among thinking, text and blank space: a stream adds up to the whole, in each protocol.
TEST_F(Tools, StreamsAddUpToWholeAnswers) {
  model_.description.model.has_chat_template = true;
  std::size_t num_calls = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    // Calls stay whole: what is broken is text in a whole answer, and in a stream may have been told before.
    std::vector<std::vector<std::string>> parts;
    for (const std::string& token : mixed_answer(seed)) parts.push_back({token});
    for (std::size_t i = 0; i < seed % 3 + 1; ++i) {
      const std::size_t place = 3 + (seed * 7 + i * 5) % (parts.size() - 3);
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(place),
                   std::vector<std::string>(kCallingTwice.begin(), kCallingTwice.begin() + 3));
    }
    std::vector<std::string> tokens;
    for (const auto& part : parts) tokens.insert(tokens.end(), part.begin(), part.end());
    const ScriptedAnswer script{.tokens = tokens};
    const Json whole = body_of(parse_chat_completion, ask_chat(kChatTools), script)["choices"][0]["message"];
    std::string content, thinking, calls;
    for (const Json& frame :
         frames_of(stream_of(parse_chat_completion, ask_chat(kChatTools + R"(,"stream":true)"), script))) {
      if (!frame.is_object()) continue;
      const Json& delta = frame["choices"][0]["delta"];
      content += delta.value("content", "");
      thinking += delta.value("reasoning_content", "");
      if (!delta.contains("tool_calls")) continue;
      const Json& call = delta["tool_calls"][0];
      if (call.contains("id"))
        calls += call["id"].get<std::string>() + call["function"]["name"].get<std::string>();
      calls += call["function"]["arguments"].get<std::string>();
    }
    std::string whole_calls;
    for (const Json& call : whole.value("tool_calls", Json::array())) {
      ++num_calls;
      whole_calls += call["id"].get<std::string>() + call["function"]["name"].get<std::string>() +
                     call["function"]["arguments"].get<std::string>();
    }
    EXPECT_EQ(calls, whole_calls) << seed;
    EXPECT_EQ(content, whole["content"].is_null() ? "" : whole["content"].get<std::string>()) << seed;
    EXPECT_EQ(thinking, whole.value("reasoning_content", "")) << seed;

    Json blocks = Json::array();
    std::string partial;
    for (const TypedEvent& event : typed_events(
             stream_of(parse_message_call, ask_messages(kMessageTools + R"(,"stream":true)"), script))) {
      if (event.name == "content_block_start") blocks.push_back(event.data["content_block"]);
      if (event.name == "content_block_delta") {
        for (const auto& [field, text] : event.data["delta"].items()) {
          if (field == "partial_json") partial += text.get<std::string>();
          if (field == "type" || field == "partial_json") continue;
          blocks.back()[field] = blocks.back()[field].get<std::string>() + text.get<std::string>();
        }
      }
      if (event.name == "content_block_stop" && !partial.empty()) {
        blocks.back()["input"] = json_of(partial);
        partial.clear();
      }
    }
    EXPECT_EQ(dump(blocks), dump(body_of(parse_message_call, ask_messages(kMessageTools), script)["content"]))
        << seed;
    const std::vector<TypedEvent> events = typed_events(
        stream_of(parse_response_call, ask_responses(kResponseTools + R"(,"stream":true)"), script));
    EXPECT_EQ(dump(events.back().data["response"]),
              dump(body_of(parse_response_call, ask_responses(kResponseTools), script)))
        << seed;
  }
  EXPECT_GT(num_calls, 100u);
}

}  // namespace
}  // namespace octavo::app
