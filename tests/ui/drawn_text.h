// The text of the last frame as it was really drawn: read back from Dear ImGui's draw lists, and judged by
// the pixels behind it.
//
// Main thread, between two frames of an open window.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "app/window/platform/window.h"

namespace octavo::testing {

// Neighbours on one line, of one colour, in one clip rectangle.
struct DrawnText {
  std::string text = {};
  ImVec2 min, max;  // of its glyphs, on the screen
  ImU32 colour = 0;
  bool cut_left = false,
       cut_right = false;  // part of its first or last glyph lies outside of its clip rectangle
  float contrast = 0;      // with what is behind it, by WCAG 2: 1 to 21; of the glyph that has least
  struct Ellipsis {
    std::size_t at;  // byte of the text
    ImVec2 centre;   // of what can be seen of it
  };
  std::vector<Ellipsis> ellipses = {};
};

// The last frame as pixels. The test's window builds frames without drawing them, since software draws them
// here.
app::Picture picture_of_frame(const app::Window& window);

// What can be seen. Below an open dialog nothing counts: it is dimmed on purpose, and nobody can use it.
std::vector<DrawnText> drawn_texts(const app::Window& window);

// All that was drawn, covered or not, as lines: quick enough for every frame.
std::string drawn_words();

// Whether the newest frame says so somewhere. Spaces do not count: how wide one looks depends on its
// neighbours.
bool is_said(std::string words);

// Those that have less contrast than 4.5, as lines "text: contrast".
std::string hard_to_read(const std::vector<DrawnText>& texts);

// Those that end at the border of what may be drawn to, in the middle of a character, as lines.
std::string cut_off(const std::vector<DrawnText>& texts);

// Rests the pointer on each "…" that says that something was left out, and gives a line for each text that
// then is not shown as a whole. Not from a script, which runs where nothing is drawn yet.
std::vector<std::string> unexplained_ellipses(const std::vector<DrawnText>& texts,
                                              const std::function<void(ImVec2)>& rest_pointer_on);

}  // namespace octavo::testing
