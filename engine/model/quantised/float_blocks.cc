#include "engine/model/quantised/float_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "kernels/float8.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

std::uint8_t byte_at(const std::byte* bytes, std::int64_t index) {
  return std::to_integer<std::uint8_t>(bytes[index]);
}

bool is_nan_of_e4m3(std::uint8_t number) { return (number & 0x7f) == 0x7f; }

// ---- 8 bits

// Scale of (row, column) at row / block_rows * row_stride + column / block_columns.
struct BlockScales {
  StoredFloats floats;
  std::string name;
  std::int64_t block_rows = 0, block_columns = 0, row_stride = 0;

  float at(std::int64_t row, std::int64_t column) const {
    return floats.at(row / block_rows * row_stride + column / block_columns);
  }
};

class Float8Matrix final : public QuantisedMatrix {
 public:
  Float8Matrix(const StoredTensor& weights, BlockScales scales)
      : QuantisedMatrix(weights.shape[0], weights.shape[1]),
        name_(weights.name),
        weights_(weights.bytes.data()),
        scales_(std::move(scales)) {
    const auto fits = [&](std::int64_t size) {
      return columns_ % size == 0 && (scales_.block_columns % size == 0 || scales_.block_columns >= columns_);
    };
    type_ = fits(128) ? TensorType::kF8_G128 : fits(32) ? TensorType::kF8_G32 : TensorType::kF32;
  }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    std::byte* target = out.data();
    for (std::int64_t row = first; row < first + count; ++row, target += row_bytes()) {
      const std::byte* const numbers = weights_ + row * columns_;
      for (std::int64_t column = 0; column < columns_; ++column) {
        if (is_nan_of_e4m3(byte_at(numbers, column))) {
          return tensor_error(name_, "has a weight that is no number, of output " + std::to_string(row) +
                                         " and input " + std::to_string(column));
        }
      }
      OCTAVO_TRY_VOID(write_row(row, numbers, target));
    }
    return {};
  }

 private:
  Result<void> write_row(std::int64_t row, const std::byte* numbers, std::byte* out) const {
    const std::int64_t size = type_ == TensorType::kF32 ? std::min(scales_.block_columns, columns_)
                                                        : kernels::traits_of(type_).block_elements;
    for (std::int64_t column = 0; column < columns_; column += size) {
      const std::int64_t count = std::min(size, columns_ - column);
      const float scale = scales_.at(row, column);
      if (!std::isfinite(scale)) {
        return tensor_error(scales_.name, "has a scale that is not finite, of output " + std::to_string(row) +
                                              " and input " + std::to_string(column));
      }
      if (type_ == TensorType::kF32) {
        for (std::int64_t i = 0; i < count; ++i) {
          const float weight = scale * kernels::Fp8E4m3::to_float(byte_at(numbers, column + i));
          std::memcpy(out + 4 * (column + i), &weight, sizeof weight);
        }
        continue;
      }
      std::memcpy(out, &scale, sizeof scale);
      std::memcpy(out + 4, numbers + column, static_cast<std::size_t>(count));
      out += 4 + count;
    }
    return {};
  }

  const std::string name_;
  const std::byte* const weights_;
  const BlockScales scales_;
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Result<BlockScales> read_block_scales(const QuantisationConfig& config, const StoredTensor& weights,
                                      const StoredTensor& scales) {
  const std::int64_t rows = weights.shape[0], columns = weights.shape[1];
  BlockScales result{StoredFloats(scales), std::string(scales.name), rows, columns, 0};
  if (scales.shape.size() == 2 && scales.shape[0] > 0 && scales.shape[1] > 0) {
    const std::int64_t down = scales.shape[0], across = scales.shape[1];
    // By the configuration, or blocks of 128 with what is left in the last; else equal parts.
    const auto block = [](std::int64_t asked, std::int64_t size, std::int64_t count) {
      if (asked > 0 && divide_up(size, asked) == count) return asked;
      if (count > 1 && divide_up(size, 128) == count) return std::int64_t{128};
      return size % count == 0 ? size / count : std::int64_t{0};
    };
    result.block_rows = down == rows ? 1 : block(config.block_rows, rows, down);
    result.block_columns = block(config.block_columns, columns, across);
    result.row_stride = across;
    if (result.block_rows == 0 || result.block_columns == 0)
      return tensor_error(scales.name, "has " + std::to_string(down) + " times " + std::to_string(across) +
                                           " scales, which do not divide " + std::to_string(rows) +
                                           " times " + std::to_string(columns) + " weights");
    OCTAVO_TRY_VOID(check_tensor(scales, kFloatTypes, {{down, across}}));
    return result;
  }
  if (scales.shape.size() == 1 && scales.shape[0] == rows && rows > 1) {
    result.block_rows = 1;
    result.row_stride = 1;
  }
  OCTAVO_TRY_VOID(check_tensor(scales, kFloatTypes, {{rows, 1}, {rows}, {1}, {}}));
  return result;
}

