// The top of the Compare workspace: the question, what is asked of it, and the buttons that ask.
#pragma once

#include <optional>
#include <string>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"
#include "ui/views/compare/settings_editor.h"

namespace octavo::ui {

// What the workspace shows: one question, in one of the ways to compare, or a batch of prompts. Draws the
// choice at the cursor; true when it changed.
bool draw_kinds(const Frame& frame, ComparisonKind& kind, CompareLook& look);
float kinds_width(const Frame& frame);

class SetupView {
 public:
  // A card at the cursor, as high as `height` says; its groups scroll where that is more than `most`.
  void draw(const Frame& frame, const UiState& state, CompareLook& look, float width, float most);
  float height(const Frame& frame, const UiState& state, float width, float most) const;

  // The place to type a question, where there is none.
  void draw_empty(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);

 private:
  void draw_question(const Frame& frame, const UiState& state, float room);
  void draw_buttons(const Frame& frame, const UiState& state, ImVec2 top_right);
  void draw_options(const Frame& frame, const UiState& state, CompareLook& look, float width,
                    float groups_height);
  bool draw_groups(const Frame& frame, ComparisonSetup& setup, SettingsEditor::Switches switches, float width,
                   float height);
  void draw_editor(const Frame& frame, float width);
  bool shows_groups(const ComparisonState& comparison) const;

  SettingsEditor settings_;
  std::string typed_;
  std::optional<bool> groups_wanted_;  // by hand; none: until something was run
  bool editing_ = false;
  bool focus_ = false;
  int empty_frame_ = -2;  // in which the empty workspace was drawn
};

}  // namespace octavo::ui
