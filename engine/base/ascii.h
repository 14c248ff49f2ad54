// Letters and blanks of ASCII, whatever the locale; all other bytes stay as they are.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

inline std::string ascii_lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// Without spaces, tabs and line ends at both ends. A part of `text`.
inline std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace octavo
