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

  // Embedding and layers.
  void forward(kernels::Backend& backend, const kernels::PagedBatch& batch, kernels::KvCache& kv);
  // The output head for these rows, as the sampler gets it. REQUIRES: at most most_logits_rows
  void logits(kernels::Backend& backend, std::span<const std::int32_t> rows);

  void reserve_logits(std::int32_t most_logits_rows);
  // Of the newest logits: what is not finite was computed from nothing that a model would hold.
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

  const ModelShape shape_;
  const kernels::AttentionShape heads_;
  std::vector<Layer> layers_;
  MatrixPointer embedding_;  // null: tied
  MatrixPointer head_;
  kernels::cuda::DeviceMemory norm_;
  Rows residual_, query_, attention_, hidden_;
  std::vector<std::int32_t> token_ids_;
  std::vector<float> logits_, sums_, maxima_;  // of the host
};

}  // namespace octavo::bench
