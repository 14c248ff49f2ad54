#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/stored.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// target[i * stride] = words[i]
template <class Word>
OCTAVO_INLINE void spread(const Word* words, int count, Word* target, std::int64_t stride) {
  for (int i = 0; i < count; ++i) target[i * stride] = words[i];
}

// target[i * stride] = source[i], rounded.
template <class Stored>
void write_rounded(const float* source, std::int32_t size, typename Stored::Word* target,
                   std::int64_t stride) {
  for (std::int32_t i = 0; i < size; i += kLanes) {
    const int count = size - i < kLanes ? size - i : kLanes;
    alignas(64) typename Stored::Word words[kLanes];
    Stored::write(words, count == kLanes ? load(source + i) : load_first(source + i, count));
    spread(words, count, target + i * stride, stride);
  }
}

float squared_error(const float* source, std::int32_t size, float scale) {
  const F32x16 inverse = set1(1.0f / scale), magic = set1(0x1.8p23f);  // adding it rounds to an integer
  F32x16 sum = zero();
  for (std::int32_t i = 0; i < size; i += kLanes) {
    const F32x16 values = load_first(source + i, size - i < kLanes ? size - i : kLanes);
    const F32x16 integers = sub(fma(values, inverse, magic), magic);
    const F32x16 error = fma(integers, set1(-scale), values);
    sum = fma(error, error, sum);
  }
  return horizontal_sum(sum);
}

// kernels/kv_layout.h, KvType::kInt8.
float best_int8_scale(const float* source, std::int32_t size) {
  constexpr int kCandidates = 8;
  const float smallest = int8_scale(source, size);
  if (!(smallest > 0.0f)) return smallest;
  float best = smallest, least = squared_error(source, size, smallest);
  for (int c = 1; c < kCandidates; ++c) {
    const float scale = smallest * (1.0f + static_cast<float>(c) / 128.0f);
    const float error = squared_error(source, size, scale);
    if (!(error < least)) continue;
    least = error;
    best = scale;
  }
  return best;
}

// The same with one scale for all.
void write_scaled(const float* source, std::int32_t size, std::int8_t* target, std::int64_t stride,
                  float* scale) {
  *scale = best_int8_scale(source, size);
  for (std::int32_t i = 0; i < size; i += kLanes) {
    const int count = size - i < kLanes ? size - i : kLanes;
    std::int8_t words[kLanes];
    round_to_int8(source + i, count, *scale, words);
    spread(words, count, target + i * stride, stride);
  }
}

}  // namespace

void write_kv(const float* key, const float* value, const KvSlot& slot) {
  with_stored(slot.type, [&](auto stored) {
    using Stored = decltype(stored);
    using Word = typename Stored::Word;
    auto* const key_target = static_cast<Word*>(slot.key);
    auto* const value_target = static_cast<Word*>(slot.value);
    if constexpr (Stored::kHasScales) {
      write_scaled(key, slot.head_dim, key_target, slot.key_stride, slot.key_scale);
      if (value_target != nullptr) write_scaled(value, slot.head_dim, value_target, 1, slot.value_scale);
    } else {
      write_rounded<Stored>(key, slot.head_dim, key_target, slot.key_stride);
      if (value_target != nullptr) write_rounded<Stored>(value, slot.head_dim, value_target, 1);
    }
  });
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
