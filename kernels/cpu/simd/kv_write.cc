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

// The same with one scale for all.
void write_scaled(const float* source, std::int32_t size, std::int8_t* target, std::int64_t stride,
                  float* scale) {
  *scale = int8_scale(source, size);
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
      write_scaled(value, slot.head_dim, value_target, 1, slot.value_scale);
    } else {
      write_rounded<Stored>(key, slot.head_dim, key_target, slot.key_stride);
      write_rounded<Stored>(value, slot.head_dim, value_target, 1);
    }
  });
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
