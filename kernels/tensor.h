// Types of stored numbers, and views of them. Views own nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace octavo::kernels {

// Numbering of GGUF (ggml's `enum ggml_type`); these are the types that Octavo reads.
enum class TensorType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
  // Types that no GGUF file holds: what other checkpoints keep, exactly. G: as many neighbouring columns
  // share a float32 scale and, of integers, an 8-bit zero point: weight = scale * (stored - zero); U4's zero
  // point is at most 16.
  kU4_G32 = 1000,
  kU4_G128 = 1001,
  kU8_G32 = 1002,
  kU8_G128 = 1003,
  // weight = scale * the number of an 8-bit float (float8.h, e4m3); no NaN.
  kF8_G32 = 1004,
  kF8_G128 = 1005,
};

struct TensorTypeTraits {
  std::string_view name;        // "Q4_1"
  std::int32_t block_elements;  // consecutive elements of a row that share their scales
  std::int32_t block_bytes;
  bool quantised;
};

// nullopt: not one of GGUF's types above.
std::optional<TensorType> tensor_type_from(std::uint32_t ggml_type);
// The same of all types above.
std::optional<TensorType> known_tensor_type(std::uint32_t number);
const TensorTypeTraits& traits_of(TensorType type);

// Whether rows that meet the type may be rounded to integers: not if its numbers are floats themselves.
bool meets_integers(TensorType type);

// Weights as they stand in the file: `rows` output features of `columns` inputs each, row-major, no padding.
// REQUIRES: columns % traits_of(type).block_elements == 0; bytes.size() == rows * columns
// / block_elements * block_bytes.
struct MatrixSource {
  TensorType type = TensorType::kF32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::byte> bytes;
  // Of every product of a row, its sum finished: what files keep beside the weights (NVFP4).
  float scale = 1.0f;
  // Column i of `bytes` is input column_order[i], a permutation; empty: input i. Checkpoints whose groups
  // are not neighbours have it (GPTQ's desc_act). Only the CPU and the reference multiply by such a matrix.
  std::span<const std::int32_t> column_order = {};
};

// Row-major float matrix in a backend's memory; rows are `stride` elements apart.
struct MatrixView {
  float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  float* row(std::int64_t index) const { return data + index * stride; }
};

struct ConstMatrixView {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;

  ConstMatrixView() = default;
  ConstMatrixView(const float* data_, std::int64_t rows_, std::int64_t columns_, std::int64_t stride_)
      : data(data_), rows(rows_), columns(columns_), stride(stride_) {}
  ConstMatrixView(MatrixView view)  // NOLINT: implicit on purpose
      : data(view.data), rows(view.rows), columns(view.columns), stride(view.stride) {}

  const float* row(std::int64_t index) const { return data + index * stride; }
};

}  // namespace octavo::kernels
