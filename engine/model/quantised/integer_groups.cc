#include "engine/model/quantised/integer_groups.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/half.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

constexpr std::int64_t kLeastGroup = 32;

// Where a row's integers stand.
enum class Packing : std::uint8_t {
  kStrings,  // of BitStrings, one for each row
  kAwq,      // [columns][rows / 8] words: kAwqPlaces
  kSigned,   // bytes of BitStrings with a sign
};

// AutoAWQ puts row 8 i + k into nibble kAwqPlaces[k] of word i.
constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};

unsigned awq_at(const std::byte* words, std::int64_t num_rows, std::int64_t line, std::int64_t row) {
  const std::uint32_t word = word_at(words, line * (num_rows / 8) + row / 8);
  return word >> (4 * kAwqPlaces[static_cast<std::size_t>(row % 8)]) & 15u;
}

// Scale of (row, group) at row * row_stride + group * group_stride; a stride of 0: all share it.
struct Scales {
  StoredFloats floats;
  std::string name;
  std::int64_t row_stride = 0, group_stride = 0;

  float at(std::int64_t row, std::int64_t group) const {
    return floats.at(row * row_stride + group * group_stride);
  }
};

// Zero points: in the middle, or stored, by group and row.
struct ZeroPoints {
  bool are_stored = false;
  Packing packing = Packing::kStrings;
  BitStrings strings;  // one for each group
  std::string name;
  std::int32_t added = 0;  // to what is stored
};

struct Parts {
  std::int64_t rows = 0, columns = 0;
  std::int32_t bits = 0;
  Packing packing = Packing::kStrings;
  BitStrings weights = {};
  std::int64_t group_size = 0, num_groups = 0;
  std::vector<std::int32_t> group_of_column = {};  // empty: column / group_size
  Scales scales = {};
  ZeroPoints zeros = {};
  bool is_symmetric = false;  // so that every zero point is in the middle
};

std::int64_t group_of(const Parts& parts, std::int64_t column) {
  return parts.group_of_column.empty() ? column / parts.group_size
                                       : parts.group_of_column[static_cast<std::size_t>(column)];
}

