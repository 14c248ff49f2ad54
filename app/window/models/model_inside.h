// What a person is told about a model that is not loaded yet: what is inside, and whether it fits. Words for
// the engine's figures; counts nothing of its own.
#pragma once

#include <cstdint>
#include <string>

#include "app/window/models/model_scout.h"
#include "engine/api/model_description.h"
#include "engine/model_preview.h"
#include "ui/model_state.h"

namespace octavo::app {

// "llama · 135 M parameters · Q4_1"
std::string model_summary(const ModelDescription& description);

// Everything but path and memory.
ui::ModelInside model_inside(const ModelPreview& preview);

// `available_bytes` is free memory while the present engine is loaded.
ui::ModelMemory model_memory(const ModelPreview& preview, const EngineOptions& options,
                             const PresentMemory& present, std::int64_t available_bytes);

}  // namespace octavo::app
