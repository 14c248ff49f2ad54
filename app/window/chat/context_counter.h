// How full each chat's context is, and what has left it: the shown path and its draft as they would be sent,
// planned beside the window, and of an answer under way as the engine reports it.
//
// UI thread. The chats and the state must outlive the counter.
#pragma once

#include <cstdint>

#include "app/window/chat/chats.h"
#include "app/window/plan_context.h"
#include "ui/state.h"

namespace octavo::app {

class ContextCounter {
 public:
  ContextCounter(Chats& chats, const ui::UiState& state) : chats_(chats), state_(state) {}

  // Empty: there is no vocabulary to count with.
  void set_plan_context(PlanContext plan_context) { plan_context_ = std::move(plan_context); }

  // Of a chat that changed; one with an answer under way is not counted. Call it when all else is done to the
  // chat: the result may come at once.
  void count(ChatId chat_id);
  void take(ChatId chat_id, const ContextPlan& plan);
  // As the engine knows it.
  void show(ChatId chat_id, std::int32_t num_tokens);

 private:
  Chats& chats_;
  const ui::UiState& state_;
  PlanContext plan_context_;
};

}  // namespace octavo::app
