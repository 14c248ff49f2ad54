// Hands addresses to the desktop's browser or mail program, and folders to its file manager.
//
// Starts `program` with one argument: no shell reads it. Returns when the program has been started. UI
// thread.
#pragma once

#include <string>

#include "engine/base/result.h"

namespace octavo::app {

// Only http, https and mailto addresses without blanks and control characters; any other is refused, whoever
// asks.
Result<void> open_link(const std::string& address, const char* program = "xdg-open");

// Opens the folder that holds this file; an absolute path.
Result<void> show_in_folder(const std::string& file, const char* program = "xdg-open");

}  // namespace octavo::app
