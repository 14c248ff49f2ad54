// Matrix products on the device: weights as they are kept there, and `MatrixProducts`, which multiplies rows
// of floats with them. One call does all that happens to the input rows (gather, norm, rounding) and to the
// result (bias, residual, activation, gate), so that a caller never sees which kernel runs.
//
// Three ways, chosen by `plan_product` from the number of rows, the type and the shape alone:
//   vector   One row; of quantised weights up to four, which meet activations of 16 bits
//            (Activation::kInt16 in backend.h) with exact integer sums: two 8-bit dot products for each four
//            weights cost less than one conversion to float. Other weights are expanded to float and meet
//            floats. Where that is worth it (`has_own_row`), each block prepares the one row itself: the same
//            bits, a launch less.
//   tiles    More rows, and always of unquantised weights with `deterministic`: tensor cores. Quantised
//            weights meet the same integers as above. Float16 and bfloat16 weights meet activations of one
//            such number, or of two whose sum has 22 (bfloat16: 16) bits (`HalfParts`).
//   library  many rows: cuBLASLt, one call for all outputs of unquantised weights, the parts of activations
//            stacked as rows, its sums where the result stands; quantised weights are expanded in pieces that
//            stay in the second-level cache. Left out without a handle, and with `deterministic`. What the
//            library refuses goes by the other two, from then on; notice() tells.
// Float32 weights know vector and library only; without a library they go eight rows at a time.
//
// Numbers. Every output is summed up in an order that depends on its weights' shape, the way and nothing
// else; in tiles and vectors a row's result does not depend on the other rows, and of quantised weights both
// give the same bits. Two parts of an activation are two rows, whose sums are added. Which way is taken
// depends on the number of rows, but for `deterministic`. A float16 operand is scaled by a power of two for
// each row, so that no finite activation overflows.
//
// Ownership: matrices own their device memory; a MatrixProducts owns its scratch, sized by reserve(), and
// allocates nothing in a product. Thread: one. Errors: of preparing and reserving as Results; in a product
// they go to the stream's status.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/matmul/library_names.h"
#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/tensor.h"

namespace octavo::kernels::cuda {

// Weights in device memory: `planes()` says how they stand there, weight_loader.h brings them.
class DeviceMatrix final : public Matrix {
 public:
  DeviceMatrix(const MatrixSource& source, const WeightPlanes& planes, DeviceMemory memory)
      : Matrix(source.rows, source.columns), planes_(planes), memory_(std::move(memory)) {}

  TensorType type() const { return planes_.type; }
  const WeightPlanes& planes() const { return planes_; }
  std::int64_t memory_bytes() const override { return memory_.bytes(); }

 private:
  WeightPlanes planes_;
  DeviceMemory memory_;
};

// A product's input: row i is data + (indices ? indices[i] : i) * stride, with `norm` normalised as
// backend.h's NormKind says. All pointers to device memory; floats at multiples of 4 bytes.
struct ProductInput {
  const float* data = nullptr;
  std::int64_t stride = 0;
  std::int32_t num_rows = 0;
  const std::int32_t* indices = nullptr;
  const float* norm = nullptr;
  float norm_epsilon = 0.0f;
  NormKind norm_kind = NormKind::kRms;
  const float* norm_bias = nullptr;  // null: none
};

// What becomes of a sum: it is stored, added to what stands there, or stored as backend.h's
// FeedForwardActivation of it.
enum class Epilogue : std::uint8_t { kStore, kAdd, kSilu, kGelu, kRelu };

constexpr Epilogue epilogue_of(FeedForwardActivation activation) {
  if (activation == FeedForwardActivation::kRelu) return Epilogue::kRelu;
  return activation == FeedForwardActivation::kSilu ? Epilogue::kSilu : Epilogue::kGelu;
}

// out[i, n] = epilogue(sum over k of weights[n, k] * input[i, k] + bias[n]). REQUIRES: out is not the input.
struct Product {
  const DeviceMatrix* weights = nullptr;
  const float* bias = nullptr;  // device memory; null: none
  float* out = nullptr;
  std::int64_t out_stride = 0;
  Epilogue epilogue = Epilogue::kStore;
};

// out[i, n] = activation(gate) * up, both with their bias. REQUIRES: gate and up have one shape.
struct GateUpProduct {
  const DeviceMatrix* gate = nullptr;
  const DeviceMatrix* up = nullptr;
  const float* gate_bias = nullptr;
  const float* up_bias = nullptr;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
};

// How many 16-bit numbers stand for an activation in tiles of unquantised weights and in the library's
// products. Of the default model (Q4_1) the worst mean error of an entry's log-probabilities is 0.0020
// without any rounding, 0.0031 with float16 weights, queries and softmax weights, and 0.0050 with activations
// of one float16 number too. One is what other engines compute with, or less; two is for whoever asks for
// float activations, at twice the steps of the tensor cores.
enum class HalfParts : std::uint8_t { kOne = 1, kTwo = 2 };

struct ProductOptions {
  bool deterministic = false;
  HalfParts half_parts = HalfParts::kOne;
  std::int32_t num_multiprocessors = 1;  // of the device; splits the inner dimension of small products
  std::int64_t multiprocessor_shared_bytes = 0;  // shared memory of each, of all its blocks together
  cublasLtHandle_t library = nullptr;            // null: own kernels only. Outlives the MatrixProducts
};

enum class ProductPath : std::uint8_t { kVector, kTiles, kLibrary };

struct ProductPlan {
  ProductPath path = ProductPath::kVector;
  std::int32_t tile_rows = 0;  // kTiles: 8, 16, 32 or 64
  std::int32_t splits = 1;     // kTiles: of the inner dimension; partial sums are added in ascending order
  bool has_own_row = false;    // kVector: each block prepares the row for itself, without a launch for it
};

// A function of its arguments only. `rows` input rows, `outputs` weight rows.
ProductPlan plan_product(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                         const ProductOptions& options);

class MatrixProducts {
 public:
  // `stream` outlives it. Error: kOutOfMemory.
  static Result<std::unique_ptr<MatrixProducts>> create(Stream& stream, const ProductOptions& options);
  virtual ~MatrixProducts() = default;

  // Scratch for all products of a step of this shape. Waits for the stream first. Error: kOutOfMemory.
  virtual Result<void> reserve(const StepShape& shape) = 0;
  virtual std::int64_t scratch_bytes() const = 0;
  // What goes by slower kernels than it might, as a sentence for a person; else empty.
  virtual std::string notice() const = 0;

  // The products of one input; neighbours of one type and of the same way share a launch. REQUIRES: as many
  // columns in each.
  virtual void multiply(const ProductInput& input, std::span<const Product> products) = 0;
  virtual void multiply_gate_up(const ProductInput& input, const GateUpProduct& product) = 0;
};

}  // namespace octavo::kernels::cuda
