// `octavo inspect`: what a model file holds, and how much memory its keys and values take; with --shape the
// same arithmetic for a model known by name, without a file.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

// Registers the command; `status` gets the exit status when it ran.
void add_inspect_command(CLI::App& program, int& status);

}  // namespace octavo::app
