// The products of all rows as one list; the gates, row by row; the convolution and the norms of queries and
// keys, head by head; then the recurrence, head by head. A sequence's rows are taken in order wherever one
// needs what the one before it left behind.
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
                 query_key_value.activation_form() | gate.activation_form() | alpha.activation_form() |
                     beta.activation_form());
  const Product list[] = {
      {&query_key_value, rows.channels}, {&gate, out}, {&alpha, rows.alpha}, {&beta, rows.beta}};
  multiply(list);
  for_each_row(num_rows, [&](std::int64_t row, std::int32_t) {
    kernels_.softplus(rows.alpha.row(row), weights.time_bias.data(), heads);
    kernels_.exp_scaled(rows.alpha.row(row), weights.decay.data(), heads);
    kernels_.sigmoid(rows.beta.row(row), heads);
  });
  convolve_delta_net(weights, shape, batch, layer, cache, rows);
  run_delta_rule(weights, shape, batch, layer, cache, rows, out);
}

void CpuBackend::convolve_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                    const PagedBatch& batch, std::int32_t layer, const CpuStateCache& states,
                                    const DeltaNetRows& rows) {
  const ChannelPieces heads = pieces_of(shape);
  const std::int64_t num_queries = shape.num_key_heads, num_keys = num_queries;
  const float query_scale = 1.0f / std::sqrt(static_cast<float>(shape.key_dim));
  for_each_sequence_part(
      batch, heads.count(), [&](const SequenceRows& sequence, std::int64_t index, std::int32_t worker) {
        const ChannelPieces::Piece head = heads.at(index);
        ChannelConvolution job =
            convolution_of(sequence, states, layer, rows.channels, weights.convolution, head);
        job.applies_silu = true;
        convolve(job, worker);
        if (index >= num_queries + num_keys) return;
        const float scale = index < num_queries ? query_scale : 1.0f;
        for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row) {
          kernels_.unit_vector(rows.channels.row(row) + head.first, weights.norm.epsilon, scale, head.count);
        }
      });
}

void CpuBackend::run_delta_rule(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                const PagedBatch& batch, std::int32_t layer, const CpuStateCache& states,
                                const DeltaNetRows& rows, MatrixView out) {
  for_each_sequence_part(
      batch, shape.num_value_heads, [&](const SequenceRows& sequence, std::int64_t head, std::int32_t) {
        float* const channels = rows.channels.row(sequence.first);
        const std::int64_t key_at = key_head_of(shape, head) * shape.key_dim, at = head * shape.value_dim;
        float* const values = channels + 2 * shape.query_columns() + at;
        kernels_.delta_rule({.state = states.recurrent(sequence.state, layer) + at * shape.key_dim,
                             .key_dim = shape.key_dim,
                             .value_dim = shape.value_dim,
                             .num_rows = sequence.count,
                             .queries = channels + key_at,
                             .keys = channels + shape.query_columns() + key_at,
                             .values = values,
                             .row_stride = rows.channels.stride,
                             .decays = rows.alpha.row(sequence.first) + head,
                             .betas = rows.beta.row(sequence.first) + head,
                             .gate_stride = rows.alpha.stride});
        for (std::int64_t i = 0; i < sequence.count; ++i) {
          float* const output = values + i * rows.channels.stride;
          normalise(weights.output_norm, output, output);
          kernels_.silu_mul(out.row(sequence.first + i) + at, output, shape.value_dim);
        }
      });
}

}  // namespace octavo::kernels::cpu
