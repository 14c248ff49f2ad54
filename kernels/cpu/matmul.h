// Products of packed weights with rows of activations: out[r, n] = sum over k of W[n, k] * a[r, k].
//
// Numbers. Each output has one accumulator, which starts at zero and takes the columns in ascending groups of
// 32; nothing else enters its order, so other rows, their number, tiles, threads and instruction sets change
// no bit. With float activations:
//   w = fma(scale, stored, min), the value that dequantize.h defines;   acc = fma(w, a[k], acc) for each k
// With 8-bit or 16-bit activations, for each group (or each half of a group, where weights have a scale for
// every 16 columns):
//   dot = sum of (stored - offset) * value, exact in 32-bit integers
//   acc = fma(weight_scale * activation_scale, float(dot), acc)
//   acc = fma(weight_min, activation_scale * float(sum of values), acc), for formats that have a min
// In the end the accumulator is multiplied by the scale of the matrix, for most 1.
// The formats: simd/matmul_table.h. No value but NaN depends on more than that; which NaN is not promised.
//
// Method: weight rows in lanes as in GotoBLAS's packed panels (Goto & van de Geijn 2008, "Anatomy of
// high-performance matrix multiplication"), with the dot products of small integers in a lane that x86 has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/base/result.h"
#include "kernels/backend.h"
#include "kernels/cpu/activation_rows.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/packed_memory.h"
#include "kernels/cpu/simd/matmul_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor.h"

namespace octavo::kernels::cpu {

// Weights in panels of 16 rows; rows past the last are zero. Immutable.
class PackedMatrix final : public Matrix {
 public:
  std::int64_t memory_bytes() const override { return num_panels() * panel_bytes_; }

  std::int64_t num_panels() const { return (rows() + kPanelRows - 1) / kPanelRows; }
  PanelFormat format() const { return format_; }
  // What multiply_panels wants to find in the ActivationRows.
  ActivationForm activation_form() const { return activation_form_; }
  const ColumnOrder* column_order() const { return column_order_; }  // null: as the rows have them
  ActivationForms activation_forms() const { return {activation_form_, column_order_}; }

  const std::byte* panel(std::int64_t index) const { return data_ + index * panel_bytes_; }
  std::int64_t panel_bytes() const { return panel_bytes_; }
  const TileKernels& kernels() const { return *kernels_; }
  const BlockKernels* blocks() const { return blocks_; }  // null: rows come in tiles however many they are
  ExpandFunction expand() const { return expand_; }       // null where tiles read panels as they lie
  float scale() const { return scale_; }                  // of outputs

 private:
  friend Result<std::unique_ptr<PackedMatrix>> pack_matrix(const MatrixSource&, Activation, InstructionSet,
                                                           ThreadPool&, PackedMemory&, const ColumnOrder*);
  PackedMatrix(std::int64_t rows, std::int64_t columns) : Matrix(rows, columns) {}

  PanelFormat format_ = PanelFormat::kF32;
  ActivationForm activation_form_ = ActivationForm::kFloat;
  const std::byte* data_ = nullptr;  // owned by the PackedMemory
  std::int64_t panel_bytes_ = 0;
  const TileKernels* kernels_ = nullptr;
  const BlockKernels* blocks_ = nullptr;
  ExpandFunction expand_ = nullptr;
  float scale_ = 1.0f;
  const ColumnOrder* column_order_ = nullptr;  // outlives it
};

// Repacks weights of any type, panels in parallel. The matrix lives in `memory`, which outlives it; the
// source is not needed afterwards. Unquantised types meet float activations whatever `activation` says. Error
// kOutOfMemory. `column_order` is the source's, kept by somebody who outlives the matrix; null: none.
Result<std::unique_ptr<PackedMatrix>> pack_matrix(const MatrixSource& source, Activation activation,
                                                  InstructionSet isa, ThreadPool& pool, PackedMemory& memory,
                                                  const ColumnOrder* column_order = nullptr);

// Rows first <= r < last of ActivationRows.
struct RowRange {
  std::int64_t first, last;
};

// Writes out[r, n] for the rows r of `activations` in `rows` and the weight rows n of panels first_panel <= p
// < last_panel. Callers may run disjoint ranges of panels or rows at the same time.
//   out  [rows.last, weights.rows()]; only the rows of `rows` are touched, so what stands before them may be
//   anything
// REQUIRES: activations.columns() == weights.columns(); its forms include weights.activation_forms().
void multiply_panels(const PackedMatrix& weights, const ActivationRows& activations, RowRange rows,
                     std::int64_t first_panel, std::int64_t last_panel, MatrixView out);

// Of all rows.
inline void multiply_panels(const PackedMatrix& weights, const ActivationRows& activations,
                            std::int64_t first_panel, std::int64_t last_panel, MatrixView out) {
  multiply_panels(weights, activations, {0, activations.rows()}, first_panel, last_panel, out);
}

}  // namespace octavo::kernels::cpu
