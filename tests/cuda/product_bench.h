// Matrix products of the device for tests, against kernels/reference.
//
// Bounds. `error` is |difference| / |expected|, both over all outputs (Euclidean); a wrong weight, scale or
// order of columns makes it 0.01 or more in the smallest of these products. The largest single difference may
// be ten times the mean one.
//   5e-6  vectors, and tiles of quantised weights: the reference rounds activations to the same 16-bit
//         integers; what is left are float sums. Also float32 weights, and float16 ones with two parts.
//   7e-4  float16, one part: activations are rounded to 11 bits, 2^-12 in the mean; by the library also
//         expanded weights
//   4e-4  quantised by the library, two parts: expanded weights alone; of K types the scale is rounded, too
//   3e-3  bfloat16, one part (8 bits); two (16 bits) 2e-5
#pragma once

#include "kernels/cuda/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/reference/reference_backend.h"
#include "tests/cuda/device_arrays.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::cuda {

inline std::string name_of(TensorType type) { return std::string(traits_of(type).name); }

inline std::int64_t columns_for(TensorType type, std::int64_t wanted) {
  const std::int64_t block = traits_of(type).block_elements;
  return std::max(wanted / block * block, block);
}

inline float half_step(HalfParts parts) { return parts == HalfParts::kOne ? 7e-4f : 4e-4f; }

// The bound of one product, by the way that it goes.
inline float bound_for(TensorType type, ProductPath path, HalfParts parts) {
  const bool has_integers = is_quantised(type) && path != ProductPath::kLibrary;
  if (type == TensorType::kF32 || path == ProductPath::kVector || has_integers) return 5e-6f;
  if (type == TensorType::kBF16) return parts == HalfParts::kOne ? 3e-3f : 2e-5f;
  if (type == TensorType::kF16 && parts == HalfParts::kTwo) return 5e-6f;
  return half_step(parts);
}

// Rows of activations with large and small numbers side by side.
inline std::vector<float> activations(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::uint64_t>(row);
    std::vector<float> line = testing::noise_row(seed, index, columns, 1.0f);
    const std::vector<float> exponents = testing::noise_row(seed + 1, index, columns, 2.0f);
    for (std::size_t i = 0; i < line.size(); ++i) line[i] *= std::exp(exponents[i]);
    values.insert(values.end(), line.begin(), line.end());
  }
  return values;
}

