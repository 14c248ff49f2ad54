// Buttons, chips, cards and fields in the design's look. Every control has an id of its own, apart from the
// text it shows, so that text can be anything.
#pragma once

#include <imgui.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ui/frame.h"
#include "ui/widgets/icons.h"
#include "ui/widgets/text.h"

namespace octavo::ui {

enum class ButtonKind { kPrimary, kOutline, kPlain };

struct ButtonOptions {
  ButtonKind kind = ButtonKind::kOutline;
  std::optional<Icon> icon = {};
  float width = 0;    // design pixels; 0: as wide as the text needs
  float height = 32;  // design pixels
  bool enabled = true;
  bool align_left = false;
  std::string_view help = {};
};

// True when pressed, by mouse or keyboard. An empty text gives a square icon button.
bool button(const Frame& frame, const char* id, std::string_view text, const ButtonOptions& options = {});
float button_width(const Frame& frame, std::string_view text, const ButtonOptions& options);

// A quiet text link.
bool link(const Frame& frame, const char* id, std::string_view text, std::string_view help = {});

struct ChipOptions {
  float max_width = FLT_MAX;
  float min_width = 0;  // of one whose text changes, so that its neighbours stay where they are
  bool is_on = false;   // of several chips: the one that is chosen
};

// A small outlined label; pressable.
bool chip(const Frame& frame, const char* id, std::string_view text, const ChipOptions& options = {});

// Alternatives of which one is on. The index that is on afterwards.
std::size_t segments(const Frame& frame, const char* id, std::span<const char* const> labels,
                     std::span<const char* const> ids, std::size_t selected, float width);

// A rounded panel; everything until end_card is inside it. Height 0: as high as its content.
void begin_card(const Frame& frame, const char* id, ImVec2 extent, float padding = 16);
void end_card();

// Vertical space, design pixels.
void gap(const Frame& frame, float pixels);
// Goes on beside the last item, after a horizontal gap in design pixels.
void beside(const Frame& frame, float pixels);

// Gives the keyboard to the field of that id, which this window draws next: from the next frame on. By id,
// because ImGui::SetKeyboardFocusHere does not reach a child window that came after the one in focus.
void take_keyboard(const char* id);
// From a child window that Tab does not leave.
void give_keyboard_to_window();

// A field for one line. True when it was changed.
bool text_field(const Frame& frame, const char* id, std::string& text, std::string_view hint, float width,
                ImGuiInputTextFlags flags = 0);
// A field for several lines, word-wrapped. True when it was changed, or with EnterReturnsTrue when it was
// entered. When it gets the keyboard other than by the mouse, the cursor stands at the end.
bool text_area(const Frame& frame, const char* id, std::string& text, ImVec2 extent,
               ImGuiInputTextFlags flags = 0, std::string_view hint = {});

// Nothing in it that could be sent, asked or opened.
bool is_blank(std::string_view text);

// True in the first frame of several in a row that ask: what is drawn then was not there in the frame before.
// The caller keeps `last_frame`, from -2 on, and asks in every frame that draws it.
bool appears(int& last_frame);

// A bar from 0 to 1 in two parts, on the colour of what is free.
void two_part_bar(const Frame& frame, float first, float second, float width, float height);

}  // namespace octavo::ui