class IntegerGroups final : public QuantisedMatrix {
 public:
  explicit IntegerGroups(Parts parts) : QuantisedMatrix(parts.rows, parts.columns), parts_(std::move(parts)) {
    column_order_ = order_of_groups();
    type_ = choose_type();
    if (type_ == TensorType::kF32) column_order_.clear();
  }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    OCTAVO_CHECK(first >= 0 && count >= 0 && first + count <= rows_, "%lld rows from %lld",
                 static_cast<long long>(count), static_cast<long long>(first));
    constexpr std::int64_t kStrip = 16;
    const auto width = static_cast<std::size_t>(columns_);
    std::vector<std::uint8_t> stored(width * kStrip), ordered(width);
    std::byte* target = out.data();
    for (std::int64_t row = first; row < first + count; row += kStrip) {
      const std::int64_t some = std::min(kStrip, first + count - row);
      unpack(row, some, stored.data());
      for (std::int64_t i = 0; i < some; ++i, target += row_bytes()) {
        const std::uint8_t* numbers = stored.data() + i * columns_;
        if (!column_order_.empty()) {
          for (std::size_t k = 0; k < width; ++k) ordered[k] = numbers[column_order_[k]];
          numbers = ordered.data();
        }
        OCTAVO_TRY_VOID(write_row(row + i, numbers, target));
      }
    }
    return {};
  }

 private:
  // Empty: groups are neighbours already.
  std::vector<std::int32_t> order_of_groups() const {
    const auto& groups = parts_.group_of_column;
    if (std::is_sorted(groups.begin(), groups.end())) return {};
    std::vector<std::int32_t> order(groups.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return groups[static_cast<std::size_t>(a)] < groups[static_cast<std::size_t>(b)];
    });
    return order;
  }

  std::int64_t group_at(std::int64_t place) const {
    return group_of(parts_, column_order_.empty() ? place : column_order_[static_cast<std::size_t>(place)]);
  }

  // Whether every so many columns are of one group.
  bool has_groups_of(std::int64_t size) const {
    if (columns_ % size != 0) return false;
    if (parts_.group_of_column.empty()) return parts_.group_size % size == 0;
    for (std::int64_t first = 0; first < columns_; first += size) {
      // Groups ascend, so that the last is that of all between.
      if (group_at(first) != group_at(first + size - 1)) return false;
    }
    return true;
  }

  TensorType choose_type() const {
    if (!has_groups_of(kLeastGroup)) return TensorType::kF32;
    if (parts_.is_symmetric && parts_.scales.floats.are_half())
      return parts_.bits <= 4 ? TensorType::kQ4_0 : TensorType::kQ8_0;
    const bool is_wide = has_groups_of(128);
    if (parts_.bits <= 4) return is_wide ? TensorType::kU4_G128 : TensorType::kU4_G32;
    return is_wide ? TensorType::kU8_G128 : TensorType::kU8_G32;
  }

  void unpack(std::int64_t first, std::int64_t count, std::uint8_t* out) const {
    if (parts_.packing == Packing::kAwq) {
      for (std::int64_t column = 0; column < columns_; ++column) {
        for (std::int64_t i = 0; i < count; ++i) {
          out[i * columns_ + column] =
              static_cast<std::uint8_t>(awq_at(parts_.weights.words, rows_, column, first + i));
        }
      }
      return;
    }
    parts_.weights.unpack(first, count, columns_, out);
    if (parts_.packing == Packing::kSigned) {
      for (std::int64_t i = 0; i < count * columns_; ++i) out[i] ^= 128;
    }
  }

  struct ScaleAndZero {
    float scale;
    std::int32_t zero;
  };

  Result<ScaleAndZero> scale_and_zero(std::int64_t row, std::int64_t group) const {
    const float scale = parts_.scales.at(row, group);
    if (!std::isfinite(scale)) {
      return tensor_error(parts_.scales.name, "has a scale that is not finite, of output " +
                                                  std::to_string(row) + " and group " +
                                                  std::to_string(group));
    }
    const std::int32_t middle = 1 << (parts_.bits - 1);
    const ZeroPoints& zeros = parts_.zeros;
    if (!zeros.are_stored) return ScaleAndZero{scale, middle};
    const auto stored = static_cast<std::int32_t>(zeros.packing == Packing::kAwq
                                                      ? awq_at(zeros.strings.words, rows_, group, row)
                                                      : zeros.strings.at(group, row));
    const std::int32_t zero = stored + zeros.added;
    if (parts_.is_symmetric && zero != middle) {
      return tensor_error(zeros.name, "has zero point " + std::to_string(zero) + " where sym asks for " +
                                          std::to_string(middle));
    }
    if (zero > 255) return tensor_error(zeros.name, "has zero point 256, more than its 8 bits can take away");
    return ScaleAndZero{scale, zero};
  }

  Result<void> write_row(std::int64_t row, const std::uint8_t* numbers, std::byte* out) const {
    if (type_ == TensorType::kF32) return write_floats(row, numbers, out);
    const kernels::TensorTypeTraits& traits = kernels::traits_of(type_);
    for (std::int64_t first = 0; first < columns_; first += traits.block_elements) {
      OCTAVO_TRY(const ScaleAndZero pair, scale_and_zero(row, group_at(first)));
      write_block(pair, numbers + first, out);
      out += traits.block_bytes;
    }
    return {};
  }

  static void put_nibbles(const std::uint8_t* numbers, int added, std::byte* out) {
    for (int i = 0; i < 16; ++i)
      out[i] = static_cast<std::byte>((numbers[i] + added) | (numbers[16 + i] + added) << 4);
  }

  void write_block(const ScaleAndZero& pair, const std::uint8_t* numbers, std::byte* out) const {
    const std::uint16_t half = float_to_half(pair.scale);
    switch (type_) {
      case TensorType::kQ4_0:
        std::memcpy(out, &half, sizeof half);
        put_nibbles(numbers, 8 - pair.zero, out + 2);
        return;
      case TensorType::kQ8_0:
        std::memcpy(out, &half, sizeof half);
        for (int i = 0; i < 32; ++i) out[2 + i] = static_cast<std::byte>(numbers[i] - pair.zero);
        return;
      default: break;
    }
    std::memcpy(out, &pair.scale, sizeof pair.scale);
    out[4] = static_cast<std::byte>(pair.zero);
    const std::int32_t size = kernels::traits_of(type_).block_elements;
    if (type_ == TensorType::kU8_G32 || type_ == TensorType::kU8_G128) {
      std::memcpy(out + 5, numbers, static_cast<std::size_t>(size));
      return;
    }
    for (std::int32_t first = 0; first < size; first += 32)
      put_nibbles(numbers + first, 0, out + 5 + first / 2);
  }

  Result<void> write_floats(std::int64_t row, const std::uint8_t* numbers, std::byte* out) const {
    std::int64_t known = -1;
    ScaleAndZero pair = {};
    for (std::int64_t column = 0; column < columns_; ++column) {
      const std::int64_t group = group_of(parts_, column);
      if (group != known) {
        OCTAVO_TRY(pair, scale_and_zero(row, group));
        known = group;
      }
      const float weight = pair.scale * static_cast<float>(numbers[column] - pair.zero);
      std::memcpy(out + 4 * column, &weight, sizeof weight);
    }
    return {};
  }

  const Parts parts_;
};

