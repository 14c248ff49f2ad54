// Columns of a head stand in lanes, some vectors of them at a time: S stays in the first-level cache while
// all tokens pass by.
#include "kernels/cpu/simd/lanes.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr int kTileVectors = 4;

// One token of some neighbouring columns: S decays and takes what the token writes; outputs = S^T C.
template <int kVectors, class Lanes>
OCTAVO_INLINE void update_tile(const StateSpaceJob& job, std::int64_t row, float* state, Lanes lanes,
                               const F32x16* inputs, F32x16* outputs) {
  const float* const writes = job.writes + row * job.row_stride;
  const float* const reads = job.reads + row * job.row_stride;
  const F32x16 decay = set1(job.decays[row * job.time_stride]);
  OCTAVO_UNROLL
  for (int v = 0; v < kVectors; ++v) outputs[v] = zero();
  for (std::int32_t n = 0; n < job.state_size; ++n, state += job.head_dim) {
    const F32x16 write = set1(writes[n]), read = set1(reads[n]);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 s = fma(write, inputs[v], mul(lanes.load(state + v * kLanes), decay));
      outputs[v] = fma(s, read, outputs[v]);
      lanes.store(state + v * kLanes, s);
    }
  }
}

template <int kVectors, class Lanes>
OCTAVO_INLINE void run_tile(const StateSpaceJob& job, std::int32_t first, Lanes lanes) {
  const F32x16 skip = set1(job.skip);
  F32x16 inputs[kVectors], outputs[kVectors];
  for (std::int64_t row = 0; row < job.num_rows; ++row) {
    float* const place = job.inputs + row * job.row_stride + first;
    const F32x16 time = set1(job.times[row * job.time_stride]);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) inputs[v] = mul(time, lanes.load(place + v * kLanes));
    update_tile<kVectors>(job, row, job.state + first, lanes, inputs, outputs);
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v)
      lanes.store(place + v * kLanes, fma(skip, lanes.load(place + v * kLanes), outputs[v]));
  }
}

}  // namespace

void state_space(const StateSpaceJob& job) {
  constexpr std::int32_t kTile = kTileVectors * kLanes;
  std::int32_t first = 0;
  for (; first + kTile <= job.head_dim; first += kTile) run_tile<kTileVectors>(job, first, AllLanes{});
  for (; first + kLanes <= job.head_dim; first += kLanes) run_tile<1>(job, first, AllLanes{});
  if (first < job.head_dim) run_tile<1>(job, first, FirstLanes{job.head_dim - first});
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
