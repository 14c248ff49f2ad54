// The bar that finds words in the chat that is shown (Ctrl+F).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ui/chat_state.h"
#include "ui/frame.h"
#include "ui/widgets/text_search.h"

namespace octavo::ui {

class FindBar {
 public:
  void open();
  void close();
  bool is_open() const { return open_; }

  // Finds in the messages as they are now; call before they are drawn.
  void update(const std::vector<MessageState>& messages);
  // In the top right corner of the rectangle at `low`, `width` wide.
  void draw(const Frame& frame, ImVec2 low, float width);

  std::span<const TextRange> matches_in(MessageId message_id) const;
  // nullptr when nothing is found.
  const TextMatch* current() const;
  // The match to scroll to, once after each step.
  const TextMatch* take_jump();

 private:
  void step(int offset);

  bool open_ = false;
  int frames_to_focus_ = 0;  // a window that has just appeared cannot take the keyboard yet
  bool jump_ = false;
  std::string query_;
  std::string searched_;
  std::size_t current_ = 0;
  TextSearch search_;
  std::vector<TextMatch> matches_;
};

}  // namespace octavo::ui
