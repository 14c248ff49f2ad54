// The panel of the server: on or off, where, who may ask, what programs must be told, and what came.
//
// Keeps what is typed until it counts. UI thread.
#pragma once

#include <string>

#include "ui/frame.h"
#include "ui/server_state.h"

namespace octavo::ui {

struct UiState;  // state.h

class ServerView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void begin(const UiState& state);
  void draw_switch(const Frame& frame, const UiState& state, float width);
  void draw_start_and_port(const Frame& frame, const UiState& state, float width);
  void draw_key(const Frame& frame, const UiState& state, float width);
  void draw_names(const Frame& frame, const UiState& state, float width);
  void keep(const Frame& frame, const UiState& state) const;

  bool was_open_ = false;
  std::string port_, hosts_, origins_;
  ServerSettings shown_;  // what these were last made from
};

// "Server on · port 8000", "Server on · 2 answering", ...; empty while it is off.
std::string server_words(const ServerState& server);

// Whether programs may ask, and how many do, as a line of the sidebar; the whole line opens the panel.
inline constexpr float kServerLineHeight = 34;  // design pixels
void draw_server_line(const Frame& frame, const ServerState& server, float width);
// The same as a square button, where there is no sidebar. `side`: design pixels.
void draw_server_mark(const Frame& frame, const ServerState& server, float side);

}  // namespace octavo::ui
