// Sixteen neighbouring numbers, or the fewer that are left at the end of a row.
#pragma once

#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

struct AllLanes {
  OCTAVO_INLINE_MEMBER F32x16 load(const float* source) const { return OCTAVO_ISA::load(source); }
  OCTAVO_INLINE_MEMBER void store(float* target, F32x16 a) const { OCTAVO_ISA::store(target, a); }
};

// The others are zero, and their memory is not touched.
struct FirstLanes {
  int count;
  OCTAVO_INLINE_MEMBER F32x16 load(const float* source) const { return load_first(source, count); }
  OCTAVO_INLINE_MEMBER void store(float* target, F32x16 a) const { store_first(target, a, count); }
};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
