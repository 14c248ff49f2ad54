#include "engine/base/home_folder.h"

#include <cstdlib>

namespace octavo {

std::optional<std::filesystem::path> environment_path(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::filesystem::path(value);
}

std::filesystem::path home_folder() { return environment_path("HOME").value_or("/"); }

std::filesystem::path expand_home(const std::string& text, const std::filesystem::path& home) {
  if (text == "~") return home / "";
  if (text.starts_with("~/")) return home / text.substr(2);
  return text;
}

}  // namespace octavo
