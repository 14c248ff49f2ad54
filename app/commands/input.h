// Text that a command line names by file.
#pragma once

#include <string>

#include "engine/base/result.h"

namespace octavo::app {

// The bytes of a file, verbatim; "-" is standard input. A folder, or what cannot be
// opened, is an error that names it.
Result<std::string> read_input(const std::string& path);

}  // namespace octavo::app
