#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/product_scratch.h"
#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

unsigned form_for(TensorType type, const ProductPlan& plan) {
  if (type == TensorType::kF32) return kFloatRows;
  if (is_quantised(type) && plan.path != ProductPath::kLibrary) return kIntegerRows;
  if (plan.path == ProductPath::kVector) return kFloatRows;
  return type == TensorType::kBF16 ? kBfloatRows : kHalfRows;
}

// Rows first, first + 1, ... of prepared ones. REQUIRES: a multiple of eight.
PreparedRows rows_from(PreparedRows rows, std::int64_t first, std::int64_t count) {
  const std::int64_t numbers = first * rows.stride, of_parts = numbers * rows.num_parts,
                     groups = first * (rows.stride / kGroupColumns);
  rows.num_rows = static_cast<std::int32_t>(count);
  if (rows.floats != nullptr) rows.floats += numbers;
  if (rows.halves != nullptr) rows.halves += of_parts, rows.half_factors += first;
  if (rows.bfloats != nullptr) rows.bfloats += of_parts;
  if (rows.integers != nullptr)
    rows.integers += 4 * groups, rows.integer_scales += first, rows.integer_sums += first;
  return rows;
}

// Whose result begins `first_row` rows further on.
Product rows_from(Product product, std::int64_t first_row) {
  product.out += first_row * product.out_stride;
  return product;
}

ProductTarget target_of(const Product& product, std::int32_t splits) {
  ProductTarget target;
  target.planes = product.weights->planes();
  target.bias = product.bias;
  target.out = product.out;
  target.out_stride = product.out_stride;
  target.epilogue = product.epilogue;
  target.splits = splits;
  return target;
}

// The rows of a call, as far as they are prepared; blocks that prepare their own row ask `source`.
struct InputRows {
  PreparedRows prepared;
  RowSource source;
  bool floats_are_given = false;  // the floats are the input itself
};

// One of a call's products, with its plan. A gate's result is multiplied with what stands in its `out`.
struct Planned {
  Product product;
  bool is_gate = false;
  ProductPlan plan = {};

  TensorType type() const { return product.weights->type(); }
  bool is_by_library() const { return plan.path == ProductPath::kLibrary; }
};

// Where the library's sums go. In place: to where the result stands, added to what is there or finished by a
// launch that follows. Else beside it, in the scratch: those of two parts, and where the result needs what
// stands there and more than the sums.
struct LibraryWay {
  float* sums = nullptr;
  std::int64_t sums_stride = 0;
  bool is_in_place = true, is_finished = true;
  std::int32_t num_parts = 1;
  std::int64_t rows_at_once = kMostPreparedRows;  // a multiple of eight
  std::int64_t outputs_at_once = 0;               // of weights that are expanded, a piece
};

class Products final : public MatrixProducts {
 public:
  Products(Stream& stream, const ProductOptions& options, std::unique_ptr<LibraryProducts> library)
      : stream_(stream), options_(options), library_(std::move(library)) {}

  Result<void> reserve(const StepShape& shape) override {
    stream_.synchronize();
    scratch_ = ProductScratch{};
    OCTAVO_TRY(scratch_, ProductScratch::reserve(stream_, shape, options_));
    return {};
  }

  std::int64_t scratch_bytes() const override {
    return scratch_.bytes() + (library_ == nullptr ? 0 : library_->scratch_bytes());
  }

  std::string notice() const override {
    const std::int64_t count = library_ == nullptr ? 0 : library_->num_refused();
    if (count == 0) return {};
    return "the matrix library refused " + std::to_string(count) +
           (count == 1 ? " shape of product" : " shapes of products") + "; slower kernels are used for them";
  }

  void multiply(const ProductInput& input, std::span<const Product> products) override {
    for_pieces(input, [&](const ProductInput& piece, std::int64_t first_row) {
      std::vector<Product> of_piece;
      for (const Product& product : products) of_piece.push_back(rows_from(product, first_row));
      multiply_rows(piece, of_piece);
    });
  }

