// The fields for how tokens are drawn, each with its help: for a chat's settings, and for presets.
#pragma once

#include <string>

#include "engine/api/sampling_params.h"
#include "ui/frame.h"

namespace octavo::ui {

// True when one of them was moved; what was not moved keeps its value to the last digit.
bool sampling_sliders(const Frame& frame, SamplingParams& sampling, float width);

// `text` is what stands in the field. True when it was changed.
bool seed_field(const Frame& frame, SamplingParams& sampling, std::string& text, float width);

}  // namespace octavo::ui
