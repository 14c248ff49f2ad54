// `octavo compare-models`: what two models say about every token of one text.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_compare_models_command(CLI::App& program, int& status);

}  // namespace octavo::app
