#include "engine/tokenizer/split_scanners.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"

namespace octavo::tokenizer {
namespace {

bool is_line_break(char32_t c) { return c == '\n' || c == '\r'; }

bool is_space(const Character& c) { return c.kind == CharacterClass::kSpace; }

// (?i) also lets U+017F stand for s, by Unicode's simple case folding.
char32_t fold_case(char32_t c) { return c == 0x17f ? U's' : (c >= 'A' && c <= 'Z' ? c + 32 : c); }

// Length of 's 't 're 've 'm 'll 'd at the start, or 0.
std::size_t contraction_length(std::string_view text, bool ignore_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto letter = [&](const Character& c) { return ignore_case ? fold_case(c.value) : c.value; };
  const Character first = read_character(text, 1);
  const char32_t a = letter(first);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1 + first.length;
  if ((a != 'r' && a != 'v' && a != 'l') || text.size() < 1 + first.length + 1) return 0;
  const Character second = read_character(text, 1 + first.length);
  const char32_t wanted = a == 'l' ? U'l' : U'e';
  return letter(second) == wanted ? 1 + first.length + second.length : 0;
}

// Where the run of characters for which `belongs` says yes ends, from `offset` on.
template <class Belongs>
std::size_t end_of_run(std::string_view text, std::size_t offset, Belongs belongs) {
  while (offset < text.size()) {
    const Character c = read_character(text, offset);
    if (!belongs(c)) break;
    offset += c.length;
  }
  return offset;
}

std::size_t end_of_kind(std::string_view text, std::size_t offset, CharacterClass kind) {
  return end_of_run(text, offset, [kind](const Character& c) { return c.kind == kind; });
}

std::size_t end_of_line_breaks(std::string_view text, std::size_t offset, bool slashes) {
  const auto belongs = [&](char c) { return c == '\n' || c == '\r' || (slashes && c == '/'); };
  while (offset < text.size() && belongs(text[offset])) ++offset;
  return offset;
}

struct SpaceRun {
  std::size_t end = 0;
  std::size_t last_length = 0;        // of its last character
  std::size_t end_of_line_break = 0;  // after its last line break, 0: it has none
};

SpaceRun scan_spaces(std::string_view text) {
  SpaceRun run;
  while (run.end < text.size()) {
    const Character c = read_character(text, run.end);
    if (!is_space(c)) break;
    run.end += c.length;
    run.last_length = c.length;
    if (is_line_break(c.value)) run.end_of_line_break = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : all of the run at the end of the text; else all but its last character, which the next
// piece may take.
std::size_t spaces_length(const SpaceRun& run, std::string_view text) {
  return run.end == text.size() || run.end == run.last_length ? run.end : run.end - run.last_length;
}

// \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t spaces_or_line_breaks_length(std::string_view text) {
  const SpaceRun run = scan_spaces(text);
  return run.end_of_line_break > 0 ? run.end_of_line_break : spaces_length(run, text);
}

// [^\r\n\p{L}\p{N}]
bool may_lead_word(const Character& c) {
  return c.kind != CharacterClass::kLetter && c.kind != CharacterClass::kNumber && !is_line_break(c.value);
}

// [^\r\n\p{L}\p{N}]?\p{L}+ , or 0.
std::size_t word_length(std::string_view text, const Character& first) {
  if (first.kind == CharacterClass::kLetter) return end_of_kind(text, 0, CharacterClass::kLetter);
  if (!may_lead_word(first)) return 0;
  const std::size_t end = end_of_kind(text, first.length, CharacterClass::kLetter);
  return end > first.length ? end : 0;
}

// \p{N}{1,most_digits} , or 0.
std::size_t number_length(std::string_view text, std::size_t most_digits) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < most_digits && end < text.size(); ++i) {
    const Character c = read_character(text, end);
    if (c.kind != CharacterClass::kNumber) break;
    end += c.length;
  }
  return end;
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or with slashes in the second brackets, or 0.
std::size_t symbols_length(std::string_view text, bool slashes) {
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  const std::size_t end = end_of_kind(text, start, CharacterClass::kOther);
  return end > start ? end_of_line_breaks(text, end, slashes) : 0;
}

bool is_letter_or_mark(const Character& c) {
  return c.kind == CharacterClass::kLetter || categorise(c.value) == Category::kM;
}

// [^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+ , or 0. A mark may lead a word, and is part of one.
std::size_t marked_word_length(std::string_view text, const Character& first) {
  if (is_letter_or_mark(first)) return end_of_run(text, 0, is_letter_or_mark);
  if (!may_lead_word(first)) return 0;
  const std::size_t end = end_of_run(text, first.length, is_letter_or_mark);
  return end > first.length ? end : 0;
}

// ` ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*`, or 0.
std::size_t unmarked_symbols_length(std::string_view text) {
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  const std::size_t end = end_of_run(text, start, [](const Character& c) {
    return c.kind == CharacterClass::kOther && categorise(c.value) != Category::kM;
  });
  return end > start ? end_of_line_breaks(text, end, /*slashes=*/false) : 0;
}

bool starts_word_part(Category c) {  // U of split_scanners.h
  return c == Category::kLu || c == Category::kLt || c == Category::kLm || c == Category::kLo ||
         c == Category::kM;
}
bool ends_word_part(Category c) {  // W
  return c == Category::kLl || c == Category::kLm || c == Category::kLo || c == Category::kM;
}

// End of U*W+ at `begin`, or `begin`. U takes all that it can and gives back to W from its end: what lies in
// both ends the match when nothing for W follows.
std::size_t end_of_mixed_word(std::string_view text, std::size_t begin) {
  std::size_t offset = begin, end_of_last_shared = begin;
  while (offset < text.size()) {
    const Character c = read_character(text, offset);
    const Category category = categorise(c.value);
    if (!starts_word_part(category)) break;
    offset += c.length;
    if (ends_word_part(category)) end_of_last_shared = offset;
  }
  const std::size_t end =
      end_of_run(text, offset, [](const Character& c) { return ends_word_part(categorise(c.value)); });
  return end > offset ? end : end_of_last_shared;
}

// End of U+W* at `begin` where U*W+ does not match: W then has nothing to take.
std::size_t end_of_capitals(std::string_view text, std::size_t begin) {
  return end_of_run(text, begin, [](const Character& c) { return starts_word_part(categorise(c.value)); });
}

// [^\r\n\p{L}\p{N}]?U*W+|[^\r\n\p{L}\p{N}]?U+W* , or 0.
std::size_t cased_word_length(std::string_view text, const Character& first) {
  const bool may_lead = may_lead_word(first);
  for (const auto end_of : {end_of_mixed_word, end_of_capitals}) {
    if (may_lead) {
      if (const std::size_t end = end_of(text, first.length); end > first.length) return end;
    }
    if (const std::size_t end = end_of(text, 0); end > 0) return end;
  }
  return 0;
}

std::size_t cased_length(std::string_view text, std::size_t most_digits, bool contractions) {
  const Character first = read_character(text, 0);
  if (const std::size_t length = cased_word_length(text, first)) {
    return length + (contractions ? contraction_length(text.substr(length), /*ignore_case=*/true) : 0);
  }
  if (const std::size_t length = number_length(text, most_digits)) return length;
  if (const std::size_t length = symbols_length(text, /*slashes=*/true)) return length;
  return spaces_or_line_breaks_length(text);
}

// The first run of characters for which `belongs` says yes.
template <class Belongs>
std::optional<Match> find_run(std::string_view text, Belongs belongs) {
  const std::size_t begin = end_of_run(text, 0, [&](const Character& c) { return !belongs(c); });
  if (begin == text.size()) return std::nullopt;
  return Match{begin, end_of_run(text, begin, belongs)};
}

// The same with the \s before it, if there is one.
template <class Belongs>
std::optional<Match> find_spaced_run(std::string_view text, Belongs belongs) {
  std::size_t begin = 0, space_length = 0;  // of the \s that ends at `begin`
  while (begin < text.size()) {
    const Character c = read_character(text, begin);
    // A character that is both may be the space of a run that begins with the next one.
    if (belongs(c)) return Match{begin - space_length, end_of_run(text, begin, belongs)};
    begin += c.length;
    space_length = is_space(c) ? c.length : 0;
  }
  return std::nullopt;
}

struct Range {
  char32_t first, last;
};

template <std::size_t kSize>
bool contains(const Range (&ranges)[kSize], char32_t c) {
  const Range* const range = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                              [](const Range& r, char32_t value) { return r.last < value; });
  return range != std::end(ranges) && c >= range->first;
}

constexpr Range kCasedLetters[] = {
    {0x41, 0x5a},       {0x61, 0x7a},       {0xb5, 0xb5},       {0xc0, 0xd6},       {0xd8, 0xf6},
    {0xf8, 0x1ba},      {0x1bc, 0x1bf},     {0x1c4, 0x293},     {0x295, 0x2af},     {0x370, 0x373},
    {0x376, 0x376},     {0x377, 0x377},     {0x37b, 0x37d},     {0x37f, 0x37f},     {0x386, 0x386},
    {0x388, 0x38a},     {0x38c, 0x38c},     {0x38e, 0x3a1},     {0x3a3, 0x3f5},     {0x3f7, 0x481},
    {0x48a, 0x52f},     {0x531, 0x556},     {0x10a0, 0x10c5},   {0x13a0, 0x13f5},   {0x13f8, 0x13fd},
    {0x1c90, 0x1cba},   {0x1cbd, 0x1cbf},   {0x1d00, 0x1d2b},   {0x1d6b, 0x1d77},   {0x1d79, 0x1d9a},
    {0x1e00, 0x1f15},   {0x1f18, 0x1f1d},   {0x1f20, 0x1f45},   {0x1f48, 0x1f4d},   {0x1f50, 0x1f57},
    {0x1f59, 0x1f59},   {0x1f5b, 0x1f5b},   {0x1f5d, 0x1f5d},   {0x1f5f, 0x1f7d},   {0x1f80, 0x1fb4},
    {0x1fb6, 0x1fbc},   {0x1fbe, 0x1fbe},   {0x1fc2, 0x1fc4},   {0x1fc6, 0x1fcc},   {0x1fd0, 0x1fd3},
    {0x1fd6, 0x1fdb},   {0x1fe0, 0x1fec},   {0x1ff2, 0x1ff4},   {0x1ff6, 0x1ffc},   {0x2102, 0x2102},
    {0x2107, 0x2107},   {0x210a, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211d},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212a, 0x212d},   {0x212f, 0x2134},   {0x2139, 0x2139},
    {0x213c, 0x213f},   {0x2145, 0x2149},   {0x214e, 0x214e},   {0x2183, 0x2183},   {0x2184, 0x2184},
    {0x2c00, 0x2c7b},   {0x2c7e, 0x2ce4},   {0x2ceb, 0x2cee},   {0x2cf2, 0x2cf2},   {0x2cf3, 0x2cf3},
    {0xa640, 0xa66d},   {0xa680, 0xa69b},   {0xa722, 0xa76f},   {0xa771, 0xa787},   {0xa78b, 0xa78e},
    {0xab70, 0xabbf},   {0xfb00, 0xfb06},   {0xfb13, 0xfb17},   {0xff21, 0xff3a},   {0xff41, 0xff5a},
    {0x10400, 0x1044f}, {0x104b0, 0x104d3}, {0x104d8, 0x104fb}, {0x10c80, 0x10cb2}, {0x10cc0, 0x10cf2},
    {0x118a0, 0x118df}, {0x1e900, 0x1e943},
};

