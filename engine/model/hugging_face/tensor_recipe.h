// How a tensor of the engine's name is made from what a Hugging Face folder holds: which weights, which of
// their rows in which order, and what becomes of the numbers.
//
// A weight of more than two dimensions is a stack of matrices (of experts); an order of rows holds in each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/hugging_face/stored_weight.h"
#include "engine/model/model_source.h"

namespace octavo::model {

// Which row of a stored matrix stands where.
struct RowOrder {
  // Row i of the result is row first + i * step of the matrix; count 0: all that are left.
  std::int64_t first = 0, step = 1, count = 0;
  // Rows of rotated heads: a folder has the two numbers of a pair half a head apart, and the result has them
  // beside one another. 0: as they stand.
  std::int64_t heads_of_neighbours = 0;
  // Behind `first_tiled`, heads of a Gated DeltaNet: a folder has those of a key head together, the result
  // has the first of each key head, then the second of each. 0 key heads: as they stand.
  std::int64_t first_tiled = 0, key_heads = 0, value_heads = 0;

  bool is_as_stored() const {
    return first == 0 && step == 1 && count == 0 && heads_of_neighbours == 0 && key_heads == 0;
  }
  // REQUIRES: row < num_rows, those of the result
  std::int64_t stored_row(std::int64_t row, std::int64_t num_rows) const;
};

// What becomes of each number.
enum class NumberChange : std::uint8_t {
  kNone,
  kPlusOne,      // norms that are stored less one
  kNegativeExp,  // decays that are stored as the logarithm of their negative
  kScaled,       // and rounded to the type that they have
};

struct TensorRecipe {
  std::string name;                // the engine's
  std::vector<std::string> parts;  // names of weights; several are stacked
  RowOrder rows = {};
  // Linear layers of GPT-2 and stacks of some experts have inputs as rows; of a quantised layer outputs are.
  bool is_transposed = false;
  bool tiles_columns = false;   // `rows` orders columns instead, each row alike
  bool orders_numbers = false;  // `rows` orders the numbers of each row, as it does those of a list
  NumberChange change = NumberChange::kNone;
  double factor = 1.0;                  // of kScaled
  std::vector<float> row_factors = {};  // of kScaled, of each row besides; empty: none
  // {x, 1, y} of a convolution becomes {x, y}.
  bool drops_middle = false;
  // A list of numbers becomes a matrix of so many columns. 0: it stays one.
  std::int64_t columns = 0;
  std::int64_t rows_of_list = 0;      // or of so many rows
  std::vector<float> constants = {};  // instead of parts
};

// What a recipe gives.
struct MadeTensor {
  SourceTensor tensor;
  std::unique_ptr<RowReader> reader;  // null: `bytes` are the rows
  std::span<const std::byte> bytes;   // in the mapping, or in `constants`
  std::vector<float> constants;
};

// REQUIRES: as many weights as the recipe has parts, none null. Errors: kDamagedFile for shapes that do not
// go together; kUnsupported for a quantised weight that would have to be changed.
Result<MadeTensor> make_tensor(const TensorRecipe& recipe, std::vector<OpenedWeight> weights);

}  // namespace octavo::model
