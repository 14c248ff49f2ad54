// Operators of expressions, and access to parts of values, as Python and jinja's sandbox have them.
#pragma once

#include <string_view>

#include "engine/chat_template/jinja_syntax.h"
#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

// + - * / // % **
Outcome apply_binary(Operator op, const Value& left, const Value& right, Budget& budget);
// == != < <= > >= in, not in
Result<bool> apply_comparison(Operator op, const Value& left, const Value& right, Budget& budget);
Outcome negative(const Value& value);
Outcome positive(const Value& value);

Result<bool> contains(const Value& container, const Value& item, Budget& budget);
Result<std::int64_t> length_of(const Value& value, Budget& budget);

// value.name: methods first, then entries. What does not exist is undefined, as are names with a leading
// underscore and the methods that change a list or a dict.
Outcome get_attribute(const Value& value, std::string_view name, Budget& budget);
// value[key]: entries first, then attributes.
Outcome get_item(const Value& value, const Value& key, Budget& budget);
// value[start:stop:step]; none stands for what was left out.
Outcome get_slice(const Value& value, const Value& start, const Value& stop, const Value& step,
                  Budget& budget);

}  // namespace octavo::tokenizer::jinja
