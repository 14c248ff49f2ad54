#include "engine/grammar/json_schema.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/grammar/structure_error.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;  // properties keep their order
using Names = std::initializer_list<std::string_view>;

// Every keyword of the drafts from 4 to 2020-12 that can make a value invalid, by what it speaks of.
constexpr std::array kOfNumbers = {"multipleOf", "maximum", "exclusiveMaximum", "minimum",
                                   "exclusiveMinimum"};
constexpr std::array kOfStrings = {"maxLength", "minLength", "pattern", "format"};
constexpr std::array kOfArrays = {"items",       "prefixItems",     "additionalItems", "contains",
                                  "maxContains", "minContains",     "maxItems",        "minItems",
                                  "uniqueItems", "unevaluatedItems"};
constexpr std::array kOfObjects = {"properties",       "patternProperties",    "additionalProperties",
                                   "propertyNames",    "maxProperties",        "minProperties",
                                   "required",         "dependentRequired",    "dependencies",
                                   "dependentSchemas", "unevaluatedProperties"};
constexpr std::array kOfAll = {"type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref"};
constexpr std::array kNeverKept = {"not",
                                   "if",
                                   "then",
                                   "else",
                                   "$dynamicRef",
                                   "$recursiveRef",
                                   "dependentSchemas",
                                   "dependentRequired",
                                   "dependencies",
                                   "contains"};

// Formats of the standard that the compiler has no pattern for.
constexpr std::array kFormatsNotKept = {"idn-email", "idn-hostname", "iri", "iri-reference", "regex"};

template <class List>
bool is_one_of(const List& list, std::string_view name) {
  return std::ranges::any_of(list, [&](std::string_view one) { return one == name; });
}

template <class List>
bool has_one_of(const Json& schema, const List& list) {
  return std::ranges::any_of(list, [&](std::string_view name) { return schema.contains(name); });
}

bool is_validation(std::string_view name) {
  return is_one_of(kOfNumbers, name) || is_one_of(kOfStrings, name) || is_one_of(kOfArrays, name) ||
         is_one_of(kOfObjects, name) || is_one_of(kOfAll, name) || is_one_of(kNeverKept, name);
}

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  if (type != "integer" || !value.is_number()) return false;
  return value.is_number_integer() ||
         value.get<double>() == static_cast<double>(static_cast<std::int64_t>(value.get<double>()));
}

bool is_of_types(const Json& value, const Json& types) {
  const auto is_type = [&](const Json& type) {
    return type.is_string() && is_of_type(value, type.get_ref<const std::string&>());
  };
  return types.is_array() ? std::ranges::any_of(types, is_type) : is_type(types);
}

std::string pointer_part(std::string_view name) {
  std::string part;
  for (const char c : name) part += c == '~' ? std::string("~0") : c == '/' ? "~1" : std::string(1, c);
  return part;
}

class SchemaReader {
 public:
  explicit SchemaReader(Json root) : root_(std::move(root)) {}

  Result<std::string> read() {
    OCTAVO_TRY_VOID(read_schema(root_, "#"));
    read_places_.insert("#");
    while (!references_.empty()) {
      const std::string place = *references_.begin();
      references_.erase(references_.begin());
      if (!read_places_.insert(place).second) continue;
      Json* const target = find(place);
      if (target == nullptr)
        return refuse("#", "$ref", "names " + escape_for_message(place, 80) + ", which is not in the schema");
      OCTAVO_TRY_VOID(read_schema(*target, place));
    }
    return root_.dump();
  }

 private:
  static Error refuse(const std::string& place, std::string_view keyword, const std::string& why) {
    return structure_error("the JSON schema cannot be kept: '" + escape_for_message(keyword, 60) + "' at " +
                           escape_for_message(place, 160) + " " + why);
  }

  Json* find(std::string_view place) {
    Json* at = &root_;
    std::string_view rest = place.substr(1);
    while (!rest.empty()) {
      rest.remove_prefix(1);
      const std::size_t end = std::min(rest.find('/'), rest.size());
      const auto member = at->is_object() ? at->find(std::string(rest.substr(0, end))) : at->end();
      if (!at->is_object() || member == at->end()) return nullptr;
      at = &*member;
      rest.remove_prefix(end);
    }
    return at;
  }

