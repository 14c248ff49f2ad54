#include "engine/model/hugging_face/tensor_recipe.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "engine/base/half.h"
#include "engine/base/text.h"
#include "engine/model/file_mapping.h"
#include "engine/model/limits.h"
#include "engine/model/safetensors_header.h"
#include "kernels/dequantize.h"

namespace octavo::model {
namespace {

using kernels::TensorType;

constexpr std::int64_t kRowsAtOnce = 64;

struct MatrixShape {
  std::int64_t count = 1, rows = 1, columns = 1;  // `count` matrices
};

// As stored, one weight.
MatrixShape matrix_shape(std::span<const std::int64_t> shape) {
  MatrixShape matrix;
  if (!shape.empty()) matrix.columns = shape.back();
  if (shape.size() >= 2) matrix.rows = shape[shape.size() - 2];
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) matrix.count *= shape[i];
  return matrix;
}

// Reads rows of the result from rows, or columns, of the weights.
class RecipeReader final : public RowReader {
 public:
  struct Plan {
    MatrixShape stored;                  // of one part; rows and columns as the files have them
    std::int64_t rows = 0, columns = 0;  // of one matrix of the result
    std::int64_t rows_in_one = 1;        // where numbers are ordered, a row of the result is all of these
    bool is_transposed = false, tiles_columns = false;
    RowOrder order;
    NumberChange change = NumberChange::kNone;
    double factor = 1.0;
    std::vector<float> row_factors;
  };

  RecipeReader(std::vector<OpenedWeight> parts, Plan plan)
      : parts_(std::move(parts)), plan_(std::move(plan)) {}

  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
    first *= plan_.rows_in_one;
    count *= plan_.rows_in_one;
    const std::size_t row_bytes = out.size() / static_cast<std::size_t>(std::max<std::int64_t>(count, 1));
    while (count > 0) {
      const std::int64_t matrix = first / plan_.rows, row = first % plan_.rows;
      const std::int64_t num_rows = std::min(count, plan_.rows - row);
      const auto size = static_cast<std::size_t>(num_rows) * row_bytes;
      OCTAVO_TRY_VOID(read_matrix(matrix, row, num_rows, out.first(size)));
      out = out.subspan(size);
      first += num_rows;
      count -= num_rows;
    }
    return {};
  }

  float scale_of(std::int64_t matrix) const override {
    return part_of(matrix).scale_of(matrix % plan_.stored.count);
  }
  std::span<const std::int32_t> column_order_of(std::int64_t matrix) const override {
    return part_of(matrix).column_order_of(matrix % plan_.stored.count);
  }

 private:
  const StoredWeight& part_of(std::int64_t matrix) const {
    return *parts_[static_cast<std::size_t>(matrix / plan_.stored.count)].weight;
  }

  // Rows row .. row + count of one matrix.
  Result<void> read_matrix(std::int64_t matrix, std::int64_t row, std::int64_t count,
                           std::span<std::byte> out) const {
    const StoredWeight& part = part_of(matrix);
    const std::int64_t in_part = matrix % plan_.stored.count;
    if (plan_.change == NumberChange::kNone) return read_rows(part, in_part, row, count, out);
    // Numbers are changed as floats, whatever was stored.
    const TensorType type = part.type();
    std::vector<std::byte> stored(static_cast<std::size_t>(count * plan_.columns) *
                                  static_cast<std::size_t>(kernels::traits_of(type).block_bytes));
    OCTAVO_TRY_VOID(read_rows(part, in_part, row, count, stored));
    std::vector<float> numbers(static_cast<std::size_t>(count * plan_.columns));
    kernels::dequantize(type, stored.data(), count * plan_.columns, numbers.data());
    if (plan_.change == NumberChange::kScaled) {
      scale(row, numbers);
      store(numbers, type, out);
      return {};
    }
    for (float& number : numbers) number = changed(number);
    std::ranges::copy(std::as_bytes(std::span(numbers)), out.begin());
    return {};
  }

