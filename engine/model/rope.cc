#include "engine/model/rope.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace octavo::model {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

std::vector<double> unscaled(const RopeConfig& config, std::span<const float> divisors) {
  std::vector<double> frequencies(static_cast<std::size_t>(config.rotary_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / config.rotary_dim;
    frequencies[i] = std::pow(config.frequency_base, exponent) / (divisors.empty() ? 1.0 : divisors[i]);
  }
  return frequencies;
}

double blend(double low, double high, double share_of_high) {
  return low * (1.0 - share_of_high) + high * share_of_high;
}

double llama3_scaled(const RopeConfig& config, double frequency) {
  const double turns = config.original_context_length * frequency / kTwoPi;  // within the original context
  const double share =
      (turns - config.low_frequency_factor) / (config.high_frequency_factor - config.low_frequency_factor);
  return blend(frequency / config.factor, frequency, std::clamp(share, 0.0, 1.0));
}

// The (fractional) pair that turns `rotations` times within the original context.
double pair_with_rotations(const RopeConfig& config, double rotations) {
  return config.rotary_dim * std::log(config.original_context_length / (rotations * kTwoPi)) /
         (2.0 * std::log(config.frequency_base));
}

void scale_by_yarn(const RopeConfig& config, std::vector<double>& frequencies) {
  const double fast = pair_with_rotations(config, config.yarn_beta_fast),
               slow = pair_with_rotations(config, config.yarn_beta_slow);
  const double first = std::max(config.rounds_yarn_borders ? std::floor(fast) : fast, 0.0);
  const double last = std::min(config.rounds_yarn_borders ? std::ceil(slow) : slow, config.rotary_dim - 1.0);
  const double width = std::max(last - first, 0.001);  // the ramp may have no width
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - first) / width, 0.0, 1.0);
    const double share = (1.0 - ramp) * config.yarn_extrapolation_factor;
    frequencies[i] = blend(frequencies[i] / config.factor, frequencies[i], share);
  }
}

double yarn_attention_factor(const RopeConfig& config) {
  if (config.yarn_attention_factor) return *config.yarn_attention_factor;
  const double growth = config.factor > 1.0 ? 0.1 * std::log(config.factor) : 0.0;
  return (growth + 1.0) / (config.yarn_log_multiplier * growth + 1.0);
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeConfig& config, std::span<const float> divisors) {
  RopeFrequencies rope{unscaled(config, divisors), config.attention_multiplier};
  switch (config.scaling) {
    case RopeScalingType::kNone:
    case RopeScalingType::kLongRope: break;  // all in the divisors
    case RopeScalingType::kLinear:
      for (double& frequency : rope.inverse_frequencies) frequency /= config.factor;
      break;
    case RopeScalingType::kLlama3:
      if (!divisors.empty()) break;
      for (double& frequency : rope.inverse_frequencies) frequency = llama3_scaled(config, frequency);
      break;
    case RopeScalingType::kYarn:
      scale_by_yarn(config, rope.inverse_frequencies);
      rope.attention_factor *= yarn_attention_factor(config);
      break;
  }
  return rope;
}

// In double, because a float holds the angle of position 8,000 to within 0.0005 only.
void find_rotations(std::span<const std::int32_t> positions, const RopeFrequencies& rope,
                    std::vector<float>& rotations) {
  rotations.resize(positions.size() * rope.inverse_frequencies.size() * 2);
  float* out = rotations.data();
  for (const std::int32_t position : positions) {
    for (const double frequency : rope.inverse_frequencies) {
      const double angle = position * frequency;
      *out++ = static_cast<float>(std::cos(angle) * rope.attention_factor);
      *out++ = static_cast<float>(std::sin(angle) * rope.attention_factor);
    }
  }
}

}  // namespace octavo::model