  Result<void> read_schema(Json& schema, const std::string& place) {
    if (++num_read_ > kMostSubschemas) {
      return structure_error("the JSON schema has more than " + std::to_string(kMostSubschemas) +
                             " parts; give a smaller one");
    }
    if (schema.is_boolean()) return {};
    if (!schema.is_object()) return refuse(place, "schema", "must be an object, true or false");
    for (const std::string_view name : kNeverKept) {
      const bool says_nothing = name == "contains" && schema.contains("type") && schema["type"].is_string() &&
                                schema["type"] != "array";
      if (schema.contains(name) && !says_nothing && !schema.contains("$ref"))
        return refuse(place, name, "is not supported; leave it out and check the answer");
    }
    if (place != "#" && schema.contains("$id")) return refuse(place, "$id", "is supported at the root alone");
    if (schema.contains("$ref")) return read_reference(schema, place);
    if (schema.contains("const")) return read_const(schema, place);
    if (schema.contains("enum")) return read_enum(schema, place);
    for (const std::string_view cases : {"anyOf", "oneOf", "allOf"}) {
      if (schema.contains(cases)) return read_cases(schema, cases, place);
    }
    return read_typed(schema, place);
  }

  Result<void> refuse_beside(const Json& schema, std::string_view keyword, Names also,
                             const std::string& place) const {
    for (const auto& [name, unused] : schema.items()) {
      if (name == keyword || !is_validation(name) || is_one_of(also, name)) continue;
      return refuse(place, name,
                    "cannot stand beside '" + std::string(keyword) + "'; put it into what that says");
    }
    return {};
  }

  Result<void> read_reference(Json& schema, const std::string& place) {
    OCTAVO_TRY_VOID(refuse_beside(schema, "$ref", {}, place));
    const Json& reference = schema["$ref"];
    const bool is_text = reference.is_string();
    const std::string target = is_text ? reference.get<std::string>() : std::string();
    const bool is_within =
        target == "#" || (target.starts_with("#/") && target.find_first_of("~%") == std::string::npos);
    if (!is_within)
      return refuse(place, "$ref", "must be # or #/ and names within the schema, without ~ and %");
    // A chain of references alone describes nothing.
    std::set<std::string> chain;
    for (std::string next = target; chain.insert(next).second;) {
      const Json* const found = find(next);
      if (found == nullptr)
        return refuse(place, "$ref",
                      "names " + escape_for_message(next, 80) + ", which is not in the schema");
      if (!found->is_object() || !found->contains("$ref") || !(*found)["$ref"].is_string()) {
        references_.insert(target);
        return {};
      }
      next = (*found)["$ref"].get<std::string>();
      if (!next.starts_with("#")) break;
    }
    return refuse(place, "$ref", "leads to itself and says nothing else");
  }

  static Result<void> read_const(Json& schema, const std::string& place) {
    for (const auto& [name, unused] : schema.items()) {
      if (name == "const" || name == "type" || name == "enum" || !is_validation(name)) continue;
      return refuse(place, name, "cannot stand beside 'const'; leave it out");
    }
    const Json& value = schema["const"];
    if (schema.contains("type") && !is_of_types(value, schema["type"]))
      return refuse(place, "const", "is not of the type beside it");
    const bool is_listed = !schema.contains("enum") || !schema["enum"].is_array() ||
                           std::ranges::find(schema["enum"], value) != schema["enum"].end();
    if (!is_listed) return refuse(place, "const", "is not in the enum beside it");
    schema.erase("enum");
    return {};
  }

  Result<void> read_enum(Json& schema, const std::string& place) {
    OCTAVO_TRY_VOID(refuse_beside(schema, "enum", {"type"}, place));
    Json& values = schema["enum"];
    if (!values.is_array() || values.empty())
      return refuse(place, "enum", "must be a list of at least one value");
    if (!schema.contains("type")) return {};
    Json kept = Json::array();
    for (Json& value : values) {
      if (is_of_types(value, schema["type"])) kept.push_back(std::move(value));
    }
    if (kept.empty()) return refuse(place, "enum", "has no value of the type beside it");
    values = std::move(kept);
    return {};
  }

