// The regular expressions by which byte-level BPE cuts text, one function for each, written by hand: linear
// in the text, without a stack. A `_length` gives the bytes of the piece at the start of a text and always
// finds one; a `find_` gives the first match, if there is one, and what lies before it is a piece of its own.
// \s, \p{L} and \p{N} are those of unicode_classes.h. The end of the text given is where `(?!\S)` and `$`
// look.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace octavo::tokenizer {

struct Match {
  std::size_t begin = 0, end = 0;  // bytes
};

// REQUIRES of all `_length`: !text.empty()

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_length(std::string_view text);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most_digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_length(std::string_view text, int most_digits);

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|
// ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t qwen35_length(std::string_view text);

// With U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W = [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C =
// (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
// [^\r\n\p{L}\p{N}]?U*W+C|[^\r\n\p{L}\p{N}]?U+W*C|\p{N}{1,3}|
// ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t gpt4o_length(std::string_view text);
// The same with \p{N} in place of \p{N}{1,3} and without C.
std::size_t tekken_length(std::string_view text);

// \p{N}{1,most_digits}
std::optional<Match> find_numbers(std::string_view text, std::size_t most_digits);
// [\r\n]
std::optional<Match> find_line_break(std::string_view text);
// \s?\p{L}+ and \s?\p{P}+
std::optional<Match> find_letters(std::string_view text);
std::optional<Match> find_punctuation(std::string_view text);
// \s?[...]+ with the letters that have case, as DeepSeek LLM's tokenizer lists them
std::optional<Match> find_cased_letters(std::string_view text);
// \s?[!-/:-~！-／：-～‘-‟　-。]+
std::optional<Match> find_deepseek_symbols(std::string_view text);
// \s+$ , where the text holds no line break but alone
std::optional<Match> find_trailing_spaces(std::string_view text);
// \s+$ , where `$` is in front of every line feed, too
std::optional<Match> find_spaces_before_line_end(std::string_view text);
// [一-龥ࠀ-一가-퟿]+ and [一-龥぀-ゟ゠-ヿ]+
std::optional<Match> find_deepseek_ideographs(std::string_view text);
std::optional<Match> find_ideographs_and_kana(std::string_view text);
// [!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|
// ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::optional<Match> find_deepseek3(std::string_view text);
// [\p{P}$+<=>^`|~]+
std::optional<Match> find_falcon_punctuation(std::string_view text);
// [0-9]{3}
std::optional<Match> find_three_digits(std::string_view text);

}  // namespace octavo::tokenizer
