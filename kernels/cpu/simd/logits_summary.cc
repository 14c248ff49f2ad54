#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Group i of `size` values; lanes past the end are -infinity, whose exponential is an exact zero.
OCTAVO_INLINE F32x16 load_group(const float* values, std::int64_t i, std::int64_t size) {
  if (i + kLanes <= size) return load(values + i);
  const int count = static_cast<int>(size - i);
  return select_first(count, load_first(values + i, count), set1(kMinusInfinity));
}

// Where nothing is possible, nothing is subtracted: -infinity - -infinity would be NaN.
OCTAVO_INLINE F32x16 shift_of(float largest) { return set1(largest == kMinusInfinity ? 0.0f : largest); }

}  // namespace

void summarise_logits(const float* logits, std::int64_t size, float* piece_maxima, float* max_out,
                      float* sum_out) {
  F32x16 largest = set1(kMinusInfinity);
  for (std::int64_t first = 0; first < size; first += kPieceEntries) {
    F32x16 in_piece = set1(kMinusInfinity);
    for (std::int64_t i = first; i < first + kPieceEntries && i < size; i += kLanes)
      in_piece = max(load_group(logits, i, size), in_piece);
    piece_maxima[first / kPieceEntries] = horizontal_max(in_piece);
    largest = max(in_piece, largest);
  }
  *max_out = horizontal_max(largest);
  // A NaN, which max passes over, still shows in the sum.
  const F32x16 shift = shift_of(*max_out);
  F32x16 sum = zero();
  for (std::int64_t i = 0; i < size; i += kLanes)
    sum = add(sum, exp(sub(load_group(logits, i, size), shift)));
  *sum_out = horizontal_sum(sum);
}

void merge_exp_sums(const float* maxima, const float* sums, std::int64_t count, float* max_out,
                    float* sum_out) {
  F32x16 largest = set1(kMinusInfinity);
  for (std::int64_t i = 0; i < count; i += kLanes) largest = max(load_group(maxima, i, count), largest);
  const float all = horizontal_max(largest);
  const F32x16 shift = shift_of(all);
  F32x16 sum = zero();
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const int left = count - i < kLanes ? static_cast<int>(count - i) : kLanes;
    sum = fma(load_first(sums + i, left), exp(sub(load_group(maxima, i, count), shift)), sum);
  }
  *max_out = all == kMinusInfinity ? 0.0f : all;
  *sum_out = horizontal_sum(sum);
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
