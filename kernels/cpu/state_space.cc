// As gated_delta_net: the products of all rows, the time steps row by row, the convolution and then the
// recurrence head by head; norms of groups of heads come last.
#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

// Products of a step's rows, which the later loops change in place.
struct CpuBackend::StateSpaceRows {
  MatrixView channels;       // x of all heads, in the end their outputs; B and C of all groups
  MatrixView times, decays;  // factors of x and of S
};

void CpuBackend::state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                             const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                             StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  const auto& input = static_cast<const PackedMatrix&>(*weights.input);
  const auto& gate = static_cast<const PackedMatrix&>(*weights.gate);
  const auto& time_step = static_cast<const PackedMatrix&>(*weights.time_step);
  const std::int64_t num_rows = batch.num_tokens, channels = shape.channels(), heads = shape.num_heads;
  float* const products = product_rows_.reserve(num_rows * product_row_floats(shape));
  float* const times = products + num_rows * channels;
  const StateSpaceRows rows{.channels = {products, num_rows, channels, channels},
                            .times = {times, num_rows, heads, heads},
                            .decays = {times + num_rows * heads, num_rows, heads, heads}};

  set_normalised(weights.norm, {x.data, num_rows, x.columns, x.stride}, {},
                 input.activation_forms() | gate.activation_forms() | time_step.activation_forms());
  const Product list[] = {{&input, rows.channels}, {&gate, out}, {&time_step, rows.times}};
  multiply(list);
  for_each_row(num_rows, [&](std::int64_t row, std::int32_t) {
    kernels_.softplus(rows.times.row(row), weights.time_bias.data(), heads);
    std::copy_n(rows.times.row(row), heads, rows.decays.row(row));
    kernels_.exp_scaled(rows.decays.row(row), weights.decay.data(), heads);
  });
  list_rows(batch, sequence_rows_);
  keep_drafts(layer, cache, std::array{rows.channels, rows.times, rows.decays});
  convolve_state_space(weights, shape, layer, cache, rows);
  run_state_space(weights, shape, layer, cache, rows, out);
  if (weights.output_norm.weight.empty()) return;
  for_each_row(num_rows, [&](std::int64_t row, std::int32_t) {
    const std::int64_t size = shape.inner_columns() / shape.num_groups;
    for (std::int64_t at = 0; at < shape.inner_columns(); at += size) {
      kernels_.rms_norm(out.row(row) + at, weights.output_norm.weight.data() + at,
                        weights.output_norm.epsilon, size, out.row(row) + at);
    }
  });
}

void CpuBackend::accept_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                    const PagedBatch& batch, std::int32_t layer,
                                    std::span<const std::int32_t> num_accepted, StateCache& states) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  const std::int64_t heads = shape.num_heads;
  const auto [channels, times, decays] = kept_drafts(layer, cache, {shape.channels(), heads, heads});
  const StateSpaceRows rows{.channels = channels, .times = times, .decays = decays};
  list_accepted(batch, num_accepted, sequence_rows_);
  convolve_state_space(weights, shape, layer, cache, rows);
  run_state_space(weights, shape, layer, cache, rows, {});
}

void CpuBackend::convolve_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                      std::int32_t layer, const CpuStateCache& states,
                                      const StateSpaceRows& rows) {
  const ChannelPieces pieces = pieces_of(shape);
  for_each_sequence_part(pieces.count(), [&](const SequenceRows& sequence, std::int64_t index,
                                             std::int32_t worker) {
    const ChannelPieces::Piece piece = pieces.at(index);
    for_known_and_draft(sequence, convolution_part(states, sequence.state, layer, shape.channels(), piece),
                        worker, [&](const SequenceRows& some, const StatePart& history) {
                          ChannelConvolution job =
                              convolution_of(some, history, rows.channels, weights.convolution, piece);
                          if (!weights.convolution_bias.empty())
                            job.bias = weights.convolution_bias.data() + piece.first;
                          job.applies_silu = true;
                          convolve(job, worker);
                        });
  });
}

void CpuBackend::run_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                 std::int32_t layer, const CpuStateCache& states, const StateSpaceRows& rows,
                                 MatrixView out) {
  const std::int64_t state_floats = std::int64_t{shape.state_size} * shape.head_dim;
  for_each_sequence_part(
      shape.num_heads, [&](const SequenceRows& sequence, std::int64_t head, std::int32_t worker) {
        const std::int64_t at = head * shape.head_dim;
        const std::int64_t group_at =
            shape.inner_columns() + head / (shape.num_heads / shape.num_groups) * shape.state_size;
        const StatePart state{states.recurrent(sequence.state, layer) + at * shape.state_size, 1,
                              state_floats, state_floats};
        for_known_and_draft(sequence, state, worker, [&](const SequenceRows& some, const StatePart& part) {
          float* const channels = rows.channels.row(some.first);
          kernels_.state_space({.state = part.numbers,
                                .state_size = shape.state_size,
                                .head_dim = shape.head_dim,
                                .num_rows = some.count,
                                .inputs = channels + at,
                                .writes = channels + group_at,
                                .reads = channels + group_at + shape.group_columns(),
                                .row_stride = rows.channels.stride,
                                .decays = rows.decays.row(some.first) + head,
                                .times = rows.times.row(some.first) + head,
                                .time_stride = rows.times.stride,
                                .skip = weights.skip[static_cast<std::size_t>(head)]});
        });
        if (out.data == nullptr) return;
        for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row)
          kernels_.silu_mul(out.row(row) + at, rows.channels.row(row) + at, shape.head_dim);
      });
}

}  // namespace octavo::kernels::cpu
