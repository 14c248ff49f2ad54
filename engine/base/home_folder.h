// The person's folder, and paths that are written from it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace octavo {

// The variable's value as a path; nullopt when it is not set or empty.
std::optional<std::filesystem::path> environment_path(const char* name);

// $HOME; "/" where there is none.
std::filesystem::path home_folder();

// Where programs keep what is theirs, as the XDG Base Directory Specification says: the variable's folder,
// else the one below the person's folder.
std::filesystem::path data_folder();    // $XDG_DATA_HOME, else ~/.local/share
std::filesystem::path config_folder();  // $XDG_CONFIG_HOME, else ~/.config
std::filesystem::path cache_folder();   // $XDG_CACHE_HOME, else ~/.cache
// $XDG_RUNTIME_DIR; nullopt when it is not set or not absolute, which the specification says to ignore.
std::optional<std::filesystem::path> runtime_folder();

// "~" and "~/…" as a shell reads them, everything else as it is. "~" alone ends in a slash: it is a folder.
std::filesystem::path expand_home(const std::string& text, const std::filesystem::path& home);

}  // namespace octavo
