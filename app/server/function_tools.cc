#include "app/server/function_tools.h"

#include <memory>
#include <utility>

#include "engine/base/result.h"
#include "engine/chat_template/tool_arguments.h"
#include "engine/chat_template/tool_calls.h"

namespace octavo::app {

FunctionTool read_function_tool(FieldReader& function, std::string_view schema_name) {
  FunctionTool tool{.name = read_required_text(function, "name"),
                    .description = function.text("description"),
                    .parameters = {{"type", "object"}, {"properties", Json::object()}}};
  const bool is_name = is_tool_name(tool.name) && tool.name.find('.') == std::string::npos;
  if (function.ok() && !is_name) function.refuse("name", "1 to 64 letters, digits, underscores and hyphens");
  if (const Json* const schema = function.object(schema_name)) tool.parameters = *schema;
  return tool;
}

std::string tools_text(const std::vector<FunctionTool>& tools) {
  if (tools.empty()) return {};
  Json list = Json::array();
  for (const FunctionTool& tool : tools) {
    Json function = {{"name", tool.name}};
    if (tool.description) function["description"] = *tool.description;
    function["parameters"] = tool.parameters;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return dump(list);
}

std::optional<CallReading> call_reading(const std::string& tools, bool only_first, const ServedModel& model) {
  if (tools.empty()) return std::nullopt;
  return CallReading{
      .format = tool_call_format(model.tokenizer->knows_tools() ? model.tokenizer->chat_template_source()
                                                                : std::string_view()),
      .tools = std::make_shared<const CallableTools>(tools),
      .only_first = only_first};
}

bool read_tool_choice(FieldReader& fields) {
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return true;
  if (*choice == "none") return false;
  refuse_forced_call(fields, "tool_choice");
  return true;
}

void refuse_forced_call(FieldReader& fields, std::string_view name) {
  const Json* const choice = fields.find(name);
  const std::string path = fields.path_of(name);
  fields.fail({.code = ErrorCode::kUnsupported,
               .message = path + " cannot be " + (choice == nullptr ? "absent" : value_for_message(*choice)) +
                          ": a call cannot be forced before there is structured output; use auto or none",
               .subject = path});
}

std::string read_call_arguments(FieldReader& fields, std::string_view name) {
  std::string arguments = fields.text(name).value_or(std::string());
  const auto parsed = parse_json(arguments, "arguments");
  if (fields.ok() && (!parsed || !parsed->is_object())) fields.refuse(name, "the text of a JSON object");
  return arguments;
}

std::string read_required_text(FieldReader& fields, std::string_view name) {
  std::string text = fields.text(name).value_or(std::string());
  if (fields.ok() && text.empty()) fields.refuse(name, "a text");
  return text;
}

}  // namespace octavo::app
