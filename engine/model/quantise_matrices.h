// Weights that a file has as floats, quantised row by row when they are prepared: nothing is held twice, and
// what is planned knows the types from the start.
#pragma once

#include "engine/model/model_tensors.h"
#include "kernels/tensor.h"

namespace octavo::model {

// Of the embedding and the output head, through which everything passes: floats beside floats, Q8_0 beside
// Q8_0, else Q6_K.
kernels::TensorType type_of_ends(kernels::TensorType type);

// Every matrix of floats of the layers becomes one of `type`, the embedding and the output head of
// type_of_ends(); of each what kernels::type_for_columns() says, and where that has nothing it stays as it
// is. Routers, decays and what is small besides stay, too. REQUIRES: kernels::can_quantize(type)
void quantise_matrices(ModelTensors& tensors, kernels::TensorType type);

// Rows of a matrix of floats as rows of another type. kDamagedFile: a number that is not finite.
// kUnsupported: one that the type cannot hold. The source outlives it.
class QuantisingReader final : public RowReader {
 public:
  QuantisingReader(StoredMatrix source, kernels::TensorType type) : source_(source), type_(type) {}
  Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const override;

 private:
  const StoredMatrix source_;
  const kernels::TensorType type_;
};

}  // namespace octavo::model
