#include <algorithm>

#include "kernels/cuda/matmul/library.h"
#include "kernels/cuda/matmul/matmul.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::StepShape;
using kernels::TensorType;
using kernels::cuda::DeviceMatrix;
using kernels::cuda::DeviceMemory;
using kernels::cuda::MatrixProducts;
using kernels::cuda::Product;
using kernels::cuda::ProductInput;
using kernels::cuda::ProductOptions;
using kernels::cuda::ProductPath;

constexpr std::int32_t kMostHeadRows = 256;  // of the output head: a step asks for no more

std::vector<TensorType> types(const Sizes& sizes) {
  if (sizes.is_quick) return {TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_K, TensorType::kQ8_0};
  return {TensorType::kBF16, TensorType::kF16,    TensorType::kF32,    TensorType::kQ4_0,
          TensorType::kQ4_1, TensorType::kQ5_0,   TensorType::kQ5_1,   TensorType::kQ8_0,
          TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,   TensorType::kQ5_K,
          TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kMXFP4};
}

std::vector<std::int32_t> row_counts(const Sizes& sizes) {
  if (sizes.is_emulated) return {1, 8, 16, 130};  // each way: vector, tiles, library
  if (sizes.is_quick) return {1, 2, 4, 8, 16, 64, 2048};
  return {1, 2, 4, 8, 16, 32, 64, 128, 256, 2048};
}

// One of a layer's products: the matrices that are multiplied together.
struct Operation {
  const char* name;
  std::vector<std::int64_t> outputs;  // of each matrix
  std::int64_t columns;
  bool is_gate_up, has_norm, adds;
};

std::vector<Operation> operations_of(const ModelShape& shape) {
  const std::int64_t width = shape.embedding_length, inner = shape.feed_forward_length;
  const std::int64_t heads = std::int64_t{shape.num_heads} * shape.head_dim;
  const std::int64_t kv_heads = std::int64_t{shape.num_kv_heads} * shape.head_dim;
  return {{"query, key, value", {heads, kv_heads, kv_heads}, width, false, true, false},
          {"attention output", {width}, heads, false, false, true},
          {"gate and up", {inner, inner}, width, true, true, false},
          {"down", {width}, inner, false, false, true},
          {"output head", {shape.vocabulary}, width, false, true, false}};
}

std::int64_t num_outputs(const Operation& operation) {
  std::int64_t sum = 0;
  for (const std::int64_t outputs : operation.outputs) sum += outputs;
  return sum;
}

std::string way_of(TensorType type, std::int32_t rows, const Operation& operation,
                   const ProductOptions& options) {
  const kernels::cuda::ProductPlan plan =
      kernels::cuda::plan_product(type, rows, operation.outputs[0], operation.columns, options);
  if (plan.path == ProductPath::kVector) return "vector";
  if (plan.path == ProductPath::kLibrary) return "library";
  return "tiles of " + std::to_string(plan.tile_rows);
}

// Several sets of the same matrices, used in turn: one alone might stay in the second-level cache.
using MatrixSet = std::vector<std::unique_ptr<DeviceMatrix>>;

Result<std::vector<MatrixSet>> matrix_sets(Bench& bench, TensorType type, const Operation& operation) {
  const std::int64_t enough = bench.sizes().is_emulated ? 1 : 4 * bench.figures().cache_bytes;
  std::vector<MatrixSet> sets;
  for (std::int64_t bytes = 0; bytes < enough;) {
    MatrixSet& set = sets.emplace_back();
    for (const std::int64_t outputs : operation.outputs) {
      OCTAVO_TRY(std::unique_ptr<DeviceMatrix> matrix,
                 bench.random().matrix(type, outputs, operation.columns));
      bytes += matrix->memory_bytes();
      set.push_back(std::move(matrix));
    }
  }
  return sets;
}

class Products {
 public:
  Products(Bench& bench, ProductOptions options) : bench_(bench), options_(options) {}

  Result<void> prepare() {
    OCTAVO_TRY(products_, MatrixProducts::create(bench_.stream(), options_));
    std::int64_t most_columns = 0, most_outputs = 0;
    for (const ModelShape& shape : model_shapes(bench_.sizes())) {
      widen(shape, most_columns, most_outputs);
    }
    OCTAVO_TRY(input_, bench_.random().allocate(Numbers::kF32, most_rows() * most_columns * 4));
    OCTAVO_TRY(norm_, bench_.random().allocate(Numbers::kF32, most_columns * 4));
    OCTAVO_TRY(out_, bench_.random().allocate(Numbers::kF32, most_outputs * 4));
    return {};
  }

  Result<void> measure(TensorType type, const ModelShape& shape) {
    OCTAVO_TRY_VOID(reserve(shape));
    for (const Operation& operation : operations_of(shape)) {
      const std::int64_t most_bytes = 4 * num_outputs(operation) * operation.columns;
      const std::string missing = bench_.memory_is_missing(most_bytes + 4 * bench_.figures().cache_bytes);
      if (!missing.empty()) {
        bench_.leave_out(record_of(type, shape, operation, 1, 0), missing);
        continue;
      }
      OCTAVO_TRY(const std::vector<MatrixSet> sets, matrix_sets(bench_, type, operation));
      std::vector<Case> cases;
      for (const std::int32_t rows : row_counts(bench_.sizes())) {
        if (operation.outputs[0] == shape.vocabulary && rows > kMostHeadRows) continue;
        cases.push_back(case_of(type, shape, operation, rows, sets));
      }
      OCTAVO_TRY_VOID(bench_.measure(std::move(cases), bench_.stream_timer()));
    }
    return {};
  }

