#include <cstring>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

void copy_between(const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                  std::span<const BlockCopy> copies) {
  for (const BlockCopy& copy : copies) {
    std::memcpy(targets + copy.target * block_bytes, sources + copy.source * block_bytes,
                static_cast<std::size_t>(block_bytes));
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

}  // namespace octavo::kernels::reference
