// JSON as template values.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/jinja_interpreter.h"

namespace octavo::tokenizer::jinja {

inline Value to_value(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) return Value(MarkedText(json.get<std::string>()));
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(to_value(item));
    return *make_list(std::move(items));
  }
  if (json.is_object()) {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto& [key, value] : json.items())
      entries.emplace_back(Value(MarkedText(key)), to_value(value));
    return *make_dict(std::move(entries));
  }
  return Value();
}

inline Template::Variables to_variables(const nlohmann::ordered_json& json) {
  Template::Variables variables;
  for (const auto& [key, value] : json.items()) variables.emplace_back(key, to_value(value));
  return variables;
}

inline Result<MarkedText> render(std::string_view source, const Template::Variables& variables = {},
                                 std::int64_t now = 0) {
  OCTAVO_TRY(const Template parsed, Template::parse(source));
  return parsed.render(variables, now);
}

}  // namespace octavo::tokenizer::jinja
