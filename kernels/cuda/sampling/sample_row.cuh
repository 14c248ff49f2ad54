// A row of logits as the kernels that draw from it see it: in pieces of kLogitsPiece, whose maxima say which
// need not be read; and what a logit is worth in a draw.
#pragma once

#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/cuda/sampling/rounded.cuh"
#include "kernels/cuda/sampling/sample_kernels.h"

namespace octavo::kernels::cuda {

inline constexpr unsigned kEntriesPerLane = kLogitsPiece / kWarp;

struct SampleRow {
  const float* logits;
  const float* maxima;  // [num_pieces]
  std::int32_t vocabulary, num_pieces;
  float log_sum_exp;

  // Nobody can draw from another: see LogitsSummary.
  __device__ bool is_valid() const { return fabsf(log_sum_exp) < INFINITY; }
  // Of the i-th entry of this lane; minus infinity past the end.
  __device__ std::int32_t id_of(std::int32_t piece, unsigned i) const {
    return piece * static_cast<std::int32_t>(kLogitsPiece) +
           static_cast<std::int32_t>(i * kWarp + threadIdx.x % kWarp);
  }
  __device__ float at(std::int32_t id) const { return id < vocabulary ? logits[id] : -INFINITY; }
};

__device__ inline SampleRow row_of(const SampleInput& input, std::int32_t row) {
  const auto pieces = static_cast<std::int32_t>(num_logits_pieces(input.vocabulary));
  return {.logits = input.logits + row * input.vocabulary,
          .maxima = input.piece_maxima + std::int64_t{row} * pieces,
          .vocabulary = static_cast<std::int32_t>(input.vocabulary),
          .num_pieces = pieces,
          .log_sum_exp = input.log_sum_exp[row]};
}

// Calls visit(piece) for the pieces in [first, end) whose maximum is at least `least`, each by one warp of
// the block with all its lanes. A warp looks at kTurn maxima at once.
template <unsigned kTurn, class Visit>
__device__ inline void visit_pieces(const SampleRow& row, std::int32_t first, std::int32_t end, float least,
                                    Visit visit) {
  const unsigned lane = threadIdx.x % kWarp;
  const auto stride = static_cast<std::int32_t>(blockDim.x / kWarp * kTurn);
  for (std::int32_t base = first + static_cast<std::int32_t>(threadIdx.x / kWarp * kTurn); base < end;
       base += stride) {
    const std::int32_t mine = base + static_cast<std::int32_t>(lane);
    unsigned hits = __ballot_sync(kAllLanes, lane < kTurn && mine < end && row.maxima[mine] >= least);
    while (hits != 0) {
      visit(base + __ffs(static_cast<int>(hits)) - 1);
      hits &= hits - 1;
    }
  }
}

// Numbers in their order as integers, minus and plus zero alike: the order of the ranking, ties aside.
__device__ inline std::uint32_t key_of(float value) {
  const unsigned bits = __float_as_uint(__fadd_rn(value, 0.0f));
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float value_of(std::uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key);
}

// exp(x) for x <= 0, 0 below -708.8: the steps, and so the bits, of kernels/cpu/simd/softmax_weights.cc,
// which says where they come from.
__device__ inline double exp_of_negative(double x) {
  if (!(x > -709.0)) return 0.0;
  const Rounded shifted = Rounded{x} * Rounded{0x1.71547652b82fep0} + Rounded{0x1.8p52};
  const Rounded n = shifted - Rounded{0x1.8p52};
  const Rounded r = (Rounded{x} - n * Rounded{0x1.62e42fefa0000p-1}) - n * Rounded{0x1.cf79abc9e3b3ap-40};
  const Rounded r2 = r * r, r4 = r2 * r2;
  const Rounded low = ((Rounded{1.0} + r) + r2 * (Rounded{1.0 / 2} + r * Rounded{1.0 / 6})) +
                      r4 * ((Rounded{1.0 / 24} + r * Rounded{1.0 / 120}) +
                            r2 * (Rounded{1.0 / 720} + r * Rounded{1.0 / 5040}));
  const Rounded high = ((Rounded{1.0 / 40320} + r * Rounded{1.0 / 362880}) +
                        r2 * (Rounded{1.0 / 3628800} + r * Rounded{1.0 / 39916800})) +
                       r4 * Rounded{1.0 / 479001600};
  const double power = __longlong_as_double((__double_as_longlong(shifted.value) + 1023) << 52);
  return ((low + r4 * r4 * high) * Rounded{power}).value;
}

// Of a token in a draw: in [0, 1], and 1 for the best.
__device__ inline double weight_of(float logit, float best, double inverse_temperature) {
  return exp_of_negative(
      __dmul_rn(__dadd_rn(static_cast<double>(logit), -static_cast<double>(best)), inverse_temperature));
}

__device__ inline double warp_sum(double value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, static_cast<int>(distance));
  }
  return value;
}

}  // namespace octavo::kernels::cuda
