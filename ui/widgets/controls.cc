#include "ui/widgets/controls.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

namespace octavo::ui {
namespace {

constexpr float kIconExtent = 16;
constexpr float kButtonPadding = 14;
constexpr float kIconGap = 8;

struct ButtonColours {
  ImU32 fill, border, text;
};

ButtonColours button_colours(const Frame& frame, const ButtonOptions& options, bool hovered, bool held) {
  const Theme& theme = frame.theme;
  if (!options.enabled && options.kind == ButtonKind::kPrimary) {
    const ImU32 pale = mix(theme.panel, theme.accent, 0.28f);
    return {pale, pale, readable(theme.muted, pale)};
  }
  if (!options.enabled) {
    return {IM_COL32_BLACK_TRANS, options.kind == ButtonKind::kPlain ? IM_COL32_BLACK_TRANS : theme.line,
            theme.faint};
  }
  const float lift = held ? 0.12f : hovered ? 0.07f : 0.0f;
  switch (options.kind) {
    case ButtonKind::kPrimary: return {mix(theme.accent, theme.text, lift), theme.accent, theme.on_accent};
    case ButtonKind::kOutline:
      return {lift > 0 ? mix(theme.raised, theme.text, lift * 0.6f) : IM_COL32_BLACK_TRANS, theme.line,
              theme.text};
    case ButtonKind::kPlain:
      return {lift > 0 ? mix(theme.raised, theme.text, lift * 0.6f) : IM_COL32_BLACK_TRANS,
              IM_COL32_BLACK_TRANS, lift > 0 ? theme.text : theme.muted};
  }
  return {};
}

TextStyle button_text(const Frame& frame, const ButtonOptions& options, ImU32 colour) {
  TextStyle style = small_text(frame);
  style.em = 14;
  if (options.kind == ButtonKind::kPrimary) style.face = FontFace::kSemiBold;
  style.colour = colour;
  return style;
}

void draw_button_content(const Frame& frame, ImVec2 low, ImVec2 high, std::string_view text,
                         const ButtonOptions& options, ImU32 colour) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle style = button_text(frame, options, colour);
  const float icon_width = options.icon ? frame.px(kIconExtent) : 0;
  const float text_pixels = text.empty() ? 0 : text_width(frame, style, text);
  const float between = options.icon && !text.empty() ? frame.px(kIconGap) : 0;
  const float content = icon_width + between + text_pixels;
  const float middle = (low.y + high.y) * 0.5f;
  float x =
      options.align_left ? low.x + frame.px(kButtonPadding) : std::floor((low.x + high.x - content) * 0.5f);
  if (options.icon) {
    draw_icon(list, *options.icon, {x + icon_width * 0.5f, middle}, frame.px(kIconExtent - 1), colour);
    x += icon_width + between;
  }
  const float top = std::floor(middle - line_pixels(frame, style) * 0.5f);
  draw_text(frame, list, {x, top}, style, text, high.x - x);
}

// Pressed, hovered and held of an invisible button with keyboard focus.
struct Press {
  bool pressed, hovered, held;
};

Press press_area(const char* id, ImVec2 extent, bool enabled) {
  ImGui::BeginDisabled(!enabled);
  const bool pressed = ImGui::InvisibleButton(id, extent, ImGuiButtonFlags_EnableNav);
  ImGui::EndDisabled();
  return {pressed && enabled, enabled && ImGui::IsItemHovered(), enabled && ImGui::IsItemActive()};
}

int resize_string(ImGuiInputTextCallbackData* data) {
  if (data->EventFlag == ImGuiInputTextFlags_CallbackResize) {
    auto* text = static_cast<std::string*>(data->UserData);
    text->resize(static_cast<std::size_t>(data->BufTextLen));
    data->Buf = text->data();
  }
  return 0;
}

}  // namespace

float button_width(const Frame& frame, std::string_view text, const ButtonOptions& options) {
  if (options.width > 0) return frame.px(options.width);
  if (text.empty()) return frame.px(options.height);
  const float icon = options.icon ? frame.px(kIconExtent + kIconGap) : 0;
  return std::ceil(text_width(frame, button_text(frame, options, 0), text)) + icon +
         2 * frame.px(kButtonPadding);
}

