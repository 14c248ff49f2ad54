// In host memory, so by the host's backend.
#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {

void CudaBackend::softmax_weights(std::span<const double> scores, double best, double inverse_temperature,
                                  std::span<double> weights, std::span<double> piece_sums) {
  host_->softmax_weights(scores, best, inverse_temperature, weights, piece_sums);
}

}  // namespace octavo::kernels::cuda
