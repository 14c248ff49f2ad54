#include "app/window/server/server_panel.h"

#include <algorithm>

#include "app/server/client_lines.h"
#include "app/window/server/server_key.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr int kLeastPort = 1, kMostPort = 65535;

}  // namespace

void ServerPanel::begin(std::filesystem::path key_path) {
  key_path_ = std::move(key_path);
  if (!key_path_.empty()) key_ = read_server_key(key_path_);
  ui::ServerState& server = state_.server;
  server.key_path = sanitise_utf8(key_path_.string());
  server.has_key = !key_.empty();
  if (kept_.server.starts_with_window) apply(ui::actions::SwitchServer{true});
  show_lines();
}

// A new key is shown once: until its panel is closed.
void ServerPanel::apply(const ui::actions::ShowServer& a) {
  state_.server.open = a.open;
  if (a.open) return;
  state_.server.new_key.clear();
  show_lines();
}

void ServerPanel::apply(const ui::actions::SwitchServer& a) {
  ui::ServerState& server = state_.server;
  if (a.on == is_wanted_) return;
  is_wanted_ = a.on;
  server.problem.clear();
  if (a.on) {
    if (kept_.server.needs_key && key_.empty()) make_key();
    server.phase = ui::ServerPhase::kStarting;
    effects_.start = true;
  } else {
    server.phase = ui::ServerPhase::kStopping;
    effects_.stop = true;
  }
  show_lines();
}

void ServerPanel::apply(const ui::actions::ChangeServer& a) {
  ui::ServerSettings wanted = a.settings;
  wanted.port = std::clamp(wanted.port, kLeastPort, kMostPort);
  const ui::ServerSettings before = kept_.server;
  kept_.server = state_.settings.server = std::move(wanted);
  effects_.settings_changed = true;
  effects_.access_changed = true;
  if (kept_.server.needs_key && key_.empty() && is_wanted_) make_key();
  if (kept_.server.port != before.port && is_wanted_) {
    state_.server.phase = ui::ServerPhase::kStarting;
    state_.server.problem.clear();
    effects_.start = true;
  }
  show_lines();
}

void ServerPanel::apply(const ui::actions::MakeServerKey&) {
  make_key();
  effects_.access_changed = true;
  show_lines();
}

void ServerPanel::make_key() {
  key_ = new_server_key();
  ui::ServerState& server = state_.server;
  server.new_key = key_;
  server.has_key = true;
  if (key_path_.empty()) return;
  const auto written = write_server_key(key_path_, key_);
  if (!written) server.problem = sanitise_utf8(written.error().message);
}

AccessRules ServerPanel::access() const {
  const ui::ServerSettings& settings = kept_.server;
  const int listens_at = state_.server.port != 0 ? state_.server.port : settings.port;
  return {.port = static_cast<std::uint16_t>(listens_at),
          .is_loopback = true,
          .allowed_hosts = settings.allowed_hosts,
          .allowed_origins = settings.allowed_origins,
          .key = settings.needs_key ? key_ : std::string()};
}

void ServerPanel::show_model(const std::string& name) {
  model_ = name;
  state_.server.has_model = !name.empty();
  show_lines();
}

void ServerPanel::show_listening(std::uint16_t port, const std::optional<Error>& problem) {
  ui::ServerState& server = state_.server;
  server.port = port;
  if (problem) {
    is_wanted_ = false;
    server.problem = sanitise_utf8(problem->message) + ".";
    server.num_answering = 0;
  }
  server.phase = port != 0 ? ui::ServerPhase::kOn : ui::ServerPhase::kOff;
  // Other wishes may have come since; they are under way.
  if (port == 0 && is_wanted_) server.phase = ui::ServerPhase::kStarting;
  if (port != 0 && !is_wanted_) server.phase = ui::ServerPhase::kStopping;
  if (port == 0) server.num_answering = 0;
  effects_.access_changed = true;
  show_lines();
}

bool ServerPanel::show_answering(std::size_t num_answering) {
  return std::exchange(state_.server.num_answering, num_answering) != num_answering;
}

void ServerPanel::show_lines() {
  ui::ServerState& server = state_.server;
  server.lines.clear();
  const int port = server.port != 0 ? server.port : kept_.server.port;
  ServedAddress served{.address = http_address("127.0.0.1", static_cast<std::uint16_t>(port)),
                       .model = model_.empty() ? "MODEL" : model_};
  if (kept_.server.needs_key) {
    served.key_file = server.key_path;
    if (served.key_file.empty()) served.key = server.new_key.empty() ? "YOUR_KEY" : server.new_key;
  }
  for (PastedLine& line : client_lines(served))
    server.lines.push_back({.program = std::move(line.program), .text = std::move(line.text)});
}

}  // namespace octavo::app
