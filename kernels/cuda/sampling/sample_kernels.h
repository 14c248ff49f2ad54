// The kernels of sample_tokens.h, in the order in which they run, and what they hand to each other.
//
// A draw with filters keeps what ranks up to a cut: (key of a logit, id). It is found without sorting. Logits
// between the best one and a floor, below which nothing is kept, fall into kSampleBins equal intervals;
// number and weight of each are added up; in the interval in which a limit (top_k's number, top_p's weight)
// is reached the search continues by the bits of the logits, down to one value, and among equal ones by id.
// Weights are added up as integers of 80 bits (Mass), so that their order is of no matter; the sums from
// which is drawn are doubles in a fixed order.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/device.h"
#include "kernels/token_draw.h"

namespace octavo::kernels::cuda {

// Of a call: rows of logits and what logits_summary.h says of them, in device memory.
struct SampleInput {
  const float* logits;        // [num_rows, vocabulary]
  const float* log_sum_exp;   // [num_rows]
  const float* piece_maxima;  // [num_rows, num_logits_pieces(vocabulary)]
  std::int64_t vocabulary;
};

// A TokenDraw, worked out as far as the host can.
struct DeviceDraw {
  std::int32_t row;
  std::int32_t top_k;          // 0: off
  double inverse_temperature;  // 0: greedy
  double top_p;                // 1: off
  double min_p;                // 0: off
  double uniform;
  double reach;  // logits below best + reach cannot be kept, for min_p and top_p; at most 0
  std::int32_t first_adjusted = 0, num_adjusted = 0;  // of its row, in AdjustedRows::tokens

  __host__ __device__ bool is_greedy() const { return inverse_temperature == 0.0; }
  __host__ __device__ bool has_cut() const { return top_k > 0 || top_p < 1.0; }
  // top_p is a part of the weight of all tokens, not only of those that other filters left.
  __host__ __device__ bool weighs_all() const { return top_p < 1.0 && top_k == 0 && min_p == 0.0; }
};

// What ranks up to here is kept.
struct SampleCut {
  std::uint32_t key;
  std::int32_t id;  // the last one among those of this key
};

struct DrawState {
  double floor;  // no logit below it is kept
  float best;
  SampleCut cut;
};

// Weights as integers: high * 2^-40 + low * 2^-80. A weight loses less than 2^-80, so that the sum over a
// row, which is at least 1, is exact to within 2^-60.
struct SampleMass {
  unsigned long long high, low;
};

inline constexpr std::int32_t kSampleBins = 1024;
// Of a row that a block looks at where several share it.
inline constexpr std::int32_t kSamplePieces = 64;
struct SampleBins {
  SampleMass masses[kSampleBins];
  std::uint32_t counts[kSampleBins];
};

// Of each draw; piece_sums [num_draws, num_logits_pieces]. Bins are zero before the first use and after each.
struct SampleScratch {
  DrawState* states;
  SampleBins* bins;
  double* piece_sums;
};

// One block, or one row of blocks, for each draw. `results` [num_draws].
void choose_best(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                 DrawnToken* results);  // the greedy ones; `draws` null: one of each row, in order
void find_floors(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                 const SampleScratch& scratch);
void fill_bins(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch);
void find_cuts(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch);
void weigh_kept(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                const SampleScratch& scratch);
void draw_kept(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch, DrawnToken* results);  // the random ones

}  // namespace octavo::kernels::cuda
