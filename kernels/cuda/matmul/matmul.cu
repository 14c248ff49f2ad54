#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

// Rows from which the library is worth its detours (expanding weights, a pass over the result). Quantised:
// expanding costs about 4.6 bytes of traffic for each weight, most of it in the second-level cache, which is
// the time of 128 rows on the tensor cores' slower, warp-wide instructions.
constexpr std::int32_t kLibraryRows = 16, kLibraryRowsQuantised = 128;
constexpr std::int32_t kMostRows = 2048;  // of input that is prepared at once
constexpr std::int32_t kSplitRows = 128;  // at once, where a fixed number of splits meets any number of rows
constexpr std::int64_t kSlabNumbers = 16
                                      << 20;  // weights expanded at once: 32 MiB, which stay in a cache of 50
constexpr std::int64_t kSlabOutputs = 8192, kSlabStep = 256;
constexpr std::int32_t kMostSplits = 16;
constexpr std::int64_t kFewestChunks = 4;  // of a split

std::int64_t wanted_blocks(const ProductOptions& options) {
  return 2 * std::int64_t{options.num_multiprocessors};
}

// Enough blocks for the whole device, and no more: each costs a pass over its sums. Of float tiles.
std::int32_t splits_for(std::int64_t tiles, std::int64_t columns, const ProductOptions& options) {
  const std::int64_t chunks = num_pieces(columns, kTileColumns);
  const std::int64_t splits =
      std::min({wanted_blocks(options) / tiles, chunks / kFewestChunks, std::int64_t{kMostSplits}});
  return static_cast<std::int32_t>(std::max<std::int64_t>(splits, 1));
}

std::int32_t tile_rows_for(std::int32_t rows, std::int32_t most) {
  std::int32_t tile_rows = 8;
  while (tile_rows < rows && tile_rows < most) tile_rows *= 2;
  return tile_rows;
}

// Sections are a function of the columns alone, so that dividing them or not gives the same sums. They are
// divided where all their blocks run at once.
ProductPlan integer_tiles_plan(std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                               const ProductOptions& options) {
  const std::int32_t tile_rows = tile_rows_for(rows, kMostTileRows);
  const std::int64_t tiles =
      std::int64_t{num_pieces(outputs, tile_outputs(true, tile_rows))} * num_pieces(rows, tile_rows);
  const std::int32_t sections = sections_of(padded_columns(columns)).count;
  const bool are_divided =
      tiles * sections <= std::int64_t{integer_tiles_at_once(tile_rows)} * options.num_multiprocessors;
  return {ProductPath::kTiles, tile_rows, are_divided ? sections : 1};
}

// Deterministic splits know the shape of the weights alone. Two parts of 64 rows would not fit the shared
// memory of every device.
ProductPlan float_tiles_plan(std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                             const ProductOptions& options) {
  const std::int32_t most = options.half_parts == HalfParts::kTwo ? kMostTileRows / 2 : kMostTileRows;
  const std::int32_t tile_rows = tile_rows_for(rows, most);
  const std::int64_t tiles =
      options.deterministic
          ? num_pieces(outputs, kLeastTileOutputs)
          : std::int64_t{num_pieces(outputs, tile_outputs(false, tile_rows))} * num_pieces(rows, tile_rows);
  return {ProductPath::kTiles, tile_rows, splits_for(tiles, columns, options)};
}

ProductPlan tiles_plan(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                       const ProductOptions& options) {
  return is_quantised(type) ? integer_tiles_plan(rows, outputs, columns, options)
                            : float_tiles_plan(rows, outputs, columns, options);
}

// Every block of a launch prepares the row again: by estimate 1.5 us of an H100 for 4,096 numbers and 5 for
// 14,336 (RESOURCES.md), where a launch of its own takes 4 to 8; of more rows it would be the dearer way. And
// the row must leave room for as many blocks as registers do.
constexpr std::int64_t kMostOwnNumbers = 16 * 1024;
constexpr std::int64_t kBlockBytes = 1024;  // that a block takes of shared memory beside its own