  float changed(float number) const {
    switch (plan_.change) {
      case NumberChange::kNone:
      case NumberChange::kScaled: break;
      case NumberChange::kPlusOne: return number + 1.0f;
      case NumberChange::kNegativeExp: return -std::exp(number);
    }
    return number;
  }

  void scale(std::int64_t first_row, std::span<float> numbers) const {
    const auto columns = static_cast<std::size_t>(plan_.columns);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t row = static_cast<std::size_t>(first_row) + i / columns;
      const double factor = plan_.row_factors.empty() ? 1.0 : double{plan_.row_factors[row]};
      numbers[i] = static_cast<float>(numbers[i] * (plan_.factor * factor));
    }
  }

  static void store(std::span<const float> numbers, TensorType type, std::span<std::byte> out) {
    if (type == TensorType::kF32) {
      std::ranges::copy(std::as_bytes(numbers), out.begin());
      return;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::uint16_t word =
          type == TensorType::kF16 ? float_to_half(numbers[i]) : float_to_bfloat16(numbers[i]);
      std::memcpy(out.data() + i * sizeof word, &word, sizeof word);
    }
  }

  Result<void> read_rows(const StoredWeight& part, std::int64_t matrix, std::int64_t row, std::int64_t count,
                         std::span<std::byte> out) const {
    if (plan_.is_transposed) {
      turn(part, matrix, row, count, out);
      return {};
    }
    const std::int64_t base = matrix * plan_.stored.rows;
    if (plan_.tiles_columns || plan_.order.is_as_stored()) {
      OCTAVO_TRY_VOID(part.read(base + row, count, out));
      if (plan_.tiles_columns) order_columns(part.type(), count, out);
      return {};
    }
    const std::size_t row_bytes = out.size() / static_cast<std::size_t>(count);
    for (std::int64_t i = 0; i < count;) {  // rows that stand one behind the other at once
      const std::int64_t from = plan_.order.stored_row(row + i, plan_.rows);
      std::int64_t length = 1;
      while (i + length < count && plan_.order.stored_row(row + i + length, plan_.rows) == from + length)
        ++length;
      const auto begin = static_cast<std::size_t>(i) * row_bytes;
      OCTAVO_TRY_VOID(
          part.read(base + from, length, out.subspan(begin, static_cast<std::size_t>(length) * row_bytes)));
      i += length;
    }
    return {};
  }

  // Columns of the stored matrix become rows.
  void turn(const StoredWeight& part, std::int64_t matrix, std::int64_t row, std::int64_t count,
            std::span<std::byte> out) const {
    const auto size = static_cast<std::size_t>(kernels::traits_of(part.type()).block_bytes);
    const auto columns = static_cast<std::size_t>(plan_.stored.columns);
    const std::span<const std::byte> stored =
        part.bytes().subspan(static_cast<std::size_t>(matrix * plan_.stored.rows) * columns * size,
                             static_cast<std::size_t>(plan_.stored.rows) * columns * size);
    const auto num_inputs = static_cast<std::size_t>(plan_.stored.rows);
    for (std::int64_t begin = 0; begin < count; begin += kRowsAtOnce) {
      const std::int64_t end = std::min(count, begin + kRowsAtOnce);
      for (std::size_t input = 0; input < num_inputs; ++input) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto from = static_cast<std::size_t>(plan_.order.stored_row(row + i, plan_.rows));
          std::memcpy(out.data() + (static_cast<std::size_t>(i) * num_inputs + input) * size,
                      stored.data() + (input * columns + from) * size, size);
        }
      }
    }
    if (row + count == plan_.rows) release_pages(stored);
  }

  void order_columns(TensorType type, std::int64_t count, std::span<std::byte> rows) const {
    const auto size = static_cast<std::size_t>(kernels::traits_of(type).block_bytes);
    const auto row_bytes = rows.size() / static_cast<std::size_t>(count);
    std::vector<std::byte> row(row_bytes);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto out = rows.subspan(static_cast<std::size_t>(i) * row_bytes, row_bytes);
      std::ranges::copy(out, row.begin());
      for (std::int64_t column = 0; column < plan_.columns; ++column) {
        const auto from = static_cast<std::size_t>(plan_.order.stored_row(column, plan_.columns));
        std::memcpy(out.data() + static_cast<std::size_t>(column) * size, row.data() + from * size, size);
      }
    }
  }

  std::vector<OpenedWeight> parts_;
  Plan plan_;
};

