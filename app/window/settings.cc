#include "app/window/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "app/chat/sampling_json.h"
#include "app/files/whole_file.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kLargestFile = 1 << 20;
constexpr std::size_t kMostServerNames = 64;  // of hosts and of origins
constexpr int kSmallestSide = 320, kLargestSide = 16384;

// In the order of the enumerations.
constexpr std::array kThemeWords = {"dark", "light", "high contrast", "system"};
constexpr std::array kSendKeyWords = {"enter", "ctrl+enter"};
constexpr std::array kOnRepeatsWords = {"tell", "stop"};

// A path is any bytes: what is no UTF-8 cannot stand in JSON, and is not remembered.
json to_json(const std::vector<RecentModel>& models) {
  json list = json::array();
  for (const RecentModel& model : models) {
    if (sanitise_utf8(model.path) == model.path)
      list.push_back({{"path", model.path}, {"used_ms", model.used_ms}});
  }
  return list;
}

json to_json(const std::vector<std::string>& folders) {
  json list = json::array();
  for (const std::string& folder : folders) {
    if (sanitise_utf8(folder) == folder) list.push_back(folder);
  }
  return list;
}

json to_json(const ui::ServerSettings& server) {
  return {{"starts_with_window", server.starts_with_window},
          {"port", server.port},
          {"needs_key", server.needs_key},
          {"allowed_hosts", to_json(server.allowed_hosts)},
          {"allowed_origins", to_json(server.allowed_origins)}};
}

json to_json(const Settings& settings) {
  return {{"version", 1},
          {"width", settings.width},
          {"height", settings.height},
          {"theme", kThemeWords[static_cast<std::size_t>(settings.ui.theme)]},
          {"ui_scale", settings.ui.ui_scale},
          {"send_key", kSendKeyWords[static_cast<std::size_t>(settings.ui.send_key)]},
          {"sidebar_shown", settings.ui.sidebar_shown},
          {"notifies", settings.ui.notifies},
          {"system_prompt", sanitise_utf8(settings.ui.system_prompt)},
          {"preset", settings.ui.preset.value},
          {"on_repeats", kOnRepeatsWords[static_cast<std::size_t>(settings.ui.on_repeats)]},
          {"server", to_json(settings.ui.server)},
          {"sampling", sampling_to_json(settings.sampling)},
          {"recent_models", to_json(settings.recent_models)},
          {"recent_folders", to_json(settings.recent_folders)}};
}

bool read_side(const json& object, const char* key, int& side) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_number_integer()) return false;
  const auto value = found->get<std::int64_t>();
  if (value < kSmallestSide || value > kLargestSide) return false;
  side = static_cast<int>(value);
  return true;
}

// One of the words, each of which stands for the enumeration's value of its index.
template <class Value, std::size_t kCount>
bool read_choice(const json& object, const char* key, const std::array<const char*, kCount>& words,
                 Value& target) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (*found != words[i]) continue;
    target = static_cast<Value>(i);
    return true;
  }
  return false;
}

bool read_switch(const json& object, const char* key, bool& value) {
  const auto found = object.find(key);
  if (found == object.end()) return true;
  if (!found->is_boolean()) return false;
  value = found->get<bool>();
  return true;
}

bool read_texts(const json& object, const char* key, std::size_t most, std::vector<std::string>& texts) {
  const auto list = object.find(key);
  if (list == object.end()) return true;
  if (!list->is_array() || list->size() > most) return false;
  for (const json& entry : *list) {
    if (!entry.is_string()) return false;
    texts.push_back(entry.get<std::string>());
  }
  return true;
}

bool read_server(const json& object, ui::ServerSettings& server) {
  const auto found = object.find("server");
  if (found == object.end()) return true;
  if (!found->is_object()) return false;
  const auto port = found->find("port");
  if (port != found->end()) {
    if (!port->is_number_integer()) return false;
    const auto value = port->get<std::int64_t>();
    if (value < 1 || value > 65535) return false;
    server.port = static_cast<int>(value);
  }
  return read_switch(*found, "starts_with_window", server.starts_with_window) &&
         read_switch(*found, "needs_key", server.needs_key) &&
         read_texts(*found, "allowed_hosts", kMostServerNames, server.allowed_hosts) &&
         read_texts(*found, "allowed_origins", kMostServerNames, server.allowed_origins);
}

