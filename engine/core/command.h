// What an engine core can be asked to do, as values for its queue, and what a request is before that.
#pragma once

#include <cstdint>
#include <variant>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/scheduler/scheduler.h"

namespace octavo {

// As somebody asked. RequestIntake makes a PreparedRequest of it.
struct SubmitRequest {
  RequestId request_id;  // given out by Engine::submit, ascending
  GenerationRequest request;
  std::int64_t submitted_us = 0;  // engine clock
};

// Ready for the scheduler, or the reason why it cannot be.
struct PreparedRequest {
  RequestId request_id;
  Result<scheduler::NewRequest> request;
  std::int64_t submitted_us = 0;
  bool reports_progress = false;  // of its prompt
};

// A request that was cancelled before it was prepared. Its outputs finish with kAbort, without a token.
struct AbandonedRequest {
  RequestId request_id;
  std::int32_t num_outputs = 1;
  std::int64_t submitted_us = 0;
};

// Ends the request in whatever state it is, within one step, or two where the second was begun ahead. Its
// outputs finish with kAbort.
struct CancelRequest {
  RequestId request_id;
};

// Ends one output of several, with kAbort. No effect on one that has ended, and where outputs are chosen
// among each other: of beams and of best_of.
struct CancelOutput {
  RequestId request_id;
  std::int32_t output_index = 0;
};

// Drops every cached block that nobody uses.
struct ResetPrefixCache {};

// What was pinned in the prefix cache is kept like a system prompt from now on.
struct ReleasePins {};

using EngineCommand = std::variant<PreparedRequest, AbandonedRequest, CancelRequest, CancelOutput,
                                   ResetPrefixCache, ReleasePins>;

}  // namespace octavo
