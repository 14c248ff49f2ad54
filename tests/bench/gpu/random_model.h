// A Llama with random weights on the device, and its step through a Backend in the order of
// engine/model/transformer.cc.
//
// Ownership: a RandomModel owns weights and buffers, which any CudaBackend of the process can use, and
// outlives steps that were started. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"
#include "tests/bench/gpu/batch.h"
#include "tests/bench/gpu/measure.h"

namespace octavo::bench {

class RandomModel {
 public:
  // `most_rows`: of a step.
  static Result<std::unique_ptr<RandomModel>> create(Bench& bench, const ModelShape& shape,
                                                     kernels::TensorType type, std::int32_t most_rows);
  // Device memory that create() will take, about.
  static std::int64_t bytes(const ModelShape& shape, kernels::TensorType type);

  // Embedding and layers. `drawn_rows`: what draw() is given next; empty: it is not called.
  void forward(kernels::Backend& backend, const kernels::PagedBatch& batch, kernels::KvCache& kv,
               std::span<const std::int32_t> drawn_rows);
  // Records forward() for decode steps of the batch's shape: Backend::record_step.
  Result<void> record(kernels::Backend& backend, const kernels::PagedBatch& batch, kernels::KvCache& kv);
  // Then draw().
  Result<void> record_draws(kernels::Backend& backend);
  // The best token of each of these rows: the output head and greedy draws. REQUIRES: at most most_rows
  void draw(kernels::Backend& backend, std::span<const std::int32_t> rows);

  void reserve_draws(std::int32_t most_rows);
  // Of the newest draws: there is none from logits that no model would give.
  bool logits_are_finite() const;

  // Bytes of weights that a step reads: the layers' and the output head's.
  std::int64_t layer_bytes() const;
  std::int64_t head_bytes() const { return head_->memory_bytes(); }
  // Multiplications and additions of all products for one row.
  double layer_operations() const;
  double head_operations() const;
  const ModelShape& shape() const { return shape_; }

 private:
  using MatrixPointer = std::unique_ptr<kernels::cuda::DeviceMatrix>;
  struct Layer {
    MatrixPointer query, key, value, attention_output, gate, up, down;
  };
  struct Rows {
    kernels::cuda::DeviceMemory memory{};
    std::int64_t columns = 0;
    kernels::MatrixView first(std::int64_t rows) const {
      return {memory.as<float>(), rows, columns, columns};
    }
  };

  RandomModel(const ModelShape& shape, const kernels::AttentionShape& heads) : shape_(shape), heads_(heads) {}
  std::span<const float> norm() const {
    return {norm_.as<float>(), static_cast<std::size_t>(shape_.embedding_length)};
  }

  kernels::OutputHead output_head() const;
  void compute(kernels::Backend& backend, const kernels::PagedBatch& batch,
               std::span<const std::int32_t> token_ids, kernels::KvCache& kv);

  const ModelShape shape_;
  const kernels::AttentionShape heads_;
  std::vector<Layer> layers_;
  MatrixPointer embedding_;  // null: tied
  MatrixPointer head_;
  kernels::cuda::DeviceMemory norm_;
  Rows residual_, query_, attention_, hidden_;
  std::vector<std::int32_t> token_ids_;
  std::vector<kernels::TokenDraw> draws_;
  std::vector<kernels::DrawnToken> drawn_;
};

}  // namespace octavo::bench
