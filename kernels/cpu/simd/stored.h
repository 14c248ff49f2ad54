// How each KV type is read and written, sixteen elements at a time.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/kv_layout.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

struct StoredF32 {
  using Word = float;
  OCTAVO_INLINE F32x16 read(const Word* source) { return load(source); }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store(target, values); }
};

struct StoredF16 {
  using Word = std::uint16_t;
  OCTAVO_INLINE F32x16 read(const Word* source) { return load_f16(source); }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_f16(target, values); }
};

struct StoredBf16 {
  using Word = std::uint16_t;
  OCTAVO_INLINE F32x16 read(const Word* source) { return load_bf16(source); }
  OCTAVO_INLINE void write(Word* target, F32x16 values) { store_bf16(target, values); }
};

// Calls function(Stored{}) with the reader of `type`.
template <class Function>
OCTAVO_INLINE void with_stored(KvType type, const Function& function) {
  switch (type) {
    case KvType::kF32: function(StoredF32{}); return;
    case KvType::kF16: function(StoredF16{}); return;
    case KvType::kBf16: function(StoredBf16{}); return;
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
