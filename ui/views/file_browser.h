// The dialog in which a file is chosen, to be opened or to be written: places on the left, a path that can be
// typed, and what is in its folder.
//
// Keeps what only matters for drawing: the typed path.
#pragma once

#include <cstdint>
#include <string>

#include "ui/file_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class FileBrowserView {
 public:
  // Over everything; inside a dialog that is open, so that it lies in front of it.
  void draw(const Frame& frame, const FileBrowser& browser);

 private:
  void draw_places(const Frame& frame, const FileBrowser& browser, ImVec2 extent) const;
  void draw_files(const Frame& frame, const FileBrowser& browser, ImVec2 extent);
  void draw_entry(const Frame& frame, const FileBrowser& browser, const FolderEntry& entry, float width);
  void draw_end(const Frame& frame, const FileBrowser& browser, float width);
  void choose_entry(const Frame& frame, const FileBrowser& browser, const FolderEntry& entry);
  void enter(const Frame& frame, const FileBrowser& browser);

  std::string typed_;
  std::uint64_t shown_serial_ = 0;  // of the text that was taken into the field
};

}  // namespace octavo::ui
