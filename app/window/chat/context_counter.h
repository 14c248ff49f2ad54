// How full each chat's context is: its shown path and its draft in tokens, counted beside the window, and of
// an answer under way as the engine reports it.
//
// UI thread. The chats and the state must outlive the counter.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "app/window/chat/chats.h"
#include "engine/api/request.h"
#include "ui/state.h"

namespace octavo::app {

// Counts tokens of a chat, later or at once, and hands the result to `ContextCounter::take_count`.
using CountTokens = std::function<void(ChatId, std::vector<ChatMessage>)>;

class ContextCounter {
 public:
  ContextCounter(Chats& chats, const ui::UiState& state) : chats_(chats), state_(state) {}

  // Empty: there is no vocabulary to count with.
  void set_count_tokens(CountTokens count_tokens) { count_tokens_ = std::move(count_tokens); }

  // Of a chat that changed; one with an answer under way is not counted. Call it when all else is done to the
  // chat: the result may come at once.
  void count(ChatId chat_id);
  void take_count(ChatId chat_id, std::int32_t num_tokens);
  // As the engine knows it.
  void show(ChatId chat_id, std::int32_t num_tokens);

 private:
  Chats& chats_;
  const ui::UiState& state_;
  CountTokens count_tokens_;
};

}  // namespace octavo::app
