// Options and requests as the scheduler's tests use them: blocks of 16 tokens, a reserve that knows no
// lengths, prompts that look random.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/scheduler/harness.h"

namespace octavo::scheduler {

inline constexpr RequestId kFirst{1}, kSecond{2}, kThird{3};  // of those that a harness was given

inline SchedulerOptions options_with(std::int32_t num_blocks, std::int32_t max_num_batched_tokens = 512) {
  return {.block_size = 16,
          .num_blocks = num_blocks,
          .bytes_per_block = 1000,
          .max_num_seqs = 64,
          .max_num_batched_tokens = max_num_batched_tokens,
          .max_model_len = 8192,
          .admission_reserve = AdmissionReserve::kBlockPerSequence};
}

// Who gives way then depends on lengths.
inline SchedulerOptions looking_ahead(std::int32_t num_blocks) {
  SchedulerOptions options = options_with(num_blocks);
  options.admission_reserve = AdmissionReserve::kLookAhead;
  return options;
}

// Prompts of the same content start alike, as far as the shorter one goes.
inline SimulatedRequest request_of(std::uint64_t content, std::int32_t num_prompt,
                                   std::int32_t max_tokens = 8, std::int32_t n = 1) {
  return {.prompt = random_like_tokens(content, num_prompt), .n = n, .max_tokens = max_tokens};
}

inline SimulatedRequest beams_of(std::uint64_t content, std::int32_t num_prompt, std::int32_t max_tokens,
                                 std::int32_t width) {
  SimulatedRequest request = request_of(content, num_prompt, max_tokens);
  request.beam_width = width;
  return request;
}

using Requests = std::vector<std::uint64_t>;

inline Requests requests_in(const SchedulerOutput& step) {
  Requests requests;
  for (const ScheduledSequence& row : step.sequences) requests.push_back(row.request_id.value);
  return requests;
}

}  // namespace octavo::scheduler
