#include "ui/theme.h"

#include <algorithm>

#include "ui/desktop_state.h"

namespace octavo::ui {
namespace {

constexpr ImU32 rgb(std::uint32_t hex) {
  return IM_COL32((hex >> 16) & 255u, (hex >> 8) & 255u, hex & 255u, 255u);
}

Theme dark() {
  return {.background = rgb(0x0e1116),
          .panel = rgb(0x151a21),
          .raised = rgb(0x1c222b),
          .line = rgb(0x28303b),
          .text = rgb(0xe7ebf0),
          .muted = rgb(0x93a0b0),
          .faint = rgb(0x8491a1),
          .accent = rgb(0x4cc2b0),
          .on_accent = rgb(0x0b1f1c),
          .warning = rgb(0xe8a23d),
          .error = rgb(0xef6a5b),
          .free = rgb(0x212935),
          .cached = rgb(0x39424f),
          .owners = {rgb(0x56b4e9), rgb(0xe69f00), rgb(0x35b58a), rgb(0xcc79a7), rgb(0xd9653b), rgb(0xa58bf0),
                     rgb(0xd8cf4a)}};
}

Theme light() {
  return {.background = rgb(0xf5f6f8),
          .panel = rgb(0xffffff),
          .raised = rgb(0xf0f2f5),
          .line = rgb(0xdfe4ea),
          .text = rgb(0x171c23),
          .muted = rgb(0x566373),
          .faint = rgb(0x5f6b79),
          .accent = rgb(0x0d7f72),
          .on_accent = rgb(0xffffff),
          .warning = rgb(0x985b00),
          .error = rgb(0xc23a2b),
          .free = rgb(0xe9edf2),
          .cached = rgb(0xc3ccd7),
          .owners = {rgb(0x2f8fc9), rgb(0xc98800), rgb(0x1f8f68), rgb(0xb0588a), rgb(0xc0502a), rgb(0x7a5fd0),
                     rgb(0xa59a12)}};
}

// Text at 13:1 and more, lines and quiet text at 7:1, on black.
Theme high_contrast() {
  return {.background = rgb(0x000000),
          .panel = rgb(0x000000),
          .raised = rgb(0x1a1a1a),
          .line = rgb(0x9aa4b0),
          .text = rgb(0xffffff),
          .muted = rgb(0xe2e7ee),
          .faint = rgb(0xb4bec9),
          .accent = rgb(0x5ff0d8),
          .on_accent = rgb(0x000000),
          .warning = rgb(0xffc04d),
          .error = rgb(0xff9a8d),
          .free = rgb(0x2a2f36),
          .cached = rgb(0x6b7683),
          .owners = {rgb(0x6fc8ff), rgb(0xffb52e), rgb(0x4de0ae), rgb(0xf09bc9), rgb(0xff8a5c), rgb(0xc1adff),
                     rgb(0xf2e75e)}};
}

float channel_light(std::uint32_t value) {
  const float part = static_cast<float>(value) / 255.0f;
  return part <= 0.04045f ? part / 12.92f : std::pow((part + 0.055f) / 1.055f, 2.4f);
}

// Relative, of WCAG 2.1.
float luminance(ImU32 colour) {
  return 0.2126f * channel_light((colour >> IM_COL32_R_SHIFT) & 255u) +
         0.7152f * channel_light((colour >> IM_COL32_G_SHIFT) & 255u) +
         0.0722f * channel_light((colour >> IM_COL32_B_SHIFT) & 255u);
}

ImVec4 vector(ImU32 colour) { return ImGui::ColorConvertU32ToFloat4(colour); }

void apply_colours(const Theme& theme, ImGuiStyle& style) {
  const auto set = [&style](ImGuiCol index, ImU32 colour) { style.Colors[index] = vector(colour); };
  set(ImGuiCol_WindowBg, theme.background);
  set(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_PopupBg, theme.panel);
  set(ImGuiCol_Border, theme.line);
  set(ImGuiCol_BorderShadow, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.muted);
  set(ImGuiCol_TextSelectedBg, with_alpha(theme.accent, 0.30f));
  set(ImGuiCol_FrameBg, theme.raised);
  set(ImGuiCol_FrameBgHovered, mix(theme.raised, theme.text, 0.05f));
  set(ImGuiCol_FrameBgActive, mix(theme.raised, theme.text, 0.08f));
  set(ImGuiCol_SliderGrab, theme.accent);
  set(ImGuiCol_SliderGrabActive, theme.accent);
  set(ImGuiCol_CheckMark, theme.accent);
  set(ImGuiCol_Button, theme.raised);
  set(ImGuiCol_ButtonHovered, mix(theme.raised, theme.text, 0.06f));
  set(ImGuiCol_ButtonActive, mix(theme.raised, theme.text, 0.10f));
  set(ImGuiCol_Header, theme.raised);
  set(ImGuiCol_HeaderHovered, mix(theme.raised, theme.text, 0.05f));
  set(ImGuiCol_HeaderActive, mix(theme.raised, theme.text, 0.08f));
  set(ImGuiCol_ScrollbarBg, IM_COL32_BLACK_TRANS);
  set(ImGuiCol_ScrollbarGrab, theme.line);
  set(ImGuiCol_ScrollbarGrabHovered, theme.faint);
  set(ImGuiCol_ScrollbarGrabActive, theme.muted);
  set(ImGuiCol_NavCursor, theme.accent);
  set(ImGuiCol_ModalWindowDimBg, IM_COL32(0, 0, 0, 110));
  set(ImGuiCol_InputTextCursor, theme.accent);
}

}  // namespace

Theme make_theme(ThemeName name, float scale) {
  Theme theme = name == ThemeName::kDark ? dark() : name == ThemeName::kLight ? light() : high_contrast();
  theme.scale = scale;
  return theme;
}

void apply_theme(const Theme& theme) {
  ImGuiStyle style;
  apply_colours(theme, style);
  style.WindowPadding = {0, 0};
  style.WindowBorderSize = 0;
  style.WindowRounding = 0;
  style.ChildRounding = theme.px(size::kRadiusCard);
  style.PopupRounding = theme.px(size::kRadiusControl);
  style.PopupBorderSize = 1;
  style.FrameRounding = theme.px(size::kRadiusControl);
  style.FramePadding = {theme.px(10), theme.px(7)};
  style.ItemSpacing = {0, 0};  // views place their gaps themselves
  style.ItemInnerSpacing = {theme.px(6), theme.px(6)};
  style.ScrollbarSize = theme.px(10);
  style.ScrollbarRounding = theme.px(5);
  style.GrabMinSize = theme.px(14);
  style.GrabRounding = theme.px(7);
  style.FontScaleMain = 1.0f;
  ImGui::GetStyle() = style;
}

ImU32 with_alpha(ImU32 colour, float alpha) {
  const float value = static_cast<float>((colour >> IM_COL32_A_SHIFT) & 255u) * alpha;
  return (colour & ~IM_COL32_A_MASK) | (static_cast<ImU32>(value) << IM_COL32_A_SHIFT);
}

// In whole numbers, two channels at a time: a map of 65,536 cells mixes twice for each of them.
ImU32 mix(ImU32 from, ImU32 to, float amount) {
  constexpr ImU32 kEvenChannels = 0x00ff00ff, kHalf = 0x00800080;
  const auto weight = static_cast<ImU32>(std::clamp(amount, 0.0f, 1.0f) * 256.0f + 0.5f);
  const auto between = [weight](ImU32 a, ImU32 b) {
    return ((a * (256 - weight) + b * weight + kHalf) >> 8) & kEvenChannels;
  };
  const ImU32 even = between(from & kEvenChannels, to & kEvenChannels);
  const ImU32 odd = between((from >> 8) & kEvenChannels, (to >> 8) & kEvenChannels);
  return even | (odd << 8);
}

float contrast(ImU32 a, ImU32 b) {
  const float light = std::max(luminance(a), luminance(b)), dark = std::min(luminance(a), luminance(b));
  return (light + 0.05f) / (dark + 0.05f);
}

ImU32 readable(ImU32 colour, ImU32 background) {
  constexpr ImU32 kWhite = IM_COL32_WHITE, kBlack = IM_COL32_BLACK;
  const ImU32 farthest = contrast(kWhite, background) > contrast(kBlack, background) ? kWhite : kBlack;
  for (float amount = 0; amount < 1; amount += 0.1f) {
    const ImU32 candidate = mix(colour, farthest, amount);
    if (contrast(candidate, background) >= kReadableContrast) return candidate;
  }
  return farthest;
}

}  // namespace octavo::ui
