// Quantised rows to floats: the definition of every tensor type, in plain code, for the reference backend,
// for converting at load and for tests. Bit-equal to `gguf.quants.dequantize` of the PyPI package gguf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace octavo::kernels {

// REQUIRES: num_elements % traits_of(type).block_elements == 0. `source` need not be aligned.
void dequantize(TensorType type, const std::byte* source, std::int64_t num_elements, float* out);

// The scale of a block of MXFP4: 2^(exponent - 128), denormal for the two smallest.
float mxfp4_scale(std::uint8_t exponent);

}  // namespace octavo::kernels
