// Colours and sizes of the window, one set for dark and one for light. Sizes are given in pixels at 100 % and
// become pixels on screen through `px`.
#pragma once

#include <imgui.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "ui/desktop_state.h"

namespace octavo::ui {

struct Theme {
  ImU32 background, panel, raised, line, text, muted, faint, accent, on_accent, warning, error, free, cached;
  std::array<ImU32, 7> owners;
  float scale = 1.0f;  // pixels on screen per pixel of the design

  float px(float design_pixels) const { return std::round(design_pixels * scale); }
  ImU32 owner(std::uint32_t colour_index) const { return owners[colour_index % owners.size()]; }
};

namespace size {
inline constexpr float kGrid = 8;
inline constexpr float kText = 15;
inline constexpr float kSmall = 13;
inline constexpr float kTiny = 12;
inline constexpr float kMono = 12.5f;
inline constexpr float kLineHeight = 1.5f;
inline constexpr float kRadiusCard = 12;
inline constexpr float kRadiusControl = 9;
inline constexpr float kRadiusCell = 2;
inline constexpr float kSidebar = 264;
inline constexpr float kChatPanel = 288;
inline constexpr float kMeasure = 720;
inline constexpr float kHeader = 56;
}  // namespace size

// REQUIRES: name != kSystem, which `resolved` turns into one of the others
Theme make_theme(ThemeName name, float scale);
inline ThemeName resolved(ThemeName wanted, ThemeName system) {
  return wanted == ThemeName::kSystem ? system : wanted;
}

// Sets Dear ImGui's own style from the theme, for the widgets that we take from it as they are.
void apply_theme(const Theme& theme);

// `colour` with its opacity multiplied.
ImU32 with_alpha(ImU32 colour, float alpha);
// Between two colours: 0 gives `from`, 1 gives `to`.
ImU32 mix(ImU32 from, ImU32 to, float amount);

// How far apart two opaque colours are for a reader: 1 to 21 (WCAG 2.1, "contrast ratio").
float contrast(ImU32 a, ImU32 b);
inline constexpr float kReadableContrast = 4.5f;
// `colour` for text on an opaque background: moved towards black or white as far as it must to be readable.
ImU32 readable(ImU32 colour, ImU32 background);

}  // namespace octavo::ui