bool read_ui(const json& object, ui::SettingsState& state) {
  const auto scale = object.find("ui_scale");
  if (scale != object.end()) {
    if (!scale->is_number()) return false;
    state.ui_scale = scale->get<double>();
    if (!(state.ui_scale >= ui::kLeastUiScale && state.ui_scale <= ui::kMostUiScale)) return false;
  }
  const auto prompt = object.find("system_prompt");
  if (prompt != object.end()) {
    if (!prompt->is_string()) return false;
    state.system_prompt = prompt->get<std::string>();
  }
  const auto preset = object.find("preset");
  if (preset != object.end()) {
    if (!preset->is_number_unsigned()) return false;
    state.preset = PresetId{preset->get<std::uint64_t>()};
  }
  return read_server(object, state.server) && read_switch(object, "sidebar_shown", state.sidebar_shown) &&
         read_switch(object, "notifies", state.notifies) &&
         read_choice(object, "theme", kThemeWords, state.theme) &&
         read_choice(object, "send_key", kSendKeyWords, state.send_key) &&
         read_choice(object, "on_repeats", kOnRepeatsWords, state.on_repeats);
}

bool read_recent_models(const json& object, std::vector<RecentModel>& models) {
  const auto list = object.find("recent_models");
  if (list == object.end()) return true;
  if (!list->is_array() || list->size() > kMostRecentModels) return false;
  for (const json& entry : *list) {
    if (!entry.is_object()) return false;
    const auto path = entry.find("path"), used = entry.find("used_ms");
    if (path == entry.end() || !path->is_string() || used == entry.end() || !used->is_number_integer())
      return false;
    models.push_back({path->get<std::string>(), used->get<std::int64_t>()});
  }
  return true;
}

bool from_json(const json& object, Settings& settings) {
  if (!object.is_object() || object.value("version", json()) != 1) return false;
  if (!read_side(object, "width", settings.width) || !read_side(object, "height", settings.height))
    return false;
  if (!read_ui(object, settings.ui) || !read_recent_models(object, settings.recent_models) ||
      !read_texts(object, "recent_folders", kMostRecentFolders, settings.recent_folders))
    return false;
  const auto sampling = object.find("sampling");
  if (sampling == object.end()) return true;
  auto read = stored_sampling(*sampling);
  if (!read) return false;
  settings.sampling = *std::move(read);
  return true;
}

Error cannot_write(const std::filesystem::path& path, int reason) {
  return {.code = ErrorCode::kIo,
          .message = escape_for_message(path.string()) + ": cannot save the settings (" +
                     std::strerror(reason) + "); check that the folder is writable"};
}

}  // namespace

Settings default_settings() {
  Settings settings;
  settings.sampling.temperature = 0.7;
  settings.sampling.top_p = 0.95;
  settings.sampling.max_tokens = 1024;
  return settings;
}

std::filesystem::path default_settings_path() { return config_folder() / "octavo/settings.json"; }

LoadedSettings load_settings(const std::filesystem::path& path) {
  LoadedSettings loaded{default_settings(), {}};
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return loaded;
  const auto damaged = [&path] {
    return LoadedSettings{default_settings(), escape_for_message(path.string()) +
                                                  " is not a valid settings file; using the defaults"};
  };
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || size > kLargestFile) return damaged();
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) return damaged();
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return from_json(object, loaded.settings) ? loaded : damaged();
}

Result<void> save_settings(const std::filesystem::path& path, const Settings& settings) {
  const int reason = write_whole_file(path, to_json(settings).dump(1) + "\n");
  if (reason != 0) return cannot_write(path, reason);
  return {};
}

}  // namespace octavo::app
