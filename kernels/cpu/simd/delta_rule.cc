// Values stand in lanes, some vectors of them at a time: S stays in the first-level cache while all tokens
// pass by. Writing a token and reading for the next are one pass over S, which in between stands decayed.
#include "kernels/cpu/simd/lanes.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr int kTileVectors = 4;

// S decays, and sums = S^T key.
template <int kVectors, class Lanes>
OCTAVO_INLINE void decay_and_read(const DeltaRuleJob& job, float* state, Lanes lanes, F32x16* sums) {
  const F32x16 decay = set1(job.decays[0]);
  OCTAVO_UNROLL
  for (int v = 0; v < kVectors; ++v) sums[v] = zero();
  for (std::int32_t k = 0; k < job.key_dim; ++k, state += job.value_dim) {
    const F32x16 key = set1(job.keys[k]);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 decayed = mul(lanes.load(state + v * kLanes), decay);
      sums[v] = fma(decayed, key, sums[v]);
      lanes.store(state + v * kLanes, decayed);
    }
  }
}

// S takes what the token writes, outputs = S^T query. Unless it is the last: S decays for the next token, and
// sums = S^T (its key).
template <int kVectors, bool kIsLast, class Lanes>
OCTAVO_INLINE void write_and_read(const DeltaRuleJob& job, std::int64_t row, float* state, Lanes lanes,
                                  const F32x16* errors, F32x16* outputs, F32x16* sums) {
  const float* const keys = job.keys + row * job.row_stride;
  const float* const queries = job.queries + row * job.row_stride;
  const float* const next_keys = keys + (kIsLast ? 0 : job.row_stride);
  const F32x16 next_decay = kIsLast ? zero() : set1(job.decays[(row + 1) * job.gate_stride]);
  OCTAVO_UNROLL
  for (int v = 0; v < kVectors; ++v) outputs[v] = sums[v] = zero();
  for (std::int32_t k = 0; k < job.key_dim; ++k, state += job.value_dim) {
    const F32x16 key = set1(keys[k]), query = set1(queries[k]), next_key = set1(next_keys[k]);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      F32x16 s = fma(key, errors[v], lanes.load(state + v * kLanes));
      outputs[v] = fma(s, query, outputs[v]);
      if constexpr (!kIsLast) {
        s = mul(s, next_decay);
        sums[v] = fma(s, next_key, sums[v]);
      }
      lanes.store(state + v * kLanes, s);
    }
  }
}

// All tokens of some neighbouring values.
template <int kVectors, class Lanes>
OCTAVO_INLINE void run_tile(const DeltaRuleJob& job, std::int32_t first, Lanes lanes) {
  float* const state = job.state + first;
  F32x16 sums[kVectors], errors[kVectors], outputs[kVectors];
  decay_and_read<kVectors>(job, state, lanes, sums);
  for (std::int64_t row = 0; row < job.num_rows; ++row) {
    float* const values = job.values + row * job.row_stride + first;
    const F32x16 beta = set1(job.betas[row * job.gate_stride]);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) errors[v] = mul(beta, sub(lanes.load(values + v * kLanes), sums[v]));
    if (row + 1 < job.num_rows) {
      write_and_read<kVectors, false>(job, row, state, lanes, errors, outputs, sums);
    } else {
      write_and_read<kVectors, true>(job, row, state, lanes, errors, outputs, sums);
    }
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) lanes.store(values + v * kLanes, outputs[v]);
  }
}

}  // namespace

void delta_rule(const DeltaRuleJob& job) {
  constexpr std::int32_t kTile = kTileVectors * kLanes;
  std::int32_t first = 0;
  for (; first + kTile <= job.value_dim; first += kTile) run_tile<kTileVectors>(job, first, AllLanes{});
  for (; first + kLanes <= job.value_dim; first += kLanes) run_tile<1>(job, first, AllLanes{});
  if (first < job.value_dim) run_tile<1>(job, first, FirstLanes{job.value_dim - first});
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
