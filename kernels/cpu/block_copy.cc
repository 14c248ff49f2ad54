// One parallel loop for all blocks of a call, cut into pieces so that threads share even a single large
// block.
#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::move_blocks(PoolBytes sources, PoolBytes targets, std::int64_t block_bytes,
                             std::span<const BlockCopy> copies) {
  constexpr std::int64_t kPiece = std::int64_t{128} << 10;  // bytes
  for (const BlockCopy& copy : copies) {
    OCTAVO_CHECK(copy.source >= 0 && copy.source < sources.num_blocks && copy.target >= 0 &&
                     copy.target < targets.num_blocks,
                 "copy of block %d of %d to %d of %d", copy.source, sources.num_blocks, copy.target,
                 targets.num_blocks);
  }
  const std::int64_t pieces = (block_bytes + kPiece - 1) / kPiece;
  pool_->parallel_for(static_cast<std::int64_t>(copies.size()) * pieces,
                      [&](std::int64_t item, std::int32_t) {
                        const BlockCopy& copy = copies[static_cast<std::size_t>(item / pieces)];
                        const std::int64_t begin = item % pieces * kPiece;
                        std::memcpy(targets.start + copy.target * block_bytes + begin,
                                    sources.start + copy.source * block_bytes + begin,
                                    static_cast<std::size_t>(std::min(kPiece, block_bytes - begin)));
                      });
}

void CpuBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  const PoolBytes pool{static_cast<CpuKvCache&>(kv).data(), kv.num_blocks()};
  move_blocks(pool, pool, kv.layout().block_bytes(), copies);
}

void CpuBackend::swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) {
  move_blocks({static_cast<const CpuKvCache&>(device).data(), device.num_blocks()},
              {static_cast<CpuHostKvCache&>(host).data(), host.num_blocks()}, host.layout().block_bytes(),
              copies);
}

void CpuBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  move_blocks({static_cast<const CpuHostKvCache&>(host).data(), host.num_blocks()},
              {static_cast<CpuKvCache&>(device).data(), device.num_blocks()}, host.layout().block_bytes(),
              copies);
}

}  // namespace octavo::kernels::cpu
