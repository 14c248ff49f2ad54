#include "app/window/folder_reader.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostEntries = 2'000;

std::string shown_text(const fs::path& path) { return sanitise_utf8(path.string()); }

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_extension(const fs::path& path, const std::vector<std::string>& extensions) {
  return extensions.empty() ||
         std::find(extensions.begin(), extensions.end(), path.extension()) != extensions.end();
}

bool is_listed(const fs::directory_entry& entry, const std::string& prefix, const ListFolder& job) {
  const std::string name = entry.path().filename().string();
  if (!job.saves && !name.starts_with(prefix)) return false;
  if (name.front() == '.' && !prefix.starts_with(".")) return false;
  std::error_code ignored;
  return entry.is_directory(ignored) || has_extension(entry.path(), job.extensions);
}

// ---- places

// As the xdg-user-dirs of this person say: XDG_DOWNLOAD_DIR="$HOME/Downloads". They have other names in other
// languages.
fs::path user_folder(const std::string& variable, const char* usual_name, const fs::path& home) {
  std::ifstream file(config_folder() / "user-dirs.dirs");
  const std::string begin = variable + "=\"";
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.rfind('"');
    if (!line.starts_with(begin) || end < begin.size()) continue;
    const std::string value = line.substr(begin.size(), end - begin.size());
    if (value.starts_with("$HOME/")) return home / value.substr(6);
    if (value.starts_with("/")) return value;
  }
  return home / usual_name;
}

std::vector<ui::FilePlace> places_of(const ListFolder& job, const fs::path& home) {
  std::vector<ui::FilePlace> places;
  const auto add = [&](const fs::path& path, std::string name, bool is_recent) {
    const bool is_known = std::any_of(places.begin(), places.end(),
                                      [&](const auto& place) { return place.path == path.string(); });
    if (!is_known && is_folder(path)) places.push_back({path.string(), std::move(name), is_recent});
  };
  add(home, "Home", false);
  constexpr std::array<std::pair<const char*, const char*>, 3> kFolders = {
      {{"XDG_DESKTOP_DIR", "Desktop"},
       {"XDG_DOCUMENTS_DIR", "Documents"},
       {"XDG_DOWNLOAD_DIR", "Downloads"}}};
  for (const auto& [variable, name] : kFolders) {
    const fs::path path = user_folder(variable, name, home);
    add(path, shown_text(path.filename()), false);
  }
  for (const std::string& path : job.recent) add(path, shown_text(fs::path(path).filename()), true);
  return places;
}

// ---- what was chosen

void look_at_chosen(const ListFolder& job, const fs::path& typed, FolderListed& listed) {
  fs::path path = typed;
  std::error_code error;
  if (is_folder(path)) {
    listed.chosen = ChosenPath::kFolder;
  } else if (job.saves) {
    if (path.extension().empty() && !job.extensions.empty()) path += job.extensions.front();
    listed.chosen = fs::exists(path, error) ? ChosenPath::kFile : ChosenPath::kNewFile;
  } else if (fs::exists(path, error)) {
    listed.chosen = ChosenPath::kFile;
  } else {
    listed.problem = "There is no file " + escape_for_message(path.string()) + ".";
  }
  listed.path = fs::absolute(path, error).string();
}

}  // namespace

FolderListed read_folder(const ListFolder& job, const fs::path& home) {
  const fs::path typed = expand_home(job.text.empty() ? "~" : job.text, home);
  const std::string prefix = typed.filename().string();
  fs::path folder = typed.parent_path();
  std::error_code error;
  if (folder.empty()) folder = fs::current_path(error);
  FolderListed listed{.serial = job.serial, .folder = folder.string()};
  listed.places = places_of(job, home);
  listed.chooses = job.chooses;
  fs::directory_iterator entry(folder, error);
  if (error) {
    listed.problem = shown_text(folder) + " cannot be read: " + error.message() + ".";
    return listed;
  }
  std::vector<std::pair<fs::file_time_type, ui::FolderEntry>> found;
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    if (!is_listed(*entry, prefix, job) || found.size() >= kMostEntries) continue;
    std::error_code ignored;
    const bool folder_inside = entry->is_directory(ignored);
    const std::uintmax_t size = folder_inside ? 0 : entry->file_size(ignored);
    found.emplace_back(entry->last_write_time(ignored),
                       ui::FolderEntry{.path = entry->path().string(),
                                       .name = shown_text(entry->path().filename()),
                                       .is_folder = folder_inside,
                                       .file_bytes = ignored ? 0 : static_cast<std::int64_t>(size)});
  }
  std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    if (a.second.is_folder != b.second.is_folder) return a.second.is_folder;
    if (job.newest_first && !a.second.is_folder && a.first != b.first) return a.first > b.first;
    return a.second.name < b.second.name;
  });
  for (auto& [time, one] : found) listed.entries.push_back(std::move(one));
  if (job.chooses) look_at_chosen(job, typed, listed);
  return listed;
}

FolderReader::FolderReader(fs::path home, std::function<void()> wake_up)
    : jobs_(
          [this, home = std::move(home)](const ListFolder& job) -> std::optional<FolderListed> {
            if (job.serial != newest_) return std::nullopt;
            return read_folder(job, home);
          },
          std::move(wake_up), JobsLeft::kDropped) {}

void FolderReader::give(ListFolder job) {
  newest_ = job.serial;
  jobs_.give(std::move(job));
}

}  // namespace octavo::app
