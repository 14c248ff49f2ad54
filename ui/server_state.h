// The server of the window, as plain values: programs on this machine ask the engine that answers the chats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace octavo::ui {

inline constexpr int kUsualPort = 8000;

// What a person settled on. Whether it is on is no setting: it is off when the window opens, unless they said
// otherwise.
struct ServerSettings {
  bool starts_with_window = false;
  int port = kUsualPort;  // 1 .. 65,535
  bool needs_key = true;
  std::vector<std::string> allowed_hosts = {};    // names beside localhost and 127.0.0.1
  std::vector<std::string> allowed_origins = {};  // of web pages: "http://localhost:3000"
  friend bool operator==(const ServerSettings&, const ServerSettings&) = default;
};

enum class ServerPhase { kOff, kStarting, kOn, kStopping };

// What a program must be told to ask this server.
struct ClientLine {
  std::string program = {};  // "Claude Code"
  std::string text = {};     // ready to paste
};

// One request as the server saw it; texts of clients are printable.
struct ServerLogLine {
  std::int64_t unix_ms = 0;
  std::string time = {};     // of the day: "14:03:12"
  std::string request = {};  // "POST /v1/chat/completions"
  std::string client = {};   // its User-Agent
  int status = 0;            // 0: not answered yet
  std::int64_t took_ms = 0;
  std::string why = {};  // of a refusal, one sentence
};

struct ServerState {
  bool open = false;  // its panel
  ServerPhase phase = ServerPhase::kOff;
  int port = 0;              // where it listens
  std::string problem = {};  // why it is not on, or not as wished; one sentence
  std::string new_key = {};  // shown until the panel is closed, and not again
  std::string key_path = {};
  bool has_key = false;
  bool has_model = false;         // else clients are told to try again
  std::size_t num_answering = 0;  // requests that have no complete answer yet
  std::vector<ClientLine> lines = {};
  std::vector<ServerLogLine> log = {};  // oldest first
};

}  // namespace octavo::ui
