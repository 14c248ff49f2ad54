#include <cstring>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

// Of blocks or states.
void copy_between(const std::byte* sources, std::byte* targets, std::int64_t item_bytes,
                  std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    std::memcpy(targets + copy.target * item_bytes, sources + copy.source * item_bytes,
                static_cast<std::size_t>(item_bytes));
  }
}

}  // namespace

void ReferenceBackend::copy_blocks(KvCache& kv, std::span<const BlockCopy> copies) {
  const auto& cache = static_cast<const ReferenceKvCache&>(kv);
  copy_between(cache.data(), cache.data(), kv.layout().block_bytes(), copies);
}

void ReferenceBackend::swap_out(const KvCache& device, HostKvCache& host, std::span<const BlockCopy> copies) {
  copy_between(static_cast<const ReferenceKvCache&>(device).data(),
               static_cast<const ReferenceHostKvCache&>(host).data(), host.layout().block_bytes(), copies);
}

void ReferenceBackend::swap_in(const HostKvCache& host, KvCache& device, std::span<const BlockCopy> copies) {
  copy_between(static_cast<const ReferenceHostKvCache&>(host).data(),
               static_cast<const ReferenceKvCache&>(device).data(), host.layout().block_bytes(), copies);
}

void ReferenceBackend::clear_states(StateCache& states, std::span<const std::int32_t> cleared) {
  const std::int64_t bytes = states.layout().state_bytes();
  for (const std::int32_t state : cleared) {
    std::memset(static_cast<const ReferenceStateCache&>(states).data() + state * bytes, 0,
                static_cast<std::size_t>(bytes));
  }
}

void ReferenceBackend::copy_states(StateCache& states, std::span<const BlockCopy> copies) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  copy_between(cache.data(), cache.data(), states.layout().state_bytes(), copies);
}

void ReferenceBackend::swap_states_out(const StateCache& device, HostStateCache& host,
                                       std::span<const BlockCopy> copies) {
  copy_between(static_cast<const ReferenceStateCache&>(device).data(),
               static_cast<const ReferenceHostStateCache&>(host).data(), host.layout().state_bytes(), copies);
}

void ReferenceBackend::swap_states_in(const HostStateCache& host, StateCache& device,
                                      std::span<const BlockCopy> copies) {
  copy_between(static_cast<const ReferenceHostStateCache&>(host).data(),
               static_cast<const ReferenceStateCache&>(device).data(), host.layout().state_bytes(), copies);
}

}  // namespace octavo::kernels::reference
