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
#include "tests/kernels/paged_problem.h"

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

inline std::unique_ptr<Backend> emulated_backend(const testing::Shape& shape,
                                                 const CudaOptions& options = {}) {
  auto backend = create_cuda_backend(options, testing::reference_backend());
  EXPECT_TRUE(backend) << (backend ? "" : backend.error().message);
  const auto reserved = (*backend)->reserve_step(step_shape(shape));
  EXPECT_TRUE(reserved) << (reserved ? "" : reserved.error().message);
  return *std::move(backend);
}

// Rows of floats in a backend's memory.
class Rows {
 public:
  Rows(Backend& backend, const std::vector<float>& values, std::int64_t columns)
      : buffer_(backend.prepare_vector(values).value()), columns_(columns) {}

  MatrixView view() const { return {buffer_->data(), buffer_->size() / columns_, columns_, columns_}; }
  std::span<const float> span() const {
    if (buffer_->size() == 0) return {};
    return {buffer_->data(), static_cast<std::size_t>(buffer_->size())};
  }
  std::vector<float> read() const {
    std::vector<float> values(static_cast<std::size_t>(buffer_->size()));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), buffer_->data(), values.size() * sizeof(float), cudaMemcpyDefault),
              cudaSuccess);
    return values;
  }

 private:
  std::unique_ptr<Buffer> buffer_;
  std::int64_t columns_;
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