std::unique_ptr<QuantisedMatrix> make(Parts parts) {
  return std::make_unique<IntegerGroups>(std::move(parts));
}

// ---- what the formats have in common

// Of a row in groups: how many, and that they fill it.
Result<std::int64_t> count_groups(const std::string& module, std::int64_t columns, std::int64_t group_size) {
  if (columns % group_size != 0) {
    return tensor_error(module, "has " + std::to_string(columns) + " inputs, which groups of " +
                                    std::to_string(group_size) + " do not divide");
  }
  return columns / group_size;
}

// Each column's group; empty: as without.
Result<std::vector<std::int32_t>> read_group_index(const FindTensor& find, const std::string& name,
                                                   const Parts& parts) {
  const std::optional<StoredTensor> tensor = find(name);
  std::vector<std::int32_t> groups;
  if (!tensor) return groups;
  OCTAVO_TRY_VOID(check_tensor(*tensor, {SafetensorsType::kI32}, {{parts.columns}}));
  bool is_usual = true;
  groups.resize(static_cast<std::size_t>(parts.columns));
  for (std::int64_t column = 0; column < parts.columns; ++column) {
    const std::int32_t group = int32_at(tensor->bytes, column);
    if (group < 0 || group >= parts.num_groups) {
      return tensor_error(name, "puts input " + std::to_string(column) + " into group " +
                                    std::to_string(group) + " of " + std::to_string(parts.num_groups));
    }
    groups[static_cast<std::size_t>(column)] = group;
    is_usual = is_usual && group == column / parts.group_size;
  }
  if (is_usual) groups.clear();
  return groups;
}

Result<void> check_two_dimensions(const StoredTensor& tensor) {
  if (tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0) return {};
  return tensor_error(tensor.name, "is no matrix");
}

}  // namespace

