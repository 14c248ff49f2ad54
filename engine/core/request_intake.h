// From what was submitted to what can be scheduled: sampling parameters checked, prompt as token ids, seed
// fixed.
#pragma once

#include <cstdint>
#include <functional>

#include "engine/api/command.h"
#include "engine/base/result.h"
#include "engine/scheduler/scheduler.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// Where a request's own words are not enough.
struct IntakeSources {
  const tokenizer::Tokenizer* tokenizer = nullptr;
  std::int32_t num_end_tokens = 1;                 // tokens that end a sequence
  std::function<std::uint64_t()> draw_seed = {};   // for a request that brings none
  std::function<std::int64_t()> unix_time_s = {};  // the date that a chat template may print
};

// Refuses, in one sentence, what no engine with this vocabulary could do. Whether it fits this engine's pool
// and length is the scheduler's question.
Result<scheduler::NewRequest> prepare_request(SubmitRequest submit, const IntakeSources& sources);

}  // namespace octavo
