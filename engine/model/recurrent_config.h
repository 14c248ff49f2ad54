// The hyperparameters of a model's recurrent layers, read and held against plausible ranges: which layers
// they are, and their sizes. What an architecture's are made of: RecurrentLayers of architecture.h.
//
// Keys, as llama.cpp's converter names them.
//   Gated DeltaNet   attention.recurrent_layers, a boolean for each layer of the file; or
//     full_attention_interval n: layers n - 1, 2 n - 1, ... have attention (4 where the file says nothing).
//     ssm.group_count counts key heads of ssm.state_size dimensions, ssm.time_step_rank value heads
//   Mamba-2   ssm.group_count counts groups of ssm.state_size dimensions, ssm.time_step_rank heads
//   both   the dimensions of the (value) heads add up to ssm.inner_size; ssm.conv_kernel is the width of the
//     convolution in tokens, as is
//   short convolutions   shortconv.l_cache
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/architecture.h"
#include "engine/model/metadata.h"
#include "kernels/backend.h"
#include "kernels/state_layout.h"

namespace octavo::model {

struct RecurrentConfig {
  std::vector<bool> layers = {};  // [num_layers], which are; empty: none
  // Of each; no heads or channels: there are none of this kind.
  kernels::DeltaNetShape delta_net = {};
  kernels::StateSpaceShape state_space = {};
  kernels::ShortConvolutionShape short_convolution = {};

  bool in_layer(std::int32_t layer) const {
    return !layers.empty() && layers[static_cast<std::size_t>(layer)];
  }
  // Of the first `num_layers`.
  std::int32_t num_before(std::int32_t num_layers) const;
  kernels::StateLayout state_layout() const;  // without room for drafts
  std::int64_t output_columns() const;        // of what a layer gives to its last projection
};

struct RecurrentContext {
  std::string_view architecture;
  RecurrentLayers parts;
  std::int32_t num_layers;
  std::int32_t num_skipped_layers;  // behind them in the file; never recurrent
  std::int32_t embedding_length;
  // [num_layers]: which they are, unless the model has Gated DeltaNet, where keys of its own say so
  std::vector<bool> layers = {};
};

// Of an architecture without recurrent layers: none. kDamagedFile: a value that is missing, of the wrong type
// or out of range; Gated DeltaNet in all layers.
// REQUIRES: a validated num_layers.
Result<RecurrentConfig> read_recurrent_config(const Metadata& header, const RecurrentContext& context);

}  // namespace octavo::model
