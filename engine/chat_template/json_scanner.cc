#include "engine/chat_template/json_scanner.h"

#include <charconv>
#include <system_error>

namespace octavo {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::size_t kEscapeLetters = 5;       // uXXXX
constexpr std::size_t kPairLetters = 11;        // uXXXX\uXXXX
constexpr std::size_t kMostScalarBytes = 4096;  // of a number

// The four digits of base 16 at `at`.
std::optional<std::uint32_t> json_code_unit(std::string_view text, std::size_t at) {
  if (at > text.size() || text.size() - at < 4) return std::nullopt;
  std::uint32_t unit = 0;
  const char* const end = text.data() + at + 4;
  const auto read = std::from_chars(text.data() + at, end, unit, 16);
  return read.ec == std::errc() && read.ptr == end ? std::optional(unit) : std::nullopt;
}

std::size_t skip_json_digits(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of(kDigits, at);
  return end == std::string_view::npos ? text.size() : end;
}

bool is_json_number(std::string_view text) {
  const auto stands_at = [&](std::size_t at, char c) { return at < text.size() && text[at] == c; };
  std::size_t at = stands_at(0, '-') ? 1 : 0;
  std::size_t end = skip_json_digits(text, at);
  if (end == at || (text[at] == '0' && end > at + 1)) return false;
  if (stands_at(end, '.')) {
    at = end + 1;
    end = skip_json_digits(text, at);
    if (end == at) return false;
  }
  if (stands_at(end, 'e') || stands_at(end, 'E')) {
    at = end + 1;
    if (stands_at(at, '+') || stands_at(at, '-')) ++at;
    end = skip_json_digits(text, at);
    if (end == at) return false;
  }
  double number = 0.0;
  return end == text.size() && std::from_chars(text.data(), text.data() + end, number).ec == std::errc();
}

bool may_be_scalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_json_scalar(std::string_view text) {
  return text == "true" || text == "false" || text == "null" || is_json_number(text);
}

std::optional<JsonEscape> read_json_escape(std::string_view text, std::size_t at) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (at >= text.size()) return std::nullopt;
  if (const std::size_t name = kNames.find(text[at]); name != std::string_view::npos)
    return JsonEscape{static_cast<unsigned char>(kMeanings[name]), at + 1};
  if (text[at] != 'u') return std::nullopt;
  const auto first = json_code_unit(text, at + 1);
  if (!first || (*first >= 0xdc00 && *first < 0xe000)) return std::nullopt;
  if (*first < 0xd800 || *first >= 0xe000) return JsonEscape{*first, at + kEscapeLetters};
  if (text.substr(at + kEscapeLetters, 2) != "\\u") return std::nullopt;
  const auto second = json_code_unit(text, at + kEscapeLetters + 2);
  if (!second || *second < 0xdc00 || *second >= 0xe000) return std::nullopt;
  return JsonEscape{0x10000 + ((*first - 0xd800) << 10u) + (*second - 0xdc00), at + kPairLetters};
}

JsonScanner::Step JsonScanner::add(char c) {
  switch (state_) {
    case State::kText: return add_to_text(c);
    case State::kEscape: return add_to_escape(c);
    case State::kScalar: return add_to_scalar(c);
    default: return add_between(c);
  }
}

JsonScanner::Step JsonScanner::add_between(char c) {
  if (is_json_blank(c)) return Step::kGoesOn;
  const bool may_end =
      state_ == State::kValueOrEnd || state_ == State::kNameOrEnd || state_ == State::kCommaOrEnd;
  if (c == '}' || c == ']') return may_end ? close(c == '}') : wrong();
  if (awaits_name()) {
    if (c != '"' || ++levels_.back().num_members > kMaxJsonMembers) return wrong();
    is_name_ = true;
    state_ = State::kText;
    return Step::kGoesOn;
  }
  if (awaits_value()) {
    if (c == '{' || c == '[') return open(c == '{');
    is_name_ = false;
    if (c == '"') {
      state_ = State::kText;
      return Step::kGoesOn;
    }
    if (levels_.empty() || !may_be_scalar(c)) return wrong();
    begun_ = c;
    state_ = State::kScalar;
    return Step::kGoesOn;
  }
  if (state_ == State::kColon && c == ':') {
    state_ = State::kValue;
    return Step::kGoesOn;
  }
  if (state_ == State::kCommaOrEnd && c == ',') {
    state_ = levels_.back().is_object ? State::kName : State::kValue;
    return Step::kGoesOn;
  }
  return wrong();
}

JsonScanner::Step JsonScanner::add_to_text(char c) {
  if (static_cast<unsigned char>(c) < 0x20) return wrong();
  if (c == '\\') {
    begun_.clear();
    state_ = State::kEscape;
  } else if (c == '"') {
    if (!is_name_) return end_value();
    state_ = State::kColon;
  }
  return Step::kGoesOn;
}

// Some escapes are letters of two.
JsonScanner::Step JsonScanner::add_to_escape(char c) {
  begun_ += c;
  const std::size_t length = begun_.size();
  if (read_json_escape(begun_, 0)) {
    state_ = State::kText;
    return Step::kGoesOn;
  }
  const bool may_go_on = length == 1 ? c == 'u'
                         : length == kEscapeLetters
                             ? is_hex_digit(c) && begun_.substr(1, 1).find_first_of("dD") == 0
                         : length == kEscapeLetters + 1 ? c == '\\'
                         : length == kEscapeLetters + 2 ? c == 'u'
                                                        : is_hex_digit(c) && length < kPairLetters;
  return may_go_on ? Step::kGoesOn : wrong();
}

JsonScanner::Step JsonScanner::add_to_scalar(char c) {
  if (may_be_scalar(c)) {
    if (begun_.size() >= kMostScalarBytes) return wrong();
    begun_ += c;
    return Step::kGoesOn;
  }
  if (!is_json_scalar(begun_)) return wrong();
  end_value();  // within a level: never the last
  return add_between(c);
}

JsonScanner::Step JsonScanner::open(bool is_object) {
  if (levels_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) return wrong();
  levels_.push_back({.is_object = is_object});
  state_ = is_object ? State::kNameOrEnd : State::kValueOrEnd;
  return Step::kGoesOn;
}

JsonScanner::Step JsonScanner::close(bool is_object) {
  if (levels_.empty() || levels_.back().is_object != is_object) return wrong();
  levels_.pop_back();
  return end_value();
}

JsonScanner::Step JsonScanner::end_value() {
  state_ = levels_.empty() ? State::kDone : State::kCommaOrEnd;
  return levels_.empty() ? Step::kEnded : Step::kGoesOn;
}

JsonScanner::Step JsonScanner::wrong() {
  state_ = State::kDone;
  levels_.clear();
  return Step::kWrong;
}

}  // namespace octavo
