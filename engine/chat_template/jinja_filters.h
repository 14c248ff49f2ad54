// What `x | name(...)` does. Jinja's filters as chat templates use them; filters that give generators there
// give lists here. tojson is Hugging Face's: JSON without HTML escapes.
#pragma once

#include <string_view>

#include "engine/chat_template/jinja_arguments.h"
#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

Outcome apply_filter(std::string_view name, const Value& value, const Arguments& arguments, Budget& budget);

}  // namespace octavo::tokenizer::jinja
