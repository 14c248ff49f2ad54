// Text that strangers wrote, made safe to show: in messages, and on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

// One decoded code point. Invalid bytes give U+FFFD and a length of one, so that decoding always advances.
struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes consumed, 1..4
  bool valid;
};

// REQUIRES: offset < text.size()
CodePoint decode_utf8(std::string_view text, std::size_t offset);

void append_utf8(std::string& text, char32_t code_point);

// Replaces every byte that is not part of a valid UTF-8 sequence by U+FFFD.
std::string sanitise_utf8(std::string_view text);

// For names and values inside one-line messages: control characters, line breaks, bidirectional controls and invalid
// bytes become \xNN or \u{NNNN}; more than `max_bytes` are cut with an ellipsis.
std::string escape_for_message(std::string_view text, std::size_t max_bytes = 200);

// For model text on a terminal: drops every control sequence that could move the cursor, change colours or titles, or
// reorder text (C0 but \n and \t, DEL, C1, U+202A..202E, U+2066..2069, U+200E, U+200F). Stateless per code point: give it whole characters.
std::string strip_terminal_controls(std::string_view text);

}  // namespace octavo
