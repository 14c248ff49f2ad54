// Small floats with scales: e4m3 by tensor, output or block; four bits as MXFP4 and NVFP4 have them.
#pragma once

#include <memory>
#include <string>

#include "engine/model/quantised/quantised_matrix.h"

namespace octavo::model {

// Errors as open_quantised_matrix(). REQUIRES: `module`.weight is of F8_E4M3
Result<std::unique_ptr<QuantisedMatrix>> open_float8(const QuantisationConfig& config,
                                                     const std::string& module, const FindTensor& find);

// compressed-tensors': weight_packed [rows, columns / 2] of U8, weight_scale [rows, columns / 16] of e4m3,
// weight_global_scale [1], which divides. ModelOpt's: weight, weight_scale, weight_scale_2 [1], which
// multiplies.
Result<std::unique_ptr<QuantisedMatrix>> open_nvfp4(const std::string& module, const FindTensor& find);

// compressed-tensors': weight_packed [rows, columns / 2] and weight_scale [rows, columns / 32], both of U8.
Result<std::unique_ptr<QuantisedMatrix>> open_mxfp4(const std::string& module, const FindTensor& find);

}  // namespace octavo::model
