#include "engine/chat_template/json_outline.h"

#include <algorithm>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo {
namespace {

// Past the value that begins at `at`.
std::optional<std::size_t> json_end(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::nullopt;
  if (std::string_view("{[\"").find(text[at]) == std::string_view::npos) {  // a number or a word
    const std::size_t end = std::min(text.find_first_of(",]}: \t\r\n", at), text.size());
    return is_json_scalar(text.substr(at, end - at)) ? std::optional(end) : std::nullopt;
  }
  JsonScanner scanner;
  for (; at < text.size(); ++at) {
    const JsonScanner::Step step = scanner.add(text[at]);
    if (step == JsonScanner::Step::kEnded) return at + 1;
    if (step == JsonScanner::Step::kWrong) return std::nullopt;
  }
  return std::nullopt;
}

struct JsonParts {
  std::vector<JsonMember> members;
  std::vector<std::string_view> elements;
};

// Those of the object or list that is the whole text; none where it is none.
JsonParts json_parts(std::string_view text, char opener) {
  text = without_blanks(text);
  JsonParts parts;
  if (!text.starts_with(opener)) return parts;
  JsonScanner scanner;
  std::string name;
  std::size_t begin = 0;  // of the name or value of the outer level that came last
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_outer = scanner.depth() == 1 && !scanner.is_in_text();
    const bool ends_value =
        is_outer && (c == ',' || c == ']' || c == '}') && !scanner.awaits_value() && !scanner.awaits_name();
    if (is_outer && !is_json_blank(c) && (scanner.awaits_name() || scanner.awaits_value())) begin = at;
    const bool was_in_name = scanner.depth() == 1 && scanner.is_in_name();
    const JsonScanner::Step step = scanner.add(c);
    if (step == JsonScanner::Step::kWrong) return {};
    if (was_in_name && scanner.awaits_colon())
      name = json_text(text.substr(begin, at + 1 - begin)).value_or(std::string());
    if (ends_value) {
      const std::string_view value = without_blanks(text.substr(begin, at - begin));
      if (opener == '{') parts.members.emplace_back(std::exchange(name, {}), value);
      if (opener == '[') parts.elements.push_back(value);
    }
    if (step == JsonScanner::Step::kEnded) return at + 1 == text.size() ? std::move(parts) : JsonParts();
  }
  return {};
}

}  // namespace

std::optional<std::size_t> json_value_end(std::string_view text, std::size_t at) {
  return json_end(text, at);
}

bool is_json(std::string_view text) {
  text = without_blanks(text);
  return json_end(text, 0) == text.size();
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
  if (!value.starts_with('"') || json_end(value, 0) != value.size()) return std::nullopt;
  std::string decoded;
  for (std::size_t at = 1; at + 1 < value.size();) {
    const auto escape = value[at] == '\\' ? read_json_escape(value, at + 1) : std::nullopt;
    if (escape)
      append_utf8(decoded, escape->code_point);
    else
      decoded += value[at];
    at = escape ? escape->end : at + 1;
  }
  return decoded;
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
