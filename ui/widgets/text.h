// Single lines and short paragraphs of text, placed by the design's line height. Text is data: nothing here
// looks for formats or ids in it, and characters that hide or reorder others are shown by name.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ui/frame.h"

namespace octavo::ui {

struct TextStyle {
  FontFace face = FontFace::kRegular;
  float em = size::kText;
  ImU32 colour = 0;
  float line_height = size::kLineHeight;  // in em
};

// The usual styles, from the theme.
TextStyle body_text(const Frame& frame);
TextStyle heading_text(const Frame& frame);
TextStyle small_text(const Frame& frame);  // muted
TextStyle tiny_text(const Frame& frame);   // muted
TextStyle mono_text(const Frame& frame);   // muted

float line_pixels(const Frame& frame, const TextStyle& style);
float text_width(const Frame& frame, const TextStyle& style, std::string_view text);

// Draws one line whose line box begins at `top_left`; stops at `max_width` with an ellipsis, and shows the
// whole of it while the pointer rests on it.
void draw_text(const Frame& frame, ImDrawList* list, ImVec2 top_left, const TextStyle& style,
               std::string_view text, float max_width = FLT_MAX);

// One line at the cursor, which moves below it.
void line(const Frame& frame, const TextStyle& style, std::string_view text, float max_width = FLT_MAX);

// A heading with a small note beside it, on one line at the cursor.
void heading_line(const Frame& frame, std::string_view heading, std::string_view note = {});

// A wrapped paragraph at the cursor, which moves below it.
void paragraph(const Frame& frame, const TextStyle& style, std::string_view text, float width);

// The first lines of it at `top_left`; where there is more, an ellipsis ends the last one, and the whole is
// shown while the pointer rests on them.
void draw_lines(const Frame& frame, ImDrawList* list, ImVec2 top_left, const TextStyle& style,
                std::string_view text, float width, std::size_t most);

// How high the whole paragraph would be.
float paragraph_height(const Frame& frame, const TextStyle& style, std::string_view text, float width);

// The longest beginning of `text` that fits, with an ellipsis when something was cut.
std::string elide(const Frame& frame, const TextStyle& style, std::string_view text, float max_width);

// Of several ways to say it, longest first, the first that fits; the last if none does.
std::string_view first_that_fits(const Frame& frame, const TextStyle& style,
                                 std::span<const std::string> ways, float max_width);

// A window of anything beside the pointer, padded in design pixels. Where true: end_hint() follows.
bool begin_hint(const Frame& frame, float horizontal_padding, float vertical_padding);
void end_hint();
// Shows `text` beside the pointer while the last item is hovered.
void tooltip(const Frame& frame, std::string_view text);
// The same while the pointer rests there, in this window.
void tooltip_over(const Frame& frame, ImVec2 low, ImVec2 high, std::string_view text);
// The same, whatever is hovered.
void tooltip_now(const Frame& frame, std::string_view text);

}  // namespace octavo::ui
