#include "ui/widgets/text.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "ui/widgets/characters.h"

namespace octavo::ui {
namespace {

// Long strings are cut before they are measured, so that a hostile title costs no more than a long one.
constexpr std::size_t kLongestLine = 1024;

std::string_view first_bytes(std::string_view text) {
  if (text.size() <= kLongestLine) return text;
  std::size_t end = kLongestLine;
  while (end > 0 && continues_utf8(text[end])) --end;
  return text.substr(0, end);
}

std::string_view first_line_of(std::string_view text) { return text.substr(0, text.find_first_of("\r\n")); }

bool hides_something(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte >= 0x20 && byte < 0x7f) {
      ++at;
      continue;
    }
    const CodePoint point = decode_utf8(text, at);
    if (!point.valid || has_mark(point.value) || point.value == '\t') return true;
    at += point.length;
  }
  return false;
}

void draw_plain(const Frame& frame, ImDrawList* list, ImVec2 top_left, const TextStyle& style,
                std::string_view text) {
  const Face face = frame.face(style.face, style.em);
  const float above = std::floor((line_pixels(frame, style) - face.size) * 0.5f);
  list->AddText(face.font, face.size, {top_left.x, top_left.y + above}, style.colour, text.data(),
                text.data() + text.size());
}

}  // namespace

TextStyle body_text(const Frame& frame) { return {.colour = frame.theme.text}; }
TextStyle heading_text(const Frame& frame) {
  return {.face = FontFace::kSemiBold, .colour = frame.theme.text};
}
TextStyle small_text(const Frame& frame) { return {.em = size::kSmall, .colour = frame.theme.muted}; }
TextStyle tiny_text(const Frame& frame) { return {.em = size::kTiny, .colour = frame.theme.muted}; }
TextStyle mono_text(const Frame& frame) {
  return {.face = FontFace::kMono, .em = size::kMono, .colour = frame.theme.muted};
}

float line_pixels(const Frame& frame, const TextStyle& style) {
  return frame.px(style.em * style.line_height);
}

float text_width(const Frame& frame, const TextStyle& style, std::string_view text) {
  return frame.face(style.face, style.em).width(first_bytes(first_line_of(text)));
}

void draw_text(const Frame& frame, ImDrawList* list, ImVec2 top_left, const TextStyle& style,
               std::string_view text, float max_width) {
  text = first_bytes(first_line_of(text));
  if (hides_something(text)) {
    draw_text(frame, list, top_left, style, visible_text(text), max_width);
  } else if (max_width < FLT_MAX && text_width(frame, style, text) > max_width) {
    draw_plain(frame, list, top_left, style, elide(frame, style, text, max_width));
    tooltip_over(frame, top_left, {top_left.x + max_width, top_left.y + line_pixels(frame, style)}, text);
  } else {
    draw_plain(frame, list, top_left, style, text);
  }
}

void line(const Frame& frame, const TextStyle& style, std::string_view text, float max_width) {
  const float width = std::min(text_width(frame, style, text), max_width);
  const ImVec2 position = ImGui::GetCursorScreenPos();
  ImGui::Dummy({width, line_pixels(frame, style)});
  draw_text(frame, ImGui::GetWindowDrawList(), position, style, text, max_width);
}

void heading_line(const Frame& frame, std::string_view heading, std::string_view note) {
  TextStyle style = heading_text(frame);
  style.em = 14;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  line(frame, style, heading, room);
  if (note.empty()) return;
  const float x = at.x + text_width(frame, style, heading) + frame.px(10);
  draw_text(frame, ImGui::GetWindowDrawList(), {x, at.y + frame.px(2)}, tiny_text(frame), note,
            std::max(1.0f, at.x + room - x));
}

namespace {

// The lines of a wrapped paragraph, first to last.
template <class Function>
void for_each_wrapped_line(const Face& face, std::string_view text, float width, const Function& function) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const char* line_end = std::find(at, end, '\n');
    const char* stop = face.font->CalcWordWrapPosition(face.size, at, line_end, std::max(width, face.size));
    if (stop == at && stop < line_end) ++stop;
    function(std::string_view(at, static_cast<std::size_t>(stop - at)));
    at = stop;
    while (at < line_end && *at == ' ') ++at;
    if (at == line_end) ++at;
  }
}

