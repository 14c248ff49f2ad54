#include "tests/bench/gpu/random_model.h"

#include <cmath>

namespace octavo::bench {
namespace {

using kernels::MatrixView;
using kernels::TensorType;

constexpr float kEpsilon = 1e-5f;

kernels::AttentionShape heads_of(const ModelShape& shape) {
  kernels::AttentionShape heads;
  heads.num_heads = shape.num_heads;
  heads.num_kv_heads = shape.num_kv_heads;
  heads.head_dim = heads.rotary_dim = shape.head_dim;
  heads.score_scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  return heads;
}

// Numbers of weights of a layer.
double layer_numbers(const ModelShape& shape) {
  const double width = shape.embedding_length, inner = shape.feed_forward_length;
  const double heads = static_cast<double>(shape.num_heads) * shape.head_dim;
  const double kv_heads = static_cast<double>(shape.num_kv_heads) * shape.head_dim;
  return width * (2 * heads + 2 * kv_heads + 3 * inner);
}

}  // namespace

Result<std::unique_ptr<RandomModel>> RandomModel::create(Bench& bench, const ModelShape& shape,
                                                         TensorType type, std::int32_t most_rows) {
  std::unique_ptr<RandomModel> model(new RandomModel(shape, heads_of(shape)));
  RandomMemory& random = bench.random();
  const std::int64_t width = shape.embedding_length, inner = shape.feed_forward_length;
  const std::int64_t heads = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t kv_heads = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  for (std::int32_t i = 0; i < shape.num_layers; ++i) {
    Layer& layer = model->layers_.emplace_back();
    OCTAVO_TRY(layer.query, random.matrix(type, heads, width));
    OCTAVO_TRY(layer.key, random.matrix(type, kv_heads, width));
    OCTAVO_TRY(layer.value, random.matrix(type, kv_heads, width));
    OCTAVO_TRY(layer.attention_output, random.matrix(type, width, heads));
    OCTAVO_TRY(layer.gate, random.matrix(type, inner, width));
    OCTAVO_TRY(layer.up, random.matrix(type, inner, width));
    OCTAVO_TRY(layer.down, random.matrix(type, width, inner));
  }
  OCTAVO_TRY(model->head_, random.matrix(type, shape.vocabulary, width));
  if (!shape.is_tied) {
    OCTAVO_TRY(model->embedding_, random.matrix(type, shape.vocabulary, width));
  }
  OCTAVO_TRY(model->norm_, random.allocate(Numbers::kF32, width * 4));
  const std::pair<Rows*, std::int64_t> buffers[] = {{&model->residual_, width},
                                                    {&model->query_, heads},
                                                    {&model->attention_, heads},
                                                    {&model->hidden_, inner}};
  for (const auto& [rows, columns] : buffers) {
    OCTAVO_TRY(rows->memory, random.allocate(Numbers::kF32, most_rows * columns * 4));
    rows->columns = columns;
  }
  for (std::int32_t i = 0; i < most_rows; ++i) {
    model->token_ids_.push_back(static_cast<std::int32_t>(i * 7919LL % shape.vocabulary));
  }
  bench.stream().synchronize();  // steps run in another stream
  OCTAVO_TRY_VOID(bench.stream().status().result());
  return model;
}

std::int64_t RandomModel::bytes(const ModelShape& shape, TensorType type) {
  const kernels::TensorTypeTraits& traits = kernels::traits_of(type);
  const double numbers = shape.num_layers * layer_numbers(shape) +
                         (shape.is_tied ? 1.0 : 2.0) * shape.vocabulary * shape.embedding_length;
  return static_cast<std::int64_t>(1.05 * numbers / traits.block_elements * traits.block_bytes);
}

void RandomModel::forward(kernels::Backend& backend, const kernels::PagedBatch& batch, kernels::KvCache& kv,
                          std::span<const std::int32_t> drawn_rows) {
  const auto token_ids =
      std::span<const std::int32_t>(token_ids_).first(static_cast<std::size_t>(batch.num_tokens));
  backend.run_step(batch, token_ids,
                   [&](const kernels::PagedBatch& rows, std::span<const std::int32_t> row_token_ids) {
                     compute(backend, rows, row_token_ids, kv);
                   },
                   {.rows = drawn_rows, .draws = std::span(draws_).first(drawn_rows.size())});
}

Result<void> RandomModel::record(kernels::Backend& backend, const kernels::PagedBatch& batch,
                                 kernels::KvCache& kv) {
  const auto token_ids =
      std::span<const std::int32_t>(token_ids_).first(static_cast<std::size_t>(batch.num_tokens));
  return backend.record_step(
      batch, token_ids, [&](const kernels::PagedBatch& rows, std::span<const std::int32_t> row_token_ids) {
        compute(backend, rows, row_token_ids, kv);
      });
}

Result<void> RandomModel::record_draws(kernels::Backend& backend) {
  return backend.record_draws(output_head(), residual_.first(static_cast<std::int64_t>(token_ids_.size())));
}

kernels::OutputHead RandomModel::output_head() const { return {{norm(), kEpsilon}, head_.get()}; }

void RandomModel::compute(kernels::Backend& backend, const kernels::PagedBatch& batch,
                          std::span<const std::int32_t> token_ids, kernels::KvCache& kv) {
  const std::int64_t num_rows = batch.num_tokens;
  const MatrixView residual = residual_.first(num_rows), query = query_.first(num_rows),
                   attention = attention_.first(num_rows), hidden = hidden_.first(num_rows);
  backend.embed({.tokens = embedding_ == nullptr ? head_.get() : embedding_.get()}, token_ids,
                batch.positions, residual);
  for (std::int32_t index = 0; index < shape_.num_layers; ++index) {
    const Layer& layer = layers_[static_cast<std::size_t>(index)];
    kernels::AttentionInputWeights input;
    input.norm = {norm(), kEpsilon};
    input.query = layer.query.get();
    input.key = layer.key.get();
    input.value = layer.value.get();
    kernels::FeedForwardInputWeights gate_up;
    gate_up.norm = {norm(), kEpsilon};
    gate_up.gate = layer.gate.get();
    gate_up.up = layer.up.get();
    backend.attention_input(input, heads_, batch, index, residual, kv, query);
    backend.paged_attention(heads_, batch, index, kv, query, attention);
    backend.project_residual({layer.attention_output.get()}, attention, residual);
    backend.feed_forward_input(gate_up, residual, hidden);
    backend.project_residual({layer.down.get()}, hidden, residual);
  }
}

void RandomModel::reserve_draws(std::int32_t most_rows) {
  for (std::int32_t row = 0; row < most_rows; ++row) draws_.push_back({.row = row, .temperature = 0.0});
  drawn_.resize(draws_.size());
}

void RandomModel::draw(kernels::Backend& backend, std::span<const std::int32_t> rows) {
  const auto most_rows = static_cast<std::int64_t>(token_ids_.size());
  backend.draw_tokens(output_head(), residual_.first(most_rows), rows, std::span(draws_).first(rows.size()),
                      std::span(drawn_).first(rows.size()));
}

bool RandomModel::logits_are_finite() const { return !drawn_.empty() && drawn_[0].token_id >= 0; }

std::int64_t RandomModel::layer_bytes() const {
  std::int64_t sum = 0;
  for (const Layer& layer : layers_) {
    for (const MatrixPointer* matrix : {&layer.query, &layer.key, &layer.value, &layer.attention_output,
                                        &layer.gate, &layer.up, &layer.down}) {
      sum += (*matrix)->memory_bytes();
    }
  }
  return sum;
}

double RandomModel::layer_operations() const { return 2 * shape_.num_layers * layer_numbers(shape_); }
double RandomModel::head_operations() const { return 2.0 * shape_.vocabulary * shape_.embedding_length; }

}  // namespace octavo::bench
