// Integers in groups with scales and zero points: GPTQ, AWQ, compressed-tensors.
#pragma once

#include <memory>
#include <string>

#include "engine/model/quantised/quantised_matrix.h"

namespace octavo::model {

// Errors as open_quantised_matrix(). REQUIRES: what names the format is there: `module`.qweight,
// `module`.weight_packed of I32, `module`.weight of I8
Result<std::unique_ptr<QuantisedMatrix>> open_gptq(const QuantisationConfig& config,
                                                   const std::string& module, const FindTensor& find);
Result<std::unique_ptr<QuantisedMatrix>> open_awq(const QuantisationConfig& config, const std::string& module,
                                                  const FindTensor& find);
Result<std::unique_ptr<QuantisedMatrix>> open_packed_integers(const std::string& module,
                                                              const FindTensor& find);
Result<std::unique_ptr<QuantisedMatrix>> open_plain_integers(const std::string& module,
                                                             const FindTensor& find);

}  // namespace octavo::model
