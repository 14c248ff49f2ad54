#include "engine/chat_template/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"

namespace octavo::tokenizer::jinja {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

std::string normalise_line_breaks(std::string_view source) {
  std::string normal;
  normal.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      normal.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      normal.push_back(source[i]);
    }
  }
  return normal;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalise_line_breaks(source)) {
    if (!source_.empty() && source_.back() == '\n') source_.pop_back();
  }

  Result<std::vector<Token>> run() {
    while (position_ < source_.size()) OCTAVO_TRY_VOID(lex_root());
    push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Result<void> lex_root();
  Result<void> skip_comment();
  Result<void> lex_raw(std::size_t body);
  Result<void> lex_tag(TokenType end_type);
  Result<void> lex_token();
  Result<void> lex_string();
  void lex_number();
  Result<void> lex_operator();
  Result<void> append_escape(std::string& text, std::size_t& i, std::size_t end);
  Result<void> append_code(std::string& text, std::size_t& i, std::size_t end, int base, std::size_t most,
                           bool exact);

  void push_data(std::size_t begin, std::size_t end, char sign, bool may_strip_line);
  void push(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }
  bool at(std::string_view text) const {
    return std::string_view(source_).substr(position_, text.size()) == text;
  }
  char peek(std::size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }
  std::size_t find_tag(std::size_t from) const;
  std::size_t after_spaces(std::size_t from) const;
  std::size_t raw_body(std::size_t tag) const;
  std::size_t match_word(std::size_t from, std::string_view word) const;
  bool try_tag_end(TokenType end_type);
  void move_to(std::size_t position);

  std::string source_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the previous match ended with a line break
  std::string open_brackets_;  // what closes them, innermost last
  std::vector<Token> tokens_;
};

void Lexer::move_to(std::size_t position) {
  line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(position_),
                                       source_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  if (position > position_) line_starting_ = source_[position - 1] == '\n';
  position_ = position;
}