  void multiply_gate_up(const ProductInput& input, const GateUpProduct& product) override {
    OCTAVO_CHECK(
        product.up->rows() == product.gate->rows() && product.up->columns() == product.gate->columns(),
        "gate and up differ in shape");
    for_pieces(input, [&](const ProductInput& piece, std::int64_t first_row) {
      GateUpProduct of_piece = product;
      of_piece.out += first_row * product.out_stride;
      multiply_rows_gate_up(piece, of_piece);
    });
  }

 private:
  // What the library refuses goes by own kernels.
  Planned planned(const Product& product, std::int32_t rows, bool is_gate = false) const {
    const DeviceMatrix& weights = *product.weights;
    ProductOptions options = options_;
    Planned result{.product = product, .is_gate = is_gate};
    result.plan = plan_product(weights.type(), rows, weights.rows(), weights.columns(), options);
    if (!result.is_by_library() || library_serves(result, rows)) return result;
    options.library = nullptr;
    result.plan = plan_product(weights.type(), rows, weights.rows(), weights.columns(), options);
    return result;
  }

  static bool share_a_launch(const Planned& a, const Planned& b) {
    return a.type() == b.type() && a.plan.path == b.plan.path && !a.is_by_library();
  }

  template <class Function>
  void for_pieces(const ProductInput& input, Function&& function) {
    for (std::int32_t first = 0; first < input.num_rows; first += kMostPreparedRows) {
      ProductInput piece = input;
      piece.num_rows = std::min(kMostPreparedRows, input.num_rows - first);
      if (input.indices != nullptr) {
        piece.indices += first;
      } else {
        piece.data += first * input.stride;
      }
      function(piece, std::int64_t{first});
    }
  }

  // Rows that need neither norm, gathering nor zeros behind them.
  static bool are_prepared_floats(const ProductInput& input, std::int64_t columns) {
    constexpr std::uintptr_t kAlignment = 16;
    return input.norm == nullptr && input.indices == nullptr && input.stride == columns &&
           padded_columns(columns) == columns &&
           reinterpret_cast<std::uintptr_t>(input.data) % kAlignment == 0;
  }

  static bool prepares_row(const Planned& planned, bool floats_are_given) {
    return planned.plan.has_own_row &&
           !(floats_are_given && form_for(planned.type(), planned.plan) == kFloatRows);
  }

  InputRows prepare(const ProductInput& input, std::span<const Planned> planned) {
    const std::int64_t columns = planned.front().product.weights->columns();
    for (const Planned& each : planned)
      OCTAVO_CHECK(each.product.weights->columns() == columns, "columns differ");
    OCTAVO_CHECK(input.num_rows <= scratch_.most_rows && padded_columns(columns) <= scratch_.most_columns,
                 "%d rows of %lld columns are more than reserved", input.num_rows,
                 static_cast<long long>(columns));
    InputRows result;
    result.source = source_of(input, columns);
    result.floats_are_given = are_prepared_floats(input, columns);
    unsigned forms = 0;
    for (const Planned& each : planned) {
      if (!prepares_row(each, result.floats_are_given)) forms |= form_for(each.type(), each.plan);
    }
    if (result.floats_are_given) forms &= ~static_cast<unsigned>(kFloatRows);
    PreparedRows& rows = result.prepared;
    rows.num_rows = input.num_rows;
    rows.num_parts = static_cast<std::int32_t>(options_.half_parts);
    rows.stride = padded_columns(columns);
    rows.floats =
        result.floats_are_given ? const_cast<float*>(input.data) : scratch_.floats.as<float>();  // only read
    rows.halves = scratch_.halves.as<std::uint16_t>();
    rows.half_factors = scratch_.half_factors.as<float>();
    rows.bfloats = scratch_.bfloats.as<std::uint16_t>();
    rows.scale_stride = filled_up_rows(rows.num_rows);
    rows.integers = scratch_.integers.as<uint4>();
    rows.integer_scales = scratch_.integer_scales.as<float>();
    rows.integer_sums = scratch_.integer_sums.as<int2>();
    if (forms != 0) prepare_rows(stream_, result.source, forms, rows);
    return result;
  }

