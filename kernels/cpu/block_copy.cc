#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  constexpr std::int64_t kPiece = std::int64_t{128} << 10;  // bytes
  auto& cache = static_cast<CpuKvCache&>(kv);
  const std::int64_t block_bytes = cache.layout().block_bytes();
  const std::int64_t pieces = (block_bytes + kPiece - 1) / kPiece;
  for (const BlockCopy& copy : copies) {
    OCTAVO_CHECK(copy.source >= 0 && copy.source < kv.num_blocks() && copy.target >= 0 &&
                     copy.target < kv.num_blocks(),
                 "copy of block %d to %d of %d", copy.source, copy.target, kv.num_blocks());
  }
  pool_->parallel_for(static_cast<std::int64_t>(copies.size()) * pieces,
                      [&](std::int64_t item, std::int32_t) {
                        const BlockCopy& copy = copies[static_cast<std::size_t>(item / pieces)];
                        const std::int64_t begin = item % pieces * kPiece;
                        std::memcpy(cache.data() + copy.target * block_bytes + begin,
                                    cache.data() + copy.source * block_bytes + begin,
                                    static_cast<std::size_t>(std::min(kPiece, block_bytes - begin)));
                      });
}

}  // namespace octavo::kernels::cpu
