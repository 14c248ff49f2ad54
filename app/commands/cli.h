// The command line of `octavo`.
#pragma once

#include <functional>
#include <string_view>

#include "app/commands/engine_flags.h"

namespace octavo::app {

// Opens the window with these engine options; returns the exit status. Empty in a build without a window.
using OpenWindow = std::function<int(const EngineFlags&)>;

std::string_view program_version();  // "1.0.0"

// Parses and runs; returns the exit status. Nothing is thrown.
int run_command_line(int argc, const char* const* argv, const OpenWindow& open_window);

}  // namespace octavo::app
