// What the engine tells about a request, in order. For each request: at most one Accepted, then any number of
// Admitted / PromptProgress / TokensGenerated / BeamsAdvanced / Preempted / OutputFinished /
// EmbeddingComputed, then exactly one RequestFinished or RequestFailed, and nothing after it. Without
// Accepted: a request that is refused, or cancelled while its prompt is still text (then its outputs finish
// with kAbort).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"

namespace octavo {

// The prompt is token ids now and waits in the queue.
struct RequestAccepted {
  RequestId request_id;
  std::vector<TokenId> prompt_token_ids;
  std::uint64_t seed = 0;
};

// The first time it was given blocks.
struct RequestAdmitted {
  RequestId request_id;
  std::int32_t num_cached_tokens = 0;
  std::int64_t queue_us = 0;
  SequenceId sequence_id = {};  // of its first output; the others are forked from it
};

// So much of the prompt is computed. For who asks: after each step that computed some of it, until its end; a
// prompt that is computed again after a preemption tells nothing twice.
struct PromptProgress {
  RequestId request_id;
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_cached_tokens = 0;    // found at the first admission: they are among the computed ones
  std::int32_t num_computed_tokens = 0;  // ascending
  std::int64_t elapsed_us = 0;           // since it was admitted
};

// What was asked for by EmbeddingParams; RequestFinished follows.
struct EmbeddingComputed {
  RequestId request_id;
  std::vector<float> values;
};

// `text` holds whole characters only and never a part of what may become a stop string; it may be empty while
// ids are not.
struct TokensGenerated {
  RequestId request_id;
  std::int32_t output_index = 0;
  std::vector<TokenId> token_ids = {};
  std::vector<float> logprobs = {};
  std::vector<std::vector<TokenLogprob>> top_logprobs = {};
  std::string text = {};
  std::int64_t ttft_us = 0;  // RequestMetrics::ttft_us, which is known from the first token on
};

// A beam search took a step: what its tree gained, and who is left. Its outputs follow when it ends.
struct BeamsAdvanced {
  RequestId request_id;
  std::vector<BeamStep> steps;
};

struct RequestPreempted {
  RequestId request_id;
  std::int32_t first_output_index = 0;  // this output and those behind it wait; the others go on
  std::int32_t num_tokens_dropped = 0;  // whose KV must be computed again; 0 when it was swapped out
};

struct OutputFinished {
  RequestId request_id;
  std::int32_t output_index = 0;
  FinishReason finish_reason = FinishReason::kStop;
  StopReason stop_reason = {};
  std::string detail = {};           // one sentence where the reason alone would not explain it
  std::optional<double> score = {};  // of a beam
};

struct RequestFinished {
  RequestId request_id;
  std::vector<std::optional<float>> prompt_logprobs = {};
  RequestMetrics metrics = {};
  std::vector<std::vector<TokenLogprob>> prompt_top_logprobs = {};
};

struct RequestFailed {
  RequestId request_id;
  Error error;
  RequestMetrics metrics;
};

using EngineEvent =
    std::variant<RequestAccepted, RequestAdmitted, PromptProgress, TokensGenerated, BeamsAdvanced,
                 RequestPreempted, OutputFinished, EmbeddingComputed, RequestFinished, RequestFailed>;

RequestId request_id_of(const EngineEvent& event);

}  // namespace octavo
