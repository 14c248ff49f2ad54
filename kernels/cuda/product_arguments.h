// The weights and views of backend.h as arguments of matmul/matmul.h.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/matmul/matmul.h"

namespace octavo::kernels::cuda {

inline const DeviceMatrix& device_matrix(const Matrix& matrix) {
  return static_cast<const DeviceMatrix&>(matrix);
}

inline const float* data_of(std::span<const float> vector) {
  return vector.empty() ? nullptr : vector.data();
}

inline ProductInput rows_of(ConstMatrixView view) {
  return {.data = view.data, .stride = view.stride, .num_rows = static_cast<std::int32_t>(view.rows)};
}

inline ProductInput normalised(ConstMatrixView view, const NormWeights& norm) {
  ProductInput input = rows_of(view);
  input.norm = norm.weight.data();
  input.norm_epsilon = norm.epsilon;
  input.norm_kind = norm.kind;
  input.norm_bias = data_of(norm.bias);
  return input;
}

inline Product product(const Matrix* weights, std::span<const float> bias, float* out,
                       std::int64_t out_stride) {
  return {.weights = &device_matrix(*weights), .bias = data_of(bias), .out = out, .out_stride = out_stride};
}

}  // namespace octavo::kernels::cuda
