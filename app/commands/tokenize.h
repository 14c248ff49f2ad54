// `octavo tokenize`: text or messages to token ids.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_tokenize_command(CLI::App& program, int& status);

}  // namespace octavo::app
