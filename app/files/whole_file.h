// Files that are read whole, and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace octavo::app {

// Everything from where the descriptor stands to its end, in memory of about that size. 0 or the reason, an
// errno.
int read_all(int descriptor, std::string& bytes);

// 0 or the reason, an errno.
int read_whole_file(const std::filesystem::path& path, std::string& bytes);

// Writes everything; goes on after interruptions. 0 or the reason, an errno.
int write_all(int descriptor, std::string_view bytes);

// Writes beside the target, syncs and renames, so that the file holds the old or the new bytes, never some of
// both. Readable by its owner only. Makes the folder when it is missing. 0 or the reason, an errno.
int write_whole_file(const std::filesystem::path& path, std::string_view bytes);

}  // namespace octavo::app
