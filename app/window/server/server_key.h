// The key of the window's server, in a file that only the person can read.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"

namespace octavo::app {

// Empty: there is none, or it cannot be read.
std::string read_server_key(const std::filesystem::path& path);
// Replaces the one that is there.
Result<void> write_server_key(const std::filesystem::path& path, const std::string& key);

}  // namespace octavo::app
