#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

// What one token brings to one head.
struct HeadInput {
  const double *x, *write, *read;  // [head_dim], [state_size] twice: B and C
  double decay, time, skip;
};

// The head's output, and its S [state_size][head_dim] after the token.
void update(const StateSpaceShape& shape, const HeadInput& in, float* state, double* out) {
  for (std::int32_t i = 0; i < shape.head_dim; ++i) {
    double sum = 0.0;
    for (std::int32_t n = 0; n < shape.state_size; ++n) {
      float& number = state[n * shape.head_dim + i];
      number = static_cast<float>(in.decay * double{number} + in.write[n] * in.time * in.x[i]);
      sum += double{number} * in.read[n];
    }
    out[i] = sum + in.skip * in.x[i];
  }
}

// What a token brings to the state: x of all heads, B and C of all groups, then the time step of each head.
std::vector<float> products_of(const StateSpaceWeights& weights, const std::vector<float>& x) {
  std::vector<float> products = product(*weights.input, x);
  const std::vector<float> time_step = product(*weights.time_step, x);
  products.insert(products.end(), time_step.begin(), time_step.end());
  return products;
}

// One token of all heads.
std::vector<double> run_token(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                              const float* products, float* state, float* history) {
  const float* const time_step = products + shape.channels();
  std::vector<double> channels =
      convolve(weights.convolution, weights.convolution_bias, {products, time_step}, history);
  for (double& each : channels) each = silu(each);
  std::vector<double> out(static_cast<std::size_t>(shape.inner_columns()));
  for (std::int32_t head = 0; head < shape.num_heads; ++head) {
    const auto index = static_cast<std::size_t>(head);
    const double* const group = channels.data() + shape.inner_columns() +
                                std::int64_t{head / (shape.num_heads / shape.num_groups)} * shape.state_size;
    const std::int64_t at = std::int64_t{head} * shape.head_dim;
    const double time = softplus(double{time_step[index]} + double{weights.time_bias[index]});
    update(shape,
           {.x = channels.data() + at,
            .write = group,
            .read = group + shape.group_columns(),
            .decay = std::exp(double{weights.decay[index]} * time),
            .time = time,
            .skip = double{weights.skip[index]}},
           state + at * shape.state_size, out.data() + at);
  }
  return out;
}

// Each part of the row by itself, with its part of the weight.
void normalise_parts(const NormWeights& weights, std::int64_t num_parts, float* row) {
  const std::size_t size = weights.weight.size() / static_cast<std::size_t>(num_parts);
  for (std::size_t at = 0; at < weights.weight.size(); at += size) {
    NormWeights part = weights;
    part.weight = weights.weight.subspan(at, size);
    const std::vector<float> normalised = norm(row + at, part);
    std::copy(normalised.begin(), normalised.end(), row + at);
  }
}

}  // namespace

void ReferenceBackend::state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                   const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                   StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_stateful_row(batch, cache, layer, [&](std::int32_t row, const LayerState& state) {
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    const std::vector<float> products = products_of(weights, normalised);
    if (state.draft != nullptr) std::copy(products.begin(), products.end(), state.draft);
    const std::vector<double> outputs =
        run_token(weights, shape, products.data(), state.recurrent, state.convolution);
    const std::vector<float> gate = product(*weights.gate, normalised);
    for (std::size_t i = 0; i < gate.size(); ++i)
      out.row(row)[i] = static_cast<float>(outputs[i] * silu(double{gate[i]}));
    if (!weights.output_norm.weight.empty())
      normalise_parts(weights.output_norm, shape.num_groups, out.row(row));
  });
}

void ReferenceBackend::accept_state_space(const StateSpaceWeights& weights, const StateSpaceShape& shape,
                                          const PagedBatch& batch, std::int32_t layer,
                                          std::span<const std::int32_t> num_accepted, StateCache& states) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_accepted_row(batch, num_accepted, cache, layer, [&](const LayerState& state) {
    run_token(weights, shape, state.draft, state.recurrent, state.convolution);
  });
}

}  // namespace octavo::kernels::reference