std::size_t Lexer::find_tag(std::size_t from) const {
  for (std::size_t i = source_.find('{', from); i != kNone; i = source_.find('{', i + 1)) {
    if (i + 1 < source_.size() && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#'))
      return i;
  }
  return kNone;
}

std::size_t Lexer::after_spaces(std::size_t from) const {
  while (from < source_.size()) {
    const CodePoint c = decode_utf8(source_, from);
    if (!is_python_space(c.value)) break;
    from += c.length;
  }
  return from;
}

std::size_t Lexer::match_word(std::size_t from, std::string_view word) const {
  const std::size_t begin = after_spaces(from);
  return std::string_view(source_).substr(begin, word.size()) == word ? after_spaces(begin + word.size())
                                                                      : kNone;
}

// Where the body of a raw block starts, if the tag at `tag` opens one.
std::size_t Lexer::raw_body(std::size_t tag) const {
  std::size_t i = tag + 2;
  if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
  i = match_word(i, "raw");
  if (i == kNone) return kNone;
  if (std::string_view(source_).substr(i, 3) == "-%}") return after_spaces(i + 3);
  return std::string_view(source_).substr(i, 2) == "%}" ? i + 2 : kNone;
}

// Text before a tag: '-' strips all white space at its end; else, unless '+' forbids it, the white space
// between the last line break and a statement or comment goes.
void Lexer::push_data(std::size_t begin, std::size_t end, char sign, bool may_strip_line) {
  std::string_view text = std::string_view(source_).substr(begin, end - begin);
  if (sign == '-') {
    while (!text.empty()) {
      std::size_t last = text.size() - 1;
      while (last > 0 && continues_utf8(text[last])) --last;
      if (!is_python_space(decode_utf8(text, last).value)) break;
      text = text.substr(0, last);
    }
  } else if (sign != '+' && may_strip_line) {
    const std::size_t line_break = text.rfind('\n');
    const std::size_t line = line_break == kNone ? 0 : line_break + 1;
    const bool begins_line = line > 0 || line_starting_;
    if (begins_line && after_spaces(begin + line) >= end) text = text.substr(0, line);
  }
  if (!text.empty()) push(TokenType::kData, std::string(text));
}

Result<void> Lexer::lex_root() {
  const std::size_t tag = find_tag(position_);
  if (tag == kNone) {
    push(TokenType::kData, source_.substr(position_));
    move_to(source_.size());
    return {};
  }
  const char kind = source_[tag + 1];
  const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  const std::size_t raw = kind == '%' ? raw_body(tag) : kNone;
  push_data(position_, tag, sign, /*may_strip_line=*/kind != '{');
  if (raw != kNone) {
    move_to(raw);
    return lex_raw(raw);
  }
  move_to(tag + 2 + (sign == '-' || sign == '+' ? 1 : 0));
  if (kind == '#') return skip_comment();
  push(kind == '{' ? TokenType::kOutputBegin : TokenType::kStatementBegin, "");
  return lex_tag(kind == '{' ? TokenType::kOutputEnd : TokenType::kStatementEnd);
}

Result<void> Lexer::skip_comment() {
  const std::size_t end = source_.find("#}", position_);
  if (end == kNone) return syntax_error(line_, "a comment is not closed");
  const char sign = end > position_ ? source_[end - 1] : '\0';
  std::size_t next = end + 2;
  if (sign == '-') {
    next = after_spaces(next);
  } else if (sign != '+' && next < source_.size() && source_[next] == '\n') {
    ++next;
  }
  move_to(next);
  return {};
}

Result<void> Lexer::lex_raw(std::size_t body) {
  for (std::size_t tag = source_.find("{%", body); tag != kNone; tag = source_.find("{%", tag + 1)) {
    std::size_t i = tag + 2;
    const char sign = i < source_.size() ? source_[i] : '\0';
    if (sign == '-' || sign == '+') ++i;
    i = match_word(i, "endraw");
    if (i == kNone) continue;
    const bool plus = i < source_.size() && source_[i] == '+',
               minus = i < source_.size() && source_[i] == '-';
    if (plus || minus) ++i;
    if (std::string_view(source_).substr(i, 2) != "%}") continue;
    i += 2;
    if (minus) i = after_spaces(i);
    if (!minus && !plus && i < source_.size() && source_[i] == '\n') ++i;
    push_data(body, tag, sign, /*may_strip_line=*/true);
    move_to(i);
    return {};
  }
  return syntax_error(line_, "a raw block has no endraw");
}

Result<void> Lexer::lex_tag(TokenType end_type) {
  while (position_ < source_.size()) {
    if (open_brackets_.empty() && try_tag_end(end_type)) return {};
    const std::size_t next = after_spaces(position_);
    if (next > position_) {
      move_to(next);
    } else {
      OCTAVO_TRY_VOID(lex_token());
    }
  }
  return syntax_error(line_, "the template ends inside a tag");
}

bool Lexer::try_tag_end(TokenType end_type) {
  const bool statement = end_type == TokenType::kStatementEnd;
  const std::string_view closing = statement ? "%}" : "}}";
  const bool minus = peek() == '-', plus = statement && peek() == '+';
  const std::size_t at_closing = position_ + (minus || plus ? 1 : 0);
  if (std::string_view(source_).substr(at_closing, 2) != closing) return false;
  std::size_t next = at_closing + 2;
  if (minus) {
    next = after_spaces(next);
  } else if (statement && !plus && next < source_.size() && source_[next] == '\n') {
    ++next;
  }
  push(end_type, "");
  move_to(next);
  return true;
}

Result<void> Lexer::lex_token() {
  const char c = peek();
  if (is_digit(c)) {
    lex_number();
    return {};
  }
  if (begins_name(c)) {
    std::size_t end = position_;
    while (end < source_.size() && (begins_name(source_[end]) || is_digit(source_[end]))) ++end;
    push(TokenType::kName, source_.substr(position_, end - position_));
    move_to(end);
    return {};
  }
  return c == '\'' || c == '"' ? lex_string() : lex_operator();
}

// 0b.., 0o.., 0x.., decimal with underscores; a float has a fraction, an exponent, or both.
void Lexer::lex_number() {
  std::size_t end = position_;
  const auto digits_from = [&](std::size_t i) {
    while (i < source_.size() && (is_digit(source_[i]) ||
                                  (source_[i] == '_' && i + 1 < source_.size() && is_digit(source_[i + 1]))))
      ++i;
    return i;
  };
  const char prefix = peek() == '0' ? static_cast<char>(peek(1) | 0x20) : '\0';
  if (prefix == 'x' || prefix == 'o' || prefix == 'b') {
    const int base = prefix == 'x' ? 16 : (prefix == 'o' ? 8 : 2);
    end += 2;
    while (end < source_.size() && (source_[end] == '_' || digit_value(source_[end]) < base)) ++end;
    push(TokenType::kInteger, source_.substr(position_, end - position_));
    move_to(end);
    return;
  }
  end = digits_from(end);
  bool is_float = false;
  const bool after_dot = position_ > 0 && source_[position_ - 1] == '.';
  if (!after_dot && end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
    end = digits_from(end + 1);
    is_float = true;
  }
  if (!after_dot && end < source_.size() && (source_[end] | 0x20) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
    if (exponent < source_.size() && is_digit(source_[exponent])) {
      end = digits_from(exponent);
      is_float = true;
    }
  }
  push(is_float ? TokenType::kFloat : TokenType::kInteger, source_.substr(position_, end - position_));
  move_to(end);
}

Result<void> Lexer::lex_string() {
  const char quote = peek();
  std::size_t end = position_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) return syntax_error(line_, "a string is not closed");
  std::string text;
  for (std::size_t i = position_ + 1; i < end;) {
    if (source_[i] != '\\') {
      text.push_back(source_[i++]);
    } else {
      OCTAVO_TRY_VOID(append_escape(text, i, end));
    }
  }
  push(TokenType::kString, std::move(text));
  move_to(end + 1);
  return {};
}

