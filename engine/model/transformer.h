// The forward pass of a llama model: which operations, in which order, over which weights. All arithmetic is
// the backend's (kernels/backend.h).
//
// Touvron et al. 2023, arXiv:2302.13971: pre-normalised attention with rotated queries and keys, and a gated
// feed-forward layer, each added to the residual stream.
//
// Ownership: owns weights and activation buffers; the backend outlives it. Engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"
#include "kernels/backend.h"

namespace octavo::model {

class Transformer {
 public:
  // Allocates activations for steps of at most `max_num_tokens` rows.
  static Result<Transformer> create(const ModelConfig& config, Weights weights, kernels::Backend& backend,
                                    std::int32_t max_num_tokens);

  // What create() allocates beside the weights.
  static std::int64_t activation_bytes(const ModelConfig& config, std::int32_t max_num_tokens);
  std::int64_t activation_bytes() const;

  // Computes the rows of `batch` through all layers and writes their keys and values. The rows' last
  // activations stay until the next call.
  //   token_ids  [batch.num_tokens], below vocabulary_size; batch.rotations is filled in here
  void forward(kernels::PagedBatch batch, std::span<const std::int32_t> token_ids, kernels::KvCache& kv);

  // Of rows of the last forward().
  //   rows  indices below its num_tokens   out  [rows.size(), vocabulary_size]
  void logits(std::span<const std::int32_t> rows, kernels::MatrixView out, kernels::LogitsSummary summary);

  const Weights& weights() const { return weights_; }

 private:
  Transformer(const ModelConfig& config, Weights weights, kernels::Backend& backend);
  std::span<const float> rotations_at(std::span<const std::int32_t> positions);

  kernels::AttentionInputWeights attention_input(const LayerWeights& layer) const;
  kernels::GateUpWeights gate_up(const LayerWeights& layer) const;

  // Set once.
  ModelConfig config_;
  kernels::AttentionShape shape_;
  Weights weights_;
  kernels::Backend* backend_;
  // Rows of one step. [max_num_tokens, width], widths as in activation_widths().
  std::unique_ptr<kernels::Buffer> residual_, query_, attention_, hidden_;
  std::vector<float> rotations_;
};

}  // namespace octavo::model
