// What tests of typed protocols (messages, responses) share: a model, an engine's events for an answer, and a
// stream read strictly.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::app {

inline Json json_of(std::string_view text) {
  auto json = parse_json(text, "the test");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

struct TypedEvent {
  std::string name;
  Json data;
};

// Frames of exactly two lines, the name the same as the object's type.
inline std::vector<TypedEvent> typed_events(std::string_view stream) {
  std::vector<TypedEvent> events;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    const std::string_view frame = stream.substr(0, end);
    const std::size_t line_end = frame.find('\n');
    const bool is_whole = end != std::string_view::npos && frame.starts_with("event: ") &&
                          line_end != std::string_view::npos &&
                          frame.substr(line_end + 1).starts_with("data: ");
    EXPECT_TRUE(is_whole) << stream;
    if (!is_whole) break;
    TypedEvent event{std::string(frame.substr(7, line_end - 7)), json_of(frame.substr(line_end + 7))};
    EXPECT_EQ(event.name, event.data.value("type", ""));
    events.push_back(std::move(event));
    stream.remove_prefix(end + 2);
  }
  return events;
}

inline std::vector<std::string> names_of(const std::vector<TypedEvent>& events) {
  std::vector<std::string> names;
  for (const TypedEvent& event : events) names.push_back(event.name);
  return names;
}

// What the engine makes of a request.
struct ScriptedAnswer {
  std::vector<std::string> prompt = {"What", "?"};  // texts of tokens
  std::int32_t num_cached_tokens = 0;
  std::vector<std::string> tokens;
  FinishReason finish_reason = FinishReason::kStop;
  StopReason stop_reason = {};
};

class TypedProtocol : public ::testing::Test {
 protected:
  TypedProtocol() {
    model_.names = {"tiny", "other-name"};
    model_.description.max_model_len = 4096;
    model_.description.model.vocabulary_size = tokenizer_.vocabulary_size();
    model_.tokenizer = &tokenizer_;
  }

  Result<Call> parse(ParseCall parse_call, std::string_view body) const {
    return parse_call(json_of(body), model_, {.hex = "00ff", .created = 7});
  }

  std::vector<EngineEvent> events_of(const ScriptedAnswer& script) {
    std::vector<TokenId> prompt;
    for (const std::string& text : script.prompt) prompt.push_back(tokenizer_.token(text));
    std::vector<EngineEvent> events = {
        RequestAccepted{.request_id = {}, .prompt_token_ids = prompt},
        RequestAdmitted{.request_id = {}, .num_cached_tokens = script.num_cached_tokens}};
    for (const std::string& text : script.tokens) {
      TokensGenerated generated;
      generated.token_ids = {tokenizer_.token(text)};
      generated.text = text;
      events.push_back(generated);
    }
    events.push_back(OutputFinished{
        .request_id = {}, .finish_reason = script.finish_reason, .stop_reason = script.stop_reason});
    events.push_back(RequestFinished{});
    return events;
  }

  // The stream that a client of this body is sent, or what it is sent when it does not stream.
  std::string stream_of(ParseCall parse_call, std::string_view body, const ScriptedAnswer& script) {
    auto call = parse(parse_call, body);
    EXPECT_TRUE(call && call->stream) << body;
    if (!call) return {};
    std::string stream = call->answer->first_frames();
    for (const EngineEvent& event : events_of(script)) stream += call->answer->add(0, event);
    EXPECT_TRUE(call->answer->done());
    EXPECT_FALSE(call->answer->failure());
    return stream + call->answer->last_frames();
  }
  Json body_of(ParseCall parse_call, std::string_view body, const ScriptedAnswer& script) {
    auto call = parse(parse_call, body);
    EXPECT_TRUE(call && !call->stream) << body;
    if (!call) return {};
    for (const EngineEvent& event : events_of(script)) EXPECT_EQ(call->answer->add(0, event), "");
    EXPECT_TRUE(call->answer->done());
    return json_of(call->answer->body());
  }

  // The place that a refusal names, as subject and at the beginning of its sentence; else what is wrong with
  // it.
  std::string refused_place(ParseCall parse_call, std::string_view body) const {
    const auto call = parse(parse_call, body);
    if (call) return "not refused";
    const Error& error = call.error();
    if (error.code != ErrorCode::kInvalidArgument && error.code != ErrorCode::kUnsupported)
      return "another code: " + std::string(error_code_name(error.code));
    return error.message.starts_with(error.subject) ? error.subject : error.message;
  }

  testing::SpellingTokenizer tokenizer_;
  ServedModel model_;
};

// An answer with marks of thinking, halves of them, blank space and words: behind thinking, or as messages
// that have headers.
inline std::vector<std::string> mixed_answer(std::uint64_t seed) {
  static const std::vector<std::string> kTexts = {
      "<think>", "</think>", "<th",      "ink>",    "\n",          " ",
      "word",    "\n\n",     "<",        "<|end|>", "<|channel|>", "</th",
      "é",       "> ",       "analysis", "final",   "<|message|>", "<|start|>assistant"};
  std::vector<std::string> tokens = {"<think>", "well", "</think>"};
  if (seed % 2 == 1) tokens = {"<|channel|>", "analysis", "<|message|>", "well"};
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 16; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(kTexts[(state >> 33u) % kTexts.size()]);
  }
  return tokens;
}

}  // namespace octavo::app
