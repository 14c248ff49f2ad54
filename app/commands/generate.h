// `octavo generate`: prompts in, text out.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

// Registers the command; `status` gets the exit status when it ran.
void add_generate_command(CLI::App& program, int& status);

}  // namespace octavo::app
