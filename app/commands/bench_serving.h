// `octavo bench serving`: how a server of models does under load, ours or another's. vLLM's options where
// they mean the same.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_bench_serving_command(CLI::App& bench, int& status);

}  // namespace octavo::app