constexpr Range kDeepSeekSymbols[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201f},
                                      {0x3000, 0x3002}, {0xff01, 0xff0f}, {0xff1a, 0xff5e}};
constexpr Range kDeepSeekIdeographs[] = {{0x800, 0x9fa5}, {0xac00, 0xd7ff}};
constexpr Range kIdeographsAndKana[] = {{0x3040, 0x30ff}, {0x4e00, 0x9fa5}};

bool is_ascii_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_punctuation_or_symbol(const Character& c) {
  const Category category = categorise(c.value);
  return category == Category::kP || category == Category::kS;
}

// What DeepSeek V3's last expression matches at the start of `text`, or 0.
std::size_t deepseek3_length(std::string_view text) {
  const Character first = read_character(text, 0);
  if (is_ascii_punctuation(first.value)) {
    std::size_t end = 1;
    while (end < text.size() && is_ascii_letter(text[end])) ++end;
    if (end > 1) return end;
  }
  if (is_letter_or_mark(first)) return end_of_run(text, 0, is_letter_or_mark);
  if (!is_line_break(first.value) && !is_punctuation_or_symbol(first)) {
    const std::size_t end = end_of_run(text, first.length, is_letter_or_mark);
    if (end > first.length) return end;
  }
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  const std::size_t end = end_of_run(text, start, is_punctuation_or_symbol);
  if (end > start) return end_of_line_breaks(text, end, /*slashes=*/false);
  return is_space(first) ? spaces_or_line_breaks_length(text) : 0;
}

}  // namespace