// qweight [columns packed, rows], qzeros [groups, rows packed], scales [groups, rows], g_idx [columns].
Result<std::unique_ptr<QuantisedMatrix>> open_gptq(const QuantisationConfig& config,
                                                   const std::string& module, const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".qweight"));
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + ".scales"));
  OCTAVO_TRY(const StoredTensor zeros, require_tensor(find, module + ".qzeros"));
  OCTAVO_TRY_VOID(check_two_dimensions(weights));
  Parts parts{.rows = weights.shape[1], .columns = weights.shape[0] * 32 / config.bits, .bits = config.bits};
  if (weights.shape[0] % config.bits != 0 && 32 % config.bits != 0) {
    return tensor_error(weights.name, "has " + std::to_string(weights.shape[0]) +
                                          " words of a row, which hold no whole integers of 3 bits");
  }
  OCTAVO_TRY_VOID(check_tensor(weights, {SafetensorsType::kI32},
                               {{packed_words(parts.columns, parts.bits), parts.rows}}));
  parts.group_size = config.group_size == -1 ? parts.columns : config.group_size;
  OCTAVO_TRY(parts.num_groups, count_groups(module, parts.columns, parts.group_size));
  OCTAVO_TRY_VOID(check_tensor(scales, kFloatTypes, {{parts.num_groups, parts.rows}}));
  const std::int64_t zero_words = packed_words(parts.rows, parts.bits);
  OCTAVO_TRY_VOID(check_tensor(zeros, {SafetensorsType::kI32}, {{parts.num_groups, zero_words}}));
  parts.weights = {weights.bytes.data(), parts.bits, 1, parts.rows};
  parts.scales = {StoredFloats(scales), std::string(scales.name), 1, parts.rows};
  parts.zeros = {true,
                 Packing::kStrings,
                 {zeros.bytes.data(), parts.bits, zero_words, 1},
                 std::string(zeros.name),
                 config.zero_offset};
  parts.is_symmetric = config.is_symmetric;
  OCTAVO_TRY(parts.group_of_column, read_group_index(find, module + ".g_idx", parts));
  return make(std::move(parts));
}

// qweight [columns, rows / 8], qzeros [groups, rows / 8], scales [groups, rows].
Result<std::unique_ptr<QuantisedMatrix>> open_awq(const QuantisationConfig& config, const std::string& module,
                                                  const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".qweight"));
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + ".scales"));
  const std::optional<StoredTensor> zeros = find(module + ".qzeros");
  OCTAVO_TRY_VOID(check_two_dimensions(weights));
  OCTAVO_TRY_VOID(check_tensor(weights, {SafetensorsType::kI32}, {{weights.shape[0], weights.shape[1]}}));
  Parts parts{.rows = weights.shape[1] * 8,
              .columns = weights.shape[0],
              .bits = 4,
              .packing = Packing::kAwq,
              .weights = {weights.bytes.data(), 4, 0, 0}};
  parts.group_size = config.group_size == -1 ? parts.columns : config.group_size;
  OCTAVO_TRY(parts.num_groups, count_groups(module, parts.columns, parts.group_size));
  OCTAVO_TRY_VOID(check_tensor(scales, kFloatTypes, {{parts.num_groups, parts.rows}}));
  parts.scales = {StoredFloats(scales), std::string(scales.name), 1, parts.rows};
  if (zeros) {
    OCTAVO_TRY_VOID(check_tensor(*zeros, {SafetensorsType::kI32}, {{parts.num_groups, parts.rows / 8}}));
    parts.zeros = {true, Packing::kAwq, {zeros->bytes.data(), 4, 0, 0}, std::string(zeros->name), 0};
  }
  parts.is_symmetric = !zeros;
  return make(std::move(parts));
}

namespace {

// weight_scale [rows, groups], [rows] or [1], and what follows from it.
Result<void> add_scales(const std::string& module, const FindTensor& find, Parts& parts) {
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + ".weight_scale"));
  parts.num_groups = scales.shape.size() == 2 ? scales.shape[1] : 1;
  if (parts.num_groups < 1 || parts.num_groups > parts.columns)
    return tensor_error(scales.name, "has " + std::to_string(parts.num_groups) + " groups in a row");
  const bool is_one = scales.shape.empty() || (scales.shape.size() == 1 && scales.shape[0] == 1);
  OCTAVO_TRY_VOID(check_tensor(scales, kFloatTypes, {{parts.rows, parts.num_groups}, {parts.rows}, {1}, {}}));
  if (parts.columns % parts.num_groups != 0) {
    return tensor_error(scales.name, "has " + std::to_string(parts.num_groups) +
                                         " groups, which do not divide " + std::to_string(parts.columns) +
                                         " inputs");
  }
  parts.group_size = parts.columns / parts.num_groups;
  parts.scales = {StoredFloats(scales), std::string(scales.name), is_one ? 0 : parts.num_groups, 1};
  return {};
}

}  // namespace

