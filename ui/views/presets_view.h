// The presets: to see, to make from the chat that is shown, to change, to apply and to delete.
//
// UI thread. Keeps which one is chosen and what stands in its fields.
#pragma once

#include <cstddef>
#include <string>

#include "ui/chat_state.h"
#include "ui/frame.h"
#include "ui/widgets/sampling_fields.h"

namespace octavo::ui {

class PresetsView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void choose(const PresetState& preset);
  void follow(const UiState& state);
  void draw_list(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_editor(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_buttons(const Frame& frame, const UiState& state, float width);

  PresetState edited_;  // the chosen one with what was typed; id 0: none is chosen
  SamplingFields fields_;
  std::size_t num_known_ = 0;
  bool choose_newest_ = false;  // one was asked for
  bool focus_name_ = false;
  bool sure_to_delete_ = false;
};

}  // namespace octavo::ui
