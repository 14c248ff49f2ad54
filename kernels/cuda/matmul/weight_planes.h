// How a matrix stands in device memory. Unquantised weights are rows of their numbers. Quantised ones are
// taken apart into planes, each an array [rows][groups] over groups of 32 columns, so that every load is
// aligned and a warp's loads stand side by side; a plane of blocks of 18 or 210 bytes would have neither.
// Columns are filled up with zeros to a multiple of 64, and so are the planes to one of 256 bytes.
// Each word of low and high bits belongs to one group, so that groups can be written apart.
//
// Groups stand in pairs, whose words take turns so that four lanes find what each of them multiplies side by
// side. Of a group's 32 integers q (unsigned, but for Q8_0; of IQ4_NL, IQ4_XS and MXFP4 places in a table of
// signed ones), with k its place in the pair:
//   low   8 bits each (Q8_0: 32 bytes, signed), 4 (16 bytes) or 2 (Q2_K, Q3_K: 8 bytes)
//           8 bits: byte b of the pair's word 4 j + 2 k + h: element 16 h + 4 j + b
//           4 bits: byte b of the pair's word 2 j + k: element 4 j + b in the low half, 16 + 4 j + b in
//             the high one
//           2 bits: byte b of the pair's word 2 k + j: elements 16 j + b, + 4, + 8, + 12 from the lowest
//             bits up
//   high  the bits above: 1 bit each (Q5_0, Q5_1, Q5_K, Q3_K: 4 bytes) or 2 (Q6_K: 8 bytes)
//           1 bit: bit 8 b + i of the pair's word k: element 4 i + b
//           2 bits: as the low ones
//   scale   f16 scale (Q4_0, Q5_0, Q8_0, IQ4_NL), bf16 scale (MXFP4: a power of two), f16 scale and f16
//           minimum (Q4_1, Q5_1); of blocks of 256 two bytes:
//           Q4_K, Q5_K: scale, minimum; Q3_K, Q6_K: signed scale of the first and of the last 16 columns;
//           IQ4_XS: the same twice; Q2_K: of each 16 columns the scale in the low, the minimum in the high
//           half of a byte
//   super   blocks of 256, one for 8 groups: f16 scale, f16 minimum (zero where there is none), with which
//           those bytes are multiplied
// The weight is scale * (q - offset) - minimum (Q4_1, Q5_1: + minimum), which dequantize.h defines.
//
// Bytes beyond those of the file: none for Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, IQ4_NL; 1 in 17 (MXFP4), 12 in
// 136 (IQ4_XS), 4 in 144 (Q4_K), 4 in 176 (Q5_K), 6 in 110 (Q3_K), 2 in 210 (Q6_K).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace octavo::kernels::cuda {

inline constexpr std::int64_t kGroupColumns = 32;
inline constexpr std::int64_t kSuperGroups = 8;  // groups of a block of 256
inline constexpr std::int64_t kPairGroups = 2, kPairColumns = kPairGroups * kGroupColumns;
inline constexpr std::int64_t kPaddedColumns = kPairColumns;  // rows are filled up to a multiple of it

constexpr std::int64_t padded_columns(std::int64_t columns) {
  return (columns + kPaddedColumns - 1) / kPaddedColumns * kPaddedColumns;
}

// Bytes that a plane holds for each group; 0: there is no such plane.
struct GroupBytes {
  std::int32_t low = 0, high = 0, scale = 0, super = 0;  // `super`: for 8 groups
};
GroupBytes group_bytes(TensorType type);

// Views of one matrix; a value that kernels take as an argument. Addresses are multiples of 16, rows too but
// for `scale`, `high` and `super`, whose rows stand close together.
struct WeightPlanes {
  TensorType type = TensorType::kF32;
  std::int32_t padding = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;         // columns filled up: elements from row to row
  const std::byte* low = nullptr;  // unquantised: the numbers themselves
  const std::byte* high = nullptr;
  const std::byte* scale = nullptr;
  const std::byte* super = nullptr;
};

// Where the planes stand in one piece of memory: of low, high, scale and super.
struct PlaneLayout {
  std::int64_t offsets[4] = {};
  std::int64_t bytes = 0;
};
PlaneLayout plane_layout(TensorType type, std::int64_t rows, std::int64_t columns);
WeightPlanes planes_at(const std::byte* memory, TensorType type, std::int64_t rows, std::int64_t columns);

}  // namespace octavo::kernels::cuda