bool button(const Frame& frame, const char* id, std::string_view text, const ButtonOptions& options) {
  const ImVec2 extent{button_width(frame, text, options), frame.px(options.height)};
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 high{low.x + extent.x, low.y + extent.y};
  const Press press = press_area(id, extent, options.enabled);
  const ButtonColours colours = button_colours(frame, options, press.hovered, press.held);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rounding = frame.px(size::kRadiusControl);
  if ((colours.fill & IM_COL32_A_MASK) != 0) list->AddRectFilled(low, high, colours.fill, rounding);
  if ((colours.border & IM_COL32_A_MASK) != 0) list->AddRect(low, high, colours.border, rounding);
  draw_button_content(frame, low, high, text, options, colours.text);
  if (!options.help.empty()) tooltip(frame, options.help);
  return press.pressed;
}

bool link(const Frame& frame, const char* id, std::string_view text, std::string_view help) {
  TextStyle style = tiny_text(frame);
  const ImVec2 extent{std::ceil(text_width(frame, style, text)), line_pixels(frame, style)};
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const Press press = press_area(id, extent, /*enabled=*/true);
  style.colour = press.hovered ? frame.theme.text : frame.theme.faint;
  draw_text(frame, ImGui::GetWindowDrawList(), low, style, text);
  if (!help.empty()) tooltip(frame, help);
  return press.pressed;
}

bool chip(const Frame& frame, const char* id, std::string_view text, const ChipOptions& options) {
  TextStyle style = tiny_text(frame);
  const float padding = frame.px(9);
  const float needed = std::ceil(text_width(frame, style, text)) + 2 * padding;
  const float width = std::min(std::max(needed, options.min_width), options.max_width);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 high{low.x + width, low.y + frame.px(24)};
  const Press press = press_area(id, {width, frame.px(24)}, /*enabled=*/true);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float rounding = frame.px(7);
  const ImU32 fill = options.is_on ? mix(frame.theme.panel, frame.theme.accent, 0.28f) : frame.theme.raised;
  if (press.hovered || options.is_on) list->AddRectFilled(low, high, fill, rounding);
  list->AddRect(low, high, frame.theme.line, rounding);
  if (press.hovered || options.is_on) style.colour = readable(frame.theme.text, fill);
  const float left = padding + std::floor(std::max(width - needed, 0.0f) * 0.5f);
  draw_text(frame, list, {low.x + left, low.y + frame.px(3)}, style, text, width - 2 * padding + 1);
  return press.pressed;
}

std::size_t segments(const Frame& frame, const char* id, std::span<const char* const> labels,
                     std::span<const char* const> ids, std::size_t selected, float width) {
  ImGui::PushID(id);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float height = frame.px(36), inset = frame.px(3);
  list->AddRectFilled(origin, {origin.x + width, origin.y + height}, frame.theme.raised, frame.px(10));
  list->AddRect(origin, {origin.x + width, origin.y + height}, frame.theme.line, frame.px(10));
  const float step = (width - 2 * inset) / static_cast<float>(labels.size());
  std::size_t result = selected;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const ImVec2 low{std::floor(origin.x + inset + step * static_cast<float>(i)), origin.y + inset};
    const ImVec2 high{std::floor(origin.x + inset + step * static_cast<float>(i + 1)),
                      origin.y + height - inset};
    ImGui::SetCursorScreenPos(low);
    const Press press = press_area(ids[i], {high.x - low.x, high.y - low.y}, /*enabled=*/true);
    if (press.pressed) result = i;
    TextStyle style = small_text(frame);
    if (i == selected) {
      list->AddRectFilled(low, high, frame.theme.background, frame.px(8));
      list->AddRect(low, high, mix(frame.theme.line, frame.theme.muted, 0.35f), frame.px(8));
      style.face = FontFace::kSemiBold;
      style.colour = frame.theme.text;
    } else if (press.hovered) {
      style.colour = frame.theme.text;
    }
    const float text = text_width(frame, style, labels[i]);
    const float top = std::floor((low.y + high.y - line_pixels(frame, style)) * 0.5f);
    draw_text(frame, list, {std::floor((low.x + high.x - text) * 0.5f), top}, style, labels[i]);
  }
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({width, height});
  ImGui::PopID();
  return result;
}

