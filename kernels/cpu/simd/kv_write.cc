#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/stored.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// target[i * stride] = source[i], rounded.
template <class Stored>
void write_rounded(const float* source, std::int32_t size, typename Stored::Word* target,
                   std::int64_t stride) {
  for (std::int32_t i = 0; i < size; i += kLanes) {
    const int count = size - i < kLanes ? size - i : kLanes;
    alignas(64) typename Stored::Word words[kLanes];
    Stored::write(words, count == kLanes ? load(source + i) : load_first(source + i, count));
    for (int lane = 0; lane < count; ++lane) target[(i + lane) * stride] = words[lane];
  }
}

}  // namespace

void write_kv(const float* key, const float* value, const KvSlot& slot) {
  with_stored(slot.type, [&](auto stored) {
    using Stored = decltype(stored);
    using Word = typename Stored::Word;
    write_rounded<Stored>(key, slot.head_dim, static_cast<Word*>(slot.key), slot.key_stride);
    write_rounded<Stored>(value, slot.head_dim, static_cast<Word*>(slot.value), 1);
  });
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
