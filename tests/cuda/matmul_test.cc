// Matrix products of the device, run on the emulated one, against kernels/reference.
//
// Bounds. `error` is |difference| / |expected|, both over all outputs (Euclidean); a wrong weight, scale or
// order of columns makes it 0.01 or more in the smallest of these products. The largest single difference may
// be ten times the mean one.
//   vector, quantised     5e-6  the reference rounds activations to the same 16-bit integers; what is left
//   are float sums vector, unquantised   5e-6  float sums tiles, one part       7e-4  activations and
//   expanded weights are rounded to 11 bits: 2^-12 in the mean each tiles, two parts      4e-4  expanded
//   weights alone; of K types the scale is rounded too
//   ... float16 weights   5e-6  nothing is rounded to fewer than 22 bits
//   ... bfloat16 weights  one part 3e-3 (8 bits), two 2e-5 (16 bits)
#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/cuda/create_cuda_backend.h"
#include "kernels/cuda/matmul/library.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/reference/reference_backend.h"
#include "tests/cuda/device_arrays.h"
#include "tests/kernels/operation_runs.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using testing::noise_row;
using testing::OwnedMatrix;
using testing::random_matrix;

constexpr std::int64_t kSharedBytes = 228 * 1024;  // of a multiprocessor with room for own rows

std::string name_of(TensorType type) { return std::string(traits_of(type).name); }

std::int64_t columns_for(TensorType type, std::int64_t wanted) {
  const std::int64_t block = traits_of(type).block_elements;
  return std::max(wanted / block * block, block);
}

float half_step(HalfParts parts) { return parts == HalfParts::kOne ? 7e-4f : 4e-4f; }

// The bound of one product, by the way that it goes.
float bound_for(TensorType type, ProductPath path, HalfParts parts) {
  const bool has_integers = is_quantised(type) && path != ProductPath::kLibrary;
  if (type == TensorType::kF32 || path == ProductPath::kVector || has_integers) return 5e-6f;
  if (type == TensorType::kBF16) return parts == HalfParts::kOne ? 3e-3f : 2e-5f;
  if (type == TensorType::kF16 && parts == HalfParts::kTwo) return 5e-6f;
  return half_step(parts);
}

// Rows of activations with large and small numbers side by side.
std::vector<float> activations(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::uint64_t>(row);
    std::vector<float> line = noise_row(seed, index, columns, 1.0f);
    const std::vector<float> exponents = noise_row(seed + 1, index, columns, 2.0f);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] *= std::exp(exponents[i]);
    values.insert(values.end(), line.begin(), line.end());
  }
  return values;
}

// What the product means, in double; `rounding` is what the activations are rounded to first.
std::vector<float> expected_product(const OwnedMatrix& weights, const std::vector<float>& input,
                                    Activation rounding, const std::vector<float>& bias = {}) {
  const reference::ReferenceMatrix matrix(weights.source, rounding);
  const std::int64_t rows = static_cast<std::int64_t>(input.size()) / matrix.columns();
  std::vector<float> out(static_cast<std::size_t>(rows * matrix.rows()));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = input.begin() + row * matrix.columns();
    matrix.multiply(std::vector<float>(begin, begin + matrix.columns()), bias,
                    out.data() + row * matrix.rows());
  }
  return out;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected, float bound,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  double difference = 0.0, norm = 0.0, worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = double{got[i]} - double{expected[i]};
    difference += d * d, norm += double{expected[i]} * double{expected[i]};
    worst = std::max(worst, std::isfinite(d) ? std::fabs(d) : std::numeric_limits<double>::infinity());
  }
  EXPECT_LE(std::sqrt(difference), bound * std::sqrt(norm)) << what;
  EXPECT_LE(worst, 10.0 * double{bound} * std::sqrt(norm / static_cast<double>(got.size()))) << what;
}

StepShape step_shape(std::int32_t rows, std::int64_t columns, std::int64_t outputs) {
  StepShape shape;
  shape.num_rows = rows;
  shape.embedding_length = static_cast<std::int32_t>(columns);
  shape.feed_forward_length = static_cast<std::int32_t>(outputs);
  shape.vocabulary_size = 64;
  shape.num_heads = 1;
  shape.head_dim = 8;
  shape.has_quantised_weights = shape.has_unquantised_weights = true;
  return shape;
}

