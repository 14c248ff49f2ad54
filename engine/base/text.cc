#include "engine/base/text.h"

#include <array>
#include <cstdio>
#include <optional>

namespace octavo {
namespace {

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7f && c <= 0x9f); }

bool reorders_text(char32_t c) {
  return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f ||
         c == 0x061c;
}

bool breaks_lines(char32_t c) { return c == 0x2028 || c == 0x2029; }

enum class ScanOutcome { kComplete, kTruncated, kInvalid };

struct Scan {
  ScanOutcome outcome;
  std::size_t length;  // of the character, or of the maximal subpart
  char32_t value;      // when complete
};

// What a lead byte promises: the length, and the range of the second byte, which excludes overlong forms,
// surrogates and values above U+10FFFF (Unicode 15, table 3-7).
struct Lead {
  std::size_t length;
  unsigned char bits;
  unsigned char second_first = 0x80, second_last = 0xbf;
};

std::optional<Lead> read_lead(unsigned char byte) {
  if (byte < 0x80) return Lead{1, byte};
  if (byte >= 0xc2 && byte <= 0xdf) return Lead{2, static_cast<unsigned char>(byte & 0x1fu)};
  if (byte == 0xe0) return Lead{3, 0x00, 0xa0, 0xbf};
  if (byte == 0xed) return Lead{3, 0x0d, 0x80, 0x9f};
  if (byte >= 0xe1 && byte <= 0xef) return Lead{3, static_cast<unsigned char>(byte & 0x0fu)};
  if (byte == 0xf0) return Lead{4, 0x00, 0x90, 0xbf};
  if (byte == 0xf4) return Lead{4, 0x04, 0x80, 0x8f};
  if (byte >= 0xf1 && byte <= 0xf3) return Lead{4, static_cast<unsigned char>(byte & 0x07u)};
  return std::nullopt;
}

// REQUIRES: !text.empty()
Scan scan_sequence(std::string_view text) {
  const std::optional<Lead> lead = read_lead(static_cast<unsigned char>(text[0]));
  if (!lead) return {ScanOutcome::kInvalid, 1, 0};
  char32_t value = lead->bits;
  for (std::size_t i = 1; i < lead->length; ++i) {
    if (i == text.size()) return {ScanOutcome::kTruncated, i, 0};
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char first = i == 1 ? lead->second_first : 0x80;
    const unsigned char last = i == 1 ? lead->second_last : 0xbf;
    if (byte < first || byte > last) return {ScanOutcome::kInvalid, i, 0};
    value = (value << 6) | (byte & 0x3fu);
  }
  return {ScanOutcome::kComplete, lead->length, value};
}

// \xNN
void append_escaped_byte(std::string& text, unsigned value) {
  std::array<char, 8> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "\\x%02x", value & 0xffu);
  text += buffer.data();
}

// \u{N...}
void append_escaped_code_point(std::string& text, unsigned value) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "\\u{%x}", value);
  text += buffer.data();
}

void append_escaped(std::string& escaped, std::string_view bytes, const CodePoint& c) {
  if (!c.valid) {
    for (const char byte : bytes) append_escaped_byte(escaped, static_cast<unsigned char>(byte));
  } else if (c.value < 0x80 && is_control(c.value)) {
    append_escaped_byte(escaped, static_cast<unsigned>(c.value));
  } else if (is_control(c.value) || reorders_text(c.value) || breaks_lines(c.value)) {
    append_escaped_code_point(escaped, static_cast<unsigned>(c.value));
  } else {
    escaped += bytes;
  }
}

}  // namespace

CodePoint decode_utf8(std::string_view text, std::size_t offset) {
  const Scan scan = scan_sequence(text.substr(offset));
  return scan.outcome == ScanOutcome::kComplete ? CodePoint{scan.value, scan.length, true}
                                                : CodePoint{0xfffd, scan.length, false};
}

std::size_t incomplete_utf8_suffix(std::string_view text) {
  for (std::size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    const std::string_view suffix = text.substr(text.size() - length);
    if (scan_sequence(suffix).outcome == ScanOutcome::kTruncated) return length;
  }
  return 0;
}

void append_utf8(std::string& text, char32_t c) {
  const auto put = [&](char32_t byte) {
    text.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | (c >> 6)), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3f)), put(0x80 | ((c >> 6) & 0x3f)),
        put(0x80 | (c & 0x3f));
  }
}

std::string sanitise_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t kept = 0;  // up to here everything stands in `clean`
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    const CodePoint c = decode_utf8(text, i);
    if (!c.valid) {
      clean += text.substr(kept, i - kept);
      append_utf8(clean, c.value);
      kept = i + c.length;
    }
    i += c.length;
  }
  clean += text.substr(kept);
  return clean;
}

std::string escape_for_message(std::string_view text, std::size_t max_bytes) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    if (escaped.size() >= max_bytes) return escaped + "...";
    const CodePoint c = decode_utf8(text, i);
    append_escaped(escaped, text.substr(i, c.length), c);
    i += c.length;
  }
  return escaped;
}

std::string path_for_message(const std::filesystem::path& path) {
  return escape_for_message(path.string(), 1000);
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