bool prepares_own_row(TensorType type, std::int32_t rows, std::int64_t columns,
                      const ProductOptions& options) {
  const std::int64_t stride = padded_columns(columns);
  return rows == 1 && stride <= kMostOwnNumbers &&
         kVectorBlocksAtOnce * (own_row_bytes(type, stride) + kBlockBytes) <=
             options.multiprocessor_shared_bytes;
}

ProductPlan vector_plan(TensorType type, std::int32_t rows, std::int64_t columns,
                        const ProductOptions& options) {
  ProductPlan plan;
  plan.has_own_row = prepares_own_row(type, rows, columns, options);
  return plan;
}

unsigned form_for(TensorType type, const ProductPlan& plan) {
  if (type == TensorType::kF32) return kFloatRows;
  if (is_quantised(type) && plan.path != ProductPath::kLibrary) return kIntegerRows;
  if (plan.path == ProductPath::kVector) return kFloatRows;
  return type == TensorType::kBF16 ? kBfloatRows : kHalfRows;
}

std::int64_t filled_up_rows(std::int64_t rows) { return (rows + 7) / 8 * 8; }

// Rows first, first + 1, ... of prepared ones. REQUIRES: a multiple of eight.
PreparedRows rows_from(PreparedRows rows, std::int64_t first, std::int64_t count) {
  const std::int64_t numbers = first * rows.stride, groups = first * (rows.stride / kGroupColumns);
  rows.num_rows = static_cast<std::int32_t>(count);
  if (rows.floats != nullptr) rows.floats += numbers;
  if (rows.halves != nullptr) rows.halves += numbers, rows.half_factors += first;
  if (rows.bfloats != nullptr) rows.bfloats += numbers;
  if (rows.integers != nullptr)
    rows.integers += 4 * groups, rows.integer_scales += first, rows.integer_sums += first;
  return rows;
}

ProductTarget target_of(const Product& product, std::int64_t first_row, std::int32_t splits) {
  ProductTarget target;
  target.planes = product.weights->planes();
  target.bias = product.bias;
  target.out = product.out + first_row * product.out_stride;
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

struct Scratch {
  DeviceMemory floats, halves, half_factors, bfloats, integers, integer_scales, integer_sums;
  DeviceMemory partials, counters, expanded, products;

  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const DeviceMemory* memory : {&floats, &halves, &half_factors, &bfloats, &integers, &integer_scales,
                                       &integer_sums, &partials, &counters, &expanded, &products}) {
      sum += memory->bytes();
    }
    return sum;
  }
};

// One call's products, with the plan of each.
struct Planned {
  Product product;
  ProductPlan plan;
};

class Products final : public MatrixProducts {
 public:
  Products(Stream& stream, const ProductOptions& options, std::unique_ptr<LibraryProducts> library)
      : stream_(stream), options_(options), library_(std::move(library)) {}

  Result<void> reserve(const StepShape& shape) override {
    stream_.synchronize();
    scratch_ = Scratch{};
    most_rows_ = std::min(std::max(shape.num_rows, shape.num_logits_rows), kMostRows);
    most_columns_ = padded_columns(
        std::max({std::int64_t{shape.embedding_length}, std::int64_t{shape.feed_forward_length},
                  std::int64_t{shape.num_heads} * shape.head_dim}));
    OCTAVO_TRY_VOID(reserve_rows(shape));
    OCTAVO_TRY_VOID(reserve_sums());
    return reserve_library(shape);
  }

  std::int64_t scratch_bytes() const override {
    return scratch_.bytes() + (library_ == nullptr ? 0 : library_->scratch_bytes());
  }

  void multiply(const ProductInput& input, std::span<const Product> products) override {
    if (input.num_rows == 0) return;
    std::vector<Planned> planned;
    for (const Product& product : products)
      planned.push_back({product, plan_of(*product.weights, input.num_rows)});
    for_pieces(input, [&](const ProductInput& piece, std::int64_t first_row) {
      const InputRows rows = prepare(piece, planned);
      for (std::size_t i = 0; i < planned.size();) {
        std::size_t end = i + 1;
        while (end < planned.size() && end - i < kMostTargets && share_a_launch(planned[i], planned[end]))
          ++end;
        multiply_together({planned.data() + i, end - i}, first_row, rows);
        i = end;
      }
    });
  }

