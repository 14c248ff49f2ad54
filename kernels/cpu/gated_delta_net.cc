// The products of all rows as one list; the gates, row by row; the convolution and the norms of queries and
// keys, head by head; then the recurrence, head by head. A sequence's rows are taken in order wherever one
// needs what the one before it left behind.
#include <array>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

// Products of a step's rows, which the later loops change in place.
struct CpuBackend::DeltaNetRows {
  MatrixView channels;  // queries, keys and values of all heads; in the end their outputs instead of values
  MatrixView alpha, beta;  // then the factors of S and of the error
};

namespace {

std::int64_t key_head_of(const DeltaNetShape& shape, std::int64_t value_head) {
  return shape.key_head_order == KeyHeadOrder::kTiled
             ? value_head % shape.num_key_heads
             : value_head / (shape.num_value_heads / shape.num_key_heads);
}

}  // namespace

void CpuBackend::gated_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                 const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                 StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  const auto& query_key_value = static_cast<const PackedMatrix&>(*weights.query_key_value);
  const auto& gate = static_cast<const PackedMatrix&>(*weights.gate);
  const auto& alpha = static_cast<const PackedMatrix&>(*weights.alpha);
  const auto& beta = static_cast<const PackedMatrix&>(*weights.beta);
  const std::int64_t num_rows = batch.num_tokens, channels = shape.channels(), heads = shape.num_value_heads;
  float* const products = product_rows_.reserve(num_rows * product_row_floats(shape));
  float* const gates = products + num_rows * channels;
  const DeltaNetRows rows{.channels = {products, num_rows, channels, channels},
                          .alpha = {gates, num_rows, heads, heads},
                          .beta = {gates + num_rows * heads, num_rows, heads, heads}};

  set_normalised(weights.norm, {x.data, num_rows, x.columns, x.stride}, {},
                 query_key_value.activation_forms() | gate.activation_forms() | alpha.activation_forms() |
                     beta.activation_forms());
  const Product list[] = {
      {&query_key_value, rows.channels}, {&gate, out}, {&alpha, rows.alpha}, {&beta, rows.beta}};
  multiply(list);
  for_each_row(num_rows, [&](std::int64_t row, std::int32_t) {
    kernels_.softplus(rows.alpha.row(row), weights.time_bias.data(), heads);
    kernels_.exp_scaled(rows.alpha.row(row), weights.decay.data(), heads);
    kernels_.sigmoid(rows.beta.row(row), heads);
  });
  list_rows(batch, sequence_rows_);
  keep_drafts(layer, cache, std::array{rows.channels, rows.alpha, rows.beta});
  convolve_delta_net(weights, shape, layer, cache, rows);
  run_delta_rule(weights, shape, layer, cache, rows, out);
}

void CpuBackend::accept_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                  const PagedBatch& batch, std::int32_t layer,
                                  std::span<const std::int32_t> num_accepted, StateCache& states) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  const std::int64_t heads = shape.num_value_heads;
  const auto [channels, alpha, beta] = kept_drafts(layer, cache, {shape.channels(), heads, heads});
  const DeltaNetRows rows{.channels = channels, .alpha = alpha, .beta = beta};
  list_accepted(batch, num_accepted, sequence_rows_);
  convolve_delta_net(weights, shape, layer, cache, rows);
  run_delta_rule(weights, shape, layer, cache, rows, {});
}

void CpuBackend::convolve_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                    std::int32_t layer, const CpuStateCache& states,
                                    const DeltaNetRows& rows) {
  const ChannelPieces heads = pieces_of(shape);
  const std::int64_t num_queries = shape.num_key_heads, num_keys = num_queries;
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(shape.key_dim));
  for_each_sequence_part(
      heads.count(), [&](const SequenceRows& sequence, std::int64_t index, std::int32_t worker) {
        const ChannelPieces::Piece head = heads.at(index);
        for_known_and_draft(sequence, convolution_part(states, sequence.state, layer, shape.channels(), head),
                            worker, [&](const SequenceRows& some, const StatePart& history) {
                              ChannelConvolution job =
                                  convolution_of(some, history, rows.channels, weights.convolution, head);
                              job.applies_silu = true;
                              convolve(job, worker);
                            });
        if (index >= num_queries + num_keys) return;
        const float scale = index < num_queries ? query_scale : 1.0f;
        for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row) {
          kernels_.unit_vector(rows.channels.row(row) + head.first, weights.norm.epsilon, scale, head.count);
        }
      });
}

void CpuBackend::run_delta_rule(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                std::int32_t layer, const CpuStateCache& states, const DeltaNetRows& rows,
                                MatrixView out) {
  const std::int64_t state_floats = std::int64_t{shape.key_dim} * shape.value_dim;
  for_each_sequence_part(
      shape.num_value_heads, [&](const SequenceRows& sequence, std::int64_t head, std::int32_t worker) {
        const std::int64_t key_at = key_head_of(shape, head) * shape.key_dim, at = head * shape.value_dim,
                           value_at = 2 * shape.query_columns() + at;
        const StatePart state{states.recurrent(sequence.state, layer) + at * shape.key_dim, 1, state_floats,
                              state_floats};
        for_known_and_draft(sequence, state, worker, [&](const SequenceRows& some, const StatePart& part) {
          float* const channels = rows.channels.row(some.first);
          kernels_.delta_rule({.state = part.numbers,
                               .key_dim = shape.key_dim,
                               .value_dim = shape.value_dim,
                               .num_rows = some.count,
                               .queries = channels + key_at,
                               .keys = channels + shape.query_columns() + key_at,
                               .values = channels + value_at,
                               .row_stride = rows.channels.stride,
                               .decays = rows.alpha.row(some.first) + head,
                               .betas = rows.beta.row(some.first) + head,
                               .gate_stride = rows.alpha.stride});
        });
        if (out.data == nullptr) return;
        for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row) {
          float* const output = rows.channels.row(row) + value_at;
          normalise(weights.output_norm, output, output);
          kernels_.silu_mul(out.row(row) + at, output, shape.value_dim);
        }
      });
}

}  // namespace octavo::kernels::cpu
