#include "kernels/reference/reference_backend.h"

#include <new>
#include <string>
#include <utility>

#include "kernels/pool_size.h"

namespace octavo::kernels::reference {
namespace {

constexpr std::size_t kAlignment = 64;

struct AlignedDelete {
  void operator()(float* data) const { ::operator delete[](data, std::align_val_t(kAlignment)); }
};

class ReferenceBuffer final : public Buffer {
 public:
  ReferenceBuffer(std::unique_ptr<float[], AlignedDelete> memory, std::int64_t size)
      : Buffer(memory.get(), size), memory_(std::move(memory)) {}

 private:
  std::unique_ptr<float[], AlignedDelete> memory_;
};

Error out_of_memory(const char* purpose, std::int64_t num_bytes) {
  return Error{ErrorCode::kOutOfMemory, std::string(purpose) + " needs " + std::to_string(num_bytes) +
                                            " bytes, which the system refused; choose a smaller size"};
}

Result<std::unique_ptr<std::byte[]>> allocate_pool(const Result<std::int64_t>& size, const char* purpose) {
  OCTAVO_TRY(const std::int64_t num_bytes, size);
  std::unique_ptr<std::byte[]> bytes(new (std::nothrow) std::byte[static_cast<std::size_t>(num_bytes)]);
  if (bytes == nullptr) return out_of_memory(purpose, num_bytes);
  return bytes;
}

}  // namespace

std::unique_ptr<Backend> create_reference_backend(Activation activation) {
  return std::make_unique<ReferenceBackend>(activation);
}

Result<std::unique_ptr<Matrix>> ReferenceBackend::prepare_matrix(const MatrixSource& source) {
  try {
    return std::unique_ptr<Matrix>(std::make_unique<ReferenceMatrix>(source, activation_));
  } catch (const std::bad_alloc&) {
    return out_of_memory("expanding a matrix", source.rows * source.columns * std::int64_t{sizeof(float)});
  }
}

Result<std::unique_ptr<KvCache>> ReferenceBackend::allocate_kv_cache(const KvLayout& layout,
                                                                     std::int32_t num_blocks) {
  OCTAVO_TRY(auto bytes, allocate_pool(kv_pool_bytes(layout, num_blocks), "the KV pool"));
  return std::unique_ptr<KvCache>(std::make_unique<ReferenceKvCache>(layout, num_blocks, std::move(bytes)));
}

Result<std::unique_ptr<HostKvCache>> ReferenceBackend::allocate_host_kv_cache(const KvLayout& layout,
                                                                              std::int32_t num_blocks) {
  OCTAVO_TRY(auto bytes, allocate_pool(kv_pool_bytes(layout, num_blocks), "the host pool"));
  return std::unique_ptr<HostKvCache>(
      std::make_unique<ReferenceHostKvCache>(layout, num_blocks, std::move(bytes)));
}

Result<std::unique_ptr<StateCache>> ReferenceBackend::allocate_state_cache(const StateLayout& layout,
                                                                           std::int32_t num_states) {
  OCTAVO_TRY(const std::int64_t state_bytes, state_pool_bytes(layout, num_states));
  OCTAVO_TRY(auto bytes, allocate_pool(state_bytes + layout.draft_bytes(), "the pool of states"));
  return std::unique_ptr<StateCache>(
      std::make_unique<ReferenceStateCache>(layout, num_states, std::move(bytes)));
}

Result<std::unique_ptr<HostStateCache>> ReferenceBackend::allocate_host_state_cache(const StateLayout& layout,
                                                                                    std::int32_t num_states) {
  OCTAVO_TRY(auto bytes, allocate_pool(state_pool_bytes(layout, num_states), "the host pool of states"));
  return std::unique_ptr<HostStateCache>(
      std::make_unique<ReferenceHostStateCache>(layout, num_states, std::move(bytes)));
}

Result<std::unique_ptr<Buffer>> ReferenceBackend::allocate_buffer(std::int64_t num_floats) {
  std::int64_t num_bytes;
  if (num_floats < 0 || __builtin_mul_overflow(num_floats, std::int64_t{sizeof(float)}, &num_bytes)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a buffer of " + std::to_string(num_floats) + " floats is impossible"};
  }
  void* memory =
      ::operator new[](static_cast<std::size_t>(num_bytes), std::align_val_t(kAlignment), std::nothrow);
  if (memory == nullptr) return out_of_memory("working memory", num_bytes);
  std::unique_ptr<float[], AlignedDelete> floats(static_cast<float*>(memory));
  return std::unique_ptr<Buffer>(std::make_unique<ReferenceBuffer>(std::move(floats), num_floats));
}

}  // namespace octavo::kernels::reference