std::size_t gpt2_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text, /*ignore_case=*/false)) return length;
  const std::size_t start = text[0] == ' ' ? 1 : 0;
  if (start < text.size()) {
    const CharacterClass kind = read_character(text, start).kind;
    if (kind != CharacterClass::kSpace) return end_of_kind(text, start, kind);
  }
  return spaces_length(scan_spaces(text), text);
}

std::size_t llama3_length(std::string_view text, int most_digits) {
  if (const std::size_t length = contraction_length(text, /*ignore_case=*/true)) return length;
  const Character first = read_character(text, 0);
  if (const std::size_t length = word_length(text, first)) return length;
  if (const std::size_t length = number_length(text, static_cast<std::size_t>(most_digits))) return length;
  if (const std::size_t length = symbols_length(text, /*slashes=*/false)) return length;
  return spaces_or_line_breaks_length(text);
}

std::size_t qwen35_length(std::string_view text) {
  if (const std::size_t length = contraction_length(text, /*ignore_case=*/true)) return length;
  const Character first = read_character(text, 0);
  if (const std::size_t length = marked_word_length(text, first)) return length;
  if (const std::size_t length = number_length(text, 1)) return length;
  if (const std::size_t length = unmarked_symbols_length(text)) return length;
  return spaces_or_line_breaks_length(text);
}

