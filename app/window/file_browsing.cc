#include "app/window/file_browsing.h"

#include <algorithm>
#include <filesystem>

#include "engine/base/text.h"

namespace octavo::app {

namespace fs = std::filesystem;

namespace {

// What is typed without a folder is in the one that is listed.
std::string in_folder(const std::string& folder, const std::string& text) {
  if (folder.empty() || text.starts_with('/') || text.starts_with('~')) return text;
  return (fs::path(folder) / text).string();
}

}  // namespace

void FileBrowsing::ask(FileQuestion question) {
  question_ = std::move(question);
  const auto last = last_folders_.find(question_.title);
  const fs::path folder = last != last_folders_.end() ? last->second : question_.folder;
  state_ = {.open = true,
            .saves = !question_.file_name.empty(),
            .title = question_.title,
            .button = question_.button,
            .note = question_.note,
            .nothing = question_.nothing,
            .serial = state_.serial};
  show((folder / question_.file_name).string());
}

void FileBrowsing::show(const std::string& text) {
  state_.text = text;
  ++state_.serial;
  list(text, /*chooses=*/false);
}

void FileBrowsing::list(const std::string& text, bool chooses) {
  state_.reading = true;
  state_.overwrites.clear();
  effects_.listing = ListFolder{.serial = ++newest_listing_,
                                .text = in_folder(question_.folder, text),
                                .extensions = question_.extensions,
                                .recent = recent_,
                                .saves = state_.saves,
                                .newest_first = question_.newest_first,
                                .chooses = chooses};
}

void FileBrowsing::apply(const ui::actions::BrowseTo& a) {
  if (!state_.open) return;
  // In another folder the name stays under which something is saved.
  const std::string name = fs::path(a.text).filename().string();
  if (state_.saves && !name.empty()) question_.file_name = name;
  if (a.is_typed) return list(a.text, /*chooses=*/false);
  show(state_.saves && name.empty() ? a.text + question_.file_name : a.text);
}

void FileBrowsing::apply(const ui::actions::ChooseFile& a) {
  if (state_.open && !a.path.empty()) list(a.path, /*chooses=*/true);
}

void FileBrowsing::apply(const ui::actions::AnswerOverwrite& a) {
  if (!state_.open || state_.overwrites.empty()) return;
  state_.overwrites.clear();
  if (a.replaces) choose(overwrites_);
}

void FileBrowsing::take(FolderListed listed) {
  if (listed.serial != newest_listing_ || !state_.open) return;
  state_.reading = false;
  question_.folder = listed.folder;
  state_.folder = sanitise_utf8(listed.folder);
  state_.entries = std::move(listed.entries);
  state_.places = std::move(listed.places);
  state_.problem = std::move(listed.problem);
  if (!listed.chooses) return;
  switch (listed.chosen) {
    case ChosenPath::kNothing: return;
    case ChosenPath::kFolder: return apply(ui::actions::BrowseTo{listed.path + "/", /*is_typed=*/false});
    case ChosenPath::kNewFile: return choose(listed.path);
    case ChosenPath::kFile:
      if (!state_.saves) return choose(listed.path);
      overwrites_ = listed.path;
      state_.overwrites = sanitise_utf8(fs::path(listed.path).filename().string());
  }
}

void FileBrowsing::choose(const std::string& path) {
  state_.open = false;
  const std::string folder = fs::path(path).parent_path().string();
  last_folders_[question_.title] = folder + "/";
  std::erase(recent_, folder);
  recent_.insert(recent_.begin(), folder);
  if (recent_.size() > kMostRecentFolders) recent_.resize(kMostRecentFolders);
  effects_.recent_changed = true;
  chosen_ = question_.answer(path);
}

}  // namespace octavo::app
