// What can be asked of a running engine, as values for its queue.
#pragma once

#include <cstdint>
#include <variant>

#include "engine/api/request.h"
#include "engine/base/ids.h"

namespace octavo {

struct SubmitRequest {
  RequestId request_id;  // given out by Engine::submit, ascending
  GenerationRequest request;
  std::int64_t submitted_us = 0;  // engine clock
};

// Ends the request in whatever state it is, within one step. Its outputs finish with kAbort.
struct CancelRequest {
  RequestId request_id;
};

// Drops every cached block that nobody uses.
struct ResetPrefixCache {};

// What was pinned in the prefix cache is kept like a system prompt from now on.
struct ReleasePins {};

using EngineCommand = std::variant<SubmitRequest, CancelRequest, ResetPrefixCache, ReleasePins>;

}  // namespace octavo
