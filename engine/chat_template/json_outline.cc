#include "engine/chat_template/json_outline.h"

#include <charconv>
#include <system_error>

#include "engine/base/text.h"

namespace octavo {
namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";
constexpr std::string_view kDigits = "0123456789";

std::size_t skip_json_blanks(std::string_view text, std::size_t at) {
  const std::size_t next = text.find_first_not_of(kJsonBlanks, at);
  return next == std::string_view::npos ? text.size() : next;
}

bool json_character_is(std::string_view text, std::size_t at, char c) {
  return at < text.size() && text[at] == c;
}

// The four digits of base 16 at `at`.
std::optional<std::uint32_t> json_code_unit(std::string_view text, std::size_t at) {
  if (at > text.size() || text.size() - at < 4) return std::nullopt;
  std::uint32_t unit = 0;
  const char* const end = text.data() + at + 4;
  const auto read = std::from_chars(text.data() + at, end, unit, 16);
  return read.ec == std::errc() && read.ptr == end ? std::optional(unit) : std::nullopt;
}

struct JsonEscape {
  std::uint32_t code_point;
  std::size_t end;
};

// Of what stands behind a backslash.
std::optional<JsonEscape> read_json_escape(std::string_view text, std::size_t at) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (at >= text.size()) return std::nullopt;
  if (const std::size_t name = kNames.find(text[at]); name != std::string_view::npos)
    return JsonEscape{static_cast<unsigned char>(kMeanings[name]), at + 1};
  if (text[at] != 'u') return std::nullopt;
  const auto first = json_code_unit(text, at + 1);
  if (!first || (*first >= 0xdc00 && *first < 0xe000)) return std::nullopt;
  if (*first < 0xd800 || *first >= 0xe000) return JsonEscape{*first, at + 5};
  if (text.substr(at + 5, 2) != "\\u") return std::nullopt;
  const auto second = json_code_unit(text, at + 7);
  if (!second || *second < 0xdc00 || *second >= 0xe000) return std::nullopt;
  return JsonEscape{0x10000 + ((*first - 0xd800) << 10u) + (*second - 0xdc00), at + 11};
}

// Past the closing quote. `decoded` may be nullptr.
std::optional<std::size_t> read_json_text(std::string_view text, std::size_t at, std::string* decoded) {
  if (!json_character_is(text, at, '"')) return std::nullopt;
  for (++at; at < text.size();) {
    const char c = text[at];
    if (c == '"') return at + 1;
    if (static_cast<unsigned char>(c) < 0x20) return std::nullopt;
    if (c != '\\') {
      if (decoded != nullptr) *decoded += c;
      ++at;
      continue;
    }
    const auto escape = read_json_escape(text, at + 1);
    if (!escape) return std::nullopt;
    if (decoded != nullptr) append_utf8(*decoded, escape->code_point);
    at = escape->end;
  }
  return std::nullopt;
}

std::size_t skip_json_digits(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of(kDigits, at);
  return end == std::string_view::npos ? text.size() : end;
}

std::optional<std::size_t> json_number_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin + (json_character_is(text, begin, '-') ? 1 : 0);
  std::size_t end = skip_json_digits(text, at);
  if (end == at || (text[at] == '0' && end > at + 1)) return std::nullopt;
  if (json_character_is(text, end, '.')) {
    at = end + 1;
    end = skip_json_digits(text, at);
    if (end == at) return std::nullopt;
  }
  if (json_character_is(text, end, 'e') || json_character_is(text, end, 'E')) {
    at = end + 1;
    if (json_character_is(text, at, '+') || json_character_is(text, at, '-')) ++at;
    end = skip_json_digits(text, at);
    if (end == at) return std::nullopt;
  }
  double number = 0.0;
  if (std::from_chars(text.data() + begin, text.data() + end, number).ec != std::errc()) return std::nullopt;
  return end;
}