  void multiply_gate_up(const ProductInput& input, const GateUpProduct& product) override {
    if (input.num_rows == 0) return;
    const std::int64_t outputs = product.gate->rows();
    OCTAVO_CHECK(product.up->rows() == outputs && product.up->columns() == product.gate->columns(),
                 "gate and up differ in shape");
    const Epilogue activation = epilogue_of(product.activation);
    Planned both[] = {{{product.gate, product.gate_bias, product.out, product.out_stride, activation},
                       plan_of(*product.gate, input.num_rows)},
                      {{product.up, product.up_bias, product.out, product.out_stride, activation},
                       plan_of(*product.up, input.num_rows)}};
    // The library's result stands where the other's would.
    if (both[0].plan.path != both[1].plan.path) {
      for (Planned& each : both) {
        if (each.plan.path == ProductPath::kLibrary)
          each.plan = own_plan(*each.product.weights, input.num_rows);
      }
    }
    for_pieces(input, [&](const ProductInput& piece, std::int64_t first_row) {
      const InputRows rows = prepare(piece, both);
      if (product.gate->type() == product.up->type() && both[0].plan.path != ProductPath::kLibrary) {
        launch_gate_up(both, first_row, rows);
      } else {
        gate_up_in_pieces(both, first_row, rows);
      }
    });
  }

 private:
  ProductPlan plan_of(const DeviceMatrix& weights, std::int32_t rows) const {
    return plan_product(weights.type(), rows, weights.rows(), weights.columns(), options_);
  }

  // Of own kernels, whatever the number of rows.
  ProductPlan own_plan(const DeviceMatrix& weights, std::int32_t rows) const {
    ProductOptions options = options_;
    options.library = nullptr;
    return plan_product(weights.type(), rows, weights.rows(), weights.columns(), options);
  }

  static bool share_a_launch(const Planned& a, const Planned& b) {
    return a.product.weights->type() == b.product.weights->type() && a.plan.path == b.plan.path &&
           a.plan.path != ProductPath::kLibrary;
  }