  Result<void> read_cases(Json& schema, std::string_view keyword, const std::string& place) {
    OCTAVO_TRY_VOID(refuse_beside(schema, keyword, {"type"}, place));
    Json& cases = schema[std::string(keyword)];
    if (!cases.is_array() || cases.empty())
      return refuse(place, keyword, "must be a list of at least one schema");
    if (keyword == "allOf" && cases.size() > 1)
      return refuse(place, keyword, "of more than one schema is not supported; write it as one");
    if (keyword == "anyOf") {
      cases.erase(std::remove(cases.begin(), cases.end(), Json(false)), cases.end());
      if (cases.empty()) return refuse(place, keyword, "allows nothing");
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (schema.contains("type") && !says_type(cases[i], schema["type"])) {
        return refuse(place, "type",
                      "cannot stand beside '" + std::string(keyword) + "' unless each case has it too");
      }
      OCTAVO_TRY_VOID(read_schema(cases[i], place + "/" + std::string(keyword) + "/" + std::to_string(i)));
    }
    return {};
  }

  // Whether the case has this type itself, or takes it over.
  static bool says_type(Json& one, const Json& type) {
    if (!one.is_object()) return false;
    if (!one.contains("type")) {
      if (one.contains("$ref") || has_one_of(one, Names{"anyOf", "oneOf", "allOf"})) return false;
      one["type"] = type;
      return true;
    }
    if (one["type"] == type) return true;
    return type.is_array() && one["type"].is_string() && std::ranges::find(type, one["type"]) != type.end();
  }

  Result<void> read_typed(Json& schema, const std::string& place) {
    if (!schema.contains("type")) {
      if (has_one_of(schema, kOfObjects))
        schema["type"] = "object";
      else if (has_one_of(schema, kOfArrays))
        schema["type"] = "array";
      else if (has_one_of(schema, kOfStrings))
        schema["type"] = "string";
      else if (has_one_of(schema, kOfNumbers))
        schema["type"] = "number";
      else
        return {};
    }
    const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
    if (types.empty()) return refuse(place, "type", "must be a name, or a list of at least one");
    for (const Json& type : types) {
      const std::string name = type.is_string() ? type.get<std::string>() : std::string();
      if (!is_one_of(Names{"null", "boolean", "string", "integer", "number", "array", "object"}, name))
        return refuse(place, "type", "must be null, boolean, string, integer, number, array or object");
      if (name == "integer" || name == "number") OCTAVO_TRY_VOID(read_number(schema, name, place));
      if (name == "string") OCTAVO_TRY_VOID(read_string(schema, place));
      if (name == "array") OCTAVO_TRY_VOID(read_array(schema, place));
      if (name == "object") OCTAVO_TRY_VOID(read_object(schema, place));
    }
    return {};
  }

  static Result<void> read_number(Json& schema, std::string_view type, const std::string& place) {
    for (const std::string_view name : kOfNumbers) {
      if (schema.contains(name) && !schema[std::string(name)].is_number())
        return refuse(place, name, "must be a number");
    }
    if (type == "number" && schema.contains("multipleOf"))
      return refuse(place, "multipleOf", "is supported for integers alone");
    return {};
  }

  static Result<void> read_string(Json& schema, const std::string& place) {
    for (const std::string_view name : {"format", "pattern"}) {
      if (schema.contains(name) && !schema[std::string(name)].is_string())
        return refuse(place, name, "must be a text");
    }
    if (schema.contains("format") &&
        is_one_of(kFormatsNotKept, schema["format"].get_ref<const std::string&>()))
      return refuse(place, "format", "of this kind is not supported");
    if (schema.contains("format") && schema.contains("pattern"))
      return refuse(place, "pattern", "cannot stand beside 'format'");
    OCTAVO_TRY_VOID(read_counts(schema, {"minLength", "maxLength"}, place));
    const bool has_length = schema.contains("maxLength") || schema.value("minLength", Json(0)) != Json(0);
    if (has_length && schema.contains("pattern"))
      return refuse(place, "pattern",
                    "cannot stand beside minLength or maxLength; say the length in it, as in ^[a-z]{1,8}$");
    return {};
  }

