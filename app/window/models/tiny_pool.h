// A pool so small that a person sees it overflow: about two short chats fit into it, and what does not is
// swapped out to the host pool.
//
// Lent, never settled on: a load carries the options that give the model's own pool back, nothing writes them
// down, and any load that was not asked for by the tiny pool ends it.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/api/engine_options.h"
#include "ui/model_actions.h"

namespace octavo::app {

// What an engine is made from.
struct ModelLoad {
  EngineOptions options;
  std::optional<EngineOptions> own = {};  // while a tiny pool is lent: what gives the model's own pool back
};

// A model that is to take the present one's place.
struct ModelLoadRequest {
  ModelLoad load;
  ui::actions::RunningAnswers running = ui::actions::RunningAnswers::kFinish;
};

// The same model with a tiny pool. `max_model_len` is the present engine's.
EngineOptions with_tiny_pool(EngineOptions options, std::int32_t max_model_len);

// What lends `present` a tiny pool, and what gives its own back; nullopt when that is what it has.
std::optional<ModelLoad> tiny_pool_load(const ModelLoad& present, std::int32_t max_model_len);
std::optional<ModelLoad> own_pool_load(const ModelLoad& present);

}  // namespace octavo::app
