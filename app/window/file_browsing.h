// The file browser's own logic: what is asked, what was listed, and which file was chosen. There is one
// browser; asking again takes the place of what was asked before.
//
// Owns the `files` of the state. A value type without disk or thread; UI thread. Folders to be listed come
// out of `take_effects`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/window/folder_reader.h"
#include "app/window/settings.h"
#include "ui/actions.h"
#include "ui/file_state.h"

namespace octavo::app {

// What is asked. The texts are the browser's own: ui/file_state.h.
struct FileQuestion {
  std::string title, button, note, nothing;
  std::string file_name = {};                // that is proposed for saving; empty: a file is opened
  std::vector<std::string> extensions = {};  // with their dots; empty: any file
  std::string folder = {};                   // where it begins, unless this was asked before
  bool newest_first = false;
  std::function<ui::Action(std::string path)> answer = {};
};

struct FileEffects {
  std::optional<ListFolder> listing = {};
  bool recent_changed = false;
};

class FileBrowsing {
 public:
  FileBrowsing(std::vector<std::string> recent, ui::FileBrowser& state)
      : recent_(std::move(recent)), state_(state) {}

  void ask(FileQuestion question);

  void apply(const ui::actions::CloseFileBrowser&) { state_.open = false; }
  void apply(const ui::actions::BrowseTo& a);
  void apply(const ui::actions::ChooseFile& a);
  void apply(const ui::actions::AnswerOverwrite& a);
  void take(FolderListed listed);

  // Folders that files were chosen in, newest first; at most kMostRecentFolders.
  const std::vector<std::string>& recent() const { return recent_; }
  FileEffects take_effects() { return std::exchange(effects_, {}); }
  // What the person's choice stands for, once.
  std::optional<ui::Action> take_chosen() { return std::exchange(chosen_, std::nullopt); }

 private:
  void list(const std::string& text, bool chooses);
  void show(const std::string& text);
  void choose(const std::string& path);

  FileQuestion question_;
  std::vector<std::string> recent_;
  std::map<std::string, std::string> last_folders_;  // by the question's title
  std::string overwrites_;                           // the path that is asked about
  std::uint64_t newest_listing_ = 0;
  ui::FileBrowser& state_;
  FileEffects effects_;
  std::optional<ui::Action> chosen_;
};

}  // namespace octavo::app
