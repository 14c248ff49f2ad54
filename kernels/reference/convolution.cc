#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

std::vector<double> convolve(std::span<const float> weights, std::span<const float> bias,
                             const std::vector<float>& input, float* history) {
  const std::size_t channels = input.size(), width = weights.size() / channels;
  std::vector<double> sums;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    double sum = bias.empty() ? 0.0 : double{bias[channel]};
    for (std::size_t i = 0; i < width; ++i) {
      const float seen = i + 1 < width ? history[i * channels + channel] : input[channel];
      sum += double{weights[channel * width + i]} * double{seen};
    }
    sums.push_back(sum);
  }
  if (width == 1) return sums;
  std::copy(history + channels, history + (width - 1) * channels, history);
  std::copy(input.begin(), input.end(), history + (width - 2) * channels);
  return sums;
}

}  // namespace octavo::kernels::reference
