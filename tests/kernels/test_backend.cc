#include "tests/kernels/test_backend.h"

#include <cstring>

namespace octavo::kernels::testing {

void TestBackend::read(void* target, const void* source, std::size_t num_bytes) const {
  if (num_bytes > 0) std::memcpy(target, source, num_bytes);
}

void TestBackend::write(void* target, const void* source, std::size_t num_bytes) const {
  if (num_bytes > 0) std::memcpy(target, source, num_bytes);
}

std::byte* TestBackend::pool(KvCache& kv) const { return testing::pool_bytes(*backend_, kv); }
std::byte* TestBackend::pool(HostKvCache& kv) const { return testing::pool_bytes(*backend_, kv); }

std::unique_ptr<KvCache> TestBackend::cache_with(const PagedProblem& problem) const {
  std::unique_ptr<KvCache> kv = backend_->allocate_kv_cache(problem.layout, problem.num_blocks).value();
  write(pool(*kv), problem.pool.data(), problem.pool.size());
  return kv;
}

std::vector<std::byte> TestBackend::pool_bytes(KvCache& kv) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kv.num_blocks() * kv.layout().block_bytes()));
  read(bytes.data(), pool(kv), bytes.size());
  return bytes;
}

}  // namespace octavo::kernels::testing