// What the product means, in double; `rounding` is what the activations are rounded to first.
inline std::vector<float> expected_product(const testing::OwnedMatrix& weights,
                                           const std::vector<float>& input, Activation rounding,
                                           const std::vector<float>& bias = {}) {
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

inline void expect_near(const std::vector<float>& got, const std::vector<float>& expected, float bound,
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

inline StepShape step_shape(std::int32_t rows, std::int64_t columns, std::int64_t outputs) {
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
  explicit Bench(const ProductOptions& options = {}, std::int32_t rows = 160, std::int64_t columns = 1536,
                 std::int64_t outputs = 320)
      : options_(options), products_(MatrixProducts::create(stream_.get(), options).value()) {
    EXPECT_TRUE(products_->reserve(step_shape(rows, columns, outputs)));
  }

  MatrixProducts& products() { return *products_; }
  TestStream& stream() { return stream_; }

  std::vector<float> multiply(const testing::OwnedMatrix& weights, const std::vector<float>& input) {
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

  // For plan() alone.
  void expect_no_library() { options_.library = nullptr; }
  HalfParts half_parts() const { return options_.half_parts; }

  ProductPlan plan(const testing::OwnedMatrix& weights, std::int32_t rows) const {
    return plan_product(weights.source.type, rows, weights.source.rows, weights.source.columns, options_);
  }

 private:
  ProductOptions options_;
  TestStream stream_;
  std::unique_ptr<MatrixProducts> products_;
};

inline Activation rounding_for(const ProductPlan& plan) {
  return plan.path == ProductPath::kLibrary ? Activation::kF32 : Activation::kInt16;
}

inline void expect_product(Bench& bench, const testing::OwnedMatrix& weights, std::int32_t rows) {
  const std::vector<float> input = activations(rows, weights.source.columns, 11);
  const ProductPlan plan = bench.plan(weights, rows);
  expect_near(bench.multiply(weights, input), expected_product(weights, input, rounding_for(plan)),
              bound_for(weights.source.type, plan.path, bench.half_parts()),
              name_of(weights.source.type) + ", " + std::to_string(rows) + " rows");
}

// Rows of several products of one input, with bias, and with what stood in the result before.
struct BiasedProduct {
  TensorType type = TensorType::kF16;
  std::int64_t outputs = 70;
  bool has_bias = false;
  Epilogue epilogue = Epilogue::kStore;
};

inline float after(Epilogue epilogue, float sum, float before) {
  if (epilogue == Epilogue::kAdd) return before + sum;
  return epilogue == Epilogue::kSilu ? static_cast<float>(sum / (1.0 + std::exp(-double{sum}))) : sum;
}

// In one call; outputs stand apart from each other, and nothing between them is written.
inline void expect_biased_products(Bench& bench, const std::vector<BiasedProduct>& products,
                                   std::int32_t rows, std::int64_t columns = 288) {
  constexpr std::int64_t kGap = 5;
  columns = columns_for(products.front().type, columns);
  std::vector<testing::OwnedMatrix> weights;
  const std::vector<float> input = activations(rows, columns, 13);
  const DeviceArray<float> device_input(input);
  std::vector<std::unique_ptr<DeviceMatrix>> matrices;
  std::vector<std::vector<float>> biases, before;
  std::vector<DeviceArray<float>> device_biases, outs;
  std::vector<Product> call;
  for (std::uint64_t i = 0; i < products.size(); ++i) {
    const auto& [type, outputs, has_bias, epilogue] = products[i];
    const std::int64_t stride = outputs + kGap;
    weights.push_back(testing::random_matrix(type, outputs, columns, 20 + i));
    matrices.push_back(load_matrix(weights.back().source));
    biases.push_back(has_bias ? testing::noise_row(14, i, outputs) : std::vector<float>{});
    before.push_back(testing::noise_row(15, i, rows * stride));
    device_biases.emplace_back(biases.back());
    outs.emplace_back(before.back());
    call.push_back({matrices.back().get(), has_bias ? device_biases.back().data() : nullptr,
                    outs.back().data(), stride, epilogue});
  }
  bench.products().multiply({device_input.data(), columns, rows}, call);
  bench.stream().finish();
  for (std::size_t i = 0; i < products.size(); ++i) {
    const auto& [type, outputs, has_bias, epilogue] = products[i];
    const std::int64_t stride = outputs + kGap;
    const ProductPlan plan = bench.plan(weights[i], rows);
    std::vector<float> expected = expected_product(weights[i], input, rounding_for(plan), biases[i]), got;
    const std::vector<float> all = outs[i].read();
    for (std::int64_t at = 0; at < rows * stride; ++at) {
      const auto index = static_cast<std::size_t>(at);
      const std::int64_t row = at / stride, output = at % stride;
      if (output >= outputs) {
        ASSERT_EQ(all[index], before[i][index]) << "written between the rows";
        continue;
      }
      float& sum = expected[static_cast<std::size_t>(row * outputs + output)];
      sum = after(epilogue, sum, before[i][index]);
      got.push_back(all[index]);
    }
    const float bound = bound_for(type, plan.path, bench.half_parts());
    expect_near(got, expected, std::max(bound, 1e-5f),
                name_of(type) + ", " + std::to_string(rows) + " rows, epilogue " +
                    std::to_string(static_cast<int>(epilogue)));
  }
}

inline void expect_gate_and_up(Bench& bench, TensorType gate_type, TensorType up_type, std::int32_t rows,
                               bool has_bias = true) {
  constexpr std::int64_t kOutputs = 77, kColumns = 512;
  const testing::OwnedMatrix gate = testing::random_matrix(gate_type, kOutputs, kColumns, 41),
                             up = testing::random_matrix(up_type, kOutputs, kColumns, 42);
  std::vector<float> gate_bias, up_bias;
  if (has_bias)
    gate_bias = testing::noise_row(43, 0, kOutputs), up_bias = testing::noise_row(44, 0, kOutputs);
  const std::vector<float> input = testing::noise_row(45, 0, rows * kColumns, 2.0f);
  const auto gate_matrix = load_matrix(gate.source), up_matrix = load_matrix(up.source);
  const DeviceArray<float> gate_bias_device(gate_bias), up_bias_device(up_bias), input_device(input),
      out(std::vector<float>(static_cast<std::size_t>(rows * kOutputs), 0.0f));
  bench.products().multiply_gate_up(
      {input_device.data(), kColumns, rows},
      {gate_matrix.get(), up_matrix.get(), has_bias ? gate_bias_device.data() : nullptr,
       has_bias ? up_bias_device.data() : nullptr, out.data(), kOutputs});
  bench.stream().finish();
  const ProductPlan gate_plan = bench.plan(gate, rows), up_plan = bench.plan(up, rows);
  const std::vector<float> gates = expected_product(gate, input, rounding_for(gate_plan), gate_bias);
  std::vector<float> expected = expected_product(up, input, rounding_for(up_plan), up_bias);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = static_cast<float>(gates[i] / (1.0 + std::exp(-double{gates[i]})) * double{expected[i]});
  const float bound = std::max(bound_for(gate_type, gate_plan.path, bench.half_parts()),
                               bound_for(up_type, up_plan.path, bench.half_parts()));
  expect_near(out.read(), expected, std::max(3 * bound, 2e-5f),
              name_of(gate_type) + " and " + name_of(up_type) + ", " + std::to_string(rows) + " rows");
}

}  // namespace octavo::kernels::cuda
