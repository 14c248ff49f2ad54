// A model, events and frames for tests of what OpenAI's clients send and are sent.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/call.h"
#include "engine/api/event.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::app {

struct TestModel {
  testing::SpellingTokenizer tokenizer;
  ServedModel served;

  TestModel() {
    served.names = {"tiny", "alias"};
    served.created = 1;
    served.tokenizer = &tokenizer;
    served.description.model.has_chat_template = true;
    served.description.model.vocabulary_size = 1000;
    served.description.max_model_len = 4096;
  }
};

inline const CallIdentity kTestIdentity{.hex = "00112233445566778899aabbccddeeff", .created = 1700000000};

// Of a call that must be good.
inline Call call_of(ParseCall parse, const TestModel& model, std::string_view body) {
  auto json = parse_json(body, "the body");
  EXPECT_TRUE(json.has_value()) << body;
  auto call = parse(*json, model.served, kTestIdentity);
  EXPECT_TRUE(call.has_value()) << body << ": " << (call ? "" : call.error().message);
  return call ? *std::move(call) : Call();
}

// Of one that must be bad.
inline Error error_of(ParseCall parse, const TestModel& model, std::string_view body) {
  auto json = parse_json(body, "the body");
  EXPECT_TRUE(json.has_value()) << body;
  auto call = parse(*json, model.served, kTestIdentity);
  EXPECT_FALSE(call.has_value()) << body;
  return call ? Error() : call.error();
}

inline EngineEvent accepted(std::vector<TokenId> prompt) {
  return RequestAccepted{RequestId{}, std::move(prompt)};
}
inline EngineEvent admitted(std::int32_t num_cached) { return RequestAdmitted{RequestId{}, num_cached}; }
inline EngineEvent generated(std::int32_t output, std::vector<TokenId> ids, std::string text) {
  const std::vector<float> logprobs(ids.size(), -1.0f);
  return TokensGenerated{.request_id = {},
                         .output_index = output,
                         .token_ids = std::move(ids),
                         .logprobs = logprobs,
                         .top_logprobs = {},
                         .text = std::move(text)};
}
inline EngineEvent ended(std::int32_t output, FinishReason reason, StopReason stop = {}) {
  return OutputFinished{RequestId{}, output, reason, std::move(stop)};
}
inline EngineEvent finished() { return RequestFinished{}; }

// What stands in the frames of a stream, which must all be whole; "[DONE]" as a text.
inline std::vector<Json> frames_of(std::string_view stream) {
  std::vector<Json> frames;
  while (!stream.empty()) {
    const std::size_t end = stream.find("\n\n");
    EXPECT_NE(end, std::string_view::npos);
    EXPECT_TRUE(stream.starts_with("data: ")) << stream;
    if (end == std::string_view::npos || end < 6) break;
    const std::string_view data = stream.substr(6, end - 6);
    EXPECT_EQ(data.find('\n'), std::string_view::npos);
    auto json = data == "[DONE]" ? Result<Json>(Json("[DONE]")) : parse_json(data, "frame");
    EXPECT_TRUE(json.has_value()) << data;
    if (json) frames.push_back(*std::move(json));
    stream.remove_prefix(end + 2);
  }
  return frames;
}

using CallEvents = std::vector<std::pair<std::size_t, EngineEvent>>;  // with their request

inline std::string stream_of(Answer& answer, const CallEvents& events) {
  std::string stream = answer.first_frames();
  for (const auto& [request, event] : events) stream += answer.add(request, event);
  EXPECT_TRUE(answer.done());
  EXPECT_FALSE(answer.failure().has_value());
  return stream + answer.last_frames();
}

inline std::string body_of(Answer& answer, const CallEvents& events) {
  for (const auto& [request, event] : events) EXPECT_EQ(answer.add(request, event), "");
  EXPECT_TRUE(answer.done());
  EXPECT_FALSE(answer.failure().has_value());
  return answer.body();
}

}  // namespace octavo::app
