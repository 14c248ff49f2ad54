// `octavo chat`: a chat in the terminal. It is written to a file after every turn and can be resumed.
#pragma once

namespace CLI {
class App;
}

namespace octavo::app {

void add_chat_command(CLI::App& program, int& status);

}  // namespace octavo::app