// Products of one set of options on a stream of their own.
class Bench {
 public:
  explicit Bench(const ProductOptions& options = {.half_parts = HalfParts::kOne}, std::int32_t rows = 160,
                 std::int64_t columns = 1536, std::int64_t outputs = 320)
      : options_(options), products_(MatrixProducts::create(stream_.get(), options).value()) {
    EXPECT_TRUE(products_->reserve(step_shape(rows, columns, outputs)));
  }

  MatrixProducts& products() { return *products_; }
  TestStream& stream() { return stream_; }

  std::vector<float> multiply(const OwnedMatrix& weights, const std::vector<float>& input) {
    const auto matrix = load_matrix(weights.source);
    const std::int64_t columns = matrix->columns(), rows = static_cast<std::int64_t>(input.size()) / columns;
    const DeviceArray<float> values(input);
    const DeviceArray<float> out(std::vector<float>(static_cast<std::size_t>(rows * matrix->rows()),
                                                    std::numeric_limits<float>::quiet_NaN()));
    const Product product{matrix.get(), nullptr, out.data(), matrix->rows(), Epilogue::kStore};
    products_->multiply({values.data(), columns, static_cast<std::int32_t>(rows)}, {&product, 1});
    stream_.finish();
    return out.read();
  }

  ProductPlan plan(const OwnedMatrix& weights, std::int32_t rows) const {
    return plan_product(weights.source.type, rows, weights.source.rows, weights.source.columns, options_);
  }

 private:
  ProductOptions options_;
  TestStream stream_;
  std::unique_ptr<MatrixProducts> products_;
};

Activation rounding_for(const ProductPlan& plan) {
  return plan.path == ProductPath::kLibrary ? Activation::kF32 : Activation::kInt16;
}

void expect_product(Bench& bench, const OwnedMatrix& weights, std::int32_t rows, HalfParts parts) {
  const std::vector<float> input = activations(rows, weights.source.columns, 11);
  const ProductPlan plan = bench.plan(weights, rows);
  expect_near(bench.multiply(weights, input), expected_product(weights, input, rounding_for(plan)),
              bound_for(weights.source.type, plan.path, parts),
              name_of(weights.source.type) + ", " + std::to_string(rows) + " rows");
}

TEST(ProductPlan, DependsOnTheShapeAloneWhenDeterministic) {
  const ProductOptions options{.deterministic = true, .num_multiprocessors = 132};
  for (const TensorType type : testing::kEveryTensorType) {
    if (type == TensorType::kF32 || is_quantised(type)) continue;
    for (const std::int64_t outputs : {64, 4096, 14336}) {
      const ProductPlan one = plan_product(type, 1, outputs, 4096, options);
      EXPECT_EQ(one.path, ProductPath::kTiles);
      for (const std::int32_t rows : {2, 8, 9, 64, 65, 1000}) {
        EXPECT_EQ(plan_product(type, rows, outputs, 4096, options).splits, one.splits)
            << outputs << " outputs";
      }
    }
  }
}

TEST(Products, OfEveryTypeAndNumberOfRowsAreThoseOfTheReference) {
  std::vector<std::pair<TensorType, std::int32_t>> one_part, two_parts;
  for (const TensorType type : testing::kEveryTensorType) {
    for (const std::int32_t rows : {1, 2, 7, 8, 9, 33, 64, 65}) one_part.emplace_back(type, rows);
  }
  for (const std::int32_t rows : {9, 65}) {
    for (const TensorType type : testing::kEveryTensorType) two_parts.emplace_back(type, rows);
  }
  const auto expect_products = [](const auto& cases, HalfParts parts) {
    Bench bench({.half_parts = parts});
    for (const auto& [type, rows] : cases)
      expect_product(bench, random_matrix(type, 70, columns_for(type, 288), 3), rows, parts);
  };
  expect_products(test::some_of(one_part, 3), HalfParts::kOne);
  expect_products(test::some_of(two_parts, 2), HalfParts::kTwo);
}

