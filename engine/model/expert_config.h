// The hyperparameters of a model's layers of routed experts, read and held against plausible ranges. What an
// architecture's experts are made of, and which keys it reads: ExpertParts of architecture.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/architecture.h"
#include "engine/model/metadata.h"
#include "kernels/backend.h"

namespace octavo::model {

struct ExpertConfig {
  std::int32_t num_experts = 0;    // 0: no layer has any
  std::int32_t num_used = 0;       // of a row
  std::int32_t expert_length = 0;  // hidden columns of one
  std::int32_t shared_length = 0;  // 0: none is shared, nor stands beside them
  std::int32_t latent_length = 0;  // of the rows that experts read; 0: rows as they are
  std::vector<bool> layers = {};   // [layers]: which have experts; empty: all
  std::int32_t num_groups = 1, num_used_groups = 1;
  kernels::RouterScoring scoring = kernels::RouterScoring::kSoftmax;
  bool normalises_weights = false;
  float weights_scale = 1.0f;

  bool in_layer(std::int32_t layer) const {
    return num_experts > 0 && (layers.empty() || layers[static_cast<std::size_t>(layer)]);
  }
  bool in_all_layers(std::int32_t num_layers) const {
    for (std::int32_t layer = 0; layer < num_layers; ++layer)
      if (!in_layer(layer)) return false;
    return true;
  }
};

// Sizes that the experts' depend on; the ranges of these are others' business.
struct ExpertContext {
  std::string_view architecture;
  const ExpertParts& parts;
  std::int32_t num_layers;
  std::int32_t feed_forward_length;                               // 0: the file does not say
  std::span<const std::int32_t> layer_feed_forward_lengths = {};  // where layers differ
  bool is_saved_by_llama_cpp = false;                             // see model_config.cc
};

// Keys that this architecture does not read are refused if they ask for something else than what is computed.
// kUnsupported: that, or experts where the architecture has none. kDamagedFile: a value that is missing, of
// the wrong type or out of range.
Result<ExpertConfig> read_expert_config(const Metadata& header, const ExpertContext& context);

}  // namespace octavo::model
