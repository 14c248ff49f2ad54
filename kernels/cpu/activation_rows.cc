#include "kernels/cpu/activation_rows.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::kernels::cpu {
namespace {

constexpr std::int64_t kLineFloats = 16;

constexpr std::int64_t num_float_lines(std::int64_t columns) {
  return (columns + kLineFloats - 1) / kLineFloats;
}

// Odd, so that the lines of one row do not all fall into the same few sets of a cache.
constexpr std::int64_t row_stride_of(std::int64_t rows) { return rows | 1; }

constexpr std::int64_t num_integer_lines(std::int64_t columns) { return columns / kGroupColumns; }

template <class Line>
void grow(std::unique_ptr<Line[]>& lines, std::int64_t& capacity, std::int64_t num_lines) {
  if (num_lines <= capacity) return;
  lines.reset();  // before the larger one: the old contents are not wanted
  lines = std::make_unique_for_overwrite<Line[]>(static_cast<std::size_t>(num_lines));
  capacity = num_lines;
}

void set_float_row(const float* values, std::int64_t columns, FloatLine* line, std::int64_t row_stride) {
  for (std::int64_t first = 0; first < columns; first += kLineFloats, line += row_stride) {
    const std::int64_t count = std::min(columns - first, kLineFloats);
    std::copy_n(values + first, count, line->values);
    std::fill(line->values + count, line->values + kLineFloats, 0.0f);
  }
}

template <class Line>
void copy_lines(const Line* from, std::int64_t from_stride, Line* to, std::int64_t stride,
                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] = from[i * from_stride];
}

}  // namespace

ActivationForms::ActivationForms(ActivationForm forms, const ColumnOrder* order) {
  if (order == nullptr) {
    plain_ = forms;
  } else {
    add({order, forms});
  }
}

void ActivationForms::add(const Reordered& reordered) {
  for (std::size_t i = 0; i < num_orders_; ++i) {
    if (reordered_[i].order != reordered.order) continue;
    reordered_[i].forms = reordered_[i].forms | reordered.forms;
    return;
  }
  OCTAVO_CHECK(num_orders_ < kMostOrders, "more than %zu orders of columns", kMostOrders);
  reordered_[num_orders_++] = reordered;
}

ActivationForms ActivationForms::operator|(const ActivationForms& other) const {
  ActivationForms result = *this;
  result.plain_ = result.plain_ | other.plain_;
  for (const Reordered& reordered : other.reordered()) result.add(reordered);
  return result;
}

ActivationRows::ActivationRows(InstructionSet isa) : table_(&integer_matmul_table(isa)), isa_(isa) {}

void ActivationRows::reserve(std::int64_t rows, std::int64_t columns, const ActivationForms& all_forms) {
  const ActivationForm forms = all_forms.plain();
  OCTAVO_CHECK(rows >= 0 && columns >= 0, "%lld rows", static_cast<long long>(rows));
  num_orders_ = all_forms.reordered().size();
  for (std::size_t i = 0; i < num_orders_; ++i) {
    const ActivationForms::Reordered& wanted = all_forms.reordered()[i];
    OCTAVO_CHECK(std::ssize(*wanted.order) == columns, "%lld columns", static_cast<long long>(columns));
    reordered_[i].order = wanted.order;
    if (reordered_[i].rows == nullptr) reordered_[i].rows = std::make_unique<ActivationRows>(isa_);
    reordered_[i].rows->reserve(rows, columns, wanted.forms);
  }
  if (num_orders_ > 0) {
    const auto size = static_cast<std::size_t>(rows * columns);
    if (gathered_.size() < size) gathered_.resize(size);
  }
  OCTAVO_CHECK(!(includes(forms, ActivationForm::kInt8) || includes(forms, ActivationForm::kInt16)) ||
                   columns % kGroupColumns == 0,
               "%lld columns", static_cast<long long>(columns));
  rows_ = rows;
  columns_ = columns;
  forms_ = forms;
  row_stride_ = row_stride_of(rows);
  if (includes(forms, ActivationForm::kFloat)) {
    grow(float_lines_, float_capacity_, num_float_lines(columns) * row_stride_);
  }
  const std::int64_t integer_lines = num_integer_lines(columns) * row_stride_;
  if (includes(forms, ActivationForm::kInt8)) grow(int8_lines_, int8_capacity_, integer_lines);
  if (includes(forms, ActivationForm::kInt16)) grow(int16_lines_, int16_capacity_, integer_lines);
}

