// A tiny pool that is lent so that swapping is seen: the question before, and what stands above the pools
// meanwhile.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

struct UiState;  // state.h

// The way to the question; of the same size in every state.
void draw_tiny_pool_button(const Frame& frame, const UiState& state);
inline constexpr float kTinyPoolButton = 148;  // design pixels

// That a tiny pool is lent, what it is for, and the way back. Nothing while the model has its own pool.
void draw_tiny_pool_strip(const Frame& frame, const UiState& state, float width);

void draw_tiny_pool_question(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
