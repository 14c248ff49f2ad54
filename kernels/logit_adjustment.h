// What is done to the logits of a row before a token is drawn from it: steps 1 and 2 of
// engine/runner/sampler.h, as a list of the tokens that they concern. Plain values, and one definition for
// the host's sampler and for kernels: both compilers do the same operations in the same order, in double.
#pragma once

#include <cfloat>
#include <cstdint>
#include <span>

namespace octavo::kernels {

// Of one token of a row. `bias` is added; minus infinity forbids the token.
struct LogitAdjustment {
  static constexpr std::int32_t kIsNotSeen = -1;

  std::int32_t token_id = 0;
  std::int32_t output_count = kIsNotSeen;  // in the output; 0: in the prompt only. Seen tokens are penalised
  double bias = 0.0;                       // a number, or minus infinity
};

// Of all seen tokens of a row. The values of a request that asks for none.
struct LogitPenalties {
  double repetition = 1.0;  // above 0
  double frequency = 0.0;
  double presence = 0.0;
};

struct RowAdjustment {
  std::int32_t row = 0;                          // index into the rows of the call
  std::int32_t first_token = 0, num_tokens = 0;  // in LogitAdjustments::tokens
  LogitPenalties penalties = {};
};

// Of the rows of a call. REQUIRES: rows ascend, no two are the same; their tokens stand one after the other,
// in the order of the rows, and no two of a row are the same.
struct LogitAdjustments {
  std::span<const RowAdjustment> rows = {};
  std::span<const LogitAdjustment> tokens = {};
};

// `Number` is a double whose sums and products are each rounded once: where a compiler would fuse them, a
// type that keeps it from that.
template <class Number>
constexpr double adjusted_score(double unadjusted, const LogitAdjustment& token,
                                const LogitPenalties& penalties) {
  Number score = Number{unadjusted} + Number{token.bias};
  if (token.output_count == LogitAdjustment::kIsNotSeen) return static_cast<double>(score);
  const Number repetition{penalties.repetition}, count{static_cast<double>(token.output_count)};
  score = static_cast<double>(score) > 0.0 ? score / repetition : score * repetition;
  score = score - Number{penalties.frequency} * count;
  if (token.output_count > 0) score = score - Number{penalties.presence};
  return static_cast<double>(score);
}

// As a logit again. What is larger than any float becomes the largest; minus infinity stays, and nothing else
// becomes it: only a forbidden token is one that cannot come.
constexpr float rounded_score(double score) {
  constexpr double kMost = FLT_MAX;
  if (score > kMost) return FLT_MAX;
  if (score < -kMost && score >= -DBL_MAX) return -FLT_MAX;
  return static_cast<float>(score);
}

template <class Number>
constexpr float adjusted_logit(float logit, const LogitAdjustment& token, const LogitPenalties& penalties) {
  return rounded_score(adjusted_score<Number>(static_cast<double>(logit), token, penalties));
}

}  // namespace octavo::kernels
