// The dialog in which a model is chosen: a list with a search, or the files of a folder, beside what is
// inside the chosen one (model_inside_view.h).
//
// Keeps what only matters for drawing: the search, the typed path, and which line the keyboard is on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ui/frame.h"
#include "ui/model_state.h"

namespace octavo::ui {

// Which rows fit `query`: each of its words stands in name, file or folder, whatever the case.
std::vector<std::size_t> model_rows_matching(const std::vector<ModelRow>& rows, std::string_view query);

class ModelPickerView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_list(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_row(const Frame& frame, const UiState& state, const ModelRow& row, float width);
  void draw_browser(const Frame& frame, const UiState& state, ImVec2 extent);
  void enter_path(const Frame& frame, const FileBrowser& browser) const;
  static void choose_entry(const Frame& frame, const FolderEntry& entry);
  void move_choice(const Frame& frame, const UiState& state, const std::vector<std::size_t>& matching);

  bool was_open_ = false;
  bool browsed_ = false;  // in the frame before
  std::string query_;
  std::string typed_path_;
  std::uint64_t shown_serial_ = 0;  // of the text that was taken into the field
  bool scroll_to_chosen_ = false;
};

}  // namespace octavo::ui