// Python's escapes; an unknown one stays as it is.
Result<void> Lexer::append_escape(std::string& text, std::size_t& i, std::size_t end) {
  static constexpr std::string_view kSimple = "ntrabfv\\'\"", kMeaning = "\n\t\r\a\b\f\v\\'\"";
  const char c = source_[i + 1];
  if (const std::size_t simple = kSimple.find(c); simple != kNone) {
    text.push_back(kMeaning[simple]);
    i += 2;
    return {};
  }
  if (c == '\n') {
    i += 2;
    return {};
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    const std::size_t digits = c == 'x' ? 2 : (c == 'u' ? 4 : 8);
    i += 2;
    return append_code(text, i, end, 16, digits, /*exact=*/true);
  }
  if (c >= '0' && c <= '7') {
    i += 1;
    return append_code(text, i, end, 8, 3, /*exact=*/false);
  }
  if (c == 'N') return syntax_error(line_, "\\N{...} in strings is not supported");
  text.push_back('\\');
  i += 1;
  return {};
}

Result<void> Lexer::append_code(std::string& text, std::size_t& i, std::size_t end, int base,
                                std::size_t most, bool exact) {
  char32_t value = 0;
  std::size_t count = 0;
  while (count < most && i < end && digit_value(source_[i]) < base) {
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(source_[i]));
    ++i, ++count;
  }
  const bool is_character = value <= 0x10ffff && !(value >= 0xd800 && value <= 0xdfff);
  if ((exact && count < most) || !is_character) return syntax_error(line_, "a string has an invalid escape");
  append_utf8(text, value);
  return {};
}

Result<void> Lexer::lex_operator() {
  static constexpr std::array<std::string_view, 26> kOperators = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  const auto found =
      std::find_if(kOperators.begin(), kOperators.end(), [&](std::string_view op) { return at(op); });
  if (found == kOperators.end()) {
    return syntax_error(line_,
                        "unexpected character '" + escape_for_message(source_.substr(position_, 1)) + "'");
  }
  const char c = (*found)[0];
  if (c == '(' || c == '[' || c == '{') open_brackets_.push_back(c == '(' ? ')' : (c == '[' ? ']' : '}'));
  if (c == ')' || c == ']' || c == '}') {
    if (open_brackets_.empty() || open_brackets_.back() != c) {
      return syntax_error(line_, std::string("unexpected '") + c + "'");
    }
    open_brackets_.pop_back();
  }
  push(TokenType::kOperator, std::string(*found));
  move_to(position_ + found->size());
  return {};
}

}  // namespace

Error syntax_error(int line, const std::string& what) {
  return {ErrorCode::kUnsupported, "chat template, line " + std::to_string(line) + ": " + what,
          "tokenizer.chat_template"};
}

Result<std::vector<Token>> tokenize_template(std::string_view source) { return Lexer(source).run(); }

}  // namespace octavo::tokenizer::jinja
