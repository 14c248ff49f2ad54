// The dialog in which models are found on a hub: recommended ones and those that a search found, beside the
// files of the chosen one with what each would take of this machine.
//
// Keeps what only matters for drawing: what is typed.
#pragma once

#include <string>

#include "ui/catalogue_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class ModelCatalogueView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_left(const Frame& frame, const CatalogueState& catalogue, ImVec2 extent);
  void draw_right(const Frame& frame, const CatalogueState& catalogue, ImVec2 extent);

  bool was_open_ = false;
  int frames_to_focus_ = 0;
  std::string query_;
};

// "fits", "slow", "does not fit", "does not run"; empty: not known
const char* fit_text(CatalogueFit fit);

}  // namespace octavo::ui