// The widths of SmolLM2-135M (its vocabulary cut down), and one group of 32.
TEST(Products, OfModelShapesAreThoseOfTheReference) {
  struct Case {
    TensorType type;
    std::int32_t rows;
    std::int64_t outputs, columns;
  };
  std::vector<Case> cases;
  for (const TensorType type : {TensorType::kQ4_1, TensorType::kQ8_0, TensorType::kBF16}) {
    for (const std::int32_t rows : {1, 20}) {
      for (const auto& [outputs, columns] :
           {std::pair{576, 576}, {192, 576}, {256, 1536}, {300, 576}, {1, 32}})
        cases.push_back({type, rows, outputs, columns});
    }
  }
  Bench bench({.half_parts = HalfParts::kOne, .num_multiprocessors = 4});
  for (const Case& c : test::some_of(cases, 7))
    expect_product(bench, random_matrix(c.type, c.outputs, c.columns, 4), c.rows, HalfParts::kOne);
}

TEST(Products, InPiecesOfTheInnerDimensionAreThoseOfTheReference) {
  Bench bench({.half_parts = HalfParts::kOne, .num_multiprocessors = 132}, 64, 4096, 64);
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ6_K, TensorType::kF16}) {
    const OwnedMatrix weights = random_matrix(type, 40, 4096, 6);
    ASSERT_EQ(bench.plan(weights, 12).splits, type == TensorType::kF16 ? 8 : 4);
    for (const std::int32_t rows : {12, 33}) expect_product(bench, weights, rows, HalfParts::kOne);
  }
}

TEST(Products, ByTheLibraryAreThoseOfTheReference) {
  const cublasLtHandle_t library = open_library();
  ASSERT_NE(library, nullptr);
  {
    Bench bench({.half_parts = HalfParts::kOne, .library = library});
    for (const TensorType type :
         {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ4_K, TensorType::kQ5_0}) {
      const OwnedMatrix weights = random_matrix(type, 70, columns_for(type, 288), 3);
      ASSERT_EQ(bench.plan(weights, 130).path, ProductPath::kLibrary);
      expect_product(bench, weights, 130, HalfParts::kOne);
    }
    Bench exact({.half_parts = HalfParts::kTwo, .library = library});
    expect_product(exact, random_matrix(TensorType::kF16, 70, 288, 3), 130, HalfParts::kTwo);
  }
  close_library(library);
}

TEST(Products, AreNotAskedForMoreThanTheyNeed) {
  Bench bench;
  const Product none{};
  bench.products().multiply({nullptr, 0, 0}, {&none, 0});
  bench.stream().finish();
}

