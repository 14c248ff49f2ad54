#include "engine/api/template_values.h"

#include <algorithm>
#include <string_view>

#include "engine/api/option_error.h"
#include "engine/base/text.h"

namespace octavo {
namespace {

constexpr std::string_view kOption = "chat_template_kwargs";
constexpr std::string_view kEveryTemplateHas[] = {
    "messages", "bos_token", "eos_token", "add_generation_prompt", "documents", "tools"};

bool is_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && name.size() <= kMaxTemplateValueBytes && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace

Result<void> validate(const TemplateValues& values) {
  if (values.size() > kMaxTemplateValues) {
    return option_out_of_range(kOption, "at most " + std::to_string(kMaxTemplateValues) + " values",
                               std::to_string(values.size()));
  }
  for (const auto& [name, value] : values) {
    if (!is_name(name)) {
      return option_out_of_range(kOption, "named by letters, digits and underscores",
                                 "'" + escape_for_message(name) + "'");
    }
    if (std::ranges::find(kEveryTemplateHas, name) != std::end(kEveryTemplateHas)) {
      return option_out_of_range(kOption, "what the messages do not say already", "'" + name + "'");
    }
    const auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr) continue;
    if (text->size() > kMaxTemplateValueBytes) {
      return option_out_of_range(kOption,
                                 "texts of at most " + std::to_string(kMaxTemplateValueBytes) + " bytes",
                                 std::to_string(text->size()) + " (" + name + ")");
    }
    if (sanitise_utf8(*text) != *text)
      return option_out_of_range(kOption, "valid UTF-8", "not (" + name + ")");
  }
  return {};
}

}  // namespace octavo
