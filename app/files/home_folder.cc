#include "app/files/home_folder.h"

#include <cstdlib>

namespace octavo::app {

std::filesystem::path home_folder() {
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? home : "/";
}

std::filesystem::path expand_home(const std::string& text, const std::filesystem::path& home) {
  if (text == "~") return home / "";
  if (text.starts_with("~/")) return home / text.substr(2);
  return text;
}

}  // namespace octavo::app
