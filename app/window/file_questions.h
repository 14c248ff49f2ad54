// What the file browser asks, for each thing that a person opens or saves.
#pragma once

#include <filesystem>

#include "app/window/file_browsing.h"
#include "ui/state.h"

namespace octavo::app {

struct FileFolders {
  std::filesystem::path exports;
  std::filesystem::path recordings;
};

// UI thread. The browser and the state must outlive it.
class FileQuestions {
 public:
  FileQuestions(FileFolders folders, FileBrowsing& files, const ui::UiState& state)
      : folders_(std::move(folders)), files_(files), state_(state) {}
  void set_export_folder(std::filesystem::path folder) { folders_.exports = std::move(folder); }

  void apply(const ui::actions::AskForFile& a);
  // An export that names no file asks for one, and comes again with it. True when it was one.
  bool asks_first(const ui::Action& action);

 private:
  FileFolders folders_;
  FileBrowsing& files_;
  const ui::UiState& state_;
};

}  // namespace octavo::app
