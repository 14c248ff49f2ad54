// The dialog in which a model is chosen: a list with a search, beside what is inside the chosen one
// (model_inside_view.h).
//
// Keeps what only matters for drawing: the search, and which line the keyboard is on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ui/frame.h"
#include "ui/model_state.h"
#include "ui/views/file_browser.h"
#include "ui/views/model_catalogue.h"
#include "ui/views/remote_model_view.h"

namespace octavo::ui {

// Which rows fit `query`: each of its words stands in name, file or folder, whatever the case.
std::vector<std::size_t> model_rows_matching(const std::vector<ModelRow>& rows, std::string_view query);

class ModelPickerView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_list(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_row(const Frame& frame, const UiState& state, const ModelRow& row, float width);
  void move_choice(const Frame& frame, const UiState& state, const std::vector<std::size_t>& matching);

  bool was_open_ = false;
  std::string query_;
  FileBrowserView files_;
  RemoteModelView remote_;
  ModelCatalogueView catalogue_;
  bool scroll_to_chosen_ = false;
};

}  // namespace octavo::ui
