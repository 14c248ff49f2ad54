#include "kernels/cpu/simd/lanes.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// taps[i][channel] = weights[channel][i]. A width that the compiler knows becomes shuffles: with one row,
// most of the time goes here.
template <int kWidth>
OCTAVO_INLINE void arrange_taps(const float* weights, std::int64_t count, float* taps) {
  for (std::int64_t channel = 0; channel < count; ++channel) {
    for (int i = 0; i < kWidth; ++i) taps[i * count + channel] = weights[channel * kWidth + i];
  }
}

void arrange_any_taps(const float* weights, std::int32_t width, std::int64_t count, float* taps) {
  if (width == 3) return arrange_taps<3>(weights, count, taps);
  if (width == 4) return arrange_taps<4>(weights, count, taps);
  for (std::int32_t i = 0; i < width; ++i) {
    for (std::int64_t channel = 0; channel < count; ++channel)
      taps[i * count + channel] = weights[channel * width + i];
  }
}

// One row's inputs become sums; the history moves on, so that the next row finds its inputs at the same
// place.
template <class Lanes>
OCTAVO_INLINE void convolve_lanes(const ChannelConvolution& job, const float* taps, float* row,
                                  std::int64_t first, Lanes lanes) {
  F32x16 sum = job.bias == nullptr ? zero() : lanes.load(job.bias + first);
  const F32x16 newest = lanes.load(row + first);
  float* old = job.history + first;
  taps += first;
  for (std::int32_t i = 1; i < job.width; ++i, old += job.history_stride, taps += job.count) {
    sum = fma(lanes.load(taps), lanes.load(old), sum);
    lanes.store(old, i + 1 < job.width ? lanes.load(old + job.history_stride) : newest);
  }
  sum = fma(lanes.load(taps), newest, sum);
  lanes.store(row + first, job.applies_silu ? silu_of(sum) : sum);
}

}  // namespace

void convolve(const ChannelConvolution& job, float* scratch) {
  arrange_any_taps(job.weights, job.width, job.count, scratch);
  for (std::int64_t i = 0; i < job.num_rows; ++i) {
    float* const row = job.rows + i * job.row_stride;
    std::int64_t first = 0;
    for (; first + kLanes <= job.count; first += kLanes) convolve_lanes(job, scratch, row, first, AllLanes{});
    if (first == job.count) continue;
    convolve_lanes(job, scratch, row, first, FirstLanes{static_cast<int>(job.count - first)});
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
