// `octavo quantize MODEL OUT --type T`: a GGUF file with smaller weights, written whole or not at all.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

// Registers the command; `status` gets the exit status when it ran.
void add_quantize_command(CLI::App& program, int& status);

}  // namespace octavo::app
