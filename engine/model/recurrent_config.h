// The hyperparameters of a model's recurrent layers, read and held against plausible ranges: which layers
// they are, and their sizes. What an architecture's are made of: RecurrentLayers of architecture.h.
//
// Keys, as llama.cpp's converter names them: attention.recurrent_layers, a boolean for each layer of the
// file; or full_attention_interval n: layers n - 1, 2 n - 1, ... have attention (4 where the file says
// nothing). ssm.group_count counts key heads of ssm.state_size dimensions, ssm.time_step_rank value heads,
// whose dimensions add up to ssm.inner_size. ssm.conv_kernel is the width of the convolution in tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/architecture.h"
#include "engine/model/gguf_header.h"
#include "kernels/backend.h"
#include "kernels/state_layout.h"

namespace octavo::model {

struct RecurrentConfig {
  std::vector<bool> layers = {};  // [num_layers], which are; empty: none
  kernels::DeltaNetShape shape;   // of each; no heads: there are none

  bool in_layer(std::int32_t layer) const {
    return !layers.empty() && layers[static_cast<std::size_t>(layer)];
  }
  // Of the first `num_layers`.
  std::int32_t num_before(std::int32_t num_layers) const;
  kernels::StateLayout state_layout() const;
};

struct RecurrentContext {
  std::string_view architecture;
  RecurrentLayers parts;
  std::int32_t num_layers;
  std::int32_t num_skipped_layers;  // behind them in the file; never recurrent
};

// Of an architecture without recurrent layers: none. At least one layer has attention, whose blocks count a
// sequence's tokens. kDamagedFile: a value that is missing, of the wrong type or out of range.
// REQUIRES: a validated num_layers.
Result<RecurrentConfig> read_recurrent_config(const GgufHeader& header, const RecurrentContext& context);

}  // namespace octavo::model