// Input rows by index, normalised; outputs of different widths and types with bias and residual in one call.
TEST(Products, OfOneInputWithNormIndicesBiasAndResidual) {
  constexpr std::int64_t kColumns = 256, kInputRows = 20;
  constexpr float kEpsilon = 1e-5f;
  Bench bench;
  for (const std::int32_t rows : {3, 17}) {
    const std::vector<float> input = activations(kInputRows, kColumns, 21),
                             norm = noise_row(22, 0, kColumns, 1.5f);
    std::vector<std::int32_t> indices;
    for (std::int32_t i = 0; i < rows; ++i) indices.push_back((7 * i + 3) % kInputRows);
    std::vector<float> normalised;
    for (const std::int32_t index : indices) {
      double squares = 0.0;
      for (std::int64_t k = 0; k < kColumns; ++k)
        squares += std::pow(double{input[static_cast<std::size_t>(index * kColumns + k)]}, 2);
      const double factor = 1.0 / std::sqrt(squares / kColumns + double{kEpsilon});
      for (std::int64_t k = 0; k < kColumns; ++k) {
        const double value = input[static_cast<std::size_t>(index * kColumns + k)];
        normalised.push_back(static_cast<float>(value * factor * double{norm[static_cast<std::size_t>(k)]}));
      }
    }
    const DeviceArray<float> device_input(input), device_norm(norm);
    const DeviceArray<std::int32_t> device_indices(indices);
    struct Case {
      OwnedMatrix weights;
      std::vector<float> bias, before;
      Epilogue epilogue;
    };
    std::vector<Case> cases;
    const TensorType types[] = {TensorType::kQ4_K, TensorType::kQ4_K, TensorType::kQ6_K, TensorType::kF16};
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::int64_t outputs = 30 + 35 * static_cast<std::int64_t>(i);
      const std::int64_t stride = outputs + 5;
      cases.push_back({random_matrix(types[i], outputs, kColumns, 30 + i),
                       i == 2 ? std::vector<float>{} : noise_row(31, i, outputs),
                       noise_row(32, i, rows * stride), i % 2 == 0 ? Epilogue::kStore : Epilogue::kAdd});
    }
    std::vector<std::unique_ptr<DeviceMatrix>> matrices;
    std::vector<DeviceArray<float>> biases, outs;
    std::vector<Product> products;
    for (const Case& each : cases) {
      matrices.push_back(load_matrix(each.weights.source));
      biases.emplace_back(each.bias);
      outs.emplace_back(each.before);
      products.push_back({matrices.back().get(), each.bias.empty() ? nullptr : biases.back().data(),
                          outs.back().data(), each.weights.source.rows + 5, each.epilogue});
    }
    bench.products().multiply(
        {device_input.data(), kColumns, rows, device_indices.data(), device_norm.data(), kEpsilon}, products);
    bench.stream().finish();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& each = cases[i];
      const std::int64_t outputs = each.weights.source.rows, stride = outputs + 5;
      const ProductPlan plan = bench.plan(each.weights, rows);
      std::vector<float> expected = expected_product(each.weights, normalised, rounding_for(plan), each.bias),
                         got;
      const std::vector<float> all = outs[i].read();
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t n = 0; n < stride; ++n) {
          const auto at = static_cast<std::size_t>(row * stride + n);
          if (n >= outputs) {
            ASSERT_EQ(all[at], each.before[at]) << "written between the rows";
            continue;
          }
          got.push_back(all[at]);
          if (each.epilogue == Epilogue::kAdd)
            expected[static_cast<std::size_t>(row * outputs + n)] += each.before[at];
        }
      }
      // The norm's factor differs in its last bits, and with it a few roundings of the integers.
      const float bound = bound_for(each.weights.source.type, plan.path, HalfParts::kOne);
      expect_near(got, expected, std::max(bound, 3e-5f),
                  name_of(each.weights.source.type) + " " + std::to_string(rows));
    }
  }
}

void expect_gate_and_up(cublasLtHandle_t library, TensorType gate_type, TensorType up_type,
                        std::int32_t rows) {
  constexpr std::int64_t kOutputs = 77, kColumns = 512;
  const ProductOptions options{.half_parts = HalfParts::kOne, .num_multiprocessors = 8, .library = library};
  Bench bench(options);
  const OwnedMatrix gate = random_matrix(gate_type, kOutputs, kColumns, 41),
                    up = random_matrix(up_type, kOutputs, kColumns, 42);
  const std::vector<float> gate_bias = noise_row(43, 0, kOutputs), up_bias = noise_row(44, 0, kOutputs),
                           input = noise_row(45, 0, rows * kColumns, 2.0f);
  const auto gate_matrix = load_matrix(gate.source), up_matrix = load_matrix(up.source);
  const DeviceArray<float> gate_bias_device(gate_bias), up_bias_device(up_bias), input_device(input),
      out(std::vector<float>(static_cast<std::size_t>(rows * kOutputs), 0.0f));
  bench.products().multiply_gate_up({input_device.data(), kColumns, rows},
                                    {gate_matrix.get(), up_matrix.get(), gate_bias_device.data(),
                                     up_bias_device.data(), out.data(), kOutputs});
  bench.stream().finish();
  const ProductPlan plan = plan_product(gate_type, rows, kOutputs, kColumns, options);
  const Activation rounding = rounding_for(plan);
  const std::vector<float> gates = expected_product(gate, input, rounding, gate_bias);
  std::vector<float> expected = expected_product(up, input, rounding, up_bias);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<float>(gates[i] / (1.0 + std::exp(-double{gates[i]})) * double{expected[i]});
  const bool has_bfloats = gate_type == TensorType::kBF16;
  const bool has_integers =
      is_quantised(gate_type) && is_quantised(up_type) && plan.path != ProductPath::kLibrary;
  const float bound = plan.path == ProductPath::kVector || has_integers ? 2e-5f : has_bfloats ? 6e-3f : 2e-3f;
  expect_near(out.read(), expected, bound,
              name_of(gate_type) + " and " + name_of(up_type) + ", " + std::to_string(rows) + " rows");
}

