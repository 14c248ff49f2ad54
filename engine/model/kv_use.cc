#include "engine/model/kv_use.h"

#include <cstddef>

namespace octavo::model {

KvUses find_kv_uses(const ModelConfig& config) {
  KvUses uses;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::int32_t owner = config.kv_owner(layer);
    if (owner == layer) {
      uses.layers.push_back({static_cast<std::int32_t>(uses.places.size()), true});
      uses.places.push_back(config.kv_heads(layer));
    } else if (owner == KvUse::kNone) {
      uses.layers.push_back({});
    } else {
      uses.layers.push_back({uses.layers[static_cast<std::size_t>(owner)].place, false});
    }
  }
  return uses;
}

}  // namespace octavo::model
