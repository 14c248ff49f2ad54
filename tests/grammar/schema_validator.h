// Whether a value is valid by a JSON schema: the keywords that random_schema.h writes, each as the standard
// says it, without a thought of grammars.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/text.h"

namespace octavo::testing {

inline bool has_type(const nlohmann::json& value, const std::string& type) {
  if (type == "integer")
    return value.is_number_integer() ||
           (value.is_number_float() &&
            value.get<double>() == static_cast<double>(static_cast<long long>(value.get<double>())));
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

inline std::size_t num_characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// The first thing that is wrong; empty: it is valid.
inline std::string problem_of(const nlohmann::json& value, const nlohmann::json& schema,
                              const nlohmann::json& root) {
  if (schema.is_boolean()) return schema.get<bool>() ? "" : "nothing is allowed";
  if (schema.contains("$ref")) {
    const std::string reference = schema["$ref"];
    return problem_of(
        value, reference == "#" ? root : root.at(nlohmann::json::json_pointer(reference.substr(1))), root);
  }
  const auto complain = [&](const std::string& keyword) {
    return keyword + " of " + schema.dump() + " by " +
           value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  if (schema.contains("const") && value != schema["const"]) return complain("const");
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return complain("enum");
  if (schema.contains("type")) {
    const auto types = schema["type"].is_array() ? schema["type"] : nlohmann::json::array({schema["type"]});
    if (std::none_of(types.begin(), types.end(), [&](const auto& type) { return has_type(value, type); }))
      return complain("type");
  }
  if (schema.contains("anyOf")) {
    const auto fits = [&](const auto& one) { return problem_of(value, one, root).empty(); };
    if (std::none_of(schema["anyOf"].begin(), schema["anyOf"].end(), fits)) return complain("anyOf");
  }
  if (value.is_number()) {
    const double number = value.get<double>();
    if (schema.contains("minimum") && number < schema["minimum"].get<double>()) return complain("minimum");
    if (schema.contains("maximum") && number > schema["maximum"].get<double>()) return complain("maximum");
    if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"].get<double>())
      return complain("exclusiveMinimum");
    if (schema.contains("exclusiveMaximum") && number >= schema["exclusiveMaximum"].get<double>())
      return complain("exclusiveMaximum");
    if (schema.contains("multipleOf") && value.get<long long>() % schema["multipleOf"].get<long long>() != 0)
      return complain("multipleOf");
  }
  if (value.is_string()) {
    const std::string text = value;
    if (schema.contains("minLength") && num_characters(text) < schema["minLength"].get<std::size_t>())
      return complain("minLength");
    if (schema.contains("maxLength") && num_characters(text) > schema["maxLength"].get<std::size_t>())
      return complain("maxLength");
    if (schema.value("pattern", "") == "^[a-c]{2,4}$" &&
        (text.size() < 2 || text.size() > 4 || text.find_first_not_of("abc") != std::string::npos))
      return complain("pattern");
  }
  if (value.is_array()) {
    if (schema.contains("minItems") && value.size() < schema["minItems"].get<std::size_t>())
      return complain("minItems");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"].get<std::size_t>())
      return complain("maxItems");
    const std::size_t num_prefix = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const nlohmann::json one =
          i < num_prefix ? schema["prefixItems"][i] : schema.value("items", nlohmann::json(true));
      if (std::string problem = problem_of(value[i], one, root); !problem.empty()) return problem;
    }
  }
  if (value.is_object()) {
    for (const auto& name : schema.value("required", nlohmann::json::array())) {
      if (!value.contains(name.get<std::string>())) return complain("required");
    }
    if (schema.contains("minProperties") && value.size() < schema["minProperties"].get<std::size_t>())
      return complain("minProperties");
    if (schema.contains("maxProperties") && value.size() > schema["maxProperties"].get<std::size_t>())
      return complain("maxProperties");
    for (const auto& [name, member] : value.items()) {
      const bool is_listed = schema.contains("properties") && schema["properties"].contains(name);
      const nlohmann::json one =
          is_listed ? schema["properties"][name] : schema.value("additionalProperties", nlohmann::json(true));
      if (std::string problem = problem_of(member, one, root); !problem.empty()) return problem;
    }
  }
  return {};
}

}  // namespace octavo::testing
