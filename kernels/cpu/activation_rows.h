// The rows that one step multiplies with, in the forms that the products read.
//
// Numbers (kInt8 and kInt16; backend.h, Activation). Columns are taken in groups of 32; for each row and
// group
//   scale = max |a| / most, zero if that is below the smallest normal float; most is 127 or 32639
//   value = a / scale rounded to the nearest integer, ties to even; zero where scale is zero
// so that |value| <= most. 32639 is 127 * 256 + 127: a 16-bit value is also a pair of signed bytes,
// 256 * high + low, for devices that multiply bytes only. A group that holds an infinity or a NaN has the
// scale NaN and values zero, so that its products are NaN. A row's numbers depend on that row only, and are
// the same on every instruction set.
//
// Thread: reserve() belongs to one thread; afterwards distinct rows may be set in parallel, then read by any
// number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu {

// What a product reads; a set of them is what rows are kept in.
enum class ActivationForm : std::uint8_t { kFloat = 1, kInt8 = 2, kInt16 = 4 };

constexpr ActivationForm operator|(ActivationForm a, ActivationForm b) {
  return static_cast<ActivationForm>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool includes(ActivationForm forms, ActivationForm form) {
  return (static_cast<std::uint8_t>(forms) & static_cast<std::uint8_t>(form)) != 0;
}

// MatrixSource::column_order; the backend keeps each once, so that equal ones have one address.
using ColumnOrder = std::vector<std::int32_t>;

// What rows are kept in for all matrices of an operation: forms, and the same of rows whose columns stand in
// another order.
class ActivationForms {
 public:
  // As many matrices with orders of their own read the same rows: queries, keys, values and a gate.
  static constexpr std::size_t kMostOrders = 4;
  struct Reordered {
    const ColumnOrder* order = nullptr;
    ActivationForm forms{};
  };

  constexpr ActivationForms(ActivationForm forms) : plain_(forms) {}  // NOLINT: implicit on purpose
  // null: the rows' own order.
  ActivationForms(ActivationForm forms, const ColumnOrder* order);

  // REQUIRES: no more than kMostOrders orders together.
  ActivationForms operator|(const ActivationForms& other) const;

  ActivationForm plain() const { return plain_; }  // perhaps none
  std::span<const Reordered> reordered() const { return {reordered_.data(), num_orders_}; }

 private:
  void add(const Reordered& reordered);

  ActivationForm plain_{};
  std::array<Reordered, kMostOrders> reordered_ = {};
  std::size_t num_orders_ = 0;
};

// So many columns that a row of this width can stand in every form.
constexpr std::int64_t whole_groups(std::int64_t columns) {
  return (columns + kGroupColumns - 1) / kGroupColumns * kGroupColumns;
}

class ActivationRows {
 public:
  explicit ActivationRows(InstructionSet isa);

  // Room for `rows` rows of `columns` in the given forms; contents are undefined until set. Memory only
  // grows. REQUIRES: columns % 32 == 0 if the forms include kInt8 or kInt16.
  void reserve(std::int64_t rows, std::int64_t columns, const ActivationForms& forms);

  // What stands reserved, and what would for such rows.
  std::int64_t bytes() const;
  static std::int64_t bytes_for(std::int64_t rows, std::int64_t columns, ActivationForm forms);

  // Copies and rounds one row. REQUIRES: row < rows(); `values` holds columns() floats.
  void set_row(std::int64_t row, const float* values);

  // Takes a row of another object over, bit for bit. REQUIRES: row < rows(); the other has as many columns
  // and at least these forms; no other orders.
  void copy_row(std::int64_t row, const ActivationRows& from, std::int64_t from_row);

  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  // Of the rows' own order.
  ActivationForm forms() const { return forms_; }
  // These rows in another order of columns; null: themselves. REQUIRES: it is one of the reserved ones
  const ActivationRows& in_order(const ColumnOrder* order) const;

  // Line of (row, g) is at [g * row_stride() + row]: rows of a tile lie side by side.
  //   float_lines  [ceil(columns / 16)][row_stride], the last one padded with zeros
  //   int8_lines, int16_lines  [columns / 32][row_stride]
  const FloatLine* float_lines() const { return float_lines_.get(); }
  const Int8Line* int8_lines() const { return int8_lines_.get(); }
  const Int16Line* int16_lines() const { return int16_lines_.get(); }
  std::int64_t row_stride() const { return row_stride_; }

 private:
  std::int64_t reordered_bytes() const;

  const IntegerMatmulTable* table_;
  std::int64_t rows_ = 0, columns_ = 0, row_stride_ = 0;
  ActivationForm forms_ = ActivationForm::kFloat;
  std::unique_ptr<FloatLine[]> float_lines_;
  std::unique_ptr<Int8Line[]> int8_lines_;
  std::unique_ptr<Int16Line[]> int16_lines_;
  std::int64_t float_capacity_ = 0, int8_capacity_ = 0, int16_capacity_ = 0;  // lines
  // Of reordered rows, the first num_orders_ in use. [rows][columns] in between, so that rows may be set in
  // parallel.
  struct Reordered {
    const ColumnOrder* order = nullptr;
    std::unique_ptr<ActivationRows> rows;
  };
  std::array<Reordered, ActivationForms::kMostOrders> reordered_;
  std::size_t num_orders_ = 0;
  std::vector<float> gathered_;
  const InstructionSet isa_;
};

}  // namespace octavo::kernels::cpu
