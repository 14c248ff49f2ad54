// Python's string operations on marked text: positions count code points, and what was input stays marked as
// input. The caller has paid for the size of the source; what can grow takes the budget itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat_template/jinja_budget.h"
#include "engine/chat_template/jinja_value.h"
#include "engine/chat_template/marked_text.h"

namespace octavo::tokenizer::jinja {

// The start of each code point in bytes, and the end of the text.
std::vector<std::size_t> code_point_starts(std::string_view text);
std::int64_t code_point_count(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Without `characters`: white space.
MarkedText strip(const MarkedText& text, const std::optional<std::string>& characters, Side side);

// str.split and str.rsplit. Without `separator`: at runs of white space. `most` splits, -1: all.
// REQUIRES: separator is not empty
Result<std::vector<MarkedText>> split(const MarkedText& text, const std::optional<std::string>& separator,
                                      std::int64_t most, bool from_right, Budget& budget);
Result<std::vector<MarkedText>> split_lines(const MarkedText& text, bool keep_ends, Budget& budget);

// `most` replacements, -1: all.
Result<MarkedText> replace(const MarkedText& text, const std::string& old, const MarkedText& by,
                           std::int64_t most, Budget& budget);
Result<MarkedText> repeat(const MarkedText& text, std::int64_t times, Budget& budget);
Result<MarkedText> join(const MarkedText& separator, const std::vector<Text>& parts, Budget& budget);
// jinja's indent filter.
Result<MarkedText> indent(const MarkedText& text, const MarkedText& indentation, bool first, bool blank,
                          Budget& budget);
// str.ljust, rjust and center: the text stands at `side`.
Result<MarkedText> pad(const MarkedText& text, std::int64_t width, const MarkedText& fill, Side side,
                       Budget& budget);

// Of the text as a whole.
MarkedText to_upper_case(const MarkedText& text);
MarkedText to_lower_case(const MarkedText& text);
MarkedText capitalize(const MarkedText& text);
MarkedText swap_case(const MarkedText& text);
MarkedText to_title_case(const MarkedText& text);  // str.title()
MarkedText title_words(const MarkedText& text);    // jinja's title filter: words begin after space - ( { [ <
MarkedText escape_html(const MarkedText& text);

// str.isupper() and so on.
using CharacterPredicate = bool (*)(char32_t);
bool all_characters(std::string_view text, CharacterPredicate predicate);  // false when empty
bool is_upper_case(std::string_view text);
bool is_lower_case(std::string_view text);

// Non-overlapping occurrences.
std::int64_t count_occurrences(std::string_view text, std::string_view part);

}  // namespace octavo::tokenizer::jinja
