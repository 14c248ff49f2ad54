// `octavo serve`: the engine for other programs, over HTTP.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace octavo::app {

//   version  that clients are told
void add_serve_command(CLI::App& program, const std::string& version, int& status);

}  // namespace octavo::app