  // Counts are whole numbers, some written 2.0.
  static Result<void> read_counts(Json& schema, Names names, const std::string& place) {
    constexpr double kMost = 2147483647.0;
    for (const std::string_view name : names) {
      if (!schema.contains(name)) continue;
      Json& count = schema[std::string(name)];
      const double number = count.is_number() ? count.get<double>() : -1.0;
      if (!(number >= 0.0 && number <= kMost) ||
          number != static_cast<double>(static_cast<std::int64_t>(number)))
        return refuse(place, name, "must be a whole number from 0 to 2147483647");
      count = static_cast<std::int64_t>(number);
    }
    return {};
  }

  Result<void> read_array(Json& schema, const std::string& place) {
    if (schema.value("uniqueItems", Json(false)) != Json(false))
      return refuse(place, "uniqueItems", "is not supported; leave it out and check the answer");
    schema.erase("uniqueItems");
    schema.erase("minContains");  // without contains they say nothing
    schema.erase("maxContains");
    if (schema.contains("items") && schema["items"].is_array()) {  // of drafts before 2020-12
      Json items = std::move(schema["items"]);
      schema["items"] = schema.value("additionalItems", Json(true));
      schema["prefixItems"] = std::move(items);
    }
    schema.erase("additionalItems");
    OCTAVO_TRY_VOID(read_counts(schema, {"minItems", "maxItems"}, place));
    if (!schema.contains("items")) {
      schema["items"] = schema.value("unevaluatedItems", Json(true));
    }
    schema.erase("unevaluatedItems");
    if (schema.contains("prefixItems")) {
      if (!schema["prefixItems"].is_array()) return refuse(place, "prefixItems", "must be a list of schemas");
      if (schema["prefixItems"].empty()) schema.erase("prefixItems");
    }
    if (schema.contains("prefixItems")) {
      Json& items = schema["prefixItems"];
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i] == Json(true)) items[i] = Json::object();
        OCTAVO_TRY_VOID(read_schema(items[i], place + "/prefixItems/" + std::to_string(i)));
      }
      const Json most = schema.value("maxItems", Json());
      while (most.is_number() && items.size() > most.get<std::size_t>()) items.erase(items.size() - 1);
      if (most.is_number() && items.size() == most.get<std::size_t>()) schema["items"] = false;
      if (items.empty()) schema.erase("prefixItems");
    }
    if (schema["items"] == Json(true)) schema["items"] = Json::object();
    return read_schema(schema["items"], place + "/items");
  }

  Result<void> read_object(Json& schema, const std::string& place) {
    OCTAVO_TRY_VOID(read_counts(schema, {"minProperties", "maxProperties"}, place));
    for (const std::string_view name : {"properties", "patternProperties"}) {
      if (!schema.contains(name)) continue;
      Json& members = schema[std::string(name)];
      if (!members.is_object()) return refuse(place, name, "must be an object of schemas");
      if (members.empty()) {
        schema.erase(std::string(name));
        continue;
      }
      for (auto member = members.begin(); member != members.end(); ++member) {
        OCTAVO_TRY_VOID(
            read_schema(member.value(), place + "/" + std::string(name) + "/" + pointer_part(member.key())));
      }
    }
    OCTAVO_TRY_VOID(read_further(schema, place));
    OCTAVO_TRY_VOID(read_required(schema, place));
    return check_patterns(schema, place);
  }

  // Without a word about other properties there are none, but for an object of which nothing is known.
  Result<void> read_further(Json& schema, const std::string& place) {
    if (!schema.contains("additionalProperties")) {
      const bool lists_some = schema.contains("properties") || schema.contains("patternProperties");
      schema["additionalProperties"] = schema.value("unevaluatedProperties", Json(!lists_some));
    }
    schema.erase("unevaluatedProperties");
    return read_schema(schema["additionalProperties"], place + "/additionalProperties");
  }

  Result<void> read_required(Json& schema, const std::string& place) {
    if (!schema.contains("required")) return {};
    const Json required = schema["required"];  // a member that is added moves the others
    if (!required.is_array()) return refuse(place, "required", "must be a list of names");
    for (const Json& name : required) {
      if (!name.is_string()) return refuse(place, "required", "must be a list of names");
      const std::string& text = name.get_ref<const std::string&>();
      if (schema.contains("properties") && schema["properties"].contains(text)) continue;
      const Json& further = schema["additionalProperties"];
      if (further == Json(false) || has_one_of(schema, Names{"patternProperties", "propertyNames"}))
        return refuse(place, "required",
                      "names '" + escape_for_message(text, 60) + "', which is none of the properties");
      Json copy = further == Json(true) ? Json::object() : further;
      schema["properties"][text] = std::move(copy);
    }
    return {};
  }

  // What follows would allow a value that is invalid, because of names that are meant twice.
  static Result<void> check_patterns(Json& schema, const std::string& place) {
    const bool has_patterns = schema.contains("patternProperties");
    if (has_patterns && (schema.contains("properties") || schema["patternProperties"].size() > 1))
      return refuse(place, "patternProperties", "is supported alone, with one pattern");
    if (schema.contains("propertyNames") && (schema.contains("properties") || has_patterns))
      return refuse(place, "propertyNames", "is supported alone, without properties");
    if (schema.contains("propertyNames")) {
      Json& names = schema["propertyNames"];
      if (names == Json(true))
        schema.erase("propertyNames");
      else if (!names.is_object())
        return refuse(place, "propertyNames", "must be a schema of texts");
      else {
        names["type"] = "string";
        OCTAVO_TRY_VOID(SchemaReader(names).read_string(names, place + "/propertyNames"));
        if (has_one_of(names, kOfAll) && names.size() > 1 &&
            has_one_of(names, Names{"$ref", "anyOf", "oneOf", "allOf"}))
          return refuse(place, "propertyNames", "must be a pattern, a length, a format or an enum");
      }
    }
    const std::size_t num_required = schema.contains("required") ? schema["required"].size() : 0;
    const bool has_others = schema["additionalProperties"] != Json(false) || has_patterns;
    const std::int64_t least = schema.value("minProperties", Json(0)).get<std::int64_t>();
    if (has_others && least > 1 && least > static_cast<std::int64_t>(num_required))
      return refuse(place, "minProperties",
                    "is supported up to 1, or as many as are required, where names are free");
    return {};
  }

  Json root_;
  std::size_t num_read_ = 0;
  std::set<std::string> references_;   // that are to be read
  std::set<std::string> read_places_;  // by their references
};

}  // namespace

