// The answer of one request with one output, as typed protocols tell it (messages.h, responses.h): its blocks
// (answer_blocks.h), and the figures of the request.
//
// Thread: a value; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/json/json_text.h"
#include "app/server/answer_blocks.h"
#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/result.h"

namespace octavo::app {

class GrowingAnswer {
 public:
  explicit GrowingAnswer(AnswerBlocks blocks) : blocks_(std::move(blocks)) {}

  // What has become of the blocks by this event.
  std::vector<AnswerStep> add(const EngineEvent& event);

  const std::vector<AnswerBlock>& blocks() const { return blocks_.blocks(); }  // as told so far
  bool has_calls() const { return blocks_.has_calls(); }

  bool done() const { return done_; }
  // Also when it was cancelled: nothing else would tell a client that its answer is not whole.
  const std::optional<Error>& failure() const { return failure_; }

  // Of the output; known from OutputFinished on.
  bool is_cut() const { return finish_reason_ == FinishReason::kLength; }  // by the limit of tokens
  const std::string* stop_string() const;  // that ended it; nullptr: something else did

  std::int32_t num_prompt_tokens() const { return num_prompt_tokens_; }
  std::int32_t num_cached_tokens() const { return num_cached_tokens_; }  // of these
  std::int32_t num_output_tokens() const { return num_output_tokens_; }
  std::int32_t num_thinking_tokens() const { return blocks_.num_thinking_tokens(); }  // of these

 private:
  std::vector<AnswerStep> fold(const RequestAccepted& event);
  std::vector<AnswerStep> fold(const RequestAdmitted& event);
  std::vector<AnswerStep> fold(const TokensGenerated& event);
  std::vector<AnswerStep> fold(const OutputFinished& event);
  std::vector<AnswerStep> fold(const RequestFinished& event);
  std::vector<AnswerStep> fold(const RequestFailed& event);

  AnswerBlocks blocks_;
  bool done_ = false;
  std::optional<Error> failure_;
  FinishReason finish_reason_ = FinishReason::kAbort;
  StopReason stop_reason_;
  std::string finish_detail_;
  std::int32_t num_prompt_tokens_ = 0, num_cached_tokens_ = 0, num_output_tokens_ = 0;
};

// An event of a stream with its name, which is the object's "type".
std::string typed_frame(const Json& event);

}  // namespace octavo::app
