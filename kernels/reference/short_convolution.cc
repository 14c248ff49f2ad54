#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape&,
                                         const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                         StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_stateful_row(batch, cache, layer, [&](std::int32_t row, const LayerState& state) {
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    std::vector<float> inputs = product(*weights.input, normalised);
    const std::vector<float> input_gate = product(*weights.input_gate, normalised),
                             output_gate = product(*weights.output_gate, normalised);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] *= input_gate[i];
    if (state.draft != nullptr) std::copy(inputs.begin(), inputs.end(), state.draft);
    const std::vector<double> sums = convolve(weights.convolution, {}, inputs, state.convolution);
    for (std::size_t i = 0; i < sums.size(); ++i)
      out.row(row)[i] = static_cast<float>(double{output_gate[i]} * sums[i]);
  });
}

void ReferenceBackend::accept_short_convolution(const ShortConvolutionWeights& weights,
                                                const ShortConvolutionShape& shape, const PagedBatch& batch,
                                                std::int32_t layer,
                                                std::span<const std::int32_t> num_accepted,
                                                StateCache& states) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_accepted_row(batch, num_accepted, cache, layer, [&](const LayerState& state) {
    convolve(weights.convolution, {}, {state.draft, state.draft + shape.num_channels}, state.convolution);
  });
}

}  // namespace octavo::kernels::reference
