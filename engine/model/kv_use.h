// Which keys and values each layer of a model reads: its own, those of a layer before it, or none. A pool has
// a place for those that layers have of their own only (kernels/kv_layout.h). Layers with a window can have a
// pool apart from the others, where each block of tokens stands only as long as a window reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "kernels/kv_layout.h"

namespace octavo::model {

struct KvUse {
  static constexpr std::int32_t kNone = -1;

  std::int32_t place = kNone;  // which of its pool's layers
  bool is_own = false;         // the layer writes it; else it is another one's, and only read
  bool is_in_windows = false;  // its pool is that of the layers with a window
};

struct KvUses {
  // [num_layers] of the model, and the layer that guesses next tokens, if it does
  std::vector<KvUse> layers;
  std::vector<kernels::KvHeads> places;              // of the pool, in the order of their owners
  std::vector<kernels::KvHeads> window_places = {};  // of that of layers with a window; empty: it is the same
};

// `sets_windows_apart`: layers with a window have a pool of their own. REQUIRES: a validated config.
KvUses find_kv_uses(const ModelConfig& config, bool sets_windows_apart = false);

}  // namespace octavo::model
