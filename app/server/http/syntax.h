// The characters of HTTP (RFC 9110, section 5), for what is read and for what is written.
#pragma once

#include <algorithm>
#include <string_view>

namespace octavo::http {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Neither part of a line's text nor of a value; the tab is both.
inline bool is_control_character(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

inline bool is_token_character(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || is_digit(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// What methods and names of headers are.
inline bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_character);
}

}  // namespace octavo::http