  // REQUIRES: as many rows as are prepared at once.
  void multiply_rows(const ProductInput& input, std::span<const Product> products) {
    std::vector<Planned> all;
    for (const Product& product : products) all.push_back(planned(product, input.num_rows));
    const InputRows rows = prepare(input, all);
    std::vector<Product> refused;
    FinishTargets finishes;
    for (std::size_t i = 0; i < all.size();) {
      std::size_t end = i + 1;
      while (end < all.size() && end - i < kMostTargets && share_a_launch(all[i], all[end])) ++end;
      if (!all[i].is_by_library()) {
        multiply_together({all.data() + i, end - i}, rows);
      } else if (!multiply_by_library(all[i], rows.prepared, finishes)) {
        refused.push_back(all[i].product);
      }
      i = end;
    }
    if (finishes.count > 0) launch_finish(stream_, finishes, input.num_rows);
    if (!refused.empty()) multiply_rows(input, refused);  // the library serves them no more
  }

  // A launch for both where they are of one type and by own kernels. Else up comes first, to where the result
  // stands, and the gate's sums beside it.
  void multiply_rows_gate_up(const ProductInput& input, const GateUpProduct& product) {
    const Planned both[] = {
        planned({product.gate, product.gate_bias, product.out, product.out_stride,
                 epilogue_of(product.activation)},
                input.num_rows, /*is_gate=*/true),
        planned({product.up, product.up_bias, product.out, product.out_stride}, input.num_rows)};
    const auto& [gate, up] = both;
    const InputRows rows = prepare(input, both);
    if (share_a_launch(gate, up)) return launch_gate_up(both, rows);
    FinishTargets rest;  // of up, left to the gate
    bool is_done = true;
    if (!up.is_by_library()) {
      multiply_together({&up, 1}, rows);
    } else {
      is_done = multiply_by_library(up, rows.prepared, rest);
    }
    if (gate.is_by_library()) {
      FinishTargets none;
      is_done = is_done && multiply_by_library(gate, rows.prepared, none, rest.targets[0]);
    } else if (is_done) {
      multiply_gate(gate, rows, rest.targets[0]);
    }
    if (!is_done) multiply_rows_gate_up(input, product);
  }

  // ---- own kernels

  // REQUIRES: one type and one way.
  void multiply_together(std::span<const Planned> planned, const InputRows& rows) {
    for_launches(planned, rows, [&](std::int64_t first, const InputRows& some) {
      ProductTargets targets;
      for (const Planned& each : planned)
        targets.targets[targets.count++] = target_of(rows_from(each.product, first), each.plan.splits);
      launch(planned.front(), targets, some);
    });
  }

  void launch_gate_up(std::span<const Planned> both, const InputRows& rows) {
    // A tile holds half its outputs of each.
    Planned counted = both[0];
    if (counted.plan.path == ProductPath::kTiles) {
      counted.plan = tiles_plan(counted.type(), rows.prepared.num_rows, 2 * counted.product.weights->rows(),
                                counted.product.weights->columns(), options_);
    }
    for_launches({&counted, 1}, rows, [&](std::int64_t first, const InputRows& some) {
      ProductTargets targets;
      targets.is_gate_up = 1;
      for (const Planned& each : both)
        targets.targets[targets.count++] = target_of(rows_from(each.product, first), counted.plan.splits);
      launch(counted, targets, some);
    });
  }

  // A gate whose up is of another type, or by the library. `up`: what it still lacks.
  void multiply_gate(const Planned& gate, const InputRows& rows, const FinishTarget& up) {
    const std::int64_t outputs = gate.product.weights->rows();
    float* const sums = scratch_.sums.as<float>();
    Planned beside = gate;
    beside.product = {.weights = gate.product.weights, .out = sums, .out_stride = outputs};
    multiply_together({&beside, 1}, rows);
    FinishTargets finish;
    FinishTarget& target = finish.targets[finish.count++];
    target = finish_of(gate, up);
    target.sums = sums, target.sums_stride = outputs;
    launch_finish(stream_, finish, rows.prepared.num_rows);
  }

