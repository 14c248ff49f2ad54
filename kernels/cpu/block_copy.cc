// One parallel loop for all blocks or states of a call, cut into pieces so that threads share even a single
// large one.
#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

namespace {

constexpr std::int64_t kPiece = std::int64_t{128} << 10;  // bytes

std::int64_t pieces_of(std::int64_t item_bytes) { return (item_bytes + kPiece - 1) / kPiece; }

}  // namespace

void CpuBackend::move_items(PoolBytes sources, PoolBytes targets, std::int64_t item_bytes,
                            std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    OCTAVO_CHECK(copy.source >= 0 && copy.source < sources.num_items && copy.target >= 0 &&
                     copy.target < targets.num_items,
                 "copy of item %d of %d to %d of %d", copy.source, sources.num_items, copy.target,
                 targets.num_items);
  }
  const std::int64_t pieces = pieces_of(item_bytes);
  pool_->parallel_for(static_cast<std::int64_t>(copies.size()) * pieces,
                      [&](std::int64_t item, std::int32_t) {
                        const BlockCopy& copy = copies[static_cast<std::size_t>(item / pieces)];
                        const std::int64_t begin = item % pieces * kPiece;
                        std::memcpy(targets.start + copy.target * item_bytes + begin,
                                    sources.start + copy.source * item_bytes + begin,
                                    static_cast<std::size_t>(std::min(kPiece, item_bytes - begin)));
                      });
}

void CpuBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  const PoolBytes pool{static_cast<CpuKvCache&>(kv).data(), kv.num_blocks()};
  move_items(pool, pool, kv.layout().block_bytes(), copies);
}

void CpuBackend::swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) {
  move_items({static_cast<const CpuKvCache&>(device).data(), device.num_blocks()},
             {static_cast<CpuHostKvCache&>(host).data(), host.num_blocks()}, host.layout().block_bytes(),
             copies);
}

void CpuBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  move_items({static_cast<const CpuHostKvCache&>(host).data(), host.num_blocks()},
             {static_cast<CpuKvCache&>(device).data(), device.num_blocks()}, host.layout().block_bytes(),
             copies);
}

void CpuBackend::clear_states(StateCache& states, std::span<const std::int32_t> cleared) {
  for (const std::int32_t state : cleared) {
    OCTAVO_CHECK(state >= 0 && state < states.num_states(), "state %d of %d", state, states.num_states());
  }
  std::byte* const start = static_cast<const CpuStateCache&>(states).data();
  const std::int64_t bytes = states.layout().state_bytes(), pieces = pieces_of(bytes);
  pool_->parallel_for(static_cast<std::int64_t>(cleared.size()) * pieces,
                      [&](std::int64_t item, std::int32_t) {
                        const std::int64_t begin = item % pieces * kPiece;
                        std::memset(start + cleared[static_cast<std::size_t>(item / pieces)] * bytes + begin,
                                    0, static_cast<std::size_t>(std::min(kPiece, bytes - begin)));
                      });
}

void CpuBackend::copy_states(StateCache& states, std::span<const BlockCopy> copies) {
  const PoolBytes pool{static_cast<const CpuStateCache&>(states).data(), states.num_states()};
  move_items(pool, pool, states.layout().state_bytes(), copies);
}

void CpuBackend::swap_states_out(const StateCache& device, HostStateCache& host,
                                 std::span<const BlockCopy> copies) {
  move_items({static_cast<const CpuStateCache&>(device).data(), device.num_states()},
             {static_cast<const CpuHostStateCache&>(host).data(), host.num_states()},
             host.layout().state_bytes(), copies);
}

void CpuBackend::swap_states_in(const HostStateCache& host, StateCache& device,
                                std::span<const BlockCopy> copies) {
  move_items({static_cast<const CpuHostStateCache&>(host).data(), host.num_states()},
             {static_cast<const CpuStateCache&>(device).data(), device.num_states()},
             host.layout().state_bytes(), copies);
}

}  // namespace octavo::kernels::cpu
