// The right column of the Chat workspace: the blocks that hold this chat, and what happened to memory lately.
#pragma once

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

void draw_chat_memory_view(const Frame& frame, const UiState& state, const ChatState& chat);

}  // namespace octavo::ui