// ---- 4 bits: pairs in a byte, the even column in its lower half

// 16 bytes, or 8, of pairs of neighbours as pairs of numbers half a group apart.
void put_pairs(const std::byte* neighbours, std::int64_t half, std::byte* out) {
  const auto number = [&](std::int64_t column) {
    return byte_at(neighbours, column / 2) >> (column % 2 * 4) & 15;
  };
  for (std::int64_t i = 0; i < half; ++i) out[i] = static_cast<std::byte>(number(i) | number(half + i) << 4);
}

class Mxfp4Matrix final : public QuantisedMatrix {
 public:
  Mxfp4Matrix(const StoredTensor& pairs, const StoredTensor& exponents, std::int64_t stack_size,
              std::int64_t rows, std::int64_t columns)
      : QuantisedMatrix(stack_size * rows, columns),
        name_(exponents.name),
        pairs_(pairs.bytes.data()),
        exponents_(exponents.bytes.data()) {
    type_ = TensorType::kMXFP4;
    stack_size_ = stack_size;
  }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    const std::int64_t num_blocks = columns_ / 32;
    std::byte* target = out.data();
    for (std::int64_t block = first * num_blocks; block < (first + count) * num_blocks; ++block) {
      if (byte_at(exponents_, block) == 255) {
        return tensor_error(name_,
                            "has a scale that is no number, of row " + std::to_string(block / num_blocks));
      }
      *target = exponents_[block];
      put_pairs(pairs_ + 16 * block, 16, target + 1);
      target += 17;
    }
    return {};
  }

 private:
  const std::string name_;
  const std::byte* const pairs_;
  const std::byte* const exponents_;
};

class Nvfp4Matrix final : public QuantisedMatrix {
 public:
  Nvfp4Matrix(const StoredTensor& pairs, const StoredTensor& scales, float scale)
      : QuantisedMatrix(pairs.shape[0], pairs.shape[1] * 2),
        name_(scales.name),
        pairs_(pairs.bytes.data()),
        scales_(scales.bytes.data()) {
    type_ = TensorType::kNVFP4;
    scale_ = scale;
  }

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    const std::int64_t num_scales = columns_ / 16;
    std::byte* target = out.data();
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t i = row * num_scales; i < (row + 1) * num_scales; i += 4, target += 36) {
        for (std::int64_t k = 0; k < 4; ++k) {
          const std::uint8_t scale = byte_at(scales_, i + k);
          if (scale > 0x80 || scale == 0x7f) {
            return tensor_error(name_, "has a scale that is " +
                                           std::string(is_nan_of_e4m3(scale) ? "no number" : "negative") +
                                           ", of output " + std::to_string(row));
          }
          target[k] = static_cast<std::byte>(scale & 0x7f);
          put_pairs(pairs_ + 8 * (i + k), 8, target + 4 + 8 * k);
        }
      }
    }
    return {};
  }

 private:
  const std::string name_;
  const std::byte* const pairs_;
  const std::byte* const scales_;
};

Result<void> check_columns(const StoredTensor& pairs, std::int64_t columns, std::int64_t unit) {
  if (columns > 0 && columns % unit == 0) return {};
  return Error{ErrorCode::kUnsupported,
               std::string(pairs.name) + " has rows of " + std::to_string(columns) +
                   " numbers; what is read is whole "
                   "blocks of " +
                   std::to_string(unit),
               std::string(pairs.name)};
}

Result<float> read_one_scale(const StoredTensor& tensor) {
  OCTAVO_TRY_VOID(check_tensor(tensor, kFloatTypes, {{1}, {}}));
  const float scale = StoredFloats(tensor).at(0);
  if (std::isfinite(scale) && scale > 0.0f && std::isfinite(1.0f / scale)) return scale;
  return tensor_error(tensor.name, "is no scale: it must be positive and finite");
}

}  // namespace

