// Which keys and values each layer of a model reads: its own, those of a layer before it, or none. The pool
// has a place for those that layers have of their own only (kernels/kv_layout.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/model/model_config.h"
#include "kernels/kv_layout.h"

namespace octavo::model {

struct KvUse {
  static constexpr std::int32_t kNone = -1;

  std::int32_t place = kNone;  // which of the pool's layers
  bool is_own = false;         // the layer writes it; else it is another one's, and only read
};

struct KvUses {
  std::vector<KvUse> layers;             // [num_layers] of the model
  std::vector<kernels::KvHeads> places;  // of the pool, in the order of their owners
};

// REQUIRES: a validated config.
KvUses find_kv_uses(const ModelConfig& config);

}  // namespace octavo::model