TEST(Products, OfGateAndUpMeetInOneOutput) {
  struct Case {
    TensorType gate, up;
    std::int32_t rows;
  };
  std::vector<Case> cases;
  for (const auto& [gate, up] : {std::pair{TensorType::kQ4_1, TensorType::kQ4_1},
                                 {TensorType::kQ4_K, TensorType::kQ6_K},
                                 {TensorType::kF16, TensorType::kQ8_0},
                                 {TensorType::kBF16, TensorType::kF16}}) {
    for (const std::int32_t rows : {1, 5, 40, 100, 140}) cases.push_back({gate, up, rows});
  }
  const cublasLtHandle_t library = open_library();
  for (const Case& c : test::some_of(cases, 3)) expect_gate_and_up(library, c.gate, c.up, c.rows);
  close_library(library);
}

TEST(Products, OfARowAreTheSameInEveryBatchWhenDeterministic) {
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ3_K, TensorType::kBF16, TensorType::kF32}) {
    Bench bench({.deterministic = true, .num_multiprocessors = 40}, 160, 1536, 320);
    const OwnedMatrix weights = random_matrix(type, 40, 1024, 51);
    const std::int64_t columns = weights.source.columns;
    const std::vector<float> input = activations(150, columns, 52), all = bench.multiply(weights, input);
    const std::pair<std::int32_t, std::int32_t> pieces[] = {{0, 1}, {3, 2}, {17, 9}, {140, 10}, {100, 50}};
    for (const auto& [first, count] : pieces) {
      const std::vector<float> some(input.begin() + first * columns,
                                    input.begin() + (first + count) * columns);
      const std::vector<float> got = bench.multiply(weights, some);
      EXPECT_TRUE(testing::same_bits(got.data(), all.data() + first * 40, count * 40))
          << name_of(type) << " rows from " << first;
    }
  }
}

// Whatever the number of rows, and whether blocks divide the inner dimension: on 40 multiprocessors they do,
// on one they do not. A height at a time, with rows to spare or none.
TEST(Products, OfQuantisedWeightsAreTheSameBitsInVectorsAndInTilesOfEveryHeight) {
  struct Case {
    TensorType type;
    std::int64_t columns;
    std::int32_t multiprocessors, rows;
  };
  constexpr std::int64_t kOutputs = 70;
  std::vector<Case> cases;
  for (const TensorType type : testing::kEveryTensorType) {
    if (!is_quantised(type)) continue;
    for (const std::int64_t columns : {288, 2304}) {
      for (const std::int32_t multiprocessors : {1, 40}) {
        for (const std::int32_t rows : {2, 3, 5, 8, 9, 16, 17, 33, 64, 65, 130})
          cases.push_back({type, columns_for(type, columns), multiprocessors, rows});
      }
    }
  }
  for (const auto& [type, columns, multiprocessors, rows] : test::some_of(cases, 43)) {
    const OwnedMatrix weights = random_matrix(type, kOutputs, columns, 51);
    // On one of them blocks prepare a single row themselves, too.
    Bench bench({.num_multiprocessors = multiprocessors,
                 .multiprocessor_shared_bytes = multiprocessors == 1 ? kSharedBytes : 0},
                160, 2304, kOutputs);
    const std::vector<float> input = activations(rows, columns, 52), got = bench.multiply(weights, input);
    for (std::int32_t row = 0, count = 1; row < rows; row += count, count = std::min(4, rows - row)) {
      const std::vector<float> some(input.begin() + row * columns, input.begin() + (row + count) * columns),
          expected = bench.multiply(weights, some);
      ASSERT_TRUE(testing::same_bits(got.data() + row * kOutputs, expected.data(), count * kOutputs))
          << name_of(type) << ", " << columns << " columns, rows from " << row << " of " << rows;
    }
  }
}

// The sums of a norm as norm.cuh says: 512 chains, those of 32 neighbours added by halves, then the 16 sums.
float norm_factor_of(const std::vector<float>& row, float centre, float epsilon) {
  std::vector<float> chains(512);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const float value = row[i] - centre;
    chains[i % 512] = std::fma(value, value, chains[i % 512]);
  }
  const auto sum_of = [](std::vector<float> lanes) {
    for (std::size_t half = 16; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  };
  std::vector<float> parts(32);
  for (std::size_t warp = 0; warp < 16; ++warp) {
    const auto begin = chains.begin() + static_cast<std::ptrdiff_t>(32 * warp);
    parts[warp] = sum_of({begin, begin + 32});
  }
  return 1.0f / std::sqrt(sum_of(parts) / static_cast<float>(row.size()) + epsilon);
}

