// `octavo bench`: measurements on this machine.
#pragma once

#include <CLI/CLI.hpp>

namespace octavo::app {

void add_bench_command(CLI::App& program, int& status);

}  // namespace octavo::app
