// What an empty chat shows: who answers, and questions that one click asks.
#pragma once

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

// In the rectangle from `low`, `extent` large.
void draw_empty_chat(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                     ImVec2 extent);

}  // namespace octavo::ui
