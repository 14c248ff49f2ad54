// System prompt, sampling and what leaves the context of one chat, with presets and a help text for every
// parameter.
#pragma once

#include <string>

#include "ui/chat_state.h"
#include "ui/frame.h"
#include "ui/model_state.h"
#include "ui/widgets/sampling_fields.h"

namespace octavo::ui {

class SamplingView {
 public:
  void draw(const Frame& frame, const ChatState& chat, const ModelState& model);

 private:
  void draw_context_policy(const Frame& frame, const ChatState& chat, float width);
  void draw_system_prompt(const Frame& frame, const ChatState& chat, float width);
  static void draw_switches(const Frame& frame, const ChatState& chat, const ModelState& model, float width);

  ChatId edited_chat_{};
  std::string system_prompt_;
  SamplingFields fields_;
  std::string summary_;
  std::string known_prompt_, known_summary_;  // of the frame before
};

}  // namespace octavo::ui
