// The sliders for how tokens are drawn, each with its help, in groups: for settings that are compared.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/sampling_params.h"
#include "ui/frame.h"

namespace octavo::ui {

// All of these: true when something was changed; what was not moved keeps its value to the last digit.

// Temperature, top-p, top-k and min-p.
bool drawing_sliders(const Frame& frame, SamplingParams& sampling, float width);
// For repetition, presence and frequency.
bool penalty_sliders(const Frame& frame, SamplingParams& sampling, float width);
bool length_slider(const Frame& frame, SamplingParams& sampling, float width);
// Of beams.
bool length_penalty_slider(const Frame& frame, SamplingParams& sampling, float width);
// A whole number between two others.
bool number_slider(const Frame& frame, const char* id, const char* label, std::string_view help,
                   std::int32_t& value, std::int32_t low, std::int32_t high, float width);
// How high one of these sliders is, on screen.
float slider_height(const Frame& frame);

// The number, when `text` is one.
std::optional<std::uint64_t> seed_of(std::string_view text);

// Strings that end an answer, one on each line.
bool stop_field(const Frame& frame, std::vector<std::string>& stops, ImVec2 extent);

}  // namespace octavo::ui
