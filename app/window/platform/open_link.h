// Hands an address to the desktop's browser or mail program.
#pragma once

#include <string>

#include "engine/base/result.h"

namespace octavo::app {

// Starts `program` with the address as its one argument: no shell reads it. Only http, https and mailto
// addresses without blanks and control characters; any other is refused, whoever asks. Returns when the
// program has been started. UI thread.
Result<void> open_link(const std::string& address, const char* program = "xdg-open");

}  // namespace octavo::app