std::int64_t ActivationRows::bytes() const {
  return float_capacity_ * static_cast<std::int64_t>(sizeof(FloatLine)) +
         int8_capacity_ * static_cast<std::int64_t>(sizeof(Int8Line)) +
         int16_capacity_ * static_cast<std::int64_t>(sizeof(Int16Line)) + reordered_bytes();
}

std::int64_t ActivationRows::reordered_bytes() const {
  auto bytes = static_cast<std::int64_t>(gathered_.size() * sizeof(float));
  for (const Reordered& reordered : reordered_) {
    if (reordered.rows != nullptr) bytes += reordered.rows->bytes();
  }
  return bytes;
}

const ActivationRows& ActivationRows::in_order(const ColumnOrder* order) const {
  if (order == nullptr) return *this;
  for (std::size_t i = 0; i < num_orders_; ++i) {
    if (reordered_[i].order == order) return *reordered_[i].rows;
  }
  OCTAVO_CHECK(false, "rows were not reserved in this order of columns");
  return *this;
}

std::int64_t ActivationRows::bytes_for(std::int64_t rows, std::int64_t columns, ActivationForm forms) {
  const auto bytes = [&](ActivationForm form, std::int64_t lines, std::size_t line_bytes) {
    return includes(forms, form) ? lines * row_stride_of(rows) * static_cast<std::int64_t>(line_bytes) : 0;
  };
  return bytes(ActivationForm::kFloat, num_float_lines(columns), sizeof(FloatLine)) +
         bytes(ActivationForm::kInt8, num_integer_lines(columns), sizeof(Int8Line)) +
         bytes(ActivationForm::kInt16, num_integer_lines(columns), sizeof(Int16Line));
}

void ActivationRows::set_row(std::int64_t row, const float* values) {
  OCTAVO_CHECK(row >= 0 && row < rows_, "row %lld", static_cast<long long>(row));
  if (includes(forms_, ActivationForm::kFloat)) {
    set_float_row(values, columns_, float_lines_.get() + row, row_stride_);
  }
  if (includes(forms_, ActivationForm::kInt8)) {
    table_->set_int8_row(values, columns_, int8_lines_.get() + row, row_stride_);
  }
  if (includes(forms_, ActivationForm::kInt16)) {
    table_->set_int16_row(values, columns_, int16_lines_.get() + row, row_stride_);
  }
  float* const gathered = gathered_.data() + row * columns_;
  for (std::size_t i = 0; i < num_orders_; ++i) {
    const ColumnOrder& order = *reordered_[i].order;
    for (std::size_t column = 0; column < order.size(); ++column) gathered[column] = values[order[column]];
    reordered_[i].rows->set_row(row, gathered);
  }
}

void ActivationRows::copy_row(std::int64_t row, const ActivationRows& from, std::int64_t from_row) {
  OCTAVO_CHECK(row >= 0 && row < rows_ && from_row >= 0 && from_row < from.rows_, "row %lld of %lld",
               static_cast<long long>(row), static_cast<long long>(from_row));
  OCTAVO_CHECK(columns_ == from.columns_, "%lld columns", static_cast<long long>(from.columns_));
  OCTAVO_CHECK(num_orders_ == 0, "%zu other orders of columns", num_orders_);
  for (const ActivationForm form : {ActivationForm::kFloat, ActivationForm::kInt8, ActivationForm::kInt16}) {
    OCTAVO_CHECK(!includes(forms_, form) || includes(from.forms_, form), "form %d", static_cast<int>(form));
  }
  if (includes(forms_, ActivationForm::kFloat)) {
    copy_lines(from.float_lines() + from_row, from.row_stride_, float_lines_.get() + row, row_stride_,
               num_float_lines(columns_));
  }
  if (includes(forms_, ActivationForm::kInt8)) {
    copy_lines(from.int8_lines() + from_row, from.row_stride_, int8_lines_.get() + row, row_stride_,
               num_integer_lines(columns_));
  }
  if (includes(forms_, ActivationForm::kInt16)) {
    copy_lines(from.int16_lines() + from_row, from.row_stride_, int16_lines_.get() + row, row_stride_,
               num_integer_lines(columns_));
  }
}

}  // namespace octavo::kernels::cpu
