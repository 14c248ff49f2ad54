// The top of the Compare workspace: the question, what is asked of it, and the buttons that ask.
#pragma once

#include <string>

#include "ui/compare_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class SetupView {
 public:
  // A card at the cursor, as high as `height` says.
  void draw(const Frame& frame, const UiState& state, float width);
  float height(const Frame& frame, const UiState& state, float width) const;

  // The place to type a question, where there is none.
  void draw_empty(const Frame& frame, const UiState& state, ImVec2 extent);

 private:
  void draw_question(const Frame& frame, const UiState& state, float width);
  void draw_buttons(const Frame& frame, const UiState& state, ImVec2 top_right);
  void draw_options(const Frame& frame, const UiState& state, float width);
  bool draw_variants(const Frame& frame, ComparisonSetup& setup);
  bool draw_sliders(const Frame& frame, ComparisonSetup& setup, SamplingParams& sampling, float left,
                    float right);
  void draw_editor(const Frame& frame, float width);

  std::string typed_;
  std::string seed_text_;
  std::size_t variant_ = 0;
  bool editing_ = false;
  bool focus_ = false;
};

}  // namespace octavo::ui
