// Numbers whose operations nvcc must not fuse, so that a kernel computes the host's bits.
#pragma once

#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

// A double whose products and sums are each rounded once, as on the host: nvcc would fuse them.
struct Rounded {
  double value;

  __host__ __device__ explicit operator double() const { return value; }
  __host__ __device__ friend Rounded operator+(Rounded a, Rounded b) { return sum(a.value, b.value); }
  __host__ __device__ friend Rounded operator-(Rounded a, Rounded b) { return sum(a.value, -b.value); }
  __host__ __device__ friend Rounded operator*(Rounded a, Rounded b) {
#ifdef __CUDA_ARCH__
    return {__dmul_rn(a.value, b.value)};
#else
    return {a.value * b.value};
#endif
  }
  __host__ __device__ friend Rounded operator/(Rounded a, Rounded b) { return {a.value / b.value}; }

 private:
  __host__ __device__ static Rounded sum(double a, double b) {
#ifdef __CUDA_ARCH__
    return {__dadd_rn(a, b)};
#else
    return {a + b};
#endif
  }
};

}  // namespace octavo::kernels::cuda
