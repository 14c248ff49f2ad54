#include "app/hub/hub_values.h"

#include <algorithm>

namespace octavo::hub {
namespace {

constexpr std::size_t kMostNameBytes = 96;
constexpr std::size_t kMostPathBytes = 512;

bool is_name_part(std::string_view part) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !part.empty() && part.size() <= kMostNameBytes && !part.starts_with('.') &&
         part.find("--") == std::string_view::npos && std::ranges::all_of(part, is_allowed);
}

}  // namespace

std::int64_t HubRepository::bytes() const {
  std::int64_t sum = 0;
  for (const HubFile& file : files) sum += file.bytes;
  return sum;
}

bool is_repository_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return is_name_part(text);
  return is_name_part(text.substr(0, slash)) && is_name_part(text.substr(slash + 1));
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMostPathBytes) return false;
  const auto is_bad = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\'; };
  if (std::ranges::any_of(path, is_bad)) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    at = end + 1;
  }
  return true;
}

bool is_hex(std::string_view text, std::size_t num_digits) {
  return text.size() == num_digits &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace octavo::hub
