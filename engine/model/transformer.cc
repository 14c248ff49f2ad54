#include "engine/model/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/check.h"

namespace octavo::model {
namespace {

using kernels::MatrixView;

// In floats, of the widest layer. A layer's attention and a recurrent one give what they compute into one
// buffer; where a layer has both, the recurrent rows stand behind those of attention.
struct ActivationWidths {
  std::int64_t residual, query, mixed, hidden, layer_embeddings, factors;
  std::int64_t next_token;  // three times

  std::int64_t sum() const {
    return residual + query + mixed + hidden + layer_embeddings + factors + 3 * next_token;
  }
};

ActivationWidths activation_widths(const ModelConfig& config) {
  // Latent attention's values of all heads stand where its queries stood.
  const std::int64_t query = std::int64_t{config.num_heads} *
                             std::max({config.head_dim, config.local_head_dim, config.latent.value_dim});
  const std::int64_t recurrent = config.recurrent.output_columns();
  const bool has_both = config.parts.layer_parts == LayerParts::kBothMixers;
  return {.residual = config.embedding_length,
          .query = query,
          .mixed = has_both ? query + recurrent : std::max(query, recurrent),
          .hidden = std::max(config.feed_forward_length, config.layer_embedding_length),
          .layer_embeddings = std::int64_t{config.num_layers} * config.layer_embedding_length,
          .factors = config.rope.rotary_dim + (config.local_rope ? config.local_rope->rotary_dim : 0) +
                     (config.query_scale_factor > 0.0 ? 1 : 0),
          .next_token = config.guesses_next_tokens ? config.embedding_length : 0};
}

MatrixView first_rows(const kernels::Buffer& buffer, std::int64_t rows, std::int64_t columns) {
  return {.data = buffer.data(), .rows = rows, .columns = columns, .stride = columns};
}

// Null: no numbers.
std::span<const float> view_of(const std::unique_ptr<kernels::Buffer>& vector) {
  if (vector == nullptr) return {};
  return {vector->data(), static_cast<std::size_t>(vector->size())};
}

// As a layer that sees all tokens has it, and rotates.
kernels::AttentionShape full_attention_shape(const ModelConfig& config, kernels::KvHeads heads) {
  kernels::AttentionShape shape;
  if (config.parts.positions == PositionEncoding::kRotatesHalves)
    shape.pairing = kernels::RopePairing::kHalves;
  shape.num_heads = config.num_heads;
  shape.num_kv_heads = heads.num_kv_heads;
  shape.head_dim = heads.head_dim;
  shape.latent_dim = heads.latent_dim;
  shape.rotary_dim = config.rope.rotary_dim;
  shape.score_scale = static_cast<float>(config.score_scale);
  shape.score_soft_cap = config.score_soft_cap;
  return shape;
}

kernels::AttentionShape attention_shape(const ModelConfig& config, std::int32_t layer) {
  const bool is_local = config.has_window(layer) && config.local_rope;
  kernels::AttentionShape shape = full_attention_shape(config, config.kv_heads(layer));
  if (is_local) shape.rotary_dim = config.local_rope->rotary_dim;
  if (!config.rotates(layer)) shape.rotary_dim = 0;
  if (is_local) shape.rotations = kernels::Rotations::kLocal;
  shape.window = config.window_of(layer);
  shape.window_form = config.parts.window_form;
  return shape;
}

// The rows as layers see them whose keys and values are in the pool of windows.
kernels::PagedBatch in_windows(const kernels::PagedBatch& batch) {
  kernels::PagedBatch rows = batch;
  rows.slot_mapping = batch.window_slot_mapping;
  rows.block_tables = batch.window_block_tables;
  return rows;
}

kernels::PagedBatch without_query_scales(const kernels::PagedBatch& batch) {
  kernels::PagedBatch rows = batch;
  rows.query_scales = {};
  return rows;
}

// Of what stands last in a layer.
float scale_behind_feed_forward(const LayerWeights& layer) {
  return layer.embedding_gate.matrix == nullptr ? layer.output_scale : 1.0f;
}

}  // namespace

Transformer::Transformer(const ModelConfig& config, Weights weights, kernels::Backend& backend,
                         bool sets_windows_apart)
    : config_(config),
      kv_uses_(find_kv_uses(config, sets_windows_apart).layers),
      weights_(std::move(weights)),
      backend_(&backend) {
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    shapes_.push_back(attention_shape(config, layer));
    shapes_.back().sinks = view_of(weights_.layers[static_cast<std::size_t>(layer)].sinks);
  }
  if (config.guesses_next_tokens) shapes_.push_back(full_attention_shape(config, config.next_token_heads()));
}

