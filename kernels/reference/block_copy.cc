#include <cstring>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  auto& cache = static_cast<ReferenceKvCache&>(kv);
  const std::int64_t block_bytes = cache.layout().block_bytes();
  for (const BlockCopy& copy : copies) {
    std::memcpy(cache.data() + copy.target * block_bytes, cache.data() + copy.source * block_bytes,
                static_cast<std::size_t>(block_bytes));
  }
}

}  // namespace octavo::kernels::reference
