#include "engine/model/transformer.h"

#include <cmath>
#include <utility>

#include "engine/base/check.h"

namespace octavo::model {
namespace {

using kernels::MatrixView;

struct ActivationWidths {
  std::int64_t residual, attention, hidden;  // attention: of queries and of what attention gives
};

ActivationWidths activation_widths(const ModelConfig& config) {
  return {.residual = config.embedding_length,
          .attention = static_cast<std::int64_t>(config.num_heads) * config.head_dim,
          .hidden = config.feed_forward_length};
}

MatrixView first_rows(const kernels::Buffer& buffer, std::int64_t rows, std::int64_t columns) {
  return {.data = buffer.data(), .rows = rows, .columns = columns, .stride = columns};
}

// Null: no numbers.
std::span<const float> view_of(const std::unique_ptr<kernels::Buffer>& vector) {
  if (vector == nullptr) return {};
  return {vector->data(), static_cast<std::size_t>(vector->size())};
}

kernels::AttentionShape attention_shape(const ModelConfig& config) {
  kernels::AttentionShape shape;
  shape.num_heads = config.num_heads;
  shape.num_kv_heads = config.num_kv_heads;
  shape.head_dim = config.head_dim;
  shape.rotary_dim = config.rope.rotary_dim;
  shape.score_scale = static_cast<float>(config.score_scale);
  return shape;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, Weights weights, kernels::Backend& backend)
    : config_(config), shape_(attention_shape(config)), weights_(std::move(weights)), backend_(&backend) {}

Result<Transformer> Transformer::create(const ModelConfig& config, Weights weights, kernels::Backend& backend,
                                        std::int32_t max_num_tokens) {
  const ActivationWidths widths = activation_widths(config);
  Transformer transformer(config, std::move(weights), backend);
  OCTAVO_TRY(transformer.residual_, backend.allocate_buffer(max_num_tokens * widths.residual));
  OCTAVO_TRY(transformer.query_, backend.allocate_buffer(max_num_tokens * widths.attention));
  OCTAVO_TRY(transformer.attention_, backend.allocate_buffer(max_num_tokens * widths.attention));
  OCTAVO_TRY(transformer.hidden_, backend.allocate_buffer(max_num_tokens * widths.hidden));
  transformer.rotations_.reserve(static_cast<std::size_t>(max_num_tokens) *
                                 static_cast<std::size_t>(config.rope.rotary_dim));
  return transformer;
}

std::int64_t Transformer::activation_bytes(const ModelConfig& config, std::int32_t max_num_tokens) {
  const ActivationWidths widths = activation_widths(config);
  const std::int64_t floats_per_row =
      widths.residual + 2 * widths.attention + widths.hidden + config.rope.rotary_dim;
  return max_num_tokens * floats_per_row * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t Transformer::activation_bytes() const {
  const std::int64_t floats = residual_->size() + query_->size() + attention_->size() + hidden_->size() +
                              static_cast<std::int64_t>(rotations_.capacity());
  return floats * static_cast<std::int64_t>(sizeof(float));
}

void Transformer::forward(kernels::PagedBatch batch, std::span<const std::int32_t> token_ids,
                          kernels::KvCache& kv) {
  OCTAVO_CHECK(token_ids.size() == static_cast<std::size_t>(batch.num_tokens), "%zu tokens for %d rows",
               token_ids.size(), batch.num_tokens);
  OCTAVO_CHECK(batch.num_tokens * std::int64_t{config_.embedding_length} <= residual_->size(),
               "%d rows are too many", batch.num_tokens);
  const ActivationWidths widths = activation_widths(config_);
  const MatrixView residual = first_rows(*residual_, batch.num_tokens, widths.residual);
  const MatrixView query = first_rows(*query_, batch.num_tokens, widths.attention);
  const MatrixView attention = first_rows(*attention_, batch.num_tokens, widths.attention);
  const MatrixView hidden = first_rows(*hidden_, batch.num_tokens, widths.hidden);

  batch.rotations = rotations_at(batch.positions);
  backend_->begin_step(batch, token_ids);
  backend_->embed(weights_.embedding(), token_ids, residual);
  for (std::int32_t index = 0; index < config_.num_layers; ++index) {
    const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
    backend_->attention_input(attention_input(layer), shape_, batch, index, residual, kv, query);
    backend_->paged_attention(shape_, batch, index, kv, query, attention);
    backend_->project_residual(*layer.attention_output.matrix, view_of(layer.attention_output.bias),
                               attention, residual);
    backend_->gate_up_silu(gate_up(layer), residual, hidden);
    backend_->project_residual(*layer.down.matrix, view_of(layer.down.bias), hidden, residual);
  }
}

void Transformer::logits(std::span<const std::int32_t> rows, MatrixView out,
                         kernels::LogitsSummary summary) {
  const ActivationWidths widths = activation_widths(config_);
  const MatrixView residual = first_rows(*residual_, residual_->size() / widths.residual, widths.residual);
  backend_->logits(view_of(weights_.output_norm), config_.norm_epsilon, *weights_.output.matrix,
                   view_of(weights_.output.bias), residual, rows, out, summary);
}

// In double, because a float holds the angle of position 8,000 to within 0.0005 only.
std::span<const float> Transformer::rotations_at(std::span<const std::int32_t> positions) {
  const std::vector<double>& frequencies = weights_.rope.inverse_frequencies;
  rotations_.resize(positions.size() * frequencies.size() * 2);
  float* out = rotations_.data();
  for (const std::int32_t position : positions) {
    for (const double frequency : frequencies) {
      const double angle = position * frequency;
      *out++ = static_cast<float>(std::cos(angle) * weights_.rope.attention_factor);
      *out++ = static_cast<float>(std::sin(angle) * weights_.rope.attention_factor);
    }
  }
  return rotations_;
}

kernels::AttentionInputWeights Transformer::attention_input(const LayerWeights& layer) const {
  return {.norm = view_of(layer.attention_norm),
          .norm_epsilon = config_.norm_epsilon,
          .query = layer.query.matrix.get(),
          .key = layer.key.matrix.get(),
          .value = layer.value.matrix.get(),
          .query_bias = view_of(layer.query.bias),
          .key_bias = view_of(layer.key.bias),
          .value_bias = view_of(layer.value.bias)};
}

kernels::GateUpWeights Transformer::gate_up(const LayerWeights& layer) const {
  return {.norm = view_of(layer.feed_forward_norm),
          .norm_epsilon = config_.norm_epsilon,
          .gate = layer.gate.matrix.get(),
          .up = layer.up.matrix.get(),
          .gate_bias = view_of(layer.gate.bias),
          .up_bias = view_of(layer.up.bias)};
}

}  // namespace octavo::model
