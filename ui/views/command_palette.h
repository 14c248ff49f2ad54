// The command palette: type a few letters of a command or of a chat's title, go with the arrows, enter.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "ui/commands.h"
#include "ui/frame.h"

namespace octavo::ui {

// One line of the palette: a command, or a chat to go to.
struct PaletteEntry {
  const Command* command = nullptr;
  ChatId chat_id = {};
  std::string_view name;
};

// What fits `query`: each of its words stands in the name, whatever the case. First those that begin with it,
// then in the order of commands() and of the chats. The names point into commands() and `state`.
std::vector<PaletteEntry> palette_entries(const UiState& state, std::string_view query);

class CommandPalette {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_field(const Frame& frame, float width);
  void draw_entries(const Frame& frame, const UiState& state, const std::vector<PaletteEntry>& entries,
                    float width);
  void move_selection(std::size_t num_entries);

  bool was_open_ = false;
  std::string query_;
  std::size_t selected_ = 0;
  bool scroll_to_selected_ = false;
};

}  // namespace octavo::ui
