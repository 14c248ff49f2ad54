// What validate() of model_config.h and the reader of metadata share.
#pragma once

#include <string_view>

#include "engine/model/model_config.h"

namespace octavo::model {

// Of the key that holds the epsilon of a model's norms.
constexpr std::string_view norm_epsilon_suffix(const ModelConfig& config) {
  return config.parts.norm == kernels::NormKind::kLayer ? "attention.layer_norm_epsilon"
                                                        : "attention.layer_norm_rms_epsilon";
}

}  // namespace octavo::model