// By a product with ones in its diagonal, whose outputs are the rows as it sees them.
TEST(Products, NormaliseInOneOrderWhoeverPreparesTheRows) {
  constexpr float kEpsilon = 1e-5f;
  for (const std::int64_t columns : {96, 1100}) {
    const auto size = static_cast<std::size_t>(columns);
    std::vector<float> diagonal(size * size);
    for (std::size_t i = 0; i < size; ++i) diagonal[i * (size + 1)] = 1.0f;
    const auto* const bytes = reinterpret_cast<const std::byte*>(diagonal.data());
    const auto matrix = load_matrix({.type = TensorType::kF32,
                                     .rows = columns,
                                     .columns = columns,
                                     .bytes = {bytes, diagonal.size() * sizeof(float)}});
    const std::vector<float> row = activations(1, columns, 81), norm = noise_row(82, 0, columns, 1.5f);
    const DeviceArray<float> device_row(row), device_norm(norm);
    const float factor = norm_factor_of(row, 0.0f, kEpsilon);
    for (const std::int64_t shared_bytes : {std::int64_t{0}, kSharedBytes}) {
      Bench bench({.multiprocessor_shared_bytes = shared_bytes}, 8, columns, columns);
      const DeviceArray<float> out{std::vector<float>(size)};
      const Product product{matrix.get(), nullptr, out.data(), columns, Epilogue::kStore};
      bench.products().multiply({device_row.data(), columns, 1, nullptr, device_norm.data(), kEpsilon},
                                {&product, 1});
      bench.stream().finish();
      const std::vector<float> got = out.read();
      for (std::size_t i = 0; i < size; ++i)
        ASSERT_EQ(got[i], row[i] * factor * norm[i]) << columns << " columns, column " << i;
    }
  }
}

// Of every type: a launch less, and no other bit.
TEST(Products, OfARowThatBlocksPrepareAreTheBitsOfAPreparedOne) {
  struct Case {
    TensorType type;
    std::int64_t columns;
    NormKind kind;
  };
  constexpr std::int64_t kOutputs = 75;  // more blocks than there are at once
  std::vector<Case> cases;
  for (const TensorType type : testing::kEveryTensorType) {
    if (!multiplies(type)) continue;
    for (const std::int64_t columns : {288, 2304}) {
      for (const NormKind kind : {NormKind::kRms, NormKind::kLayer})
        cases.push_back({type, columns_for(type, columns), kind});
    }
  }
  for (const auto& [type, columns, kind] : test::some_of(cases, 3)) {
    const OwnedMatrix weights = random_matrix(type, kOutputs, columns, 91),
                      others = random_matrix(type, 20, columns, 92);
    const auto first = load_matrix(weights.source), second = load_matrix(others.source);
    std::vector<float> input = activations(4, columns, 93);
    input[static_cast<std::size_t>(columns) + 3] = std::numeric_limits<float>::infinity();
    const DeviceArray<float> values(input), norm(noise_row(94, 0, columns, 1.5f)),
        bias(noise_row(95, 0, columns, 0.5f));
    const DeviceArray<std::int32_t> third(std::vector<std::int32_t>{2}),
        infinite(std::vector<std::int32_t>{1});
    const float* const norm_bias = kind == NormKind::kLayer ? bias.data() : nullptr;
    const ProductInput sources[] = {
        {values.data(), columns, 1},
        {values.data(), columns, 1, third.data(), norm.data(), 1e-5f, kind, norm_bias},
        {values.data(), columns, 1, infinite.data()}};
    for (const ProductInput& source : sources) {
      std::vector<std::vector<float>> results;
      for (const std::int64_t shared_bytes : {std::int64_t{0}, kSharedBytes}) {
        const ProductOptions options{.num_multiprocessors = 1, .multiprocessor_shared_bytes = shared_bytes};
        Bench bench(options, 8, 2304, kOutputs);
        ASSERT_EQ(bench.plan(weights, 1).has_own_row, shared_bytes > 0) << name_of(type);
        const DeviceArray<float> out(std::vector<float>(static_cast<std::size_t>(kOutputs))),
            more(std::vector<float>(20));
        const Product both[] = {{first.get(), nullptr, out.data(), kOutputs, Epilogue::kStore},
                                {second.get(), nullptr, more.data(), 20, Epilogue::kStore}};
        const std::int64_t launches = emulation::num_single_launches();
        bench.products().multiply(source, both);
        bench.stream().finish();
        const bool are_given = !is_quantised(type) && source.norm == nullptr && source.indices == nullptr &&
                               columns % kPaddedColumns == 0;
        EXPECT_EQ(emulation::num_single_launches() - launches, shared_bytes > 0 || are_given ? 1 : 2);
        results.push_back(out.read());
        const std::vector<float> rest = more.read();
        results.back().insert(results.back().end(), rest.begin(), rest.end());
      }
      ASSERT_TRUE(testing::same_bits(results[0].data(), results[1].data(),
                                     static_cast<std::int64_t>(results[0].size())))
          << name_of(type) << ", " << columns << " columns";
    }
  }
}