Result<Transformer> Transformer::create(const ModelConfig& config, Weights weights, kernels::Backend& backend,
                                        std::int32_t max_num_tokens, bool sets_windows_apart) {
  const ActivationWidths widths = activation_widths(config);
  Transformer transformer(config, std::move(weights), backend, sets_windows_apart);
  OCTAVO_TRY(transformer.residual_, backend.allocate_buffer(max_num_tokens * widths.residual));
  OCTAVO_TRY(transformer.query_, backend.allocate_buffer(max_num_tokens * widths.query));
  OCTAVO_TRY(transformer.mixed_, backend.allocate_buffer(max_num_tokens * widths.mixed));
  OCTAVO_TRY(transformer.hidden_, backend.allocate_buffer(max_num_tokens * widths.hidden));
  OCTAVO_TRY(transformer.layer_embeddings_,
             backend.allocate_buffer(max_num_tokens * widths.layer_embeddings));
  if (widths.next_token > 0) {
    OCTAVO_TRY(transformer.next_embeddings_, backend.allocate_buffer(max_num_tokens * widths.next_token));
    for (auto& rows : transformer.predicted_) {
      OCTAVO_TRY(rows, backend.allocate_buffer(max_num_tokens * widths.next_token));
    }
  }
  const auto reserve = [&](const RopeConfig& rope, std::vector<float>& rotations) {
    rotations.reserve(static_cast<std::size_t>(max_num_tokens) * static_cast<std::size_t>(rope.rotary_dim));
  };
  reserve(config.rope, transformer.rotations_);
  if (config.local_rope) reserve(*config.local_rope, transformer.local_rotations_);
  if (config.query_scale_factor > 0.0)
    transformer.query_scales_.reserve(static_cast<std::size_t>(max_num_tokens));
  return transformer;
}

