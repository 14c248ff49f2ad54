// Which values of a model's hyperparameters are possible: ranges and divisibility. Lets through nothing that
// overflows 32-bit products of a head count and a head size.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/model/model_config.h"

namespace octavo::model {

// Of the key that holds the epsilon of a model's norms.
constexpr std::string_view norm_epsilon_suffix(const ModelConfig& config) {
  const bool is_layer_norms =
      config.parts.norm == kernels::NormKind::kLayer || config.norm_epsilon_is_layer_norms;
  return is_layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

// The first value that is out of range.
struct RangeProblem {
  std::string key;       // "llama.block_count"
  std::string sentence;  // follows the key: "is 0; 1 to 1024 is possible"
};
std::optional<RangeProblem> find_range_problem(const ModelConfig& config);

}  // namespace octavo::model
