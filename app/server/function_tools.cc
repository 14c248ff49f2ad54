#include "app/server/function_tools.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/server/forced_calls.h"
#include "engine/base/result.h"
#include "engine/chat_template/tool_arguments.h"
#include "engine/chat_template/tool_calls.h"

namespace octavo::app {

FunctionTool read_function_tool(FieldReader& function, std::string_view schema_name) {
  FunctionTool tool{.name = read_required_text(function, "name"),
                    .description = function.text("description"),
                    .parameters = {{"type", "object"}, {"properties", Json::object()}},
                    .strict = function.flag("strict").value_or(false)};
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

ToolChoice read_tool_choice(FieldReader& fields) {
  ToolChoice read{.only_first = !fields.flag("parallel_tool_calls").value_or(true)};
  const Json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return read;
  read.may_call = *choice != "none";
  read.must_call = read.may_call;
  if (*choice == "none" || *choice == "required") return read;
  const Json* const function =
      choice->is_object() && choice->contains("type") && (*choice)["type"] == "function" ? choice : nullptr;
  if (function == nullptr) {
    fields.refuse("tool_choice", "auto, none, required or an object of type function with a name");
    return read;
  }
  const bool is_inner = function->contains("function");
  FieldReader outer(*function, fields.path_of("tool_choice"));
  const Json* const named = is_inner ? outer.object("function") : function;
  if (named != nullptr) {
    FieldReader inner(*named, is_inner ? outer.path_of("function") : fields.path_of("tool_choice"));
    read.name = read_required_text(inner, "name");
    outer.adopt(inner);
  }
  read.only_first = true;
  fields.adopt(outer);
  return read;
}

OfferedTools offered_tools(FieldReader& fields, std::vector<FunctionTool> tools, ToolChoice choice,
                           const ServedModel& model) {
  const auto is_named = [&](const FunctionTool& tool) { return tool.name == choice.name; };
  if (fields.ok() && choice.must_call && tools.empty())
    fields.refuse("tool_choice", "auto or none when no function is offered in tools");
  if (fields.ok() && choice.name && std::ranges::none_of(tools, is_named))
    fields.refuse("tool_choice", "the name of a function in tools");
  if (tools.empty() || !fields.ok()) return {};
  OfferedTools read{
      .text = tools_text(tools), .calls = {}, .tools = std::move(tools), .choice = std::move(choice)};
  if (read.choice.may_call) read.calls = call_reading(read.text, read.choice.only_first, model);
  return read;
}

void demand_form(FieldReader& fields, std::optional<StructuredOutput> wanted, const OfferedTools& offered,
                 const ChatPrompt& prompt, const ServedModel& model, const CallIdentity& identity,
                 SamplingParams& sampling, std::vector<std::string>& notes) {
  if (!fields.ok()) return;
  const auto fail = [&](Error error) { fields.fail(std::move(error)); };
  if (offered.calls && offered.choice.must_call) {
    auto format = forced_calls_format(offered.tools, offered.choice, model, notes);
    if (!format) return fail(std::move(format).error());
    sampling.structured_output =
        structure_of(behind_thinking(*std::move(format), prompt, model, identity.created));
    return;
  }
  if (wanted && offered.calls) {
    auto calls = forced_calls_format(offered.tools, offered.choice, model, notes);
    if (!calls) return fail(std::move(calls).error());
    Json either = {{"type", "or"}, {"elements", Json::array({format_of(*wanted), *std::move(calls)})}};
    sampling.structured_output =
        structure_of(behind_thinking(std::move(either), prompt, model, identity.created));
    return;
  }
  if (wanted) {
    const Json format = format_of(*wanted);
    Json whole = behind_thinking(format, prompt, model, identity.created);
    if (whole == format)
      sampling.structured_output = std::move(wanted);
    else
      sampling.structured_output = structure_of(std::move(whole));
    return;
  }
  if (!offered.calls) return;
  auto strict = strict_calls_format(offered.tools, offered.choice, model);
  if (!strict) return fail(std::move(strict).error());
  if (*strict) sampling.structured_output = structure_of(**std::move(strict));
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
