#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

using Numbers = std::vector<double>;

// A NaN is larger than every number, so that it is seen.
bool is_larger(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

// The places of the `count` largest, of equals the lower ones first.
std::vector<std::size_t> places_of_largest(const Numbers& values, std::int32_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return is_larger(values[a], values[b]); });
  places.resize(static_cast<std::size_t>(count));
  return places;
}

Numbers softmax(Numbers values) {
  const double largest = *std::max_element(values.begin(), values.end());
  double total = 0.0;
  for (double& value : values) total += value = std::exp(value - largest);
  for (double& value : values) value /= total;
  return values;
}

// The values of experts whose group is not used become minus infinity.
void leave_best_groups(const Routing& routing, Numbers& values) {
  if (routing.num_groups <= 1) return;
  const auto num_groups = static_cast<std::size_t>(routing.num_groups), size = values.size() / num_groups;
  Numbers worths;
  for (std::size_t group = 0; group < num_groups; ++group) {
    const Numbers members(values.begin() + static_cast<std::ptrdiff_t>(group * size),
                          values.begin() + static_cast<std::ptrdiff_t>((group + 1) * size));
    const auto best = places_of_largest(members, 2);
    worths.push_back(members[best[0]] + members[best[1]]);
  }
  const auto used = places_of_largest(worths, routing.num_used_groups);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::find(used.begin(), used.end(), i / size) == used.end())
      values[i] = -std::numeric_limits<double>::infinity();
  }
}

struct Choice {
  std::vector<std::size_t> experts;
  Numbers weights;
};

Choice choose(const Routing& routing, const Numbers& scores) {
  Numbers probabilities = scores;
  if (routing.scoring == RouterScoring::kSoftmax) probabilities = softmax(scores);
  if (routing.scoring == RouterScoring::kSigmoid) {
    for (double& each : probabilities) each = sigmoid(each);
  }
  Numbers values = probabilities;
  for (std::size_t i = 0; i < routing.selection_bias.size(); ++i)
    values[i] += double{routing.selection_bias[i]};
  leave_best_groups(routing, values);
  Choice choice{places_of_largest(values, routing.num_used), {}};
  for (const std::size_t expert : choice.experts) choice.weights.push_back(probabilities[expert]);
  if (routing.scoring == RouterScoring::kSoftmaxOfSelected) choice.weights = softmax(choice.weights);
  if (routing.scoring == RouterScoring::kSigmoidOfSelected) {
    for (double& each : choice.weights) each = sigmoid(each);
  }
  const double sum = std::accumulate(choice.weights.begin(), choice.weights.end(), 0.0);
  for (double& weight : choice.weights) {
    if (routing.normalises) weight /= std::max(sum, double{kLeastWeightSum});
    weight *= double{routing.scale};
  }
  return choice;
}

// Of an expert: a part of what stands one behind the other. No bias: none.
std::span<const float> bias_of(std::span<const float> biases, std::size_t expert, const Matrix& matrix) {
  if (biases.empty()) return {};
  const auto size = static_cast<std::size_t>(matrix.rows());
  return biases.subspan(expert * size, size);
}

// No gate: a vector without numbers.
std::vector<float> hidden(FeedForwardActivation activation, const std::vector<float>& gate,
                          std::vector<float> up) {
  for (std::size_t i = 0; i < up.size(); ++i) {
    const double value = gate.empty() ? activated(activation, double{up[i]})
                                      : gated(activation, double{gate[i]}, double{up[i]});
    up[i] = static_cast<float>(value);
  }
  return up;
}

std::vector<float> scaled(std::vector<float> values, double factor) {
  for (float& value : values) value = static_cast<float>(double{value} * factor);
  return values;
}

// What expert `expert` gives for `x`.
std::vector<float> output_of(const ExpertWeights& weights, std::size_t expert, const std::vector<float>& x) {
  const Matrix &up = *weights.up[expert], &down = *weights.down[expert];
  std::vector<float> gate_products;
  if (!weights.gate.empty()) {
    const Matrix& gate = *weights.gate[expert];
    gate_products = product(gate, x, bias_of(weights.gate_bias, expert, gate));
  }
  const std::vector<float> inner =
      hidden(weights.activation, gate_products, product(up, x, bias_of(weights.up_bias, expert, up)));
  return product(down, inner, bias_of(weights.down_bias, expert, down));
}

void add_scaled(Numbers& sum, const std::vector<float>& values, double factor) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * double{values[i]};
}

// In place; no weight: nothing.
void normalise(const NormWeights& weights, Numbers& values) {
  if (weights.weight.empty()) return;
  const std::vector<float> rounded(values.begin(), values.end());
  const std::vector<float> normalised = norm(rounded.data(), weights);
  values.assign(normalised.begin(), normalised.end());
}

const NormWeights& own_or(const NormWeights& own, const NormWeights& common) {
  return own.weight.empty() ? common : own;
}

}  // namespace

void ReferenceBackend::feed_forward_experts(const ExpertWeights& weights, MatrixView residual,
                                            std::span<std::int32_t> chosen) {
  for (std::int64_t row = 0; row < residual.rows; ++row) {
    const std::vector<float> x = norm(residual.row(row), weights.norm);
    const std::vector<float> router_x = norm(residual.row(row), own_or(weights.router_norm, weights.norm));
    const std::vector<float> scores = product(*weights.router, router_x, weights.router_bias);
    const Choice choice = choose(weights.routing, {scores.begin(), scores.end()});
    const std::size_t first = static_cast<std::size_t>(row) * choice.experts.size();
    for (std::size_t i = 0; i < choice.experts.size() && !chosen.empty(); ++i)
      chosen[first + i] = static_cast<std::int32_t>(choice.experts[i]);
    const std::vector<float> expert_x = weights.latent_down == nullptr ? x : product(*weights.latent_down, x);
    Numbers sum(expert_x.size(), 0.0);
    for (std::size_t i = 0; i < choice.experts.size(); ++i) {
      const std::size_t expert = choice.experts[i];
      const double scale = weights.output_scale.empty() ? 1.0 : double{weights.output_scale[expert]};
      if (weights.weighs_inputs) {
        add_scaled(sum, output_of(weights, expert, scaled(expert_x, choice.weights[i])), scale);
      } else {
        add_scaled(sum, output_of(weights, expert, expert_x), choice.weights[i] * scale);
      }
    }
    if (weights.latent_up != nullptr) {
      const std::vector<float> given = product(*weights.latent_up, {sum.begin(), sum.end()});
      sum.assign(given.begin(), given.end());
    }
    normalise(weights.routed_post_norm, sum);
    if (weights.shared_down != nullptr) {
      const std::vector<float> shared_x = norm(residual.row(row), own_or(weights.shared_norm, weights.norm));
      const std::vector<float> gate =
          weights.shared_gate == nullptr ? std::vector<float>() : product(*weights.shared_gate, shared_x);
      const std::vector<float> inner =
          hidden(weights.activation, gate, product(*weights.shared_up, shared_x));
      const double share = weights.shared_router == nullptr
                               ? 1.0
                               : sigmoid(double{product(*weights.shared_router, router_x)[0]});
      const std::vector<float> shared = product(*weights.shared_down, inner);
      Numbers given(shared.begin(), shared.end());
      normalise(weights.shared_post_norm, given);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += share * given[i];
    }
    normalise(weights.post_norm, sum);
    float* const sums = residual.row(row);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sums[i] = (sums[i] + static_cast<float>(sum[i])) * weights.residual_scale;
  }
}

}  // namespace octavo::kernels::reference
