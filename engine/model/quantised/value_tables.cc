#include "engine/model/quantised/value_tables.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/half.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

struct Outliers {
  std::span<const std::byte> rows, columns;
  StoredFloats values;
};

struct FullRows {
  std::vector<std::int32_t> indices;
  StoredFloats values;  // [columns][indices.size()]
};

class ValueTables final : public QuantisedMatrix {
 public:
  ValueTables(BitStrings weights, const StoredTensor& table, std::int64_t columns,
              std::optional<Outliers> outliers, std::optional<FullRows> full_rows)
      : QuantisedMatrix(table.shape[0], columns),
        weights_(weights),
        table_(table),
        outliers_(std::move(outliers)),
        full_rows_(std::move(full_rows)) {
    type_ = !outliers_ && !full_rows_ && is_half(table) ? TensorType::kF16 : TensorType::kF32;
  }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    const auto width = static_cast<std::size_t>(columns_);
    constexpr std::int64_t kStrip = 16;
    std::vector<std::uint8_t> places(width * kStrip);
    std::vector<float> values(width);
    std::byte* target = out.data();
    for (std::int64_t row = first; row < first + count; row += kStrip) {
      const std::int64_t some = std::min(kStrip, first + count - row);
      weights_.unpack(row, some, columns_, places.data());
      for (std::int64_t i = 0; i < some; ++i, target += row_bytes()) {
        for (std::size_t column = 0; column < width; ++column) {
          const std::int64_t place = places[static_cast<std::size_t>(i) * width + column];
          values[column] = table_.at(((row + i) << weights_.bits) + place);
        }
        add_outliers(row + i, values.data());
        write(values, target);
      }
    }
    return {};
  }

 private:
  bool is_half(const StoredTensor& table) const {
    for (std::int64_t i = 0; i < rows_ << weights_.bits; ++i) {
      const float value = StoredFloats(table).at(i);
      if (half_to_float(float_to_half(value)) != value) return false;
    }
    return true;
  }

  void add_outliers(std::int64_t row, float* values) const {
    if (outliers_) {
      const std::int32_t end = int32_at(outliers_->rows, row + 1);
      for (std::int32_t i = int32_at(outliers_->rows, row); i < end; ++i)
        values[int32_at(outliers_->columns, i)] += outliers_->values.at(i);
    }
    if (!full_rows_) return;
    const auto num_full = std::ssize(full_rows_->indices);
    for (std::int64_t i = 0; i < num_full; ++i) {
      if (full_rows_->indices[static_cast<std::size_t>(i)] != row) continue;
      for (std::int64_t column = 0; column < columns_; ++column)
        values[column] += full_rows_->values.at(column * num_full + i);
    }
  }

  void write(const std::vector<float>& values, std::byte* out) const {
    if (type_ == TensorType::kF32) {
      std::memcpy(out, values.data(), values.size() * sizeof(float));
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t half = float_to_half(values[i]);
      std::memcpy(out + 2 * i, &half, sizeof half);
    }
  }

  const BitStrings weights_;
  const StoredFloats table_;
  const std::optional<Outliers> outliers_;
  const std::optional<FullRows> full_rows_;
};

Result<void> check_finite(const StoredTensor& tensor) {
  const StoredFloats floats(tensor);
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.shape) count *= size;
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(floats.at(i))) return tensor_error(tensor.name, "has a value that is not finite");
  return {};
}