// One rule: a row of few enough numbers, and a multiprocessor with room for it in four blocks.
TEST(ProductPlan, BlocksPrepareOneRowThatFitsSharedMemory) {
  const auto has_own_row = [](TensorType type, std::int32_t rows, std::int64_t columns, std::int64_t kib) {
    return plan_product(type, rows, 4096, columns,
                        {.num_multiprocessors = 132, .multiprocessor_shared_bytes = kib * 1024})
        .has_own_row;
  };
  EXPECT_TRUE(has_own_row(TensorType::kQ4_K, 1, 14336, 228));
  EXPECT_FALSE(has_own_row(TensorType::kQ4_K, 1, 14336, 100));
  EXPECT_FALSE(has_own_row(TensorType::kQ4_K, 1, 28672, 1024));
  EXPECT_FALSE(has_own_row(TensorType::kQ4_K, 2, 4096, 228));
  EXPECT_TRUE(has_own_row(TensorType::kQ4_K, 1, 4096, 100));
  EXPECT_TRUE(has_own_row(TensorType::kBF16, 1, 4096, 100));
  EXPECT_FALSE(has_own_row(TensorType::kQ4_K, 1, 4096, 0));
}

TEST(Products, OfHugeActivationsAreFinite) {
  Bench bench;
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kF16, TensorType::kBF16}) {
    const OwnedMatrix weights = random_matrix(type, 20, 256, 61);
    std::vector<float> input = activations(12, 256, 62);
    for (std::size_t i = 0; i < input.size(); ++i)
      input[i] *= i / 256 % 3 == 0 ? 1e30f : i / 256 % 3 == 1 ? 1e-30f : 1.0f;
    for (const std::int64_t rows : {6, 12}) {
      const std::vector<float> some(input.begin(), input.begin() + rows * 256),
          got = bench.multiply(weights, some);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::vector<float> line(some.begin() + row * 256, some.begin() + (row + 1) * 256);
        const ProductPlan plan = bench.plan(weights, static_cast<std::int32_t>(rows));
        expect_near({got.begin() + row * 20, got.begin() + (row + 1) * 20},
                    expected_product(weights, line, rounding_for(plan)),
                    2 * bound_for(type, plan.path, HalfParts::kOne),
                    name_of(type) + " row " + std::to_string(row));
      }
    }
  }
}

TEST(Products, KeepANanInItsRow) {
  Bench bench;
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kF32, TensorType::kF16}) {
    const OwnedMatrix weights = random_matrix(type, 20, 256, 71);
    for (const std::int64_t rows : {4, 20}) {
      std::vector<float> input = activations(rows, 256, 72);
      const std::vector<float> before = bench.multiply(weights, input);
      input[256 + 40] = std::numeric_limits<float>::quiet_NaN();
      const std::vector<float> after = bench.multiply(weights, input);
      for (std::size_t i = 0; i < after.size(); ++i) {
        if (i / 20 == 1) {
          EXPECT_TRUE(std::isnan(after[i])) << name_of(type) << ": a NaN was lost";
        } else {
          EXPECT_EQ(after[i], before[i]) << name_of(type) << ", another row";
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
