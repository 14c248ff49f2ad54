// What products by the matrix library give; library_refusals_test.cc: what they ask it, and what it refuses.
#include <vector>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "tests/cuda/products_by_library.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using testing::OwnedMatrix;
using testing::random_matrix;

class LibraryProductsTest : public ProductsByLibrary {};

TEST_F(LibraryProductsTest, OfEveryTypeAndNumberOfRowsAreThoseOfTheReference) {
  struct Case {
    HalfParts parts;
    TensorType type;
    std::int32_t rows;
  };
  std::vector<Case> cases;
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    for (const TensorType type : kTypes) {
      const bool is_expanded = is_quantised(type);
      for (const std::int32_t rows : is_expanded ? std::vector{129, 130} : std::vector{16, 17, 33, 64, 130})
        cases.push_back({parts, type, rows});
    }
  }
  Bench one(options()), two(options(HalfParts::kTwo));
  for (const auto& [parts, type, rows] : test::some_of(cases, 2))
    expect_product(parts == HalfParts::kOne ? one : two, matrix(type), rows);
}

// Of a step with more rows than are prepared at once.
TEST_F(LibraryProductsTest, OfMoreRowsThanArePreparedAtOnceComeInPieces) {
  emulation::settings().finds_races = false;  // found where the same kernels multiply fewer rows
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    Bench bench(options(), 2100, 64, 64);
    for (const Epilogue epilogue : {Epilogue::kStore, Epilogue::kAdd})
      expect_biased_products(bench, {{type, 6, false, epilogue}}, 2067, 64);
  }
}

TEST_F(LibraryProductsTest, HaveBiasActivationAndResidual) {
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    std::vector<std::vector<BiasedProduct>> calls;
    for (const TensorType type : kTypes) {
      std::vector<BiasedProduct>& call = calls.emplace_back();
      for (const Epilogue epilogue : {Epilogue::kStore, Epilogue::kAdd, Epilogue::kSilu}) {
        for (const bool has_bias : {false, true}) call.push_back({type, 70, has_bias, epilogue});
      }
    }
    Bench bench(options(parts));
    for (const auto& call : test::some_of(calls, 2)) expect_biased_products(bench, call, 130);
  }
}

TEST_F(LibraryProductsTest, OfGateAndUpMeetInOneOutput) {
  struct Case {
    HalfParts parts;
    TensorType gate, up;
    std::int32_t rows;
    bool has_bias;
  };
  std::vector<Case> cases;
  for (const auto& [gate, up] : {std::pair{TensorType::kF16, TensorType::kF16},
                                 {TensorType::kBF16, TensorType::kF16},
                                 {TensorType::kQ4_K, TensorType::kQ4_K},
                                 {TensorType::kQ4_K, TensorType::kBF16},
                                 {TensorType::kF16, TensorType::kQ8_0},
                                 {TensorType::kF32, TensorType::kF32},
                                 {TensorType::kF32, TensorType::kQ4_K}}) {
    for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
      for (const std::int32_t rows : {40, 140}) {
        for (const bool has_bias : {true, false}) cases.push_back({parts, gate, up, rows, has_bias});
      }
    }
  }
  Bench one(options()), two(options(HalfParts::kTwo));
  for (const auto& [parts, gate, up, rows, has_bias] : test::some_of(cases, 5))
    expect_gate_and_up(parts == HalfParts::kOne ? one : two, gate, up, rows, has_bias);
}

// Of two parts some rows at a time stand beside the logits; of one none.
TEST_F(LibraryProductsTest, OfAVocabularyNeedNoSecondCopyOfTheLogits) {
  constexpr std::int64_t kColumns = 64, kVocabulary = 3000;
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    StepShape shape = step_shape(40, kColumns, 64);
    TestStream stream;
    const auto products = MatrixProducts::create(stream.get(), options(parts)).value();
    ASSERT_TRUE(products->reserve(shape));
    const std::int64_t before = products->scratch_bytes();
    shape.vocabulary_size = kVocabulary;
    ASSERT_TRUE(products->reserve(shape));
    EXPECT_LE(products->scratch_bytes() - before, 8 * kVocabulary * 4 * static_cast<int>(parts));

    const OwnedMatrix head = random_matrix(TensorType::kF16, kVocabulary, kColumns, 7);
    const auto matrix = load_matrix(head.source);
    const std::vector<float> input = activations(40, kColumns, 8);
    const DeviceArray<float> values(input), out(std::vector<float>(40 * kVocabulary));
    const Product product{matrix.get(), nullptr, out.data(), kVocabulary};
    products->multiply({values.data(), kColumns, 40}, {&product, 1});
    stream.finish();
    expect_near(out.read(), expected_product(head, input, Activation::kF32),
                bound_for(TensorType::kF16, ProductPath::kLibrary, parts), "logits");
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
