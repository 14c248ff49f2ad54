// The text that two models read, with marks under its words, and the card of a token with what both expected
// there.
//
// Keeps the layout, the scroll position and the token that is looked at. UI thread.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <optional>

#include "ui/frame.h"
#include "ui/two_models_state.h"
#include "ui/views/compare/token_text.h"
#include "ui/views/two_models/two_models_colours.h"

namespace octavo::ui {

class TwoModelsText {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const TwoModelsResult& result, TwoModelsColour colour, ImVec2 extent);
  // Scrolls to this token in the next frame, and opens its card.
  void show(std::size_t token) { wanted_ = token; }
  std::optional<std::size_t> shown_token() const { return card_; }

 private:
  void draw_words(const Frame& frame, const TwoModelsResult& result, TwoModelsColour colour, ImVec2 origin,
                  float from, float to);
  void point_at(const TwoModelsResult& result, ImVec2 origin);
  void draw_card(const Frame& frame, const TwoModelsResult& result);

  TokenText text_;
  std::optional<std::size_t> wanted_;  // by the list of the worst
  std::optional<std::size_t> card_;    // whose card is open
  bool open_card_ = false;             // in this frame
  ImVec2 card_place_{};                // below its token, screen
};

}  // namespace octavo::ui
