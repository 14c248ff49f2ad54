// What the engine remembers of a request from its acceptance to its end. Engine thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/core/beam_search.h"
#include "engine/core/embedding_pool.h"
#include "engine/core/output_processor.h"

namespace octavo {

struct ActiveRequest {
  RequestId request_id;
  SamplingParams sampling;               // outputs point into it: an ActiveRequest stays where it was made
  std::vector<OutputProcessor> outputs;  // of samples; empty for a beam search
  // Of samples: whose end was not told yet; 1 while an embedding was not.
  std::int32_t num_open_outputs = 0;
  std::optional<EmbeddingPool> embedding = {};
  std::optional<BeamSearch> beams = {};
  std::vector<std::optional<float>> prompt_logprobs;  // as long as the prompt; empty when not asked
  std::vector<std::vector<TokenLogprob>>
      prompt_top_logprobs;  // likewise; empty when no alternatives are asked

  // Of best_of, which is told at its end: what would have been told of each output. Empty without.
  struct Untold {
    std::vector<TokensGenerated> tokens;
    OutputFinished end;
  };
  std::vector<Untold> untold;

  // Of the prompt's progress, where somebody asks for it.
  bool reports_progress = false;
  std::int32_t num_prompt_tokens = 0, num_cached_tokens = 0, num_computed_told = 0;

  std::int64_t submitted_us = 0;
  std::optional<std::int64_t> admitted_us = {};
  std::optional<std::int64_t> first_token_us = {};
  std::int64_t last_token_us = 0;
  std::int32_t num_preemptions = 0;
  std::int32_t num_draft_tokens = 0, num_accepted_tokens = 0;
  PromptAccount prompt = {};
  PrefixMiss prefix_miss = {};

  // Those of the highest cumulative log-probability, best first and numbered so; of equal ones the earlier
  // output. `untold` is empty then.
  std::vector<Untold> take_best();

  bool ended() const { return !beams && num_open_outputs == 0; }  // a beam search ends as a whole

  // Definitions: engine/metrics/README.md.
  RequestMetrics metrics_at(std::int64_t now_us) const;
};

using ActiveRequests = std::map<RequestId, ActiveRequest>;

}  // namespace octavo
