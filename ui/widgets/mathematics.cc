#include "ui/widgets/mathematics.h"

#include <algorithm>
#include <optional>

namespace octavo::ui {
namespace {

// What is longer is no formula, but a mark without its other half.
constexpr std::size_t kLongestDisplay = 8 * 1024, kLongestInline = 1024;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool stands_at(std::string_view text, std::size_t at, std::string_view mark) {
  return text.substr(at, mark.size()) == mark;
}

// Whether the line behind a break is empty.
bool empty_line_behind(std::string_view text, std::size_t line_break) {
  std::size_t at = line_break + 1;
  while (at < text.size() && is_blank(text[at])) ++at;
  return at < text.size() && text[at] == '\n';
}

// What closes a formula, in the order of HopelessMarks.
constexpr std::string_view kCloses[] = {"\\)", "\\]", "$$", "$"};
enum Close : std::size_t { kRound, kSquare, kDollars, kDollar };

// Behind the mark that closes what begins at `at`; a backslash before any other character belongs to it.
std::optional<std::size_t> find_close(std::string_view text, std::size_t at, Close close, std::size_t longest,
                                      HopelessMarks& hopeless) {
  if (at < hopeless.until[close]) return std::nullopt;
  const std::string_view mark = kCloses[close];
  const std::size_t limit = std::min(text.size(), at + longest);
  for (const std::size_t begin = at; at < limit; ++at) {
    if (stands_at(text, at, mark)) return at == begin ? std::nullopt : std::optional(at + mark.size());
    if (text[at] == '\n' && empty_line_behind(text, at)) break;
    if (text[at] == '\\') ++at;
  }
  hopeless.until[close] = at;
  return std::nullopt;
}

// Between dollars, which are money more often: something that only TeX writes, or nothing but single letters,
// digits and operators.
bool is_surely_mathematics(std::string_view text) {
  bool has_letter = false, has_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '^') return true;
    if (text[i] == '\\' && i + 1 < text.size() && is_letter(text[i + 1])) return true;
    if (static_cast<unsigned char>(text[i]) >= 0x80) return false;
    if (text[i] == '{' || text[i] == '}') return false;
    has_letter |= is_letter(text[i]);
    has_word |= is_letter(text[i]) && i + 1 < text.size() && is_letter(text[i + 1]);
  }
  return has_letter && !has_word;
}

std::optional<std::size_t> dollar_formula(std::string_view text, std::size_t at, HopelessMarks& hopeless) {
  if (stands_at(text, at, "$$")) return find_close(text, at + 2, kDollars, kLongestDisplay, hopeless);
  const char before = at > 0 ? text[at - 1] : ' ';
  if (is_letter(before) || is_digit(before) || before == '$') return std::nullopt;
  const std::size_t begin = at + 1;
  const std::size_t line_end = std::min(text.find('\n', begin), text.size());
  if (begin >= line_end || is_blank(text[begin])) return std::nullopt;
  const auto end = find_close(text.substr(0, line_end), begin, kDollar, kLongestInline, hopeless);
  if (!end || is_blank(text[*end - 2])) return std::nullopt;
  const char behind = *end < text.size() ? text[*end] : ' ';
  if (is_letter(behind) || is_digit(behind) || behind == '$') return std::nullopt;
  return is_surely_mathematics(text.substr(begin, *end - 1 - begin)) ? end : std::nullopt;
}

std::optional<std::size_t> formula_at(std::string_view text, std::size_t at, HopelessMarks& hopeless) {
  if (stands_at(text, at, "\\(")) return find_close(text, at + 2, kRound, kLongestDisplay, hopeless);
  if (stands_at(text, at, "\\[")) return find_close(text, at + 2, kSquare, kLongestDisplay, hopeless);
  if (text[at] == '$') return dollar_formula(text, at, hopeless);
  return std::nullopt;
}

std::size_t run_length(std::string_view text, std::size_t at) {
  std::size_t length = 1;
  while (at + length < text.size() && text[at + length] == text[at]) ++length;
  return length;
}

// Behind the code between backticks that begins at `at`, or behind those backticks.
std::size_t skip_code_span(std::string_view text, std::size_t at) {
  const std::size_t length = run_length(text, at), begin = at + length;
  for (at = begin; at < text.size(); ++at) {
    if (text[at] == '\n' && empty_line_behind(text, at)) return begin;
    if (text[at] != '`') continue;
    const std::size_t run = run_length(text, at);
    if (run == length) return at + run;
    at += run - 1;
  }
  return begin;
}

// A fence, also in a list or a quote: the character, three or more times. 0: none.
char fence_of(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && (is_blank(line[at]) || line[at] == '>')) ++at;
  const bool marker = at + 1 < line.size() && is_blank(line[at + 1]) &&
                      (line[at] == '-' || line[at] == '*' || line[at] == '+');
  if (marker) at += 2;
  while (at < line.size() && is_blank(line[at])) ++at;
  if (at == line.size() || (line[at] != '`' && line[at] != '~')) return '\0';
  return run_length(line, at) >= 3 ? line[at] : '\0';
}

}  // namespace

std::vector<Formula> find_formulas(std::string_view text) {
  std::vector<Formula> formulas;
  if (text.find_first_of("\\$") == std::string_view::npos) return formulas;
  HopelessMarks hopeless;
  char fence = '\0';
  for (std::size_t at = 0; at < text.size();) {
    const bool line_begin = at == 0 || text[at - 1] == '\n';
    if (line_begin) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const char mark = fence_of(text.substr(at, end - at));
      const bool in_code = fence != '\0' || mark != '\0';
      if (fence == '\0')
        fence = mark;
      else if (mark == fence)
        fence = '\0';
      if (in_code) {
        at = end + 1;
        continue;
      }
    }
    if (text[at] == '`') {
      at = skip_code_span(text, at);
    } else if (const auto end = formula_at(text, at, hopeless)) {
      formulas.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(*end)});
      at = *end;
    } else {
      // A backslash takes the meaning of the next character; a pair of dollars that closes nothing is two.
      at += text[at] == '\\' || stands_at(text, at, "$$") ? 2 : 1;
    }
  }
  return formulas;
}

Display display_at(std::string_view text, std::size_t begin, HopelessMarks& hopeless) {
  using State = Display::State;
  std::size_t first = begin;
  while (first < text.size() && text[first] == ' ' && first - begin < 4) ++first;
  const bool bracket = stands_at(text, first, "\\["), dollars = stands_at(text, first, "$$");
  if (first - begin > 3 || (!bracket && !dollars)) return {};
  const Close mark = bracket ? kSquare : kDollars;
  const auto close = find_close(text, first + 2, mark, kLongestDisplay, hopeless);
  if (!close) return {.state = hopeless.until[mark] >= text.size() ? State::kOpen : State::kNone};
  std::size_t end = *close;
  while (end < text.size() && (is_blank(text[end]) || text[end] == '.' || text[end] == ',')) ++end;
  if (end == text.size()) return {.state = State::kOpen};
  return text[end] == '\n' ? Display{State::kClosed, end + 1} : Display{};
}

}  // namespace octavo::ui
