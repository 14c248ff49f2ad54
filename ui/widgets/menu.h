// A small menu beside the pointer. Items have ids of their own, apart from their text, so that text can be
// anything.
#pragma once

#include <optional>
#include <string_view>

#include "ui/frame.h"
#include "ui/widgets/icons.h"

namespace octavo::ui {

// Opens with ImGui::OpenPopup(id). True while it is shown; then end_menu must follow.
bool begin_menu(const Frame& frame, const char* id);
void end_menu();

struct MenuItemOptions {
  std::optional<Icon> icon = {};
  std::string_view note = {};  // on the right: keys, or a count
  bool enabled = true;
  bool danger = false;  // what cannot be undone
};

// True when chosen; the menu closes.
bool menu_item(const Frame& frame, const char* id, std::string_view text,
               const MenuItemOptions& options = {});

// A quiet heading between items, with a line above unless it is the first.
void menu_heading(const Frame& frame, std::string_view text);

}  // namespace octavo::ui