void begin_card(const Frame& frame, const char* id, ImVec2 extent, float padding) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.panel);
  ImGui::PushStyleColor(ImGuiCol_Border, frame.theme.line);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(padding), frame.px(padding)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 1.0f);
  ImGuiChildFlags flags = ImGuiChildFlags_Borders | ImGuiChildFlags_NavFlattened;
  if (extent.y == 0) flags |= ImGuiChildFlags_AutoResizeY;
  ImGui::BeginChild(id, extent, flags);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

void end_card() { ImGui::EndChild(); }

void gap(const Frame& frame, float pixels) { ImGui::Dummy({0, frame.px(pixels)}); }

void beside(const Frame& frame, float pixels) { ImGui::SameLine(0, frame.px(pixels)); }

void give_keyboard_to_window() { ImGui::FocusWindow(ImGui::GetCurrentWindow()->RootWindow); }

void take_keyboard(const char* id) {
  ImGui::ClearActiveID();
  ImGui::FocusWindow(ImGui::GetCurrentWindow());
  ImGui::ActivateItemByID(ImGui::GetID(id));
  ImGui::GetCurrentContext()->NavNextActivateFlags = ImGuiActivateFlags_PreferInput;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

bool appears(int& last_frame) {
  const int frame_before = ImGui::GetFrameCount() - 1;
  const bool was_drawn = last_frame >= frame_before;
  last_frame = ImGui::GetFrameCount();
  return !was_drawn;
}

bool text_field(const Frame& frame, const char* id, std::string& text, std::string_view hint, float width,
                ImGuiInputTextFlags flags) {
  const Face face = frame.face(FontFace::kRegular, 14);
  ImGui::PushFont(face.font, face.size);
  ImGui::SetNextItemWidth(width);
  const std::string shown_hint(hint);
  const bool changed =
      ImGui::InputTextWithHint(id, shown_hint.c_str(), text.data(), text.capacity() + 1,
                               flags | ImGuiInputTextFlags_CallbackResize, resize_string, &text);
  ImGui::PopFont();
  return changed;
}

bool text_area(const Frame& frame, const char* id, std::string& text, ImVec2 extent,
               ImGuiInputTextFlags flags, std::string_view hint) {
  const Face face = frame.face(FontFace::kRegular, size::kText);
  ImGui::PushFont(face.font, face.size);
  const bool changed = ImGui::InputTextMultiline(
      id, text.data(), text.capacity() + 1, extent,
      flags | ImGuiInputTextFlags_CallbackResize | ImGuiInputTextFlags_WordWrap, resize_string, &text);
  ImGui::PopFont();
  ImGuiInputTextState* state = ImGui::GetInputTextState(ImGui::GetItemID());
  if (ImGui::IsItemActivated() && state != nullptr && !ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    state->SetSelection(state->TextLen, state->TextLen);
  if (text.empty() && !hint.empty()) {
    TextStyle style = body_text(frame);
    style.colour = frame.theme.faint;
    const ImVec2 low = ImGui::GetItemRectMin(), padding = ImGui::GetStyle().FramePadding;
    draw_text(frame, ImGui::GetWindowDrawList(), {low.x + padding.x, low.y + padding.y}, style, hint,
              extent.x - 2 * padding.x);
  }
  return changed;
}

void two_part_bar(const Frame& frame, float first, float second, float width, float height) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float rounding = std::floor(height * 0.5f);
  const float both = std::clamp(first + second, 0.0f, 1.0f), one = std::clamp(first, 0.0f, 1.0f);
  list->AddRectFilled(low, {low.x + width, low.y + height}, frame.theme.free, rounding);
  const auto part = [&](float fraction, ImU32 colour) {
    if (fraction <= 0) return;
    const float end = std::max(std::round(width * fraction), height);
    list->AddRectFilled(low, {low.x + end, low.y + height}, colour, rounding);
  };
  part(both, frame.theme.cached);
  part(one, frame.theme.accent);
  ImGui::Dummy({width, height});
}

}  // namespace octavo::ui