 private:
  std::int64_t most_rows() const { return row_counts(bench_.sizes()).back(); }

  void widen(const ModelShape& shape, std::int64_t& most_columns, std::int64_t& most_outputs) const {
    for (const Operation& operation : operations_of(shape)) {
      const bool is_head = operation.outputs[0] == shape.vocabulary;
      const std::int64_t rows = is_head ? std::min<std::int64_t>(most_rows(), kMostHeadRows) : most_rows();
      most_columns = std::max(most_columns, operation.columns);
      most_outputs = std::max(most_outputs, rows * num_outputs(operation));
    }
  }

  Result<void> reserve(const ModelShape& shape) {
    StepShape step;
    step.num_rows = static_cast<std::int32_t>(most_rows());
    step.num_logits_rows = kMostHeadRows;
    step.embedding_length = shape.embedding_length;
    step.feed_forward_length = shape.feed_forward_length;
    step.num_heads = shape.num_heads;
    step.num_kv_heads = shape.num_kv_heads;
    step.head_dim = shape.head_dim;
    step.vocabulary_size = shape.vocabulary;
    step.has_quantised_weights = step.has_unquantised_weights = true;
    return products_->reserve(step);
  }

  Record record_of(TensorType type, const ModelShape& shape, const Operation& operation, std::int32_t rows,
                   std::int64_t weight_bytes) const {
    const std::string type_name(kernels::traits_of(type).name);
    const auto outputs = static_cast<double>(num_outputs(operation));
    const auto columns = static_cast<double>(operation.columns), num_rows = static_cast<double>(rows);
    Record record;
    record.section = "products";
    record.name = type_name + ", " + shape.name + ", " + operation.name + ", rows " + std::to_string(rows);
    record.facts = {{"type", type_name},
                    {"model", shape.name},
                    {"operation", operation.name},
                    {"rows", std::to_string(rows)},
                    {"way", way_of(type, rows, operation, options_)}};
    // Each weight and input once; results written, and read before where they are added to. Gate and up give
    // one.
    const double results = operation.is_gate_up ? outputs / 2 : outputs * (operation.adds ? 2 : 1);
    record.bytes = static_cast<double>(weight_bytes) + 4 * num_rows * (columns + results);
    record.operations = 2 * num_rows * outputs * columns;
    record.limit_bytes = bench_.limits().copy_bytes;
    if (type == TensorType::kBF16) record.limit_operations = bench_.limits().bf16_operations;
    if (type != TensorType::kBF16 && type != TensorType::kF32)
      record.limit_operations = bench_.limits().f16_operations;
    return record;
  }

  Case case_of(TensorType type, const ModelShape& shape, const Operation& operation, std::int32_t rows,
               const std::vector<MatrixSet>& sets) {
    std::int64_t weight_bytes = 0;
    for (const auto& matrix : sets[0]) weight_bytes += matrix->memory_bytes();
    ProductInput input{.data = input_.as<float>(), .stride = operation.columns, .num_rows = rows};
    if (operation.has_norm) {
      input.norm = norm_.as<float>();
      input.norm_epsilon = 1e-5f;
    }
    return {record_of(type, shape, operation, rows, weight_bytes),
            [this, input, operation, &sets](std::int64_t call) {
              multiply(input, operation, sets[static_cast<std::size_t>(call) % sets.size()]);
            }};
  }

  void multiply(const ProductInput& input, const Operation& operation, const MatrixSet& set) {
    if (operation.is_gate_up) {
      products_->multiply_gate_up(
          input,
          {.gate = set[0].get(), .up = set[1].get(), .out = out_.as<float>(), .out_stride = set[0]->rows()});
      return;
    }
    std::vector<Product> products;
    float* out = out_.as<float>();
    for (const auto& matrix : set) {
      products.push_back(
          {.weights = matrix.get(),
           .out = out,
           .out_stride = matrix->rows(),
           .epilogue = operation.adds ? kernels::cuda::Epilogue::kAdd : kernels::cuda::Epilogue::kStore});
      out += input.num_rows * matrix->rows();
    }
    products_->multiply(input, products);
  }

  Bench& bench_;
  const ProductOptions options_;
  std::unique_ptr<MatrixProducts> products_;
  DeviceMemory input_, norm_, out_;
};

Result<void> measure_all(Bench& bench, const ProductOptions& options) {
  Products products(bench, options);
  OCTAVO_TRY_VOID(products.prepare());
  std::vector<ModelShape> shapes = model_shapes(bench.sizes());
  if (bench.sizes().is_emulated) shapes.resize(1);  // an emulated minute is enough
  for (const TensorType type : types(bench.sizes())) {
    for (const ModelShape& shape : shapes) OCTAVO_TRY_VOID(products.measure(type, shape));
  }
  return {};
}

}  // namespace

Result<void> measure_products(Bench& bench) {
  const cublasLtHandle_t library = kernels::cuda::open_library();
  const Result<void> result =
      measure_all(bench, {.num_multiprocessors = bench.figures().num_multiprocessors,
                          .multiprocessor_shared_bytes = bench.figures().multiprocessor_shared_bytes,
                          .library = library});
  kernels::cuda::close_library(library);
  return result;
}

}  // namespace octavo::bench
