#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double silu(double x) { return x / (1.0 + std::exp(-x)); }

double softplus(double x) { return x > 20.0 ? x : std::log1p(std::exp(x)); }

}  // namespace octavo::kernels::reference
