// What the window says of its server, and what a person asked of it: on or off, port, key, who may ask.
//
// Writes UiState::server and the server's settings. UI thread; opens no port itself: what it wants done comes
// out of `take_effects`. The state and the settings must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/server/access.h"
#include "engine/base/result.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"

namespace octavo::app {

struct ServerEffects {
  bool start = false;  // at port(), instead of where it listens now
  bool stop = false;
  bool access_changed = false;
  bool settings_changed = false;
};

class ServerPanel {
 public:
  // `kept` is what is remembered of the settings; the state's follow it.
  ServerPanel(ui::SettingsState& kept, ui::UiState& state) : kept_(kept), state_(state) {}

  // Where the key is kept; empty: it lives as long as the window. Switches the server on where it starts with
  // the window.
  void begin(std::filesystem::path key_path);

  void apply(const ui::actions::ShowServer& a);
  void apply(const ui::actions::SwitchServer& a);
  void apply(const ui::actions::ChangeServer& a);
  void apply(const ui::actions::MakeServerKey&);

  // Whether requests should be answered.
  bool is_wanted() const { return is_wanted_; }
  std::uint16_t port() const { return static_cast<std::uint16_t>(kept_.server.port); }
  AccessRules access() const;

  // By which name programs ask for the model; empty: there is none.
  void show_model(const std::string& name);
  // It listens at this port; 0: it does not.
  void show_listening(std::uint16_t port, const std::optional<Error>& problem);
  // True when that is news.
  bool show_answering(std::size_t num_answering);
  void show_log(std::vector<ui::ServerLogLine> lines) { state_.server.log = std::move(lines); }

  ServerEffects take_effects() { return std::exchange(effects_, {}); }

 private:
  void make_key();
  void show_lines();

  ui::SettingsState& kept_;
  ui::UiState& state_;
  std::filesystem::path key_path_;
  std::string key_, model_;
  bool is_wanted_ = false;
  ServerEffects effects_;
};

}  // namespace octavo::app
