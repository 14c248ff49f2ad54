// JSON text as template values: what a request offers as tools, and the arguments of calls. It came from
// outside, so every text in it is marked as input and no special token comes of it. One thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/chat_template/jinja_budget.h"
#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

inline constexpr int kMaxJsonDepth = 64;

// Keys stay in their order; of two that are equal the first one's place and the last one's value count, as in
// Python. Whole numbers beyond 64 bits become floats. Everything that RFC 8259 does not allow is an error
// that says what is wrong and at which byte, and so are invalid UTF-8, half a surrogate pair, numbers beyond
// what a double holds and more than kMaxJsonDepth levels. What takes too much of the budget is kUnsupported.
Outcome read_json(std::string_view text, Budget& budget);

// As above, and it is remembered whose the texts are (MarkedText::part_of): whoever wrote `text`, or of a
// list one input's more with each item.
Outcome read_json_of(const MarkedText& text, Budget& budget);
Outcome read_json_list_of_inputs(std::string_view text, std::int32_t first_input, Budget& budget);

}  // namespace octavo::tokenizer::jinja
