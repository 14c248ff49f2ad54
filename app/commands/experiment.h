// `octavo experiment`: the evaluation of the PagedAttention paper, simulated and on the real engine.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_experiment_command(CLI::App& program, int& status);

}  // namespace octavo::app
