// The products of all rows as one list; then gates and convolution, some neighbouring channels at a time.
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {
namespace {

MatrixView columns_of(MatrixView view, const ChannelPieces::Piece& piece) {
  return {view.data + piece.first, view.rows, piece.count, view.stride};
}

}  // namespace

void CpuBackend::short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape& shape,
                                   const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                   StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  const auto& input = static_cast<const PackedMatrix&>(*weights.input);
  const auto& input_gate = static_cast<const PackedMatrix&>(*weights.input_gate);
  const auto& output_gate = static_cast<const PackedMatrix&>(*weights.output_gate);
  const std::int64_t num_rows = batch.num_tokens, channels = shape.num_channels;
  float* const products = product_rows_.reserve(num_rows * product_row_floats(shape));
  const MatrixView inputs{products, num_rows, channels, channels};
  const MatrixView gates{products + num_rows * channels, num_rows, channels, channels};

  set_normalised(weights.norm, {x.data, num_rows, x.columns, x.stride}, {},
                 input.activation_forms() | input_gate.activation_forms() | output_gate.activation_forms());
  const Product list[] = {{&input, inputs}, {&input_gate, gates}, {&output_gate, out}};
  multiply(list);
  list_rows(batch, sequence_rows_);
  check_drafts(layer, cache);
  const ChannelPieces pieces = pieces_of(shape);
  for_each_sequence_part(pieces.count(), [&](const SequenceRows& sequence, std::int64_t index,
                                             std::int32_t worker) {
    const ChannelPieces::Piece piece = pieces.at(index);
    const auto multiply_rows = [&](MatrixView target, MatrixView by) {
      for (std::int64_t row = sequence.first; row < sequence.first + sequence.count; ++row)
        kernels_.multiply_row(target.row(row) + piece.first, by.row(row) + piece.first, piece.count);
    };
    multiply_rows(inputs, gates);
    keep_draft(sequence, columns_of(inputs, piece), columns_of(cache.drafts(layer), piece));
    for_known_and_draft(sequence, convolution_part(cache, sequence.state, layer, channels, piece), worker,
                        [&](const SequenceRows& some, const StatePart& history) {
                          convolve(convolution_of(some, history, inputs, weights.convolution, piece), worker);
                        });
    multiply_rows(out, inputs);
  });
}

void CpuBackend::accept_short_convolution(const ShortConvolutionWeights& weights,
                                          const ShortConvolutionShape& shape, const PagedBatch& batch,
                                          std::int32_t layer, std::span<const std::int32_t> num_accepted,
                                          StateCache& states) {
  const auto& cache = static_cast<const CpuStateCache&>(states);
  list_accepted(batch, num_accepted, sequence_rows_);
  const ChannelPieces pieces = pieces_of(shape);
  for_each_sequence_part(
      pieces.count(), [&](const SequenceRows& sequence, std::int64_t index, std::int32_t worker) {
        const ChannelPieces::Piece piece = pieces.at(index);
        const StatePart history = convolution_part(cache, sequence.state, layer, shape.num_channels, piece);
        convolve(convolution_of(sequence, history, cache.drafts(layer), weights.convolution, piece), worker);
      });
}

}  // namespace octavo::kernels::cpu
