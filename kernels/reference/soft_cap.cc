#include <cmath>
#include <limits>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

double soft_capped(double x, float cap) {
  if (cap == 0.0f) return x;
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  return double{cap} * std::tanh(x / double{cap});
}

}  // namespace octavo::kernels::reference
