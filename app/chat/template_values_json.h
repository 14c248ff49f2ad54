// Values for a chat template as JSON: {"enable_thinking": false, "reasoning_effort": "low"}. The one reading
// of them, for requests of programs, the command line and stored chats.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/api/template_values.h"
#include "engine/base/result.h"

namespace octavo::app {

nlohmann::json template_values_to_json(const TemplateValues& values);
std::string template_values_text(const TemplateValues& values);

// `what` names the source in the sentence of a failure.
Result<TemplateValues> template_values_from_json(const nlohmann::json& object, std::string_view what);
Result<TemplateValues> parse_template_values(std::string_view text, std::string_view what);

}  // namespace octavo::app
