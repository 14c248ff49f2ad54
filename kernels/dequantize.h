// Quantised rows to floats: the definition of every tensor type, in plain code, for the reference backend,
// for converting at load and for tests. Bit-equal to `gguf.quants.dequantize` of the PyPI package gguf; of
// Q1_0 and Q2_0, which that does not know, to ggml's dequantize_row_q1_0 and dequantize_row_q2_0. Types that
// no GGUF file holds are what tensor.h says; their blocks are scale, zero point if there is one, and then
// numbers: bytes, or nibbles in pieces of 16 bytes, each of 32 columns with the second half in the upper
// nibbles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace octavo::kernels {

// REQUIRES: num_elements % traits_of(type).block_elements == 0. `source` need not be aligned.
void dequantize(TensorType type, const std::byte* source, std::int64_t num_elements, float* out);

// The scale of a block of MXFP4: 2^(exponent - 128), denormal for the two smallest.
float mxfp4_scale(std::uint8_t exponent);

// The scale of 16 numbers of NVFP4, of which the uppermost bit does not count: half of an unsigned float with
// four bits of exponent and three of mantissa. Its largest value stands for zero, but only without the
// uppermost bit.
float nvfp4_scale(std::uint8_t stored);

}  // namespace octavo::kernels
