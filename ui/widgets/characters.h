// What single characters mean for showing untrusted text: which have no picture of their own or
// reorder what stands around them, between which a line may break, and which count as equal when somebody
// searches.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo::ui {

// The short name that is drawn in place of a character that cannot be seen or that reorders others: "NUL",
// "RLO", "U+2060". Empty for every other character. Line feed and tab are not marked: layouts give them their
// meaning. U+200D is, though it may also join emoji: see `joins_emoji`.
std::string mark_of(char32_t character);

// Whether `mark_of` names it, at a fraction of the cost.
bool has_mark(char32_t character);

// A single line in which every such character is replaced by its name in brackets, and invalid UTF-8 by
// U+FFFD.
std::string visible_text(std::string_view text);

// Chinese, Japanese and Korean characters: a line may break before and after each of them.
bool is_ideographic(char32_t character);
// Closing punctuation of these scripts, which no line begins with.
bool is_closing_punctuation(char32_t character);

bool is_emoji(char32_t character);
// Variation selectors, and the joiner between two emoji: said to fonts, not to readers.
bool is_variation_selector(char32_t character);
inline constexpr char32_t kZeroWidthJoiner = 0x200d;

// Combining marks stand over the character before them.
bool is_combining(char32_t character);

// Letters, digits and what a double click takes with them.
bool is_word(char32_t character);

// Equal for characters that differ only in case (simple folding, one character for one).
char32_t fold_case(char32_t character);

}  // namespace octavo::ui
