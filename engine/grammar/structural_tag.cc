#include "engine/grammar/structural_tag.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/grammar/grammar_text.h"
#include "engine/grammar/json_schema.h"
#include "engine/grammar/structure_error.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kDeepestTag = 192;
constexpr std::array kTokenFormats = {"token", "exclude_token", "any_tokens", "token_triggered_tags",
                                      "token_dispatch"};

Result<void> replace_text(Json& format, const char* name, Result<std::string> (*read)(std::string_view)) {
  const auto member = format.find(name);
  if (member == format.end() || !member->is_string())
    return structure_error(std::string("the structural tag has a format '") + name + "' without its text");
  OCTAVO_TRY(*member, read(member->get_ref<const std::string&>()));
  return {};
}

Result<std::string> read_pattern(std::string_view pattern) {
  OCTAVO_TRY_VOID(check_pattern(pattern));
  return std::string(pattern);
}

Result<void> read_format(Json& format, bool may_name_tokens) {
  if (format.is_object()) {
    const auto type_member = format.find("type");
    const std::string type = type_member != format.end() && type_member->is_string()
                                 ? type_member->get<std::string>()
                                 : std::string();
    const bool names_tokens =
        std::ranges::any_of(kTokenFormats, [&](std::string_view one) { return one == type; });
    if (names_tokens && !may_name_tokens) {
      return structure_error("the structural tag cannot be kept: its format '" + type +
                             "' names tokens; write the text that they stand for");
    }
    for (const char* const budget : {"max_tokens", "max_chars"}) {
      if (format.contains(budget) && !format[budget].is_null())
        return structure_error(std::string("the structural tag cannot be kept: '") + budget +
                               "' is not supported; use the request's max_tokens");
    }
    if (type == "json_schema") {
      const auto schema = format.find("json_schema");
      if (schema == format.end())
        return structure_error("the structural tag has a format 'json_schema' without a schema");
      OCTAVO_TRY(const std::string read, read_json_schema(schema->dump()));
      *schema = Json::parse(read);
      format["max_whitespace_cnt"] = kMostBlanks;
      return {};
    }
    if (type == "grammar") return replace_text(format, "grammar", read_grammar_text);
    if (type == "regex") return replace_text(format, "pattern", read_pattern);
  }
  if (!format.is_structured()) return {};
  for (Json& member : format) OCTAVO_TRY_VOID(read_format(member, may_name_tokens));
  return {};
}

// {"structures": [{"begin", "schema", "end"}], "triggers": [...]}
Json translated_tag(const Json& old) {
  Json tags = Json::array();
  for (const Json& structure : old.at("structures")) {
    tags.push_back({{"type", "tag"},
                    {"begin", structure.at("begin")},
                    {"content", {{"type", "json_schema"}, {"json_schema", structure.at("schema")}}},
                    {"end", structure.at("end")}});
  }
  return {
      {"type", "structural_tag"},
      {"format", {{"type", "triggered_tags"}, {"triggers", old.at("triggers")}, {"tags", std::move(tags)}}}};
}

Result<std::string> read_tag(const StructuralTag& tag) {
  Json json = Json::parse(tag.json);
  if (!json.is_object()) return structure_error("the structural tag must be a JSON object");
  if (json.contains("structures")) json = translated_tag(json);
  if (!json.contains("format")) return structure_error("the structural tag has no 'format'");
  json["type"] = "structural_tag";
  OCTAVO_TRY_VOID(read_format(json["format"], tag.may_name_tokens));
  return json.dump();
}

}  // namespace

Result<std::string> read_structural_tag(const StructuralTag& tag) {
  if (is_nested_deeper(tag.json, kDeepestTag))
    return structure_error("the structural tag is nested deeper than " + std::to_string(kDeepestTag) +
                           " brackets");
  try {
    return read_tag(tag);
  } catch (const nlohmann::json::exception&) {
    return structure_error(
        "the structural tag cannot be read as JSON of its form; check its brackets, quotes and names");
  }
}

}  // namespace octavo
