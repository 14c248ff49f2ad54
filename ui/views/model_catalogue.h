// The dialog in which models are found on a hub: recommended ones and those that a search found, beside the
// files of the chosen one with what each would take of this machine. In a narrow window one follows the
// other.
//
// Keeps what only matters for drawing: what is typed, and which of the two is shown.
#pragma once

#include <string>

#include "ui/catalogue_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class ModelCatalogueView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_models(const Frame& frame, const CatalogueState& catalogue);
  void draw_files(const Frame& frame, const CatalogueState& catalogue) const;

  bool was_open_ = false;
  int frames_to_focus_ = 0;
  bool wants_models_ =
      false;  // where only one column has room: they stand before the files of the chosen one
  std::string query_;
};

// "fits", "slow", "does not fit", "does not run"; empty: not known
const char* fit_text(CatalogueFit fit);

}  // namespace octavo::ui
