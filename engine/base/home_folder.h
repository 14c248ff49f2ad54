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

// "~" and "~/…" as a shell reads them, everything else as it is. "~" alone ends in a slash: it is a folder.
std::filesystem::path expand_home(const std::string& text, const std::filesystem::path& home);

}  // namespace octavo
