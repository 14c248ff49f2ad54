// Norms happen while the products' input is prepared, activations where their sums are stored.
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/product_arguments.h"

namespace octavo::kernels::cuda {

void CudaBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                     MatrixView out) {
  if (weights.gate == nullptr) {
    Product up = product(weights.up, weights.up_bias, out.data, out.stride);
    up.epilogue = epilogue_of(weights.activation);
    products_->multiply(normalised(x, weights.norm), std::span(&up, 1));
    return;
  }
  products_->multiply_gate_up(normalised(x, weights.norm), {.gate = &device_matrix(*weights.gate),
                                                            .up = &device_matrix(*weights.up),
                                                            .gate_bias = data_of(weights.gate_bias),
                                                            .up_bias = data_of(weights.up_bias),
                                                            .out = out.data,
                                                            .out_stride = out.stride,
                                                            .activation = weights.activation});
}

}  // namespace octavo::kernels::cuda
