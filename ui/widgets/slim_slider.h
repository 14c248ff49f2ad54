// A slider without words: a thin bar and a knob. UI thread.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

struct SliderRange {
  float low, high, step;
};

inline constexpr float kSlimSliderHeight = 18;  // design pixels

// At the cursor. The value stays what it was until the slider moves; then it is a multiple of the step.
bool slim_slider(const Frame& frame, const char* id, float& value, SliderRange range, float width);

}  // namespace octavo::ui
