// What the window remembers from one start to the next: $XDG_CONFIG_HOME/octavo/settings.json, else
// ~/.config/octavo/settings.json. Readable by its owner only, and replaced as a whole, so that a crash leaves
// the old file or the new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/api/sampling_params.h"
#include "engine/base/result.h"
#include "ui/desktop_state.h"

namespace octavo::app {

// A model that was loaded from this window.
struct RecentModel {
  std::string path;
  std::int64_t used_ms = 0;  // since 1970, UTC
  friend bool operator==(const RecentModel&, const RecentModel&) = default;
};
inline constexpr std::size_t kMostRecentModels = 24;
inline constexpr std::size_t kMostRecentFolders = 6;

struct Settings {
  int width = 1280;  // of the window, screen coordinates
  int height = 800;
  ui::SettingsState ui;
  SamplingParams sampling;                 // the last that was chosen; new chats begin with it
  std::vector<RecentModel> recent_models;  // newest first, at most kMostRecentModels
  std::vector<std::string>
      recent_folders;  // that files were chosen in, newest first, at most kMostRecentFolders
};

// What a window begins with: livelier than greedy, and long enough for a whole answer.
Settings default_settings();

struct LoadedSettings {
  Settings settings;
  std::string notice;  // why defaults are used, one sentence; empty when the file was fine or absent
};

std::filesystem::path default_settings_path();

// Never fails: a file that is damaged or out of range gives defaults and a notice.
LoadedSettings load_settings(const std::filesystem::path& path);

// Creates the folder when it is missing.
Result<void> save_settings(const std::filesystem::path& path, const Settings& settings);

}  // namespace octavo::app
