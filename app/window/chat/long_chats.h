// Two new chats whose questions and answers together are more than a tiny pool holds, so that one of them is
// seen to be swapped out and back.
//
// UI thread. What it is made with must outlive it.
#pragma once

#include <array>
#include <string_view>

#include "app/window/chat/chats.h"
#include "app/window/chat/questions.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

// About 200 tokens each; they share no beginning, so that no block serves both.
const std::array<std::string_view, 2>& long_questions();

class LongChats {
 public:
  LongChats(Chats& chats, Questions& questions, ui::UiState& state)
      : chats_(chats), questions_(questions), state_(state) {}

  // The Memory workspace stays in front: there it is seen what becomes of them.
  void apply(const ui::actions::StartTwoLongChats&);

 private:
  Chats& chats_;
  Questions& questions_;
  ui::UiState& state_;
};

}  // namespace octavo::app
