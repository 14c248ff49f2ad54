// How far requests are, from their events: for a line that a person reads while nothing else moves.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "engine/api/event.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"

namespace octavo::app {

class GenerationProgress {
 public:
  enum class Counts { kPrompts, kPromptsAndOutputs };
  explicit GenerationProgress(Counts counts) : counts_(counts) {}

  // A request that asked for its PromptProgress.
  void expect(RequestId request_id, const SamplingParams& sampling);
  // Events of other requests are passed over.
  void add(const EngineEvent& event);

  // Of all tokens that there will be at most, from 0 to 1; a request that has ended is done, however much
  // came of it. Never falls. nullopt: not every prompt's length is known yet.
  std::optional<double> fraction() const;

 private:
  struct Work {
    std::int64_t num_prompt = -1;  // tokens; below 0: not known yet
    std::int64_t num_computed = 0;
    std::int64_t num_generated = 0, most_generated = 0;  // of all outputs
    std::int64_t num_outputs = 1;
    bool has_ended = false;
  };

  static void add_generated(Work& work, std::int64_t num_tokens);

  const Counts counts_;
  std::map<RequestId, Work> works_;
};

}  // namespace octavo::app
