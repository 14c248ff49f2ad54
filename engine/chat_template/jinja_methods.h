// Methods that templates may call on texts, lists, tuples, dicts and loops: those of Python that read. What
// would change a list or a dict does not exist, as in jinja's immutable sandbox.
#pragma once

#include <string_view>

#include "engine/chat_template/jinja_arguments.h"
#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

bool has_method(const Value& self, std::string_view name);
// A method of Python's that changes `self`.
bool is_mutator(const Value& self, std::string_view name);

// REQUIRES: has_method(self, name)
Outcome call_method(const Value& self, std::string_view name, const Arguments& arguments, Budget& budget);

// "..." % values, with %s %r %d %i %f (with a precision) and %%.
Outcome format_percent(const MarkedText& format, const Value& values, Budget& budget);

}  // namespace octavo::tokenizer::jinja
