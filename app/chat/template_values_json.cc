#include "app/chat/template_values_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

using json = nlohmann::json;

std::optional<TemplateValue> to_value(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  const bool is_in_range =
      !value.is_number_unsigned() ||
      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_integer() && is_in_range) return value.get<std::int64_t>();
  return std::nullopt;
}

Error refusal(std::string_view what, const std::string& sentence) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = std::string(what) + " " + sentence,
          .subject = "chat_template_kwargs"};
}

}  // namespace

json template_values_to_json(const TemplateValues& values) {
  json object = json::object();
  for (const auto& [name, value] : values)
    std::visit([&, key = name](const auto& one) { object[key] = one; }, value);
  return object;
}

std::string template_values_text(const TemplateValues& values) {
  return template_values_to_json(values).dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<TemplateValues> template_values_from_json(const json& object, std::string_view what) {
  if (!object.is_object()) return refusal(what, "must be an object, such as {\"enable_thinking\": false}");
  TemplateValues values;
  for (const auto& [name, value] : object.items()) {
    auto read = to_value(value);
    if (!read) {
      return refusal(what, "holds \"" + escape_for_message(name) +
                               "\", which must be true, false, a whole number or a text");
    }
    values.emplace(name, *std::move(read));
  }
  OCTAVO_TRY_VOID(validate(values));
  return values;
}

Result<TemplateValues> parse_template_values(std::string_view text, std::string_view what) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded())
    return refusal(what, "is not JSON; write an object, such as {\"enable_thinking\": false}");
  return template_values_from_json(object, what);
}

}  // namespace octavo::app