// weight_packed [rows, columns packed], weight_shape [2], weight_zero_point [rows packed, groups],
// weight_g_idx [columns].
Result<std::unique_ptr<QuantisedMatrix>> open_packed_integers(const std::string& module,
                                                              const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".weight_packed"));
  OCTAVO_TRY(const StoredTensor shape, require_tensor(find, module + ".weight_shape"));
  OCTAVO_TRY_VOID(check_two_dimensions(weights));
  OCTAVO_TRY_VOID(check_tensor(shape, {SafetensorsType::kI64, SafetensorsType::kI32}, {{2}}));
  const std::int64_t number_words = shape.type == SafetensorsType::kI64 ? 2 : 1;
  Parts parts{.rows = int32_at(shape.bytes, 0), .columns = int32_at(shape.bytes, number_words)};
  if (parts.rows != weights.shape[0] || parts.columns < 1 || weights.shape[1] * 32 / parts.columns > 8) {
    return tensor_error(shape.name, "says [" + std::to_string(parts.rows) + ", " +
                                        std::to_string(parts.columns) + "], which is not the size of " +
                                        std::string(weights.name));
  }
  for (const std::int32_t bits : {2, 3, 4, 8})
    if (packed_words(parts.columns, bits) == weights.shape[1]) parts.bits = bits;
  if (parts.bits == 0) {
    return tensor_error(weights.name, "has " + std::to_string(weights.shape[1]) + " words for a row of " +
                                          std::to_string(parts.columns) +
                                          " integers, which fits neither 2, 3, 4 nor 8 bits");
  }
  OCTAVO_TRY_VOID(check_tensor(weights, {SafetensorsType::kI32}, {{parts.rows, weights.shape[1]}}));
  parts.weights = {weights.bytes.data(), parts.bits, weights.shape[1], 1};
  OCTAVO_TRY_VOID(add_scales(module, find, parts));
  parts.is_symmetric = true;
  if (const std::optional<StoredTensor> zeros = find(module + ".weight_zero_point")) {
    OCTAVO_TRY_VOID(check_tensor(*zeros, {SafetensorsType::kI32},
                                 {{packed_words(parts.rows, parts.bits), parts.num_groups}}));
    parts.zeros = {true,
                   Packing::kStrings,
                   {zeros->bytes.data(), parts.bits, 1, parts.num_groups},
                   std::string(zeros->name),
                   0};
    parts.is_symmetric = false;
  }
  OCTAVO_TRY(parts.group_of_column, read_group_index(find, module + ".weight_g_idx", parts));
  return make(std::move(parts));
}

Result<std::unique_ptr<QuantisedMatrix>> open_plain_integers(const std::string& module,
                                                             const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".weight"));
  OCTAVO_TRY_VOID(check_two_dimensions(weights));
  if (find(module + ".weight_zero_point")) {
    return Error{ErrorCode::kUnsupported,
                 module +
                     " has 8-bit integers with zero points, which are read only where they are packed: "
                     "choose another quantisation of the model",
                 module};
  }
  Parts parts{.rows = weights.shape[0],
              .columns = weights.shape[1],
              .bits = 8,
              .packing = Packing::kSigned,
              .is_symmetric = true};
  if (parts.columns % 4 != 0)
    return tensor_error(weights.name,
                        "has rows of " + std::to_string(parts.columns) + " bytes, no whole words");
  parts.weights = {weights.bytes.data(), 8, parts.columns / 4, 1};
  OCTAVO_TRY_VOID(add_scales(module, find, parts));
  return make(std::move(parts));
}

}  // namespace octavo::model
