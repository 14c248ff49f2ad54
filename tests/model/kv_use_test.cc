#include "engine/model/kv_use.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace octavo::model {
namespace {

using kernels::KvHeads;

ModelConfig alike(std::int32_t num_layers) {
  ModelConfig config;
  config.num_layers = num_layers;
  config.num_heads = 8;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  return config;
}

std::vector<std::int32_t> places_of(const KvUses& uses) {
  std::vector<std::int32_t> places;
  for (const KvUse& use : uses.layers) places.push_back(use.place);
  return places;
}

std::vector<std::int32_t> owners_of(const KvUses& uses) {
  std::vector<std::int32_t> owners;
  for (std::size_t layer = 0; layer < uses.layers.size(); ++layer) {
    if (uses.layers[layer].is_own) owners.push_back(static_cast<std::int32_t>(layer));
  }
  return owners;
}

TEST(KvUse, LayersThatAreAlikeHaveEachItsOwnPlace) {
  const KvUses uses = find_kv_uses(alike(4));
  EXPECT_EQ(places_of(uses), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(owners_of(uses), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(uses.places, (std::vector<KvHeads>(4, {2, 64})));
}

TEST(KvUse, SharedLayersReadTheLastOfTheirKindBeforeThem) {
  ModelConfig config = alike(7);
  config.sliding_window = 16;
  config.local_head_dim = 32;
  config.num_shared_layers = 3;
  config.layers_with_window = {true, false, false, true, false, true, false};
  config.layer_kv_heads = {2, 1, 1, 2, 1, 2, 1};
  const KvUses uses = find_kv_uses(config);
  EXPECT_EQ(places_of(uses), (std::vector<std::int32_t>{0, 1, 2, 3, 2, 3, 2}));
  EXPECT_EQ(owners_of(uses), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(uses.places, (std::vector<KvHeads>{{2, 32}, {1, 64}, {1, 64}, {2, 32}}));
  config.layers_with_window = {true, true, true, true, false, true, true};
  EXPECT_EQ(config.kv_owner(4), -1) << "no layer before sees all";
  EXPECT_EQ(places_of(find_kv_uses(config)), (std::vector<std::int32_t>{0, 1, 2, 3, -1, 3, 3}));
}

TEST(KvUse, RecurrentLayersHaveNone) {
  ModelConfig config = alike(5);
  config.recurrent.layers = {true, false, true, true, false};
  EXPECT_EQ(places_of(find_kv_uses(config)), (std::vector<std::int32_t>{-1, 0, -1, -1, 1}));
  config.num_shared_layers = 1;
  EXPECT_EQ(places_of(find_kv_uses(config)), (std::vector<std::int32_t>{-1, 0, -1, -1, 0}))
      << "what is shared is the last attention before";
}

}  // namespace
}  // namespace octavo::model
