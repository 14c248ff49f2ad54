// The matrix of a linear layer that a checkpoint keeps quantised, as rows of a type that kernels multiply
// with: the same values, bit for bit, as its dequantisation to float32 in the form scale * (stored - zero),
// or those of the type that the checkpoint's own has a name for (MXFP4, NVFP4).
//
//   integers of up to 4 bits   Q4_0 where scales are float16 and nothing has a zero point of its own, else U4
//   integers of 8 bits         Q8_0 likewise, else U8
//   e4m3                       F8
//   MXFP4, NVFP4               the same
//   tables (SqueezeLLM)        F16 where that holds every value, else F32
//   groups of other sizes than multiples of 32, and rows whose length is none: F32
//
// Groups of neighbouring columns are assumed by all types, so that where a checkpoint has others the columns
// come in another order. Nothing is held twice: rows are made from the open file when they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/quantised/quantisation_config.h"
#include "engine/model/quantised/stored_tensor.h"
#include "kernels/tensor.h"

namespace octavo::model {

// Reads a file that outlives it. Immutable; any thread.
class QuantisedMatrix {
 public:
  virtual ~QuantisedMatrix() = default;

  kernels::TensorType type() const { return type_; }
  std::int64_t rows() const { return rows_; }  // of all matrices of a stack
  std::int64_t stack_size() const { return stack_size_; }
  std::int64_t columns() const { return columns_; }
  float scale() const { return scale_; }  // MatrixSource::scale
  // MatrixSource::column_order
  std::span<const std::int32_t> column_order() const { return column_order_; }
  std::int64_t row_bytes() const {
    const kernels::TensorTypeTraits& traits = kernels::traits_of(type_);
    return columns_ / traits.block_elements * traits.block_bytes;
  }

  // Rows first .. first + count, one behind the other. kDamagedFile: numbers that cannot be, such as a scale
  // that is not finite. REQUIRES: they exist; out.size() == count * row_bytes()
  virtual Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const = 0;

 protected:
  QuantisedMatrix(std::int64_t rows, std::int64_t columns) : rows_(rows), columns_(columns) {}

  kernels::TensorType type_ = kernels::TensorType::kF32;
  std::int64_t rows_, columns_, stack_size_ = 1;
  float scale_ = 1.0f;
  std::vector<std::int32_t> column_order_;
};

// `module`: the layer's name in the checkpoint, "model.layers.0.self_attn.q_proj". nullptr: it is not
// quantised, so that `module`.weight is what it says. Errors: kDamagedFile for tensors that are missing or do
// not fit together; kUnsupported.
Result<std::unique_ptr<QuantisedMatrix>> open_quantised_matrix(const QuantisationConfig& config,
                                                               const std::string& module,
                                                               const FindTensor& find);

// The experts of gpt-oss, one behind the other as one matrix: `module`_blocks [experts, rows, columns / 32,
// 16] and `module`_scales [experts, rows, columns / 32]. nullptr: there are none.
Result<std::unique_ptr<QuantisedMatrix>> open_mxfp4_experts(const std::string& module,
                                                            const FindTensor& find);

}  // namespace octavo::model
