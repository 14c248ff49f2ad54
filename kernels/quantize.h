// Rows of floats to quantised blocks: the other way round from dequantize.h, for quantising at load and for
// writing files.
//
// Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1 give the bytes that gguf.quants.quantize of the PyPI package gguf gives.
// Q4_K, Q5_K and Q6_K search: of each sub-block several steps are tried, the integers rounded by each, and
// scale (and min) fitted to these integers by weighted least squares; the best of all stays, is rounded with
// the block's other scales, and the integers are rounded again by what came out. Larger weights count more,
// as much as their magnitude: weight = |x| + root mean square of the sub-block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/tensor.h"

namespace octavo::kernels {

// F32, F16, BF16 and the types above.
bool can_quantize(TensorType type);

// REQUIRES: can_quantize(type); num_elements % traits_of(type).block_elements == 0; numbers are finite; `out`
// holds their blocks
void quantize(TensorType type, const float* source, std::int64_t num_elements, std::byte* out);

// `type`, or what a row of so many columns can have in its place, as llama.cpp chooses: Q4_K becomes Q5_0,
// Q5_K Q5_1, Q6_K Q8_0. nullopt: none.
std::optional<TensorType> type_for_columns(TensorType type, std::int64_t columns);

}  // namespace octavo::kernels
