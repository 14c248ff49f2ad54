#include "engine/base/home_folder.h"

#include <cstdlib>

namespace octavo {

std::optional<std::filesystem::path> environment_path(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::filesystem::path(value);
}

std::filesystem::path home_folder() { return environment_path("HOME").value_or("/"); }

std::filesystem::path data_folder() {
  return environment_path("XDG_DATA_HOME").value_or(home_folder() / ".local/share");
}

std::filesystem::path config_folder() {
  return environment_path("XDG_CONFIG_HOME").value_or(home_folder() / ".config");
}

std::filesystem::path cache_folder() {
  return environment_path("XDG_CACHE_HOME").value_or(home_folder() / ".cache");
}

std::optional<std::filesystem::path> runtime_folder() {
  const auto folder = environment_path("XDG_RUNTIME_DIR");
  return folder && folder->is_absolute() ? folder : std::nullopt;
}

std::filesystem::path expand_home(const std::string& text, const std::filesystem::path& home) {
  if (text == "~") return home / "";
  if (text.starts_with("~/")) return home / text.substr(2);
  return text;
}

}  // namespace octavo
