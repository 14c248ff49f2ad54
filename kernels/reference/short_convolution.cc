#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::short_convolution(const ShortConvolutionWeights& weights, const ShortConvolutionShape&,
                                         const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                         StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_stateful_row(batch, [&](std::int32_t row, std::int32_t state) {
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    std::vector<float> inputs = product(*weights.input, normalised);
    const std::vector<float> input_gate = product(*weights.input_gate, normalised),
                             output_gate = product(*weights.output_gate, normalised);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] *= input_gate[i];
    const std::vector<double> sums =
        convolve(weights.convolution, {}, inputs, cache.convolution(state, layer));
    for (std::size_t i = 0; i < sums.size(); ++i)
      out.row(row)[i] = static_cast<float>(double{output_gate[i]} * sums[i]);
  });
}

}  // namespace octavo::kernels::reference
