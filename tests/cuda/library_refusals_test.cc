// What products ask of the matrix library: one call each, few choices of algorithms; and what happens where
// it refuses. What they give is in matmul_library_test.cc.
#include <map>
#include <vector>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "tests/cuda/products_by_library.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using emulation::LibraryCall;
using testing::OwnedMatrix;
using testing::random_matrix;

class LibraryCalls : public ProductsByLibrary {
 protected:
  // What the library is asked from now on, by the kind of call.
  void count_calls() {
    emulation::settings().library_answers = [this](const LibraryCall& call) {
      calls_[call.kind].push_back(call);
      return answer_ ? answer_(call) : CUBLAS_STATUS_SUCCESS;
    };
  }
  std::size_t num_calls(LibraryCall::Kind kind) { return calls_[kind].size(); }

  std::map<LibraryCall::Kind, std::vector<LibraryCall>> calls_;
  std::function<cublasStatus_t(const LibraryCall&)> answer_;
};

TEST_F(LibraryCalls, AreOneForAProductOfAllOutputsAndParts) {
  count_calls();
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    Bench bench(options(parts), 64, 64, 9000);
    calls_.clear();
    expect_product(bench, random_matrix(TensorType::kF16, 9000, 64, 3), 17);
    const std::vector<LibraryCall>& calls = calls_[LibraryCall::Kind::kMultiply];
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls.front().outputs, 9000);
    EXPECT_EQ(calls.front().rows, 17 * static_cast<int>(parts));
  }
}

// Beside the library's own: one prepares the rows, one finishes all results of an input, and none where sums
// are results.
TEST_F(LibraryCalls, TakeALaunchBeforeAndOneBehind) {
  Bench bench(options());
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    const auto weights = load_matrix(matrix(type).source);
    const DeviceArray<float> input(activations(64, weights->columns(), 9)),
        out(std::vector<float>(std::size_t{64} * 70));
    const ProductInput rows{input.data(), weights->columns(), 64};
    const Product stored{weights.get(), nullptr, out.data(), 70},
        added{weights.get(), nullptr, out.data(), 70, Epilogue::kAdd};
    const auto launches_of = [&](const auto& multiply) {
      const std::int64_t before = emulation::num_single_launches();
      multiply();
      bench.stream().finish();
      return emulation::num_single_launches() - before;
    };
    const std::int64_t behind = type == TensorType::kF16 ? 1 : 0;
    EXPECT_EQ(launches_of([&] { bench.products().multiply(rows, std::vector(3, stored)); }), 1 + behind);
    EXPECT_EQ(launches_of([&] { bench.products().multiply(rows, {&added, 1}); }), 1 + behind);
    EXPECT_EQ(launches_of([&] {
                bench.products().multiply_gate_up(
                    rows, {weights.get(), weights.get(), nullptr, nullptr, out.data(), 70});
              }),
              2);
  }
}

TEST_F(LibraryCalls, OfManyNumbersOfRowsTakeFewChoices) {
  Bench bench(options());
  const OwnedMatrix weights = random_matrix(TensorType::kBF16, 10, 64, 3);
  count_calls();
  for (std::int32_t rows = 16; rows <= 130; ++rows) expect_product(bench, weights, rows);
  std::vector<std::int64_t> asked;
  for (const LibraryCall& call : calls_[LibraryCall::Kind::kChoose]) asked.push_back(call.rows);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{16, 32, 64, 128, 256}));
  EXPECT_EQ(num_calls(LibraryCall::Kind::kCheck), 115u - 4) << "each other number of rows once";
  expect_product(bench, weights, 130);
  EXPECT_EQ(num_calls(LibraryCall::Kind::kCheck), 115u - 4);
  EXPECT_EQ(bench.products().notice(), "");
}

// An algorithm that does not serve fewer rows than those it was chosen for.
TEST_F(LibraryCalls, AreChosenForTheirOwnRowsWhereTheCheckRefuses) {
  Bench bench(options());
  answer_ = [](const LibraryCall& call) {
    return call.kind == LibraryCall::Kind::kCheck ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  };
  count_calls();
  for (int time = 0; time < 2; ++time) expect_product(bench, matrix(TensorType::kF16), 33);
  std::vector<std::int64_t> asked;
  for (const LibraryCall& call : calls_[LibraryCall::Kind::kChoose]) asked.push_back(call.rows);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{64, 33}));
  EXPECT_EQ(num_calls(LibraryCall::Kind::kMultiply), 2u);
  EXPECT_EQ(bench.products().notice(), "");
}

