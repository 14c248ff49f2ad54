// `octavo bench`: measurements on this machine.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_bench_command(CLI::App& program, int& status);

}  // namespace octavo::app
