// How sentencepiece spells a space, so that pieces hold no white space: U+2581.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo::tokenizer {

inline constexpr std::string_view kSpelledSpace = "\u2581";

// Appends `text` with its spaces spelled.
inline void append_spelled(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == ' ') {
      out += kSpelledSpace;
    } else {
      out.push_back(c);
    }
  }
}

// The other way round.
inline std::string with_spaces(std::string_view spelled) {
  std::string text;
  for (std::size_t begin = 0; begin < spelled.size();) {
    const std::size_t space = spelled.find(kSpelledSpace, begin);
    text += spelled.substr(begin, space - begin);
    if (space == std::string_view::npos) break;
    text.push_back(' ');
    begin = space + kSpelledSpace.size();
  }
  return text;
}

}  // namespace octavo::tokenizer
