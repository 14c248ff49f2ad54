#include "engine/model/kv_use.h"

#include <cstddef>

namespace octavo::model {

KvUses find_kv_uses(const ModelConfig& config, bool sets_windows_apart) {
  KvUses uses;
  for (std::int32_t layer = 0; layer < config.num_layers; ++layer) {
    const std::int32_t owner = config.kv_owner(layer);
    if (owner == layer) {
      const bool is_in_windows = sets_windows_apart && config.window_of(layer) > 0;
      std::vector<kernels::KvHeads>& places = is_in_windows ? uses.window_places : uses.places;
      uses.layers.push_back({static_cast<std::int32_t>(places.size()), true, is_in_windows});
      places.push_back(config.kv_heads(layer));
    } else if (owner == KvUse::kNone) {
      uses.layers.push_back({});
    } else {
      KvUse use = uses.layers[static_cast<std::size_t>(owner)];
      use.is_own = false;
      uses.layers.push_back(use);
    }
  }
  if (config.guesses_next_tokens) {
    uses.layers.push_back({static_cast<std::int32_t>(uses.places.size()), true, false});
    uses.places.push_back(config.next_token_heads());
  }
  return uses;
}

}  // namespace octavo::model
