// What an empty chat shows: who answers, and questions that one click asks.
#pragma once

#include "ui/frame.h"
#include "ui/state.h"

namespace octavo::ui {

// In the rectangle from `low`, `extent` large.
void draw_empty_chat(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                     ImVec2 extent);

}  // namespace octavo::ui
