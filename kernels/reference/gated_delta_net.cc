#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

using Numbers = std::vector<double>;

// Numbers first..first + count - 1, divided by the root of the sum of their squares and epsilon.
Numbers unit_vector(const Numbers& numbers, std::int64_t first, std::int64_t count, double epsilon) {
  Numbers vector(numbers.begin() + first, numbers.begin() + first + count);
  double sum = epsilon;
  for (const double each : vector) sum += each * each;
  for (double& each : vector) each /= std::sqrt(sum);
  return vector;
}

std::int64_t key_head_of(const DeltaNetShape& shape, std::int64_t value_head) {
  return shape.key_head_order == KeyHeadOrder::kTiled
             ? value_head % shape.num_key_heads
             : value_head / (shape.num_value_heads / shape.num_key_heads);
}

// What one token brings to one value head.
struct HeadInput {
  Numbers query, key, value;
  double decay, beta;
};

// The products that a token brings to the state: queries, keys and values, then alpha and beta of each head.
std::vector<float> products_of(const DeltaNetWeights& weights, const std::vector<float>& x) {
  std::vector<float> products = product(*weights.query_key_value, x);
  for (const Matrix* const matrix : {weights.alpha, weights.beta}) {
    const std::vector<float> more = product(*matrix, x);
    products.insert(products.end(), more.begin(), more.end());
  }
  return products;
}

// One token's numbers for all heads.
class Token {
 public:
  // Takes up the token's input of the convolution.
  Token(const DeltaNetWeights& weights, const DeltaNetShape& shape, const float* products, float* history)
      : weights_(weights),
        shape_(shape),
        channels_(convolve(weights.convolution, {}, {products, products + shape.channels()}, history)),
        alpha_(products + shape.channels(), products + shape.channels() + shape.num_value_heads),
        beta_(products + shape.channels() + shape.num_value_heads, products + shape.draft_floats()) {
    for (double& each : channels_) each = silu(each);
  }

  HeadInput head(std::int64_t value_head) const {
    const std::int64_t key_at = key_head_of(shape_, value_head) * shape_.key_dim;
    const std::int64_t value_at = 2 * shape_.query_columns() + value_head * shape_.value_dim;
    const double epsilon = double{weights_.norm.epsilon};
    const auto index = static_cast<std::size_t>(value_head);
    HeadInput input;
    input.query = unit_vector(channels_, key_at, shape_.key_dim, epsilon);
    for (double& each : input.query) each /= std::sqrt(static_cast<double>(shape_.key_dim));
    input.key = unit_vector(channels_, shape_.query_columns() + key_at, shape_.key_dim, epsilon);
    input.value = {channels_.begin() + value_at, channels_.begin() + value_at + shape_.value_dim};
    const double time = softplus(double{alpha_[index]} + double{weights_.time_bias[index]});
    input.decay = std::exp(double{weights_.decay[index]} * time);
    input.beta = sigmoid(double{beta_[index]});
    return input;
  }

 private:
  const DeltaNetWeights& weights_;
  const DeltaNetShape& shape_;
  Numbers channels_;
  std::vector<float> alpha_, beta_;
};

// The output of one head, and its S [key_dim][value_dim] after the token.
std::vector<float> update(const HeadInput& in, float* state) {
  const std::size_t width = in.value.size();
  std::vector<float> out;
  for (std::size_t v = 0; v < width; ++v) {
    double known = 0.0, sum = 0.0;
    for (std::size_t k = 0; k < in.key.size(); ++k)
      known += in.decay * double{state[k * width + v]} * in.key[k];
    const double error = in.beta * (in.value[v] - known);
    for (std::size_t k = 0; k < in.key.size(); ++k) {
      float& number = state[k * width + v];
      number = static_cast<float>(in.decay * double{number} + in.key[k] * error);
      sum += double{number} * in.query[k];
    }
    out.push_back(static_cast<float>(sum));
  }
  return out;
}

}  // namespace

void ReferenceBackend::gated_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x,
                                       StateCache& states, MatrixView out) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_stateful_row(batch, cache, layer, [&](std::int32_t row, const LayerState& state) {
    const std::vector<float> normalised = norm(x.row(row), weights.norm);
    const std::vector<float> products = products_of(weights, normalised);
    if (state.draft != nullptr) std::copy(products.begin(), products.end(), state.draft);
    const Token token(weights, shape, products.data(), state.convolution);
    const std::vector<float> gate = product(*weights.gate, normalised);
    for (std::int64_t head = 0; head < shape.num_value_heads; ++head) {
      const std::int64_t at = head * shape.value_dim;
      float* const head_state = state.recurrent + at * shape.key_dim;
      const std::vector<float> o = norm(update(token.head(head), head_state).data(), weights.output_norm);
      for (std::size_t i = 0; i < o.size(); ++i) {
        const std::size_t column = static_cast<std::size_t>(at) + i;
        out.row(row)[column] = static_cast<float>(double{o[i]} * silu(double{gate[column]}));
      }
    }
  });
}

void ReferenceBackend::accept_delta_net(const DeltaNetWeights& weights, const DeltaNetShape& shape,
                                        const PagedBatch& batch, std::int32_t layer,
                                        std::span<const std::int32_t> num_accepted, StateCache& states) {
  const auto& cache = static_cast<const ReferenceStateCache&>(states);
  for_each_accepted_row(batch, num_accepted, cache, layer, [&](const LayerState& state) {
    const Token token(weights, shape, state.draft, state.convolution);
    for (std::int64_t head = 0; head < shape.num_value_heads; ++head)
      update(token.head(head), state.recurrent + head * shape.value_dim * shape.key_dim);
  });
}

}  // namespace octavo::kernels::reference