Result<std::unique_ptr<QuantisedMatrix>> open_float8(const QuantisationConfig& config,
                                                     const std::string& module, const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor weights, require_tensor(find, module + ".weight"));
  if (weights.shape.size() != 2 || weights.shape[0] < 1 || weights.shape[1] < 1)
    return tensor_error(weights.name, "is no matrix");
  const std::optional<StoredTensor> inverse = find(module + ".weight_scale_inv");
  StoredTensor scales;
  if (inverse) {
    scales = *inverse;
  } else {
    OCTAVO_TRY(scales, require_tensor(find, module + ".weight_scale"));
  }
  OCTAVO_TRY(BlockScales blocks, read_block_scales(config, weights, scales));
  return std::unique_ptr<QuantisedMatrix>(std::make_unique<Float8Matrix>(weights, std::move(blocks)));
}

Result<std::unique_ptr<QuantisedMatrix>> open_nvfp4(const std::string& module, const FindTensor& find) {
  const std::optional<StoredTensor> packed = find(module + ".weight_packed");
  const bool is_model_opt = !packed.has_value();
  StoredTensor pairs;
  if (is_model_opt) {
    OCTAVO_TRY(pairs, require_tensor(find, module + ".weight"));
  } else {
    pairs = *packed;
  }
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + ".weight_scale"));
  OCTAVO_TRY(const StoredTensor whole,
             require_tensor(find, module + (is_model_opt ? ".weight_scale_2" : ".weight_global_scale")));
  OCTAVO_TRY(const float scale, read_one_scale(whole));
  if (pairs.shape.size() != 2 || pairs.shape[0] < 1) return tensor_error(pairs.name, "is no matrix");
  OCTAVO_TRY_VOID(check_tensor(pairs, {SafetensorsType::kU8}, {{pairs.shape[0], pairs.shape[1]}}));
  OCTAVO_TRY_VOID(check_columns(pairs, pairs.shape[1] * 2, 64));
  OCTAVO_TRY_VOID(check_tensor(scales, {SafetensorsType::kF8_E4M3}, {{pairs.shape[0], pairs.shape[1] / 8}}));
  return std::unique_ptr<QuantisedMatrix>(
      std::make_unique<Nvfp4Matrix>(pairs, scales, is_model_opt ? scale : 1.0f / scale));
}

Result<std::unique_ptr<QuantisedMatrix>> open_mxfp4(const std::string& module, const FindTensor& find) {
  OCTAVO_TRY(const StoredTensor pairs, require_tensor(find, module + ".weight_packed"));
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + ".weight_scale"));
  if (pairs.shape.size() != 2 || pairs.shape[0] < 1) return tensor_error(pairs.name, "is no matrix");
  OCTAVO_TRY_VOID(check_tensor(pairs, {SafetensorsType::kU8}, {{pairs.shape[0], pairs.shape[1]}}));
  const std::int64_t columns = pairs.shape[1] * 2;
  OCTAVO_TRY_VOID(check_columns(pairs, columns, 32));
  OCTAVO_TRY_VOID(check_tensor(scales, {SafetensorsType::kU8}, {{pairs.shape[0], columns / 32}}));
  return std::unique_ptr<QuantisedMatrix>(
      std::make_unique<Mxfp4Matrix>(pairs, scales, 1, pairs.shape[0], columns));
}

Result<std::unique_ptr<QuantisedMatrix>> open_mxfp4_experts(const std::string& module,
                                                            const FindTensor& find) {
  const std::optional<StoredTensor> pairs = find(module + "_blocks");
  if (!pairs) return std::unique_ptr<QuantisedMatrix>();
  OCTAVO_TRY(const StoredTensor scales, require_tensor(find, module + "_scales"));
  if (pairs->shape.size() != 4 || pairs->shape[0] < 1 || pairs->shape[1] < 1 || pairs->shape[2] < 1)
    return tensor_error(pairs->name, "is no list of experts' rows in blocks");
  const std::int64_t num_experts = pairs->shape[0], rows = pairs->shape[1], blocks = pairs->shape[2];
  OCTAVO_TRY_VOID(check_tensor(*pairs, {SafetensorsType::kU8}, {{num_experts, rows, blocks, 16}}));
  OCTAVO_TRY_VOID(check_tensor(scales, {SafetensorsType::kU8}, {{num_experts, rows, blocks}}));
  return std::unique_ptr<QuantisedMatrix>(
      std::make_unique<Mxfp4Matrix>(*pairs, scales, num_experts, rows, blocks * 32));
}

}  // namespace octavo::model