std::size_t gpt4o_length(std::string_view text) { return cased_length(text, 3, /*contractions=*/true); }
std::size_t tekken_length(std::string_view text) { return cased_length(text, 1, /*contractions=*/false); }

std::optional<Match> find_numbers(std::string_view text, std::size_t most_digits) {
  const auto is_other = [](const Character& c) { return c.kind != CharacterClass::kNumber; };
  const std::size_t begin = end_of_run(text, 0, is_other);
  if (begin == text.size()) return std::nullopt;
  return Match{begin, begin + number_length(text.substr(begin), most_digits)};
}

std::optional<Match> find_line_break(std::string_view text) {
  const std::size_t begin = text.find_first_of("\r\n");
  if (begin == std::string_view::npos) return std::nullopt;
  return Match{begin, begin + 1};
}

std::optional<Match> find_letters(std::string_view text) {
  return find_spaced_run(text, [](const Character& c) { return c.kind == CharacterClass::kLetter; });
}

std::optional<Match> find_punctuation(std::string_view text) {
  return find_spaced_run(text, [](const Character& c) { return categorise(c.value) == Category::kP; });
}

std::optional<Match> find_cased_letters(std::string_view text) {
  return find_spaced_run(text, [](const Character& c) { return contains(kCasedLetters, c.value); });
}

std::optional<Match> find_deepseek_symbols(std::string_view text) {
  return find_spaced_run(text, [](const Character& c) { return contains(kDeepSeekSymbols, c.value); });
}

std::optional<Match> find_trailing_spaces(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t start = begin - 1;
    while (start > 0 && continues_utf8(text[start])) --start;
    const Character c = read_character(text, start);
    if (!is_space(c) || start + c.length != begin) break;
    begin = start;
  }
  if (begin == text.size()) return std::nullopt;
  return Match{begin, text.size()};
}

std::optional<Match> find_spaces_before_line_end(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    if (!is_space(read_character(text, begin))) {
      begin += read_character(text, begin).length;
      continue;
    }
    std::size_t end = begin, last_line_feed = begin;
    while (end < text.size() && is_space(read_character(text, end))) {
      if (text[end] == '\n') last_line_feed = end;
      end += read_character(text, end).length;
    }
    if (end == text.size()) return Match{begin, end};
    if (last_line_feed > begin) return Match{begin, last_line_feed};
    begin = end;
  }
  return std::nullopt;
}

std::optional<Match> find_deepseek_ideographs(std::string_view text) {
  return find_run(text, [](const Character& c) { return contains(kDeepSeekIdeographs, c.value); });
}

std::optional<Match> find_ideographs_and_kana(std::string_view text) {
  return find_run(text, [](const Character& c) { return contains(kIdeographsAndKana, c.value); });
}

std::optional<Match> find_deepseek3(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size(); begin += read_character(text, begin).length) {
    if (const std::size_t length = deepseek3_length(text.substr(begin))) return Match{begin, begin + length};
  }
  return std::nullopt;
}

std::optional<Match> find_falcon_punctuation(std::string_view text) {
  return find_run(text, [](const Character& c) {
    return is_ascii_punctuation(c.value) || categorise(c.value) == Category::kP;
  });
}

std::optional<Match> find_three_digits(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t num_digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    num_digits = is_digit(text[i]) ? num_digits + 1 : 0;
    if (num_digits == 3) return Match{i - 2, i + 1};
  }
  return std::nullopt;
}

}  // namespace octavo::tokenizer