Error shape_error(const TensorRecipe& recipe, const std::vector<std::int64_t>& shape) {
  const std::string& part = recipe.parts.front();
  return {ErrorCode::kDamagedFile,
          "tensor \"" + escape_for_message(part) + "\" has the shape " + safetensors_shape_text(shape) +
              ", which does not go with config.json; download the repository again",
          part};
}

// The rows of a vector are its numbers where an order is wanted.
std::vector<std::int64_t> wanted_shape(const TensorRecipe& recipe, std::vector<std::int64_t> shape) {
  if (recipe.drops_middle && shape.size() == 3 && shape[1] == 1) shape.erase(shape.begin() + 1);
  return shape;
}

// Fastest first, without what every tensor has at least.
void set_dimensions(SourceTensor& tensor, std::vector<std::int64_t> shape) {
  std::ranges::reverse(shape);
  tensor.num_dimensions = static_cast<std::uint32_t>(std::max<std::size_t>(shape.size(), 1));
  std::ranges::copy(shape, tensor.dimensions.begin());
}

void set_type(SourceTensor& tensor, TensorType type) {
  const kernels::TensorTypeTraits& traits = kernels::traits_of(type);
  tensor.type_number = static_cast<std::uint32_t>(type);
  tensor.type_name = traits.name;
  tensor.num_elements = 1;
  for (const std::int64_t size : tensor.dimensions) tensor.num_elements *= size;
  tensor.num_bytes = static_cast<std::uint64_t>(tensor.num_elements / traits.block_elements) *
                     static_cast<std::uint64_t>(traits.block_bytes);
}

MadeTensor make_constant(const TensorRecipe& recipe) {
  MadeTensor made;
  made.tensor.name = recipe.name;
  made.constants = recipe.constants;
  set_dimensions(made.tensor, {static_cast<std::int64_t>(recipe.constants.size())});
  set_type(made.tensor, TensorType::kF32);
  made.bytes = std::as_bytes(std::span(made.constants));  // a vector keeps its place when it is moved
  return made;
}

}  // namespace

std::int64_t RowOrder::stored_row(std::int64_t row, std::int64_t num_rows) const {
  if (heads_of_neighbours > 0) {
    const std::int64_t size = num_rows / heads_of_neighbours, in_head = row % size;
    row += in_head % 2 * (size / 2) + in_head / 2 - in_head;
  }
  if (key_heads > 0 && row >= first_tiled) {
    const std::int64_t size = (num_rows - first_tiled) / value_heads, head = (row - first_tiled) / size;
    const std::int64_t repeats = value_heads / key_heads;
    const std::int64_t stored_head = head % key_heads * repeats + head / key_heads;
    row += (stored_head - head) * size;
  }
  return first + row * step;
}

