// Scores to softmax weights, and their sum: 16 lanes, each adding every 16th position ascending; then
// horizontal_sum.
#pragma once

#include "kernels/cpu/simd/attention_workspace.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Calls function(i, scores[i, i + 16)) for the groups of 16 scores from that of `begin` on. Lanes outside of
// begin..count - 1 hold other rows' keys or nothing at all; -infinity makes their weights exact zeros.
template <class Function>
OCTAVO_INLINE void for_each_group(const float* scores, int begin, int count, const Function& function) {
  int i = begin / kLanes * kLanes;
  if (i < begin) {
    const F32x16 group = select_first(begin - i, set1(kMinusInfinity), load(scores + i));
    function(i, select_first(smaller(count - i, kLanes), group, set1(kMinusInfinity)));
    i += kLanes;
  }
  for (; i + kLanes <= count; i += kLanes) function(i, load(scores + i));
  if (i < count) function(i, select_first(count - i, load(scores + i), set1(kMinusInfinity)));
}

OCTAVO_INLINE float largest_score(const float* scores, int begin, int count) {
  F32x16 largest = set1(kMinusInfinity);
  for_each_group(scores, begin, count,
                 [&](int, F32x16 group) OCTAVO_INLINE_LAMBDA { largest = max(group, largest); });
  return horizontal_max(largest);
}

inline void cap_scores(float* scores, int begin, int count, float cap) {
  for (int i = begin / kLanes * kLanes; i < count; i += kLanes)
    store(scores + i, soft_capped(load(scores + i), cap));
}

// Scores to weights, in place.
OCTAVO_INLINE void compute_weights(float* scores, int begin, int count, Partial partial) {
  const F32x16 shift = set1(partial.max());
  F32x16 sum = zero();
  for_each_group(scores, begin, count, [&](int i, F32x16 group) OCTAVO_INLINE_LAMBDA {
    const F32x16 weights = exp_not_positive(sub(group, shift));
    store(scores + i, weights);
    sum = add(sum, weights);
  });
  partial.sum() = horizontal_sum(sum);
}

// The largest score of a query is looked for while the weights of the one before are computed.
inline void compute_all_weights(const RangeJob& job) {
  const float cap = job.tile.score_soft_cap;
  const auto find_largest = [&](int query) {
    if (query >= job.end_query || job.count(query) == 0) return;
    const int begin = job.begin(query), count = job.count(query);
    if (cap != 0.0f) cap_scores(job.scores(query), begin, count, cap);
    job.partial(query).max() = largest_score(job.scores(query), begin, count);
  };
  find_largest(job.first_query);
  for (int query = job.first_query; query < job.end_query; ++query) {
    find_largest(query + 1);
    if (job.count(query) > 0)
      compute_weights(job.scores(query), job.begin(query), job.count(query), job.partial(query));
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