struct JsonParts {
  std::vector<JsonMember> members;
  std::vector<std::string_view> elements;
};

std::optional<std::size_t> json_end(std::string_view text, std::size_t at, int depth);

// Past the bracket that closes. `parts` may be nullptr.
std::optional<std::size_t> read_json_container(std::string_view text, std::size_t at, int depth,
                                               JsonParts* parts) {
  if (depth >= kMaxJsonDepth) return std::nullopt;
  const bool is_object = text[at] == '{';
  const char closer = is_object ? '}' : ']';
  at = skip_json_blanks(text, at + 1);
  if (json_character_is(text, at, closer)) return at + 1;
  for (std::size_t num_members = 1;; ++num_members) {
    std::string name;
    if (is_object) {
      const auto name_end = read_json_text(text, at, parts == nullptr ? nullptr : &name);
      if (!name_end || num_members > kMaxJsonMembers) return std::nullopt;
      at = skip_json_blanks(text, *name_end);
      if (!json_character_is(text, at, ':')) return std::nullopt;
      at = skip_json_blanks(text, at + 1);
    }
    const auto end = json_end(text, at, depth + 1);
    if (!end) return std::nullopt;
    const std::string_view value = text.substr(at, *end - at);
    if (parts != nullptr && is_object) parts->members.emplace_back(std::move(name), value);
    if (parts != nullptr && !is_object) parts->elements.push_back(value);
    at = skip_json_blanks(text, *end);
    if (json_character_is(text, at, closer)) return at + 1;
    if (!json_character_is(text, at, ',')) return std::nullopt;
    at = skip_json_blanks(text, at + 1);
  }
}

std::optional<std::size_t> json_end(std::string_view text, std::size_t at, int depth) {
  if (at >= text.size()) return std::nullopt;
  if (text[at] == '{' || text[at] == '[') return read_json_container(text, at, depth, nullptr);
  if (text[at] == '"') return read_json_text(text, at, nullptr);
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text.substr(at, word.size()) == word) return at + word.size();
  }
  return json_number_end(text, at);
}

JsonParts json_parts(std::string_view text, char opener) {
  text = without_blanks(text);
  JsonParts parts;
  if (!text.starts_with(opener)) return parts;
  const auto end = read_json_container(text, 0, 0, &parts);
  return end == text.size() ? std::move(parts) : JsonParts();
}

}  // namespace

std::optional<std::size_t> json_value_end(std::string_view text, std::size_t at) {
  return json_end(text, at, 0);
}

bool is_json(std::string_view text) {
  text = without_blanks(text);
  return json_end(text, 0, 0) == text.size();
}

bool is_json_object(std::string_view text) { return without_blanks(text).starts_with('{') && is_json(text); }

std::vector<JsonMember> json_members(std::string_view object) { return json_parts(object, '{').members; }

std::vector<std::string_view> json_elements(std::string_view list) { return json_parts(list, '[').elements; }

std::string_view json_member(std::string_view object, std::string_view name) {
  std::string_view found;
  for (const JsonMember& member : json_members(object)) {
    if (member.first == name) found = member.second;
  }
  return found;
}

std::optional<std::string> json_text(std::string_view value) {
  value = without_blanks(value);
  std::string decoded;
  const auto end = read_json_text(value, 0, &decoded);
  return end == value.size() ? std::optional(std::move(decoded)) : std::nullopt;
}

std::string quoted_json(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (byte < 0x20) {
      quoted += "\\u00";
      quoted += {kHexDigits[byte >> 4u], kHexDigits[byte & 15u]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kJsonBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kJsonBlanks) + 1 - begin);
}

std::optional<std::size_t> BracketCounter::add(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (in_text_) {
      is_escaped_ = c == '\\';
      in_text_ = c != '"';
    } else if (c == '"') {
      in_text_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
      return i + 1;
    }
  }
  return std::nullopt;
}

}  // namespace octavo
