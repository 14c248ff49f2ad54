#include "engine/model/hugging_face/model_card.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "engine/base/ascii.h"
#include "engine/model/json_file.h"

namespace octavo::model {
namespace {

constexpr std::uint64_t kMaxCardBytes = std::uint64_t{1} << 20;
constexpr std::size_t kLongestName = 64;
constexpr std::string_view kFence = "---", kKey = "license:";

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// A plain or quoted word of one line: names of licences have no other form.
std::string short_name(std::string_view value) {
  value = without_blanks(value);
  const bool is_quoted =
      value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  if (is_quoted) value = value.substr(1, value.size() - 2);
  const auto belongs = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '+';
  };
  if (value.size() > kLongestName || !std::ranges::all_of(value, belongs)) return {};
  return std::string(value);
}

}  // namespace

std::string licence_of_card(const std::filesystem::path& folder) {
  const auto card = read_text_file(folder / "README.md", kMaxCardBytes);
  if (!card) return {};
  std::string_view rest = *card;
  if (without_blanks(take_line(rest)) != kFence) return {};
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (without_blanks(line) == kFence) break;
    if (line.starts_with(kKey)) return short_name(line.substr(kKey.size()));
  }
  return {};
}

}  // namespace octavo::model