  // As many rows in a launch as its kernel, or the scratch for its sums, takes.
  template <class Function>
  void for_launches(std::span<const Planned> planned, const InputRows& rows, Function&& function) {
    const bool is_split =
        std::any_of(planned.begin(), planned.end(), [](const Planned& each) { return each.plan.splits > 1; });
    const std::int64_t num_rows = rows.prepared.num_rows, num_parts = rows.prepared.num_parts;
    std::int64_t most = num_rows;
    if (planned.front().plan.path == ProductPath::kVector) most = kVectorRows;
    if (is_split && options_.deterministic && !is_quantised(planned.front().type()))
      most = kSplitRows / num_parts;
    for (std::int64_t first = 0; first < num_rows; first += most) {
      InputRows some = rows;
      some.prepared = rows_from(rows.prepared, first, std::min(most, num_rows - first));
      function(first, some);
    }
  }

  void launch(const Planned& planned, const ProductTargets& targets, const InputRows& rows) {
    const TensorType type = planned.type();
    if (prepares_row(planned, rows.floats_are_given)) {
      launch_vector_with_own_row(stream_, type, targets, rows.prepared, rows.source,
                                 std::int64_t{kVectorBlocksAtOnce} * options_.num_multiprocessors);
    } else if (planned.plan.path == ProductPath::kVector) {
      launch_vector(stream_, type, targets, rows.prepared);
    } else {
      const SplitScratch split{scratch_.partials.as<float>(), scratch_.counters.as<std::uint32_t>()};
      const auto start = is_quantised(type) ? launch_integer_tiles : launch_float_tiles;
      start(stream_, type, planned.plan.tile_rows, targets, rows.prepared, split);
    }
  }

  // ---- the library

  static bool has_factors(const Planned& planned) {
    return form_for(planned.type(), {ProductPath::kLibrary}) == kHalfRows;
  }

  LibraryWay library_way(const Planned& planned) const {
    const Product& product = planned.product;
    const std::int64_t outputs = product.weights->rows();
    LibraryWay way;
    if (planned.type() != TensorType::kF32) way.num_parts = static_cast<std::int32_t>(options_.half_parts);
    const bool adds = product.epilogue == Epilogue::kAdd,
               is_sum = (adds || product.epilogue == Epilogue::kStore) && !planned.is_gate &&
                        product.bias == nullptr && !has_factors(planned);
    way.is_finished = is_sum && way.num_parts == 1;
    way.is_in_place = way.is_finished || (way.num_parts == 1 && !adds && !planned.is_gate);
    way.sums = way.is_in_place ? product.out : scratch_.sums.as<float>();
    way.sums_stride = way.is_in_place ? product.out_stride : outputs;
    if (!way.is_in_place) {
      const std::int64_t lines = scratch_.sums.bytes() / (4 * outputs);
      way.rows_at_once = lines / way.num_parts / kFewestRowsBeside * kFewestRowsBeside;
      OCTAVO_CHECK(way.rows_at_once > 0, "%lld outputs are more than reserved",
                   static_cast<long long>(outputs));
    }
    const std::int64_t of_cache = kExpandedNumbers / product.weights->planes().stride / kExpandedStep;
    way.outputs_at_once =
        is_quantised(planned.type()) ? std::max(of_cache, std::int64_t{1}) * kExpandedStep : outputs;
    return way;
  }

  static LibraryShape library_shape(const Planned& planned, const LibraryWay& way, std::int64_t rows,
                                    std::int64_t outputs) {
    return {.type = is_quantised(planned.type()) ? TensorType::kF16 : planned.type(),
            .outputs = outputs,
            .rows = rows * way.num_parts,
            .columns = planned.product.weights->planes().stride,
            .out_stride = way.sums_stride};
  }

  bool library_serves(const Planned& planned, std::int64_t num_rows) const {
    const LibraryWay way = library_way(planned);
    const std::int64_t num_outputs = planned.product.weights->rows();
    for (const std::int64_t rows : {std::min(num_rows, way.rows_at_once), num_rows % way.rows_at_once}) {
      for (const std::int64_t outputs :
           {std::min(num_outputs, way.outputs_at_once), num_outputs % way.outputs_at_once}) {
        if (rows > 0 && outputs > 0 && !library_->serves(library_shape(planned, way, rows, outputs)))
          return false;
      }
    }
    return true;
  }

