#include "kernels/cpu/simd/lanes.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// The weights of up to sixteen channels, one vector for each token that a sum takes.
OCTAVO_INLINE void arrange_taps(const float* weights, std::int32_t width, int count, float* taps) {
  for (std::int32_t i = 0; i < width; ++i) {
    for (int lane = 0; lane < kLanes; ++lane)
      taps[i * kLanes + lane] = lane < count ? weights[std::int64_t{lane} * width + i] : 0.0f;
  }
}

// The history moves on with each row, so that every row finds its inputs at the same place.
template <class Lanes>
OCTAVO_INLINE void convolve_lanes(const ChannelConvolution& job, std::int64_t first, const float* taps,
                                  Lanes lanes) {
  const std::int32_t num_old = job.width - 1;
  const F32x16 bias = job.bias == nullptr ? zero() : lanes.load(job.bias + first);
  for (std::int64_t row = 0; row < job.num_rows; ++row) {
    float* const place = job.rows + row * job.row_stride + first;
    float* old = job.history + first;
    F32x16 sum = bias;
    for (std::int32_t i = 0; i < num_old; ++i, old += job.history_stride) {
      const F32x16 input = lanes.load(old);
      if (i > 0) lanes.store(old - job.history_stride, input);
      sum = fma(load(taps + i * kLanes), input, sum);
    }
    const F32x16 input = lanes.load(place);
    if (num_old > 0) lanes.store(old - job.history_stride, input);
    sum = fma(load(taps + num_old * kLanes), input, sum);
    lanes.store(place, job.applies_silu ? silu_of(sum) : sum);
  }
}

}  // namespace

void convolve(const ChannelConvolution& job, float* scratch) {
  for (std::int64_t first = 0; first < job.count; first += kLanes) {
    const int count = static_cast<int>(job.count - first < kLanes ? job.count - first : kLanes);
    arrange_taps(job.weights + first * job.width, job.width, count, scratch);
    if (count == kLanes) {
      convolve_lanes(job, first, scratch, AllLanes{});
    } else {
      convolve_lanes(job, first, scratch, FirstLanes{count});
    }
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
