// The load of the server that answers: what a remote engine tells of its memory, where the map of ours would
// be. What it does not tell is shown as unknown.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

struct UiState;

// Whether the live page is about a remote model: recordings, lessons and the paper's comparison are as ever.
bool shows_remote_load(const UiState& state);

void draw_remote_load(const Frame& frame, const UiState& state, ImVec2 extent);

}  // namespace octavo::ui
