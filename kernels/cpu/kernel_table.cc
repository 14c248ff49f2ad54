#include "kernels/cpu/simd/kernel_table.h"

#include "engine/base/check.h"

namespace octavo::kernels::cpu {

#if defined(OCTAVO_HAS_AVX512_VNNI)
namespace avx512_vnni {
extern const KernelTable kKernelTable;
}
#endif
#if defined(OCTAVO_HAS_AVX512)
namespace avx512 {
extern const KernelTable kKernelTable;
}
#endif
#if defined(OCTAVO_HAS_AVX_VNNI)
namespace avx_vnni {
extern const KernelTable kKernelTable;
}
#endif
#if defined(OCTAVO_HAS_AVX2)
namespace avx2 {
extern const KernelTable kKernelTable;
}
#endif
namespace portable {
extern const KernelTable kKernelTable;
}

const KernelTable& kernel_table(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAvx512Vnni: return avx512_vnni::kKernelTable;
#endif
#if defined(OCTAVO_HAS_AVX512)
    case InstructionSet::kAvx512: return avx512::kKernelTable;
#endif
#if defined(OCTAVO_HAS_AVX_VNNI)
    case InstructionSet::kAvxVnni: return avx_vnni::kKernelTable;
#endif
#if defined(OCTAVO_HAS_AVX2)
    case InstructionSet::kAvx2: return avx2::kKernelTable;
#endif
    case InstructionSet::kPortable: return portable::kKernelTable;
    default: break;
  }
  OCTAVO_CHECK(false, "instruction set %d is not in this build", static_cast<int>(isa));
  return portable::kKernelTable;
}

}  // namespace octavo::kernels::cpu
