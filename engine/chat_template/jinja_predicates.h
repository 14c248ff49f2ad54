// What `x is name(...)` asks. Jinja's list, without those that look into the environment.
#pragma once

#include <string_view>

#include "engine/chat_template/jinja_arguments.h"
#include "engine/chat_template/jinja_value.h"

namespace octavo::tokenizer::jinja {

Result<bool> apply_predicate(std::string_view name, const Value& value, const Arguments& arguments,
                             Budget& budget);

}  // namespace octavo::tokenizer::jinja