Result<std::optional<Outliers>> read_outliers(const std::string& module, std::int64_t num_rows,
                                              std::int64_t num_columns, const FindTensor& find) {
  const std::optional<StoredTensor> rows = find(module + ".rows");
  if (!rows) return std::optional<Outliers>();
  OCTAVO_TRY(const StoredTensor columns, require_tensor(find, module + ".cols"));
  OCTAVO_TRY(const StoredTensor values, require_tensor(find, module + ".vals"));
  if (values.shape.size() != 1) return tensor_error(values.name, "is no list");
  const std::int64_t count = values.shape[0];
  OCTAVO_TRY_VOID(check_tensor(*rows, {SafetensorsType::kI32}, {{num_rows + 1}}));
  OCTAVO_TRY_VOID(check_tensor(columns, {SafetensorsType::kI32}, {{count}}));
  OCTAVO_TRY_VOID(check_tensor(values, kFloatTypes, {{count}}));
  OCTAVO_TRY_VOID(check_finite(values));
  std::int32_t before = 0;
  for (std::int64_t row = 0; row <= num_rows; ++row) {
    const std::int32_t start = int32_at(rows->bytes, row);
    if ((row == 0 && start != 0) || start < before || start > count || (row == num_rows && start != count)) {
      return tensor_error(rows->name, "puts the outliers of output " + std::to_string(row) + " at " +
                                          std::to_string(start) + " of " + std::to_string(count));
    }
    before = start;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t column = int32_at(columns.bytes, i);
    if (column < 0 || column >= num_columns) {
      return tensor_error(columns.name, "puts an outlier at input " + std::to_string(column) + " of " +
                                            std::to_string(num_columns));
    }
  }
  return std::optional(Outliers{rows->bytes, columns.bytes, StoredFloats(values)});
}

Result<std::optional<FullRows>> read_full_rows(const std::string& module, std::int64_t num_rows,
                                               std::int64_t num_columns, const FindTensor& find) {
  const std::optional<StoredTensor> values = find(module + ".full_rows");
  if (!values) return std::optional<FullRows>();
  OCTAVO_TRY(const StoredTensor indices, require_tensor(find, module + ".full_row_indices"));
  if (indices.shape.size() != 1) return tensor_error(indices.name, "is no list");
  const std::int64_t count = indices.shape[0];
  OCTAVO_TRY_VOID(check_tensor(indices, {SafetensorsType::kI32}, {{count}}));
  OCTAVO_TRY_VOID(check_tensor(*values, kFloatTypes, {{num_columns, count}}));
  OCTAVO_TRY_VOID(check_finite(*values));
  FullRows result{{}, StoredFloats(*values)};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t row = int32_at(indices.bytes, i);
    if (row < 0 || row >= num_rows) {
      return tensor_error(indices.name,
                          "names output " + std::to_string(row) + " of " + std::to_string(num_rows));
    }
    result.indices.push_back(row);
  }
  return std::optional(std::move(result));
}

}  // namespace

Result<std::unique_ptr<QuantisedMatrix>> open_value_tables(const QuantisationConfig& config,
                                                           const std::string& module,
                                                           const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".qweight"));
  OCTAVO_TRY(const StoredTensor table, require_tensor(find, module + ".lookup_table"));
  if (weights.shape.size() != 2 || weights.shape[0] < 1 || weights.shape[1] < 1 ||
      weights.shape[0] % config.bits != 0) {
    return tensor_error(weights.name, "is no matrix of whole strings of 32 integers of " +
                                          std::to_string(config.bits) + " bits");
  }
  const std::int64_t rows = weights.shape[1], columns = weights.shape[0] / config.bits * 32;
  OCTAVO_TRY_VOID(check_tensor(weights, {SafetensorsType::kI32}, {{weights.shape[0], rows}}));
  OCTAVO_TRY_VOID(check_tensor(table, kFloatTypes, {{rows, std::int64_t{1} << config.bits}}));
  OCTAVO_TRY_VOID(check_finite(table));
  OCTAVO_TRY(std::optional<Outliers> outliers, read_outliers(module, rows, columns, find));
  OCTAVO_TRY(std::optional<FullRows> full_rows, read_full_rows(module, rows, columns, find));
  return std::unique_ptr<QuantisedMatrix>(
      std::make_unique<ValueTables>(BitStrings{weights.bytes.data(), config.bits, 1, rows}, table, columns,
                                    std::move(outliers), std::move(full_rows)));
}

}  // namespace octavo::model