  // False: refused, and nothing is added to any result. What is to finish in place goes to `finishes`. `up`:
  // of a gate, what stands in its `out` still lacks.
  bool multiply_by_library(const Planned& planned, const PreparedRows& rows, FinishTargets& finishes,
                           const FinishTarget& up = {}) {
    const LibraryWay way = library_way(planned);
    const bool is_repeatable = planned.product.epilogue != Epilogue::kAdd && !planned.is_gate;
    OCTAVO_CHECK(is_repeatable || rows.num_rows <= way.rows_at_once,
                 "%d rows that read their result in pieces", rows.num_rows);
    for (std::int64_t first = 0; first < rows.num_rows; first += way.rows_at_once) {
      const PreparedRows some = rows_from(rows, first, std::min(way.rows_at_once, rows.num_rows - first));
      if (!sum_by_library(planned, way, some)) return false;
      if (way.is_finished) continue;
      FinishTarget target = finish_of({rows_from(planned.product, first), planned.is_gate}, up);
      target.sums = way.sums, target.sums_stride = way.sums_stride, target.num_parts = way.num_parts;
      if (has_factors(planned)) target.factors = some.half_factors;
      if (target.up_factors != nullptr) target.up_factors += first;
      FinishTargets here;
      FinishTargets& targets = way.is_in_place ? finishes : here;
      if (targets.count == kMostTargets) launch_finish(stream_, std::exchange(targets, {}), some.num_rows);
      targets.targets[targets.count++] = target;
      if (!way.is_in_place) launch_finish(stream_, here, some.num_rows);
    }
    return true;
  }

  bool sum_by_library(const Planned& planned, const LibraryWay& way, const PreparedRows& rows) {
    const WeightPlanes& planes = planned.product.weights->planes();
    const bool is_expanded = is_quantised(planned.type());
    for (std::int64_t first = 0; first < planes.rows; first += way.outputs_at_once) {
      const std::int64_t count = std::min(way.outputs_at_once, planes.rows - first);
      LibraryProduct product{.shape = library_shape(planned, way, rows.num_rows, count),
                             .weights = planes.low,
                             .out = way.sums + first,
                             .adds = planned.product.epilogue == Epilogue::kAdd && way.is_finished};
      if (is_expanded) {
        launch_expand(stream_, planes, first, count, scratch_.expanded.as<std::uint16_t>());
        product.weights = scratch_.expanded.data();
      }
      switch (product.shape.type) {
        case TensorType::kF32: product.activations = rows.floats; break;
        case TensorType::kBF16: product.activations = rows.bfloats; break;
        default: product.activations = rows.halves;
      }
      if (!library_->multiply(stream_, product)) return false;
    }
    return true;
  }

  // But for the sums and their factors. `up`: of a gate, what stands in its `out` still lacks.
  static FinishTarget finish_of(const Planned& planned, const FinishTarget& up) {
    const Product& product = planned.product;
    FinishTarget target;
    target.bias = product.bias;
    target.up_factors = up.factors, target.up_bias = up.bias;
    target.out = product.out, target.out_stride = product.out_stride;
    target.outputs = product.weights->rows();
    target.epilogue = product.epilogue;
    target.is_gate = planned.is_gate;
    return target;
  }

  Stream& stream_;
  const ProductOptions options_;
  std::unique_ptr<LibraryProducts> library_;
  ProductScratch scratch_;
};

}  // namespace

Result<std::unique_ptr<MatrixProducts>> MatrixProducts::create(Stream& stream,
                                                               const ProductOptions& options) {
  std::unique_ptr<LibraryProducts> library;
  if (uses_library(options)) {
    Result<std::unique_ptr<LibraryProducts>> created = LibraryProducts::create(options.library);
    if (!created) return created.error();
    library = std::move(created).value();
  }
  return std::unique_ptr<MatrixProducts>(std::make_unique<Products>(stream, options, std::move(library)));
}

}  // namespace octavo::kernels::cuda
