// Matrix products of the device, run on the emulated one, against kernels/reference.
#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/cuda/create_cuda_backend.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "tests/cuda/product_bench.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using testing::noise_row;
using testing::OwnedMatrix;
using testing::random_matrix;

constexpr std::int64_t kSharedBytes = 228 * 1024;  // of a multiprocessor with room for own rows

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
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    for (const std::int32_t rows : {2, 4, 5, 9, 31, 32, 33, 65}) two_parts.emplace_back(type, rows);
  }
  const auto expect_products = [](const auto& cases, HalfParts parts) {
    Bench bench({.half_parts = parts});
    for (const auto& [type, rows] : cases)
      expect_product(bench, random_matrix(type, 70, columns_for(type, 288), 3), rows);
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
    expect_product(bench, random_matrix(c.type, c.outputs, c.columns, 4), c.rows);
}

TEST(Products, InPiecesOfTheInnerDimensionAreThoseOfTheReference) {
  Bench bench({.half_parts = HalfParts::kOne, .num_multiprocessors = 132}, 64, 4096, 64);
  for (const TensorType type : {TensorType::kQ4_0, TensorType::kQ6_K, TensorType::kF16}) {
    const OwnedMatrix weights = random_matrix(type, 40, 4096, 6);
    ASSERT_EQ(bench.plan(weights, 12).splits, type == TensorType::kF16 ? 8 : 4);
    for (const std::int32_t rows : {12, 33}) expect_product(bench, weights, rows);
  }
  Bench exact({.half_parts = HalfParts::kTwo, .num_multiprocessors = 132}, 64, 4096, 64);
  for (const std::int32_t rows : {6, 33})
    expect_product(exact, random_matrix(TensorType::kBF16, 40, 4096, 6), rows);
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
  Bench bench({.num_multiprocessors = 8});
  for (const Case& c : test::some_of(cases, 3)) expect_gate_and_up(bench, c.gate, c.up, c.rows);
  Bench exact({.half_parts = HalfParts::kTwo, .num_multiprocessors = 8});
  expect_gate_and_up(exact, TensorType::kF16, TensorType::kF16, 20);
  expect_gate_and_up(exact, TensorType::kBF16, TensorType::kF16, 9);
}

TEST(Products, OfARowAreTheSameInEveryBatchWhenDeterministic) {
  for (const auto& [type, parts] : {std::pair{TensorType::kQ4_0, HalfParts::kOne},
                                    {TensorType::kQ3_K, HalfParts::kOne},
                                    {TensorType::kBF16, HalfParts::kOne},
                                    {TensorType::kBF16, HalfParts::kTwo},
                                    {TensorType::kF32, HalfParts::kOne}}) {
    Bench bench({.deterministic = true, .half_parts = parts, .num_multiprocessors = 40}, 160, 1536, 320);
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

// As many blocks as there can be, with their sums: of four products, and of rows beyond those of a launch.
TEST(Products, OfFourInPiecesFitTheScratchOfTheirSums) {
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    Bench bench({.deterministic = true, .half_parts = parts, .num_multiprocessors = 1});
    expect_biased_products(bench, std::vector<BiasedProduct>(4, {TensorType::kBF16, 60}), 150, 1024);
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
#ifndef OCTAVO_ON_DEVICE  // where nobody counts
        const std::int64_t launches = emulation::num_single_launches();
#endif
        bench.products().multiply(source, both);
        bench.stream().finish();
#ifndef OCTAVO_ON_DEVICE
        const bool are_given = !is_quantised(type) && source.norm == nullptr && source.indices == nullptr &&
                               columns % kPaddedColumns == 0;
        EXPECT_EQ(emulation::num_single_launches() - launches, shared_bytes > 0 || are_given ? 1 : 2);
#endif
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

// Sums of four very long rows are more than 64 KiB, which some devices have no more than.
TEST(ProductPlan, VectorsThatFitNoSharedMemoryGoByTiles) {
  const auto path = [](TensorType type, std::int32_t rows, std::int64_t columns) {
    return plan_product(type, rows, 4096, columns, {.num_multiprocessors = 132}).path;
  };
  EXPECT_EQ(path(TensorType::kQ4_K, 4, 28672), ProductPath::kVector);
  EXPECT_EQ(path(TensorType::kQ4_K, 4, 53248), ProductPath::kTiles);
  EXPECT_EQ(path(TensorType::kQ4_K, 2, 53248), ProductPath::kVector);
  EXPECT_EQ(path(TensorType::kQ4_K, 1, 53248), ProductPath::kVector);
  EXPECT_EQ(path(TensorType::kBF16, 1, 53248), ProductPath::kVector);
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
