// How sentencepiece spells a space, so that pieces hold no white space: U+2581.
#pragma once

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

}  // namespace octavo::tokenizer
