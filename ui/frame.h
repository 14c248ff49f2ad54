// What every view and widget gets while one frame is drawn.
#pragma once

#include "ui/fonts.h"
#include "ui/theme.h"

namespace octavo::ui {

class ActionSink;  // action_sink.h; with the headers of the actions, such as chat_actions.h
struct UiState;    // state.h

struct Frame {
  const Theme& theme;
  const Fonts& fonts;
  ActionSink& actions;

  float px(float design_pixels) const { return theme.px(design_pixels); }
  Face face(FontFace face, float em) const { return fonts.face(face, em * theme.scale); }
};

}  // namespace octavo::ui
