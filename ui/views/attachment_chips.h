// The files that go with the next message, as chips above its text.
#pragma once

#include <span>
#include <string>

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

// "notes.txt · 1.2 KiB · 340 tokens"
std::string attachment_text(const AttachmentState& attachment);

// How high all chips are in rows of `width`; 0 without any.
float attachment_chips_height(const Frame& frame, std::span<const AttachmentState> attachments, float width);

// From the cursor on. Each can be removed.
void draw_attachment_chips(const Frame& frame, const ChatState& chat, float width);

}  // namespace octavo::ui
