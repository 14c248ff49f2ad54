#include "kernels/cpu/simd/kernel_table.h"

#include "engine/base/check.h"

namespace octavo::kernels::cpu {

#if defined(OCTAVO_HAS_512_BITS)
namespace avx512 {
extern const KernelTable kKernelTable;
}
#endif
#if defined(OCTAVO_HAS_256_BITS)
namespace avx2 {
extern const KernelTable kKernelTable;
}
#endif
namespace portable {
extern const KernelTable kKernelTable;
}

const KernelTable& kernel_table(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_512_BITS)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512Vnni:
    case InstructionSet::kAvx512: return avx512::kKernelTable;
#endif
#if defined(OCTAVO_HAS_256_BITS)
    case InstructionSet::kAvxVnni:
    case InstructionSet::kAvx2: return avx2::kKernelTable;
#endif
    case InstructionSet::kPortable: return portable::kKernelTable;
    default: break;
  }
  OCTAVO_CHECK(false, "instruction set %d is not in this build", static_cast<int>(isa));
  return portable::kKernelTable;
}

}  // namespace octavo::kernels::cpu
