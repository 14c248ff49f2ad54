// A whole life of an engine core, drawn from one seed: pool, blocks, limits, requests, cancels, failing
// steps. After each step everything that can be known is checked; at the end everything must have drained.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/simulation/mutation.h"

namespace octavo::simulation {

struct Report {
  std::optional<std::string> problem;  // the first; names the step
  std::int64_t num_steps = 0;          // with rows
  std::int64_t num_requests = 0;
  std::int64_t num_tokens = 0;  // delivered
  std::int64_t num_preemptions = 0;
  std::int64_t num_block_copies = 0;
  std::int64_t num_hit_tokens = 0;
  std::int64_t num_evictions = 0;
  std::int64_t num_cancelled = 0;
  std::int64_t num_failed_steps = 0;
  std::int64_t num_refused = 0;
  std::int64_t num_out_of_memory = 0;  // outputs that ended because the pool is too small
};

Report simulate(std::uint64_t seed, Mutation mutation = Mutation::kNone);

}  // namespace octavo::simulation
