#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

std::vector<float> rms_norm(const float* x, std::span<const float> weight, float epsilon) {
  double sum = 0.0;
  for (std::size_t i = 0; i < weight.size(); ++i) sum += double{x[i]} * double{x[i]};
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(weight.size()) + double{epsilon});
  std::vector<float> out(weight.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(double{x[i]} * scale * double{weight[i]});
  return out;
}

}  // namespace octavo::kernels::reference
