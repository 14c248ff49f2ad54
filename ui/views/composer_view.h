// Where a message is written: the text, how much of the context it fills, and Send, Queue or Stop.
//
// Keeps a draft for every chat.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class ComposerView {
 public:
  // How high the composer of this chat is in a column of `width`, with the margin below it.
  float height(const Frame& frame, const ChatState& chat, float width) const;

  // In a column from the cursor, `width` wide. True when a message was sent or queued.
  bool draw(const Frame& frame, const UiState& state, const ChatState& chat, float width);

  // The keyboard goes to the composer in the next frame.
  void focus() { focus_ = true; }
  // Before draw, while nothing has the keyboard: what was typed goes behind the draft, and the keyboard comes
  // here.
  void type(const std::string& text) {
    typed_ = text;
    focus_ = focus_ || !text.empty();
  }

 private:
  float text_height(const Frame& frame, const std::string& draft, float width) const;
  bool draw_bottom_row(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                       float width, const std::string& draft);

  std::unordered_map<std::uint64_t, std::string> drafts_;          // by chat
  std::unordered_map<std::uint64_t, std::uint64_t> num_returned_;  // by chat, of the frame before
  std::string typed_;                                              // not in the draft yet
  bool focus_ = true;
};

}  // namespace octavo::ui