bool is_nested_deeper(std::string_view json, std::size_t most) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (in_string && json[i] == '\\')
      ++i;
    else if (json[i] == '"')
      in_string = !in_string;
    else if (!in_string && (json[i] == '{' || json[i] == '[') && ++depth > most)
      return true;
    else if (!in_string && (json[i] == '}' || json[i] == ']') && depth > 0)
      --depth;
  }
  return false;
}

Result<std::string> read_json_schema(std::string_view schema) {
  if (is_nested_deeper(schema, kDeepestSchema)) {
    return structure_error("the JSON schema is nested deeper than " + std::to_string(kDeepestSchema) +
                           " brackets; give a flatter one");
  }
  try {
    Json root = Json::parse(schema, nullptr, /*allow_exceptions=*/false);
    if (root.is_discarded())
      return structure_error("the JSON schema is no JSON; check its brackets and quotes");
    if (root == Json(false))
      return structure_error("the JSON schema allows nothing; give one that some value fits");
    if (!root.is_object() && !root.is_boolean()) return structure_error("the JSON schema must be an object");
    if (root == Json(true)) root = Json::object();
    return SchemaReader(std::move(root)).read();
  } catch (const nlohmann::json::exception&) {
    return structure_error(
        "the JSON schema has a value of an unexpected kind; check what its keywords are given");
  }
}

}  // namespace octavo
