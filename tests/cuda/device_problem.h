// Steps for the CUDA backend on the emulated device: what tests/kernels/paged_problem.h makes up, taken to
// the device and back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "tests/cuda/violations.h"
#include "tests/kernels/operation_claims.h"

namespace octavo::kernels::cuda {

inline StepShape step_shape(const testing::Shape& shape, std::int32_t vocabulary = 512) {
  return {.num_rows = 96,
          .num_logits_rows = 8,
          .max_context_len = 1024,
          .max_num_sequences = 32,
          .block_size = 1,
          .embedding_length = shape.embedding_length,
          .feed_forward_length = shape.feed_forward_length,
          .num_heads = shape.attention.num_heads,
          .num_kv_heads = shape.attention.num_kv_heads,
          .head_dim = shape.attention.head_dim,
          .vocabulary_size = vocabulary,
          .has_quantised_weights = true,
          .has_unquantised_weights = true,
          .has_post_norms = true,
          .has_local_rotations = true};
}

inline std::unique_ptr<Backend> emulated_backend(const testing::Shape& shape, const CudaOptions& options = {},
                                                 std::int32_t num_rows = 96) {
  auto backend = create_cuda_backend(options, testing::reference_backend());
  EXPECT_TRUE(backend) << (backend ? "" : backend.error().message);
  StepShape step = step_shape(shape);
  step.num_rows = num_rows;
  const auto reserved = (*backend)->reserve_step(step);
  EXPECT_TRUE(reserved) << (reserved ? "" : reserved.error().message);
  return *std::move(backend);
}

class EmulatedBackend final : public testing::TestBackend {
 public:
  explicit EmulatedBackend(const testing::BackendNeeds& needs)
      : TestBackend(emulated_backend(needs.shape,
                                     {.activation = needs.activation, .deterministic = needs.deterministic},
                                     needs.num_rows)) {}

  void read(void* target, const void* source, std::size_t num_bytes) const override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(target, source, num_bytes, cudaMemcpyDefault), cudaSuccess);
  }
  void write(void* target, const void* source, std::size_t num_bytes) const override {
    EXPECT_TRUE(upload_to(target, source, static_cast<std::int64_t>(num_bytes)));
  }
  std::byte* pool(KvCache& kv) const override { return static_cast<CudaKvCache&>(kv).data(); }
  std::byte* pool(HostKvCache& kv) const override { return static_cast<CudaHostKvCache&>(kv).data(); }
};

// Rows of the device, read without the backend.
class Rows : public testing::Rows {
 public:
  using testing::Rows::Rows;
  std::vector<float> read() const {
    std::vector<float> values(span().size());
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), span().data(), span().size_bytes(), cudaMemcpyDefault), cudaSuccess);
    return values;
  }
};

inline std::unique_ptr<KvCache> device_pool(Backend& backend, const testing::PagedProblem& problem) {
  auto kv = backend.allocate_kv_cache(problem.layout, problem.num_blocks).value();
  EXPECT_TRUE(upload_to(static_cast<CudaKvCache&>(*kv).data(), problem.pool.data(),
                        static_cast<std::int64_t>(problem.pool.size())));
  return kv;
}

inline std::vector<std::byte> read_pool(const KvCache& kv) {
  const std::int64_t bytes = kv.num_blocks() * kv.layout().block_bytes();
  std::vector<std::byte> pool(static_cast<std::size_t>(bytes));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(
      cudaMemcpy(pool.data(), static_cast<const CudaKvCache&>(kv).data(), pool.size(), cudaMemcpyDefault),
      cudaSuccess);
  return pool;
}

}  // namespace octavo::kernels::cuda
