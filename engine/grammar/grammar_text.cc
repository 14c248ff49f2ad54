#include "engine/grammar/grammar_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/grammar/structure_error.h"

namespace octavo {
namespace {

// What the compiler's EBNF has beyond rules: they dispatch, name tokens, or take other languages.
constexpr std::array kMacros = {"TagDispatch",      "Token", "ExcludeToken",
                                "TokenTagDispatch", "Regex", "Substring"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

// Of what stands in a {} that begins at `begin`: whether a number in it is too large. nullopt: it is no
// count.
std::optional<bool> repeats_too_often(std::string_view text, std::size_t begin) {
  bool too_often = false;
  std::size_t number = 0;
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (is_digit(c))
      number = std::min<std::size_t>(number * 10 + static_cast<std::size_t>(c - '0'), kMostRepetitions + 1);
    too_often = too_often || number > kMostRepetitions;
    if (c == ',') number = 0;
    if (c == '}') return too_often;
    if (!is_digit(c) && c != ',' && c != ' ') return std::nullopt;
  }
  return std::nullopt;
}

class GrammarReader {
 public:
  explicit GrammarReader(std::string_view text) : text_(text) {}

  Result<std::string> read() {
    while (at_ < text_.size()) {
      OCTAVO_TRY_VOID(step());
    }
    if (num_rules_ == 0)
      return structure_error("the grammar has no rule; write root ::= and what the output is");
    return std::move(result_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void copy(std::size_t count) {
    for (; count > 0 && at_ < text_.size(); --count, ++at_) {
      if (text_[at_] == '\n') ++line_;
      result_ += text_[at_];
    }
  }

  Error refuse(const std::string& what) const {
    return structure_error("the grammar cannot be kept: line " + std::to_string(line_) + ": " + what);
  }

  Result<void> step() {
    const char c = peek();
    if (c == '\0') return refuse("there is a zero byte");
    if (c == '"') return read_quoted('"');
    if (c == '[') return read_quoted(']');
    if (is_name_start(c)) return read_name();
    if (c == '#') {
      while (at_ < text_.size() && peek() != '\n') copy(1);
      return {};
    }
    if (c == '.') {
      result_ += "[^]";
      ++at_;
      return {};
    }
    if (c == '<' || c == '!')
      return refuse("tokens by name or number are not supported; write the text that they stand for");
    if (c == '{') {
      if (repeats_too_often(text_, at_).value_or(false)) {
        return refuse("a repetition counts to more than " + std::to_string(kMostRepetitions));
      }
      copy(1);
      while (peek() == ' ') copy(1);
      if (peek() == ',') result_ += '0';
      return {};
    }
    if (c == '(' && ++depth_ > kDeepestGroups) {
      return refuse("groups are nested deeper than " + std::to_string(kDeepestGroups));
    }
    if (c == '(' && peek(1) == '=') return refuse("lookahead is not supported");
    if (c == ')' && depth_ > 0) --depth_;
    if (text_.substr(at_).starts_with("::=") && ++num_rules_ > kMostRules) {
      return refuse("there are more than " + std::to_string(kMostRules) + " rules");
    }
    copy(text_.substr(at_).starts_with("::=") ? 3 : 1);
    return {};
  }

  Result<void> read_name() {
    const std::size_t begin = at_;
    while (is_name_start(peek()) || is_digit(peek()) || peek() == '.') copy(1);
    const std::string_view name = text_.substr(begin, at_ - begin);
    const bool is_macro = std::ranges::any_of(kMacros, [&](std::string_view macro) { return macro == name; });
    if (is_macro && peek() == '(') return refuse(std::string(name) + "(...) is not supported in a grammar");
    if (peek() != '[') return {};
    const std::size_t end = text_.find(']', at_);
    if (end == std::string_view::npos) return {};
    const std::size_t next = text_.find_first_not_of(" \t", end + 1);
    if (next != std::string_view::npos && text_.substr(next).starts_with("::="))
      return refuse("options of a rule are not supported");
    result_ += ' ';  // or the compiler takes the class for options
    return {};
  }

  // A literal or a class, with its quotes.
  Result<void> read_quoted(char end) {
    const std::size_t line = line_;
    copy(1);
    while (at_ < text_.size() && peek() != end) {
      if (peek() != '\\') {
        copy(1);
        continue;
      }
      const char escaped = peek(1);
      if (escaped == 'x') {
        if (is_hex(peek(2)) && is_hex(peek(3)) && is_hex(peek(4)))
          return refuse(
              "\\x must have two digits of base 16 and none behind them; write \\u or \\U for others");
        if (!is_hex(peek(2)) || !is_hex(peek(3))) return refuse("\\x must have two digits of base 16");
        result_ += "\\u00";
        at_ += 2;
        copy(2);
      } else if (end == '"' && (escaped == '[' || escaped == ']')) {
        ++at_;
        copy(1);
      } else {
        copy(2);
      }
    }
    if (at_ >= text_.size()) {
      return structure_error("the grammar cannot be kept: line " + std::to_string(line) + ": " +
                             (end == '"' ? "a text has no end" : "a class of characters has no end"));
    }
    copy(1);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0, line_ = 1, depth_ = 0, num_rules_ = 0;
  std::string result_;
};

}  // namespace

Result<std::string> read_grammar_text(std::string_view text) { return GrammarReader(text).read(); }

Result<void> check_pattern(std::string_view pattern) {
  std::size_t depth = 0;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\0') return structure_error("the regular expression has a zero byte; write \\x00");
    if (c == '\\') {
      const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
      if (!in_class && next >= '1' && next <= '9')
        return structure_error(
            "the regular expression cannot be kept: it refers back to a group, which is not supported");
      if (!in_class && (next == 'b' || next == 'B'))
        return structure_error("the regular expression cannot be kept: borders of words are not supported");
      ++i;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
    } else if (c == '(' && ++depth > kDeepestGroups) {
      return structure_error("the regular expression has groups within each other deeper than " +
                             std::to_string(kDeepestGroups));
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (c == '{' && repeats_too_often(pattern, i).value_or(false)) {
      return structure_error("the regular expression repeats something more than " +
                             std::to_string(kMostRepetitions) + " times");
    }
    if (!in_class && c == '(' && pattern.substr(i + 1).starts_with("?") &&
        !pattern.substr(i + 1).starts_with("?:")) {
      return structure_error("the regular expression cannot be kept: (?" +
                             escape_for_message(pattern.substr(i + 2, 1)) + " is not supported, only (?:");
    }
  }
  return {};
}

}  // namespace octavo