  template <class Function>
  void for_pieces(const ProductInput& input, Function&& function) {
    for (std::int32_t first = 0; first < input.num_rows; first += kMostRows) {
      ProductInput piece = input;
      piece.num_rows = std::min(kMostRows, input.num_rows - first);
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
    const bool has_floats = form_for(planned.product.weights->type(), planned.plan) == kFloatRows;
    return planned.plan.has_own_row && !(has_floats && floats_are_given);
  }

  InputRows prepare(const ProductInput& input, std::span<const Planned> planned) {
    const std::int64_t columns = planned.front().product.weights->columns();
    for (const Planned& each : planned)
      OCTAVO_CHECK(each.product.weights->columns() == columns, "columns differ");
    OCTAVO_CHECK(input.num_rows <= most_rows_ && padded_columns(columns) <= most_columns_,
                 "%d rows of %lld columns are more than reserved", input.num_rows,
                 static_cast<long long>(columns));
    InputRows result;
    result.source = source_of(input, columns);
    result.floats_are_given = are_prepared_floats(input, columns);
    unsigned forms = 0;
    for (const Planned& each : planned) {
      if (!prepares_row(each, result.floats_are_given))
        forms |= form_for(each.product.weights->type(), each.plan);
    }
    if (result.floats_are_given) forms &= ~static_cast<unsigned>(kFloatRows);
    PreparedRows& rows = result.prepared;
    rows.num_rows = input.num_rows;
    rows.num_parts = static_cast<std::int32_t>(options_.half_parts);
    rows.stride = padded_columns(columns);
    rows.part_stride = rows.num_rows * rows.stride;
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

  // REQUIRES: one type and one way.
  void multiply_together(std::span<const Planned> planned, std::int64_t first_row, const InputRows& rows) {
    if (planned.front().plan.path == ProductPath::kLibrary) {
      for (const Planned& each : planned) multiply_by_library(each, first_row, rows.prepared);
      return;
    }
    for_launches(planned, rows, [&](std::int64_t first, const InputRows& some) {
      ProductTargets targets;
      for (const Planned& each : planned) {
        targets.targets[targets.count++] = target_of(each.product, first_row + first, each.plan.splits);
      }
      launch(planned.front(), targets, some);
    });
  }

  void launch_gate_up(std::span<const Planned> both, std::int64_t first_row, const InputRows& rows) {
    // A tile holds half its outputs of each.
    Planned counted = both[0];
    if (counted.plan.path == ProductPath::kTiles) {
      const std::int64_t outputs = 2 * counted.product.weights->rows();
      counted.plan = tiles_plan(counted.product.weights->type(), rows.prepared.num_rows, outputs,
                                counted.product.weights->columns(), options_);
    }
    for_launches({&counted, 1}, rows, [&](std::int64_t first, const InputRows& some) {
      ProductTargets targets;
      targets.is_gate_up = 1;
      for (const Planned& each : both) {
        targets.targets[targets.count++] = target_of(each.product, first_row + first, counted.plan.splits);
      }
      launch(counted, targets, some);
    });
  }

  // As many rows in a launch as its kernel, or the scratch for its sums, takes.
  template <class Function>
  void for_launches(std::span<const Planned> planned, const InputRows& rows, Function&& function) {
    const bool is_split =
        std::any_of(planned.begin(), planned.end(), [](const Planned& each) { return each.plan.splits > 1; });
    const std::int64_t num_rows = rows.prepared.num_rows;
    std::int64_t most = num_rows;
    if (planned.front().plan.path == ProductPath::kVector) most = kVectorRows;
    const bool is_quantised_type = is_quantised(planned.front().product.weights->type());
    if (is_split && options_.deterministic && !is_quantised_type) most = kSplitRows;
    for (std::int64_t first = 0; first < num_rows; first += most) {
      InputRows some = rows;
      some.prepared = rows_from(rows.prepared, first, std::min(most, num_rows - first));
      function(first, some);
    }
  }

  void launch(const Planned& planned, const ProductTargets& targets, const InputRows& rows) {
    const TensorType type = planned.product.weights->type();
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

  // Outputs at once: a multiple of what suits every algorithm of the library.
  static std::int64_t slab_outputs(const DeviceMatrix& weights) {
    const std::int64_t outputs = weights.rows(), of_cache = kSlabNumbers / weights.planes().stride;
    if (!is_quantised(weights.type())) return std::min(outputs, kSlabOutputs);
    return std::min({outputs, kSlabOutputs, std::max(of_cache / kSlabStep, std::int64_t{1}) * kSlabStep});
  }

  // Outputs [first, first + count) into `out`, whose rows are out_stride apart.
  void library_product(const DeviceMatrix& weights, std::int64_t first, std::int64_t count,
                       const PreparedRows& rows, float* out, std::int64_t out_stride, bool adds) {
    const WeightPlanes& planes = weights.planes();
    LibraryProduct product{.type = weights.type(),
                           .out = out,
                           .outputs = count,
                           .rows = rows.num_rows,
                           .columns = rows.stride,
                           .out_stride = out_stride,
                           .adds = adds};
    if (weights.type() == TensorType::kF32) {
      product.weights = reinterpret_cast<const float*>(planes.low) + first * planes.stride;
      product.activations = rows.floats;
      return library_->multiply(stream_, product);
    }
    product.weights = reinterpret_cast<const std::uint16_t*>(planes.low) + first * planes.stride;
    if (is_quantised(weights.type())) {
      launch_expand(stream_, planes, first, count, scratch_.expanded.as<std::uint16_t>());
      product.weights = scratch_.expanded.data();
      product.type = TensorType::kF16;
    }
    const std::uint16_t* const activations = product.type == TensorType::kBF16 ? rows.bfloats : rows.halves;
    for (std::int32_t part = 0; part < rows.num_parts; ++part) {
      product.activations = activations + part * rows.part_stride;
      library_->multiply(stream_, product);
      product.adds = true;
    }
  }

  static const float* factors_of(const DeviceMatrix& weights, const PreparedRows& rows) {
    return form_for(weights.type(), {ProductPath::kLibrary}) == kHalfRows ? rows.half_factors : nullptr;
  }

  static FinishArguments finish_of(const Product& product, std::int64_t first_row, std::int64_t first,
                                   std::int64_t count, const PreparedRows& rows) {
    FinishArguments finish;
    finish.factors = factors_of(*product.weights, rows);
    finish.bias = product.bias == nullptr ? nullptr : product.bias + first;
    finish.out = product.out + first_row * product.out_stride + first;
    finish.out_stride = product.out_stride;
    finish.count = count;
    finish.num_rows = rows.num_rows;
    finish.epilogue = product.epilogue;
    return finish;
  }

  void multiply_by_library(const Planned& planned, std::int64_t first_row, const PreparedRows& rows) {
    const Product& product = planned.product;
    const bool is_linear = product.epilogue == Epilogue::kStore || product.epilogue == Epilogue::kAdd;
    if (is_linear && product.bias == nullptr && factors_of(*product.weights, rows) == nullptr) {
      return library_product(*product.weights, 0, product.weights->rows(), rows,
                             product.out + first_row * product.out_stride, product.out_stride,
                             product.epilogue == Epilogue::kAdd);
    }
    const std::int64_t outputs = product.weights->rows(), slab = slab_outputs(*product.weights);
    for (std::int64_t first = 0; first < outputs; first += slab) {
      const std::int64_t count = std::min(slab, outputs - first);
      float* const result = scratch_.products.as<float>();
      library_product(*product.weights, first, count, rows, result, count, false);
      FinishArguments finish = finish_of(product, first_row, first, count, rows);
      finish.product = result;
      launch_finish(stream_, finish);
    }
  }

  // Gate and up of different types, or both by the library: a piece of outputs at a time, each into its own
  // scratch.
  void gate_up_in_pieces(std::span<const Planned> both, std::int64_t first_row, const InputRows& rows) {
    const std::int64_t outputs = both[0].product.weights->rows();
    const bool by_library =
        both[0].plan.path == ProductPath::kLibrary && both[1].plan.path == ProductPath::kLibrary;
    const std::int64_t slab =
        by_library ? std::min(slab_outputs(*both[0].product.weights), slab_outputs(*both[1].product.weights))
                   : outputs;
    float* const results[] = {scratch_.products.as<float>(),
                              scratch_.products.as<float>() + scratch_.products.bytes() / 8};
    for (std::int64_t first = 0; first < outputs; first += slab) {
      const std::int64_t count = std::min(slab, outputs - first);
      FinishArguments finish = finish_of(both[0].product, first_row, first, count, rows.prepared);
      for (std::size_t i = 0; i < 2 && by_library; ++i) {
        library_product(*both[i].product.weights, first, count, rows.prepared, results[i], count, false);
      }
      for (std::size_t i = 0; i < 2 && !by_library; ++i) {
        const Planned plain{{both[i].product.weights, nullptr, results[i], count, Epilogue::kStore},
                            both[i].plan};
        multiply_together({&plain, 1}, 0, rows);
      }
      finish.up_factors = factors_of(*both[1].product.weights, rows.prepared);
      if (!by_library) finish.factors = finish.up_factors = nullptr;  // own kernels have applied them
      finish.product = results[0];
      finish.up = results[1];
      finish.up_bias = both[1].product.bias == nullptr ? nullptr : both[1].product.bias + first;
      launch_finish(stream_, finish);
    }
  }

  // ---- scratch

  Result<void> take(DeviceMemory& memory, std::int64_t bytes) {
    Result<DeviceMemory> taken = DeviceMemory::allocate(bytes, "the working memory of matrix products");
    if (!taken) return taken.error();
    memory = std::move(taken).value();
    return {};
  }

  Result<void> reserve_rows(const StepShape& shape) {
    const std::int64_t numbers = most_rows_ * most_columns_;
    const std::int64_t half_bytes = numbers * 2 * static_cast<std::int64_t>(options_.half_parts);
    if (shape.has_unquantised_weights || library_ != nullptr) {
      OCTAVO_TRY_VOID(take(scratch_.halves, half_bytes));
      OCTAVO_TRY_VOID(take(scratch_.half_factors, most_rows_ * 4));
    }
    if (shape.has_unquantised_weights) {
      OCTAVO_TRY_VOID(take(scratch_.bfloats, half_bytes));
      OCTAVO_TRY_VOID(take(scratch_.floats, numbers * 4));
    }
    if (!shape.has_quantised_weights) return {};
    const std::int64_t group_scales = filled_up_rows(most_rows_) * (most_columns_ / kGroupColumns);
    OCTAVO_TRY_VOID(take(scratch_.integers, numbers * 2));
    OCTAVO_TRY_VOID(take(scratch_.integer_scales, group_scales * 4));
    return take(scratch_.integer_sums, group_scales * 8);
  }

  // At most wanted_blocks() for each target of a launch; and for each row tile, where splits do not depend on
  // their number.
  Result<void> reserve_sums() {
    const std::int64_t tiles = kMostTargets * wanted_blocks(options_);
    const std::int64_t rows = options_.deterministic ? kSplitRows : kMostTileRows;
    OCTAVO_TRY_VOID(take(scratch_.partials, tiles * rows * kMostTileOutputs * 4));
    OCTAVO_TRY_VOID(take(scratch_.counters, tiles * (2 * kSplitRows / kMostTileRows) * 4));
    stream_.fill(scratch_.counters.data(), 0, scratch_.counters.bytes());
    return {};
  }

  Result<void> reserve_library(const StepShape& shape) {
    const std::int64_t outputs = std::max(
        {std::int64_t{shape.feed_forward_length}, std::int64_t{shape.vocabulary_size}, most_columns_});
    const std::int64_t most = library_ != nullptr ? std::max(std::min(outputs, kSlabOutputs),
                                                             std::int64_t{shape.feed_forward_length})
                                                  : std::int64_t{shape.feed_forward_length};
    OCTAVO_TRY_VOID(take(scratch_.products, 2 * most_rows_ * most * 4));
    if (library_ == nullptr || !shape.has_quantised_weights) return {};
    return take(scratch_.expanded, std::max(kSlabNumbers, kSlabStep * most_columns_) * 2);
  }

  Stream& stream_;
  const ProductOptions options_;
  std::unique_ptr<LibraryProducts> library_;
  Scratch scratch_;
  std::int32_t most_rows_ = 0;
  std::int64_t most_columns_ = 0;
};

}  // namespace

std::int32_t deal_tiles(ProductTargets& targets, std::int64_t outputs_of_tile, std::int32_t row_tiles) {
  if (targets.is_gate_up != 0) outputs_of_tile /= 2;
  std::int32_t num_blocks = 0, num_partials = 0;
  for (int i = 0; i < (targets.is_gate_up != 0 ? 1 : targets.count); ++i) {
    ProductTarget& target = targets.targets[i];
    target.num_tiles = static_cast<std::int32_t>(num_pieces(target.planes.rows, outputs_of_tile));
    target.first_block = num_blocks;
    target.first_partial = num_partials;
    num_blocks += target.num_tiles * target.splits;
    if (target.splits > 1) num_partials += target.num_tiles * target.splits * row_tiles;
  }
  return num_blocks;
}

ProductPlan plan_product(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                         const ProductOptions& options) {
  const bool has_library = options.library != nullptr && !options.deterministic;
  if (type == TensorType::kF32) {
    if (has_library && rows > kVectorRows) return {ProductPath::kLibrary};
    return vector_plan(type, rows, columns, options);
  }
  if (options.deterministic && !is_quantised(type)) return tiles_plan(type, rows, outputs, columns, options);
  if (rows <= (is_quantised(type) ? kMostVectorRowsQuantised : kMostVectorRows))
    return vector_plan(type, rows, columns, options);
  const std::int32_t library_rows = is_quantised(type) ? kLibraryRowsQuantised : kLibraryRows;
  if (has_library && rows >= library_rows) return {ProductPath::kLibrary};
  return tiles_plan(type, rows, outputs, columns, options);
}

Result<std::unique_ptr<MatrixProducts>> MatrixProducts::create(Stream& stream,
                                                               const ProductOptions& options) {
  std::unique_ptr<LibraryProducts> library;
  if (options.library != nullptr && !options.deterministic) {
    Result<std::unique_ptr<LibraryProducts>> created = LibraryProducts::create(options.library);
    if (!created) return created.error();
    library = std::move(created).value();
  }
  return std::unique_ptr<MatrixProducts>(std::make_unique<Products>(stream, options, std::move(library)));
}

}  // namespace octavo::kernels::cuda
