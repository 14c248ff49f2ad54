#include "engine/base/text.h"

#include <array>
#include <cstdio>

namespace octavo {
namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c <= 0x9f); }

bool reorders_text(char32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x061c;
}

bool breaks_lines(char32_t c) { return c == 0x2028 || c == 0x2029; }

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const CodePoint invalid{0xfffd, 1, false};
  const std::size_t remaining = text.size() - offset;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  std::size_t length = 0;
  char32_t value = 0;
  char32_t smallest = 0;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2, value = lead & 0x1fu, smallest = 0x80;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3, value = lead & 0x0fu, smallest = 0x800;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4, value = lead & 0x07u, smallest = 0x10000;
  } else {
    return invalid;
  }
  if (remaining < length) return invalid;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return invalid;
    value = (value << 6) | (byte(i) & 0x3fu);
  }
  if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return invalid;
  return {value, length, true};
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6)), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3f)), put(0x80 | ((c >> 6) & 0x3f)), put(0x80 | (c & 0x3f));
  }
}

std::string sanitise_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    append_utf8(clean, c.value);
    i += c.length;
  }
  return clean;
}

std::string escape_for_message(std::string_view text, std::size_t max_bytes) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    if (escaped.size() >= max_bytes) return escaped + "...";
    const CodePoint c = decode_utf8(text, i);
    std::array<char, 16> buffer{};
    if (!c.valid) {
      std::snprintf(buffer.data(), buffer.size(), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
      escaped += buffer.data();
    } else if (is_control(c.value) && c.value < 0x80) {
      std::snprintf(buffer.data(), buffer.size(), "\\x%02x", static_cast<unsigned>(c.value));
      escaped += buffer.data();
    } else if (is_control(c.value) || reorders_text(c.value) || breaks_lines(c.value)) {
      std::snprintf(buffer.data(), buffer.size(), "\\u{%x}", static_cast<unsigned>(c.value));
      escaped += buffer.data();
    } else {
      escaped.append(text.substr(i, c.length));
    }
    i += c.length;
  }
  return escaped;
}

std::string strip_terminal_controls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text, i);
    const bool keep = c.value == '\n' || c.value == '\t' || (!is_control(c.value) && !reorders_text(c.value));
    if (keep) append_utf8(clean, c.value);
    i += c.length;
  }
  return clean;
}

}  // namespace octavo