std::int64_t Transformer::activation_bytes(const ModelConfig& config, std::int32_t max_num_tokens) {
  const std::int64_t floats_per_row = activation_widths(config).sum();
  return max_num_tokens * floats_per_row * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t Transformer::activation_bytes() const {
  const std::int64_t next_floats = next_embeddings_ ? 3 * next_embeddings_->size() : 0;
  const std::int64_t floats = residual_->size() + query_->size() + mixed_->size() + hidden_->size() +
                              layer_embeddings_->size() + next_floats +
                              static_cast<std::int64_t>(rotations_.capacity() + local_rotations_.capacity() +
                                                        query_scales_.capacity());
  return floats * static_cast<std::int64_t>(sizeof(float));
}

void Transformer::forward(kernels::PagedBatch batch, std::span<const std::int32_t> token_ids,
                          const LayerCaches& caches, std::span<std::int32_t> chosen,
                          const kernels::StepDraws& draws) {
  OCTAVO_CHECK(token_ids.size() == static_cast<std::size_t>(batch.num_tokens), "%zu tokens for %d rows",
               token_ids.size(), batch.num_tokens);
  find_angles(batch);
  backend_->run_step(
      batch, token_ids,
      [this, &caches, chosen](const kernels::PagedBatch& rows, std::span<const std::int32_t> row_token_ids) {
        compute(rows, row_token_ids, caches, chosen);
      },
      draws);
}

void Transformer::accept_drafts(const kernels::PagedBatch& batch, std::span<const std::int32_t> num_accepted,
                                kernels::StateCache& states) {
  const RecurrentConfig& recurrent = config_.recurrent;
  for (std::int32_t index = 0; index < config_.num_layers; ++index) {
    if (!config_.is_recurrent(index)) continue;
    const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
    const std::int32_t place = config_.state_layer(index);
    switch (config_.parts.recurrent_layers) {
      case RecurrentLayers::kNone: break;
      case RecurrentLayers::kTiledDeltaNet:
      case RecurrentLayers::kGroupedDeltaNet:
        backend_->accept_delta_net(delta_net(layer), recurrent.delta_net, batch, place, num_accepted, states);
        break;
      case RecurrentLayers::kStateSpace:
        backend_->accept_state_space(state_space(layer), recurrent.state_space, batch, place, num_accepted,
                                     states);
        break;
      case RecurrentLayers::kShortConvolution:
        backend_->accept_short_convolution(short_convolution(layer), recurrent.short_convolution, batch,
                                           place, num_accepted, states);
        break;
    }
  }
}

std::vector<std::int32_t> Transformer::expert_layers() const {
  std::vector<std::int32_t> layers;
  for (std::int32_t index = 0; index < config_.num_layers; ++index) {
    if (!weights_.layers[static_cast<std::size_t>(index)].experts.empty()) layers.push_back(index);
  }
  return layers;
}

void Transformer::find_angles(kernels::PagedBatch& batch) {
  if (!rotations_are_kept_) {
    find_rotations(batch.positions, weights_.rope, rotations_);
    if (weights_.local_rope) find_rotations(batch.positions, *weights_.local_rope, local_rotations_);
    batch.rotations = rotations_;
    batch.local_rotations = local_rotations_;
  }
  if (config_.query_scale_factor == 0.0) return;
  query_scales_.clear();
  for (const std::int32_t position : batch.positions) query_scales_.push_back(config_.query_scale(position));
  batch.query_scales = query_scales_;
}

void Transformer::predict(kernels::PagedBatch batch, std::span<const std::int32_t> rows,
                          std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv) {
  run_next_token_layer(batch, residual_rows(), weights_.output_norm, rows, next_token_ids, kv);
}

void Transformer::predict_further(kernels::PagedBatch batch, std::span<const std::int32_t> rows,
                                  std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv) {
  run_next_token_layer(batch, predicted_rows(), next_token_output_norm(), rows, next_token_ids, kv);
}

void Transformer::run_next_token_layer(kernels::PagedBatch batch, kernels::ConstMatrixView hidden,
                                       const PreparedNorm& output_norm, std::span<const std::int32_t> rows,
                                       std::span<const std::int32_t> next_token_ids, kernels::KvCache& kv) {
  OCTAVO_CHECK(
      rows.size() == static_cast<std::size_t>(batch.num_tokens) && next_token_ids.size() == rows.size(),
      "%zu rows and %zu tokens for %d rows", rows.size(), next_token_ids.size(), batch.num_tokens);
  const PreparedNextToken& next = *weights_.next_token;
  const std::int32_t index = config_.num_layers;
  std::swap(predicted_[0], predicted_[1]);  // `hidden` may be what was the newest until here
  const MatrixView embeddings = first_rows(*next_embeddings_, batch.num_tokens, config_.embedding_length);
  const MatrixView residual = first_rows(*predicted_[0], batch.num_tokens, config_.embedding_length);
  find_angles(batch);
  backend_->run_step(
      batch, next_token_ids,
      [&](const kernels::PagedBatch& step, std::span<const std::int32_t> step_token_ids) {
        backend_->embed({.tokens = next.token_embedding ? next.token_embedding.get() : &weights_.embedding(),
                         .scale = config_.embedding_scale()},
                        step_token_ids, step.positions, embeddings);
        backend_->join_next_tokens({.token_norm = norm_of(next.token_norm),
                                    .output_norm = norm_of(output_norm),
                                    .hidden_norm = norm_of(next.hidden_norm),
                                    .matrix = next.joint.matrix.get()},
                                   embeddings, hidden, rows, residual);
        const MatrixView attention = attend(step, index, &kv, residual);
        backend_->project_residual(attention_output(next.layer), attention, residual);
        feed_forward(index, residual, {});
      });
}

void Transformer::predicted_logits(std::span<const std::int32_t> rows, MatrixView out,
                                   kernels::LogitsSummary summary) {
  kernels::OutputHead head = output_head();
  head.norm = norm_of(next_token_output_norm());
  if (const auto& own = weights_.next_token->output.matrix) head.matrix = own.get();
  backend_->logits(head, predicted_rows(), rows, out, summary);
}

const PreparedNorm& Transformer::next_token_output_norm() const {
  const PreparedNorm& own = weights_.next_token->output_norm;
  return own.weight ? own : weights_.output_norm;
}

MatrixView Transformer::predicted_rows() const {
  const std::int64_t width = config_.embedding_length;
  return first_rows(*predicted_[0], predicted_[0]->size() / width, width);
}

const LayerWeights& Transformer::layer_at(std::int32_t index) const {
  return index == config_.num_layers ? weights_.next_token->layer
                                     : weights_.layers[static_cast<std::size_t>(index)];
}

// REQUIRES: rows that the backend was told.
void Transformer::compute(const kernels::PagedBatch& batch, std::span<const std::int32_t> token_ids,
                          const LayerCaches& caches, std::span<std::int32_t> chosen) {
  OCTAVO_CHECK(batch.num_tokens * std::int64_t{config_.embedding_length} <= residual_->size(),
               "%d rows are too many", batch.num_tokens);
  const MatrixView residual = first_rows(*residual_, batch.num_tokens, config_.embedding_length);
  backend_->embed({.tokens = &weights_.embedding(),
                   .scale = config_.embedding_scale(),
                   .positions = weights_.position_embedding.get(),
                   .norm = {view_of(weights_.embedding_norm), config_.norm_epsilon}},
                  token_ids, batch.positions, residual);
  if (const std::int64_t width = activation_widths(config_).layer_embeddings; width > 0) {
    backend_->embed_layers(layer_embedding(), token_ids, residual,
                           first_rows(*layer_embeddings_, batch.num_tokens, width));
  }
  for (std::int32_t index = 0; index < config_.num_layers; ++index) {
    if (weights_.layers[static_cast<std::size_t>(index)].branches_stand_side_by_side) {
      attend_beside_feed_forward(batch, index, caches, residual);
      continue;
    }
    mix(batch, index, caches, residual);
    const bool has_experts = !weights_.layers[static_cast<std::size_t>(index)].experts.empty();
    const bool is_asked = has_experts && !chosen.empty();
    const auto num_chosen =
        static_cast<std::size_t>(is_asked ? batch.num_tokens * config_.experts.num_used : 0);
    if (config_.has_feed_forward(index)) feed_forward(index, residual, chosen.first(num_chosen));
    chosen = chosen.subspan(num_chosen);
    if (config_.layer_embedding_length > 0) add_layer_embedding(index, residual);
  }
}

// Where a layer has both, both read the rows before either adds to them.
void Transformer::mix(const kernels::PagedBatch& batch, std::int32_t index, const LayerCaches& caches,
                      MatrixView residual) {
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  const bool has_attention = config_.has_attention(index), is_recurrent = config_.is_recurrent(index);
  MatrixView attention = {}, recurrent = {};
  if (has_attention) attention = attend(batch, index, caches, residual);
  if (is_recurrent) recurrent = run_recurrent(batch, index, caches.states, residual);
  if (has_attention) backend_->project_residual(attention_output(layer), attention, residual);
  if (is_recurrent)
    backend_->project_residual({.matrix = layer.recurrent.output.matrix.get()}, recurrent, residual);
}

// Both read the rows before either adds to them.
void Transformer::attend_beside_feed_forward(const kernels::PagedBatch& batch, std::int32_t index,
                                             const LayerCaches& caches, MatrixView residual) {
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  const MatrixView attention = attend(batch, index, caches, residual);
  const MatrixView hidden = feed_forward_hidden(index, residual);
  backend_->project_residual(attention_output(layer), attention, residual);
  backend_->project_residual(feed_forward_output(layer), hidden, residual);
}

// The residual decides how much of the layer's part of the second embedding is added to it.
void Transformer::add_layer_embedding(std::int32_t index, MatrixView residual) {
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  const std::int64_t size = config_.layer_embedding_length;
  const std::int64_t stride = activation_widths(config_).layer_embeddings;
  const MatrixView hidden = first_rows(*hidden_, residual.rows, size);
  backend_->feed_forward_input(
      {.norm = {},
       .gate = layer.embedding_gate.matrix.get(),
       .activation = config_.parts.activation,
       .factors = {layer_embeddings_->data() + index * size, residual.rows, size, stride}},
      residual, hidden);
  backend_->project_residual({.matrix = layer.embedding_projection.matrix.get(),
                              .post_norm = norm_of(layer.post_embedding_norm),
                              .residual_scale = layer.output_scale},
                             hidden, residual);
}

MatrixView Transformer::attend(const kernels::PagedBatch& batch, std::int32_t index,
                               const LayerCaches& caches, MatrixView residual) {
  const bool is_in_windows = kv_uses_[static_cast<std::size_t>(index)].is_in_windows;
  const kernels::PagedBatch& scaled = config_.scales_queries(index) ? batch : without_query_scales(batch);
  if (is_in_windows) return attend(in_windows(scaled), index, caches.window_kv, residual);
  return attend(scaled, index, caches.kv, residual);
}

MatrixView Transformer::attend(const kernels::PagedBatch& batch, std::int32_t index, kernels::KvCache* kv,
                               MatrixView residual) {
  OCTAVO_CHECK(kv != nullptr, "layer %d without a pool for its keys and values", index);
  const LayerWeights& layer = layer_at(index);
  const kernels::AttentionShape& shape = shapes_[static_cast<std::size_t>(index)];
  const std::int32_t place = kv_uses_[static_cast<std::size_t>(index)].place;
  const std::int64_t heads = shape.num_heads, rows = batch.num_tokens;
  const MatrixView query = first_rows(*query_, rows, heads * shape.head_dim);
  const MatrixView attention = first_rows(*mixed_, rows, heads * shape.value_dim());
  if (!layer.latent.keys.empty()) {
    const MatrixView values = first_rows(*query_, rows, heads * config_.latent.value_dim);
    backend_->latent_attention_input(latent_input(layer), shape, batch, place, residual, *kv, query);
    backend_->paged_attention(shape, batch, place, *kv, query, attention);
    backend_->project_heads(layer.latent.values, attention, values);
    return values;
  }
  backend_->attention_input(attention_input(layer), shape, batch, place, residual, *kv, query);
  backend_->paged_attention(shape, batch, place, *kv, query, attention);
  if (layer.attention_gate.matrix) backend_->gate_attention(attention_gate(layer), residual, attention);
  return attention;
}

MatrixView Transformer::run_recurrent(const kernels::PagedBatch& batch, std::int32_t index,
                                      kernels::StateCache* states, MatrixView residual) {
  OCTAVO_CHECK(states != nullptr, "a recurrent layer without states");
  const LayerWeights& layer = weights_.layers[static_cast<std::size_t>(index)];
  const RecurrentConfig& recurrent = config_.recurrent;
  const std::int32_t place = config_.state_layer(index);
  MatrixView out = first_rows(*mixed_, batch.num_tokens, recurrent.output_columns());
  if (config_.has_attention(index)) out.data += batch.num_tokens * activation_widths(config_).query;
  switch (config_.parts.recurrent_layers) {
    case RecurrentLayers::kNone: break;
    case RecurrentLayers::kTiledDeltaNet:
    case RecurrentLayers::kGroupedDeltaNet:
      backend_->gated_delta_net(delta_net(layer), recurrent.delta_net, batch, place, residual, *states, out);
      break;
    case RecurrentLayers::kStateSpace:
      backend_->state_space(state_space(layer), recurrent.state_space, batch, place, residual, *states, out);
      break;
    case RecurrentLayers::kShortConvolution:
      backend_->short_convolution(short_convolution(layer), recurrent.short_convolution, batch, place,
                                  residual, *states, out);
      break;
  }
  return out;
}

void Transformer::feed_forward(std::int32_t index, MatrixView residual, std::span<std::int32_t> chosen) {
  const LayerWeights& layer = layer_at(index);
  if (!layer.experts.empty()) {
    backend_->feed_forward_experts(experts_of(layer), residual, chosen);
    return;
  }
  backend_->project_residual(feed_forward_output(layer), feed_forward_hidden(index, residual), residual);
}

MatrixView Transformer::feed_forward_hidden(std::int32_t index, MatrixView residual) {
  const LayerWeights& layer = layer_at(index);
  const MatrixView hidden = first_rows(*hidden_, residual.rows, config_.feed_forward_length_of(index));
  backend_->feed_forward_input(feed_forward_input(layer), residual, hidden);
  return hidden;
}

void Transformer::logits(std::span<const std::int32_t> rows, MatrixView out, kernels::LogitsSummary summary) {
  backend_->logits(output_head(), residual_rows(), rows, out, summary);
}

void Transformer::hidden_states(std::span<const std::int32_t> rows, MatrixView out) {
  backend_->hidden_states(norm_of(weights_.output_norm), residual_rows(), rows, out);
}

void Transformer::draw_tokens(std::span<const std::int32_t> rows, std::span<const kernels::TokenDraw> draws,
                              std::span<kernels::DrawnToken> out,
                              const kernels::LogitAdjustments& adjustments) {
  backend_->draw_tokens(output_head(), residual_rows(), rows, draws, out, adjustments);
}

void Transformer::start_draws(const kernels::StepDraws& draws) {
  backend_->start_draws(output_head(), residual_rows(), draws);
}

kernels::OutputHead Transformer::output_head() const {
  return {.norm = norm_of(weights_.output_norm),
          .matrix = weights_.output.matrix.get(),
          .bias = view_of(weights_.output.bias),
          .soft_cap = config_.logit_soft_cap};
}

MatrixView Transformer::residual_rows() const {
  const std::int64_t width = config_.embedding_length;
  return first_rows(*residual_, residual_->size() / width, width);
}

kernels::NormWeights Transformer::norm_of(const PreparedNorm& norm) const {
  return {.weight = view_of(norm.weight),
          .epsilon = config_.stream_epsilon(),
          .kind = config_.parts.norm,
          .bias = view_of(norm.bias)};
}

kernels::NormWeights Transformer::post_norm_of(const PreparedNorm& norm) const {
  kernels::NormWeights weights = norm_of(norm);
  if (config_.parts.post_norm_epsilon > 0.0f) weights.epsilon = config_.parts.post_norm_epsilon;
  return weights;
}

kernels::AttentionInputWeights Transformer::attention_input(const LayerWeights& layer) const {
  return {.norm = norm_of(layer.attention_norm),
          .query = layer.query.matrix.get(),
          .key = layer.key.matrix.get(),
          .value = layer.value.matrix.get(),
          .query_bias = view_of(layer.query.bias),
          .key_bias = view_of(layer.key.bias),
          .value_bias = view_of(layer.value.bias),
          .query_norm = view_of(layer.query_norm),
          .key_norm = view_of(layer.key_norm),
          .value_norm = view_of(layer.value_norm),
          .head_norm_kind = config_.parts.head_norm_kind,
          .norms_follow_rotation = config_.parts.head_norms_follow_rotation};
}

kernels::LatentInputWeights Transformer::latent_input(const LayerWeights& layer) const {
  const PreparedLatent& latent = layer.latent;
  return {.norm = norm_of(layer.attention_norm),
          .query_down = latent.query_down.matrix.get(),
          .query_norm = {view_of(latent.query_norm), config_.norm_epsilon},
          .query = latent.query.matrix.get(),
          .key_value = latent.key_value.matrix.get(),
          .latent_norm = {view_of(latent.latent_norm), config_.norm_epsilon},
          .keys = latent.keys};
}

kernels::AttentionGateWeights Transformer::attention_gate(const LayerWeights& layer) const {
  return {.norm = norm_of(layer.attention_norm), .matrix = layer.attention_gate.matrix.get()};
}

kernels::DeltaNetWeights Transformer::delta_net(const LayerWeights& layer) const {
  const PreparedRecurrent& recurrent = layer.recurrent;
  return {.norm = norm_of(layer.attention_norm),
          .query_key_value = recurrent.input.matrix.get(),
          .gate = recurrent.gate.matrix.get(),
          .alpha = recurrent.time_step.matrix.get(),
          .beta = recurrent.beta.matrix.get(),
          .convolution = view_of(recurrent.convolution),
          .time_bias = view_of(recurrent.time_bias),
          .decay = view_of(recurrent.decay),
          .output_norm = {.weight = view_of(recurrent.output_norm), .epsilon = config_.norm_epsilon}};
}

kernels::StateSpaceWeights Transformer::state_space(const LayerWeights& layer) const {
  const PreparedRecurrent& recurrent = layer.recurrent;
  return {.norm = norm_of(layer.attention_norm),
          .input = recurrent.input.matrix.get(),
          .gate = recurrent.gate.matrix.get(),
          .time_step = recurrent.time_step.matrix.get(),
          .convolution = view_of(recurrent.convolution),
          .convolution_bias = view_of(recurrent.convolution_bias),
          .time_bias = view_of(recurrent.time_bias),
          .decay = view_of(recurrent.decay),
          .skip = view_of(recurrent.skip),
          .output_norm = {.weight = view_of(recurrent.output_norm), .epsilon = config_.norm_epsilon}};
}

kernels::ShortConvolutionWeights Transformer::short_convolution(const LayerWeights& layer) const {
  const PreparedRecurrent& recurrent = layer.recurrent;
  return {.norm = norm_of(layer.attention_norm),
          .input = recurrent.input.matrix.get(),
          .input_gate = recurrent.input_gate.matrix.get(),
          .output_gate = recurrent.gate.matrix.get(),
          .convolution = view_of(recurrent.convolution)};
}

kernels::ProjectionWeights Transformer::attention_output(const LayerWeights& layer) const {
  return {.matrix = layer.attention_output.matrix.get(),
          .bias = view_of(layer.attention_output.bias),
          .post_norm = post_norm_of(layer.post_attention_norm)};
}

kernels::FeedForwardInputWeights Transformer::feed_forward_input(const LayerWeights& layer) const {
  return {.norm = norm_of(layer.feed_forward_norm),
          .gate = layer.gate.matrix.get(),
          .up = layer.up.matrix.get(),
          .gate_bias = view_of(layer.gate.bias),
          .up_bias = view_of(layer.up.bias),
          .activation = config_.parts.activation};
}

kernels::LayerEmbeddingWeights Transformer::layer_embedding() const {
  const PreparedLayerEmbedding& embedding = weights_.layer_embedding;
  return {.tokens = embedding.tokens.get(),
          .projection = embedding.projection.matrix.get(),
          .norm = {view_of(embedding.norm), config_.norm_epsilon},
          .token_scale = std::sqrt(static_cast<float>(config_.layer_embedding_length)),
          .projection_scale = 1.0f / std::sqrt(static_cast<float>(config_.embedding_length)),
          .scale = 1.0f / std::sqrt(2.0f)};
}

// Where a layer stands beside the experts, the layer's own norm is that of its rows.
kernels::ExpertWeights Transformer::experts_of(const LayerWeights& layer) const {
  const PreparedExperts& experts = layer.experts;
  const ExpertConfig& config = config_.experts;
  const bool has_own_norm = experts.norm.weight != nullptr;
  return {.norm = norm_of(has_own_norm ? experts.norm : layer.feed_forward_norm),
          .router_norm = {view_of(experts.router_norm), config_.norm_epsilon},
          .shared_norm = has_own_norm ? norm_of(layer.feed_forward_norm) : kernels::NormWeights(),
          .router = experts.router.matrix.get(),
          .router_bias = view_of(experts.router.bias),
          .routing = {.num_used = config.num_used,
                      .scoring = config.scoring,
                      .selection_bias = view_of(experts.selection_bias),
                      .num_groups = config.num_groups,
                      .num_used_groups = config.num_used_groups,
                      .normalises = config.normalises_weights,
                      .scale = config.weights_scale},
          .gate = experts.gate,
          .up = experts.up,
          .down = experts.down,
          .gate_bias = view_of(experts.gate_bias),
          .up_bias = view_of(experts.up_bias),
          .down_bias = view_of(experts.down_bias),
          .output_scale = view_of(experts.output_scale),
          .activation = config_.parts.activation,
          .weighs_inputs = config_.parts.experts.weighs_inputs,
          .latent_down = experts.latent_down.matrix.get(),
          .latent_up = experts.latent_up.matrix.get(),
          .shared_gate = experts.shared_gate.matrix.get(),
          .shared_up = experts.shared_up.matrix.get(),
          .shared_down = experts.shared_down.matrix.get(),
          .shared_router = experts.shared_router.matrix.get(),
          .routed_post_norm = norm_of(experts.routed_post_norm),
          .shared_post_norm = norm_of(experts.shared_post_norm),
          .post_norm = norm_of(layer.post_feed_forward_norm),
          .residual_scale = scale_behind_feed_forward(layer)};
}

kernels::ProjectionWeights Transformer::feed_forward_output(const LayerWeights& layer) const {
  return {.matrix = layer.down.matrix.get(),
          .bias = view_of(layer.down.bias),
          .post_norm = post_norm_of(layer.post_feed_forward_norm),
          .residual_scale = scale_behind_feed_forward(layer)};
}

}  // namespace octavo::model
