// A token that is to be drawn from a row of logits where the row stands: what a device needs to know of it,
// and what comes back. Plain values.
//
// The definition is that of engine/runner/sampler.h, steps 3 to 5, with logits as scores, as they are or
// adjusted first (logit_adjustment.h: steps 1 and 2): greedy below kGreedyTemperature, else weights
// exp((logit - best) / temperature), of which top_k, min_p and top_p keep a start of the ranking (logit
// descending, ties by lower id), and the first kept token, in ascending id, at which the running sum of
// weights exceeds uniform times their sum. Sums are in double, in an order of the backend's own that depends
// on nothing but the row: the token can differ from the sampler's only where two sums of weights, or a sum
// and a limit, are equal to within n * 2^-52 of the whole, n being the number of tokens that were added up. A
// greedy choice never differs.
#pragma once

#include <cstdint>

namespace octavo::kernels {

// vLLM's bound; it also keeps 1 / temperature finite.
inline constexpr double kGreedyTemperature = 1e-5;

struct TokenDraw {
  std::int32_t row = 0;      // index into the rows of the call
  std::int32_t top_k = 0;    // below 1, or not below the vocabulary: off
  double temperature = 1.0;  // finite
  double top_p = 1.0;        // above 0; from 1: off
  double min_p = 0.0;        // 0 to 1; 0: off
  double uniform = 0.0;      // in [0, 1)
  bool operator==(const TokenDraw&) const = default;
};

// In place of a row's token: the one that draws[index] of the last Backend::start_draws() gives, which is not
// known here yet.
constexpr std::int32_t drawn_token(std::int32_t index) { return -1 - index; }
constexpr std::int32_t index_of_draw(std::int32_t drawn_token) { return -1 - drawn_token; }

struct DrawnToken {
  std::int32_t token_id = -1;  // -1: the row has a NaN, plus infinity, or nothing finite that is allowed
  float logprob = 0.0f;        // logit - log_sum_exp, before adjustments; of no meaning without a token
};

}  // namespace octavo::kernels