// The longest beginning of it that fits with an ellipsis.
std::string with_ellipsis(const Frame& frame, const TextStyle& style, std::string_view text,
                          float max_width) {
  const Face face = frame.face(style.face, style.em);
  constexpr std::string_view kEllipsis = "…";
  const float room = max_width - face.width(kEllipsis);
  const char* rest = text.data();
  face.font->CalcTextSizeA(face.size, std::max(room, 1.0f), 0.0f, text.data(), text.data() + text.size(),
                           &rest);
  std::string result(text.data(), rest);
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result.append(kEllipsis);
}

}  // namespace

void paragraph(const Frame& frame, const TextStyle& style, std::string_view text, float width) {
  const float step = line_pixels(frame, style);
  ImVec2 position = ImGui::GetCursorScreenPos();
  const float top = position.y;
  for_each_wrapped_line(frame.face(style.face, style.em), first_bytes(text), width,
                        [&](std::string_view line) {
                          draw_text(frame, ImGui::GetWindowDrawList(), position, style, line);
                          position.y += step;
                        });
  ImGui::Dummy({width, position.y - top});
}

void draw_lines(const Frame& frame, ImDrawList* list, ImVec2 top_left, const TextStyle& style,
                std::string_view text, float width, std::size_t most) {
  text = first_bytes(text);
  const ImVec2 low = top_left;
  std::size_t drawn = 0;
  for_each_wrapped_line(frame.face(style.face, style.em), text, width, [&](std::string_view line) {
    if (drawn == most) return;
    const auto end = static_cast<std::size_t>(line.data() + line.size() - text.data());
    const bool more = ++drawn == most && text.find_first_not_of(" \n", end) != std::string_view::npos;
    draw_text(frame, list, top_left, style,
              more ? with_ellipsis(frame, style, line, width) : std::string(line), width);
    top_left.y += line_pixels(frame, style);
    if (more) tooltip_over(frame, low, {low.x + width, top_left.y}, text);
  });
}

float paragraph_height(const Frame& frame, const TextStyle& style, std::string_view text, float width) {
  float height = 0;
  for_each_wrapped_line(frame.face(style.face, style.em), first_bytes(text), width,
                        [&](std::string_view) { height += line_pixels(frame, style); });
  return height;
}

std::string elide(const Frame& frame, const TextStyle& style, std::string_view text, float max_width) {
  text = first_bytes(text);
  if (frame.face(style.face, style.em).width(text) <= max_width) return std::string(text);
  return with_ellipsis(frame, style, text, max_width);
}

void tooltip(const Frame& frame, std::string_view text) {
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip)) tooltip_now(frame, text);
}

void tooltip_over(const Frame& frame, ImVec2 low, ImVec2 high, std::string_view text) {
  // Or in a window inside it, over which the text is drawn.
  constexpr ImGuiHoveredFlags kFlags = ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_ChildWindows;
  if (ImGui::IsMouseHoveringRect(low, high) && ImGui::IsWindowHovered(kFlags)) tooltip_now(frame, text);
}

std::string_view first_that_fits(const Frame& frame, const TextStyle& style,
                                 std::span<const std::string> ways, float max_width) {
  for (const std::string& way : ways) {
    if (text_width(frame, style, way) <= max_width) return way;
  }
  return ways.back();
}

bool begin_hint(const Frame& frame, float horizontal_padding, float vertical_padding) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding,
                      {frame.px(horizontal_padding), frame.px(vertical_padding)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.px(size::kRadiusControl));
  const bool shown = ImGui::BeginTooltip();
  ImGui::PopStyleVar(2);
  return shown;
}

void end_hint() { ImGui::EndTooltip(); }

void tooltip_now(const Frame& frame, std::string_view text) {
  if (begin_hint(frame, 12, 8)) {
    TextStyle style = small_text(frame);
    style.colour = frame.theme.text;
    float width = 0;
    for (std::string_view rest = text; !rest.empty();) {
      width = std::max(width, text_width(frame, style, rest));
      const std::size_t end = rest.find('\n');
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    paragraph(frame, style, text, std::min(std::ceil(width) + 1, frame.px(340)));
    end_hint();
  }
}

}  // namespace octavo::ui