// No algorithm, and one that does not start: own kernels give the same, no result is touched twice, and the
// library is not asked again.
TEST_F(LibraryCalls, ThatTheLibraryRefusesGoByOwnKernels) {
  emulation::settings().finds_races = false;  // found where the same kernels multiply fewer rows
  struct Case {
    HalfParts parts;
    TensorType type;
    LibraryCall::Kind refused;
    cublasStatus_t status;
  };
  std::vector<Case> cases;
  for (const HalfParts parts : {HalfParts::kOne, HalfParts::kTwo}) {
    for (const TensorType type : kTypes) {
      cases.push_back({parts, type, LibraryCall::Kind::kChoose, CUBLAS_STATUS_NOT_SUPPORTED});
      cases.push_back({parts, type, LibraryCall::Kind::kMultiply, CUBLAS_STATUS_INTERNAL_ERROR});
    }
  }
  for (const auto& [parts, type, refused, status] : test::some_of(cases, 3)) {
    calls_.clear();
    answer_ = [refused = refused, status = status](const LibraryCall& call) {
      return call.kind == refused ? status : CUBLAS_STATUS_SUCCESS;
    };
    count_calls();
    Bench bench(options(parts));
    bench.expect_no_library();
    const std::vector<BiasedProduct> call = {{type, 70, false, Epilogue::kAdd},
                                             {type, 65, true, Epilogue::kAdd},
                                             {type, 70, false, Epilogue::kStore}};
    expect_biased_products(bench, call, 130);
    expect_gate_and_up(bench, type, type, 130);
    const std::size_t asked = num_calls(refused);
    EXPECT_GT(asked, 0u);
    expect_biased_products(bench, call, 130);
    expect_biased_products(bench, call, 129);
    expect_gate_and_up(bench, type, type, 130);
    EXPECT_EQ(num_calls(refused), asked) << "asked again";
    EXPECT_NE(bench.products().notice().find("the matrix library refused"), std::string::npos);
  }
}

// One product of a call alone, and a gate or an up alone: the others go on by the library.
TEST_F(LibraryCalls, ThatAreNotRefusedStayWithTheLibrary) {
  constexpr std::int64_t kRefused = 71;
  answer_ = [](const LibraryCall& call) {
    return call.kind == LibraryCall::Kind::kMultiply && call.outputs == kRefused ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                                 : CUBLAS_STATUS_SUCCESS;
  };
  count_calls();
  Bench bench(options());
  expect_biased_products(bench,
                         {{TensorType::kF16, 70, true, Epilogue::kStore},
                          {TensorType::kF16, kRefused, true, Epilogue::kStore},
                          {TensorType::kF16, 70, false, Epilogue::kStore}},
                         20);
  EXPECT_EQ(num_calls(LibraryCall::Kind::kMultiply), 3u);

  // Gate and up have the same number of outputs: by type.
  for (const cudaDataType_t refused : {CUDA_R_16F, CUDA_R_16BF}) {
    answer_ = [refused](const LibraryCall& call) {
      return call.kind == LibraryCall::Kind::kMultiply && call.type == refused ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                               : CUBLAS_STATUS_SUCCESS;
    };
    Bench other(options());
    for (int time = 0; time < 2; ++time) {
      expect_gate_and_up(other, TensorType::kBF16, TensorType::kF16, 20);
      expect_gate_and_up(other, TensorType::kF16, TensorType::kBF16, 20);
    }
  }
}

// A device that failed stays failed, whatever the library says of it.
TEST_F(LibraryCalls, OfALostDeviceStayLost) {
  Bench bench(options());
  const auto weights = matrix(TensorType::kF16);
  const auto device_weights = load_matrix(weights.source);
  const DeviceArray<float> input(activations(20, weights.source.columns, 9)),
      out(std::vector<float>(std::size_t{20} * 70));
  const Product product{device_weights.get(), nullptr, out.data(), 70};
  const auto multiply = [&] {
    bench.products().multiply({input.data(), weights.source.columns, 20}, {&product, 1});
    bench.stream().get().synchronize();
  };
  multiply();
  EXPECT_TRUE(bench.stream().get().status().ok());
  bool is_lost = false;
  answer_ = [&](const LibraryCall&) {
    if (!std::exchange(is_lost, true)) emulation::fail_call(0, cudaErrorLaunchFailure);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  };
  count_calls();
  multiply();
  EXPECT_TRUE(is_lost);
  const Result<void> status = bench.stream().get().status().result();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDeviceLost);
}

}  // namespace
}  // namespace octavo::kernels::cuda
