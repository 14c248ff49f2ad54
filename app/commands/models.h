// octavo models: models on the hub and on this machine.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_models_command(CLI::App& program, int& status);

}  // namespace octavo::app
