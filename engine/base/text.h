// Untrusted text made safe to show: in messages, and on a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace octavo {

// One decoded code point. What is no character gives one U+FFFD for each maximal subpart (Unicode 15,
// section 3.9, table 3-8), which is also what Python's bytes.decode("utf-8", errors="replace") and browsers
// do: the longest start of a well-formed sequence, or else a single byte. Decoding therefore always advances.
struct CodePoint {
  char32_t value;
  std::size_t length;  // bytes consumed, 1..4; 1..3 when not valid
  bool valid;
};

// Whether the byte goes on with a character that an earlier one began.
constexpr bool continues_utf8(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

// REQUIRES: offset < text.size()
CodePoint decode_utf8(std::string_view text, std::size_t offset);

// How many bytes at the end of `text`, 0..3, are the start of a character that further bytes could complete.
std::size_t incomplete_utf8_suffix(std::string_view text);

void append_utf8(std::string& text, char32_t code_point);

// Replaces what is not valid UTF-8 by U+FFFD, one for each maximal subpart.
std::string sanitise_utf8(std::string_view text);

// For names and values inside one-line messages: control characters, line breaks, bidirectional controls and
// invalid bytes become \xNN or \u{NNNN}; more than `max_bytes` are cut with an ellipsis.
std::string escape_for_message(std::string_view text, std::size_t max_bytes = 200);
std::string path_for_message(const std::filesystem::path& path);  // of at most 1,000 bytes

// For model text on a terminal: drops every control sequence that could move the cursor, change colours or
// titles, or reorder text (C0 but \n and \t, DEL, C1, U+061C, U+200E, U+200F, U+202A..202E, U+2066..2069).
// Stateless per code point: give it whole characters.
std::string strip_terminal_controls(std::string_view text);

}  // namespace octavo