Result<MadeTensor> make_tensor(const TensorRecipe& recipe, std::vector<OpenedWeight> weights) {
  if (recipe.parts.empty()) return make_constant(recipe);
  const StoredWeight& front = *weights.front().weight;
  std::vector<std::int64_t> shape = wanted_shape(recipe, front.shape());
  for (const OpenedWeight& each : weights) {
    const bool is_alike = each.weight->shape() == front.shape() && each.weight->type() == front.type() &&
                          each.is_plain == weights.front().is_plain;
    if (!is_alike) return shape_error(recipe, each.weight->shape());
  }
  const bool is_plain = weights.front().is_plain;
  const bool changes = recipe.change != NumberChange::kNone || recipe.tiles_columns || recipe.columns > 0 ||
                       recipe.rows_of_list > 0;
  if (!is_plain && changes) {
    return Error{ErrorCode::kUnsupported,
                 "tensor \"" + escape_for_message(recipe.parts.front()) +
                     "\" is quantised, where this model needs floats; choose another model",
                 recipe.parts.front()};
  }
  const bool is_transposed = recipe.is_transposed && is_plain && shape.size() >= 2;
  // Numbers of a list are ordered as rows are.
  const bool is_list = shape.size() <= 1;
  const bool orders_numbers = recipe.orders_numbers || (is_list && recipe.columns == 0 &&
                                                        !recipe.tiles_columns && !recipe.rows.is_as_stored());
  if (orders_numbers) shape.push_back(1);
  if (shape.size() == 1 && (recipe.columns > 0 || recipe.rows_of_list > 0)) {
    const std::int64_t rows =
        recipe.columns > 0 ? shape[0] / recipe.columns : std::max<std::int64_t>(recipe.rows_of_list, 1);
    if (rows < 1 || shape[0] % rows != 0) return shape_error(recipe, front.shape());
    shape = {rows, shape[0] / rows};
  }

  RecipeReader::Plan plan;
  plan.stored = matrix_shape(shape);
  plan.is_transposed = is_transposed;
  plan.tiles_columns = recipe.tiles_columns;
  plan.order = recipe.rows;
  plan.change = recipe.change;
  plan.factor = recipe.factor;
  plan.row_factors = recipe.row_factors;
  const std::int64_t stored_rows = is_transposed ? plan.stored.columns : plan.stored.rows;
  plan.columns = is_transposed ? plan.stored.rows : plan.stored.columns;
  plan.rows = stored_rows;
  if (recipe.tiles_columns) {
    const RowOrder& order = recipe.rows;
    if (order.value_heads < 1 || plan.columns % order.value_heads != 0)
      return shape_error(recipe, front.shape());
  } else {
    const RowOrder& order = recipe.rows;
    const std::int64_t left = (stored_rows - order.first + order.step - 1) / order.step;
    plan.rows = order.count > 0 ? order.count : left;
    const bool fits = order.first >= 0 && plan.rows >= 1 && plan.rows <= left;
    const bool divides =
        (order.heads_of_neighbours == 0 || plan.rows % (2 * order.heads_of_neighbours) == 0) &&
        (order.key_heads == 0 || (order.value_heads % order.key_heads == 0 && plan.rows > order.first_tiled &&
                                  (plan.rows - order.first_tiled) % order.value_heads == 0));
    if (!fits || !divides) return shape_error(recipe, front.shape());
  }
  if (orders_numbers) plan.rows_in_one = plan.rows;
  const bool lacks_factors =
      !plan.row_factors.empty() && std::cmp_not_equal(plan.row_factors.size(), plan.rows);
  if (plan.columns < 1 || plan.stored.count < 1 || lacks_factors) return shape_error(recipe, front.shape());

  MadeTensor made;
  made.tensor.name = recipe.name;
  std::vector<std::int64_t> result = shape;
  if (result.size() >= 2) {
    result[result.size() - 2] = plan.rows;
    result.back() = plan.columns;
  }
  if (orders_numbers) result.pop_back();
  if (weights.size() > 1 || recipe.parts.size() > 1)
    result.insert(result.begin(), static_cast<std::int64_t>(weights.size()));
  if (result.size() > kMaxTensorDimensions) return shape_error(recipe, front.shape());
  set_dimensions(made.tensor, result);
  const bool keeps_type = recipe.change == NumberChange::kNone || recipe.change == NumberChange::kScaled;
  set_type(made.tensor, keeps_type ? front.type() : TensorType::kF32);
  const bool is_view = weights.size() == 1 && recipe.rows.is_as_stored() && !is_transposed &&
                       recipe.change == NumberChange::kNone && !front.bytes().empty();
  if (!weights.front().tensors.empty()) {
    made.tensor.byte_offset = weights.front().tensors.front()->byte_offset;
    made.tensor.shard = weights.front().tensors.front()->shard;
  }
  if (is_view) {
    made.bytes = front.bytes();
  } else {
    made.reader = std::make_unique<RecipeReader>(std::move(weights), std::move(plan));
  }
  return made;
}

}  // namespace octavo::model
