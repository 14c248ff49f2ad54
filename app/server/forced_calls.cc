#include "app/server/forced_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/base/text.h"
#include "engine/chat_template/tool_calls.h"
#include "engine/grammar/json_schema.h"

namespace octavo::app {
namespace {

constexpr int kMostForcedCalls = 16;  // a small model repeats itself to the end of the context where it can

// How a family writes one call, around the name and the arguments, and several.
enum class ArgumentForm : std::uint8_t {
  kJson,
  kParameterTags,  // <parameter=NAME>\nVALUE\n</parameter>
  kKeyTags,        // <arg_key>NAME</arg_key>\n<arg_value>VALUE</arg_value>
};
struct CallForm {
  std::string before_name, behind_name, behind_arguments;
  std::string begin = {}, end = {};  // of all calls
  std::string separator = {};        // empty: one call at most
  ArgumentForm arguments = ArgumentForm::kJson;
};

// nullopt: arguments in a writing of its own.
std::optional<CallForm> form_of(ToolCallFormat format, std::string_view source) {
  const auto has = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  const CallForm hermes{.before_name = "<tool_call>\n{\"name\": \"",
                        .behind_name = "\", \"arguments\": ",
                        .behind_arguments = "}\n</tool_call>",
                        .separator = "\n"};
  const CallForm list{.before_name = "{\"name\": \"",
                      .behind_name = "\", \"arguments\": ",
                      .behind_arguments = "}",
                      .separator = ", "};
  switch (format) {
    case ToolCallFormat::kHermes:
    case ToolCallFormat::kHermesOrCode: return hermes;
    case ToolCallFormat::kFunctionTags:
      return CallForm{.before_name = "<tool_call>\n<function=",
                      .behind_name = ">\n",
                      .behind_arguments = "</function>\n</tool_call>",
                      .separator = "\n",
                      .arguments = ArgumentForm::kParameterTags};
    case ToolCallFormat::kWholeJson:
      return CallForm{
          .before_name = "{\"name\": \"", .behind_name = "\", \"parameters\": ", .behind_arguments = "}"};
    case ToolCallFormat::kMistral: {
      if (has("[ARGS]"))
        return CallForm{
            .before_name = "[TOOL_CALLS]", .behind_name = "[ARGS]", .behind_arguments = "", .separator = ""};
      CallForm form = list;
      form.begin = "[TOOL_CALLS][";
      form.end = "]";
      return form;
    }
    case ToolCallFormat::kHarmony:
      return CallForm{.before_name = "<|channel|>commentary to=functions.",
                      .behind_name = " <|constrain|>json<|message|>",
                      .behind_arguments = ""};
    case ToolCallFormat::kArgumentTags:
      return CallForm{.before_name = "<tool_call>",
                      .behind_name = "",
                      .behind_arguments = "\n</tool_call>",
                      .separator = "\n",
                      .arguments = ArgumentForm::kKeyTags};
    case ToolCallFormat::kDeepSeek: {
      const bool is_fenced = has("```json");
      return CallForm{
          .before_name = is_fenced ? "<｜tool▁call▁begin｜>function<｜tool▁sep｜>" : "<｜tool▁call▁begin｜>",
          .behind_name = is_fenced ? "\n```json\n" : "<｜tool▁sep｜>",
          .behind_arguments = is_fenced ? "\n```<｜tool▁call▁end｜>" : "<｜tool▁call▁end｜>",
          .begin = "<｜tool▁calls▁begin｜>",
          .end = "<｜tool▁calls▁end｜>",
          .separator = is_fenced ? "\n" : ""};
    }
    case ToolCallFormat::kGranite: {
      if (has("<tool_call>")) return hermes;
      CallForm form = list;
      form.begin = "<|tool_call|>[";
      form.end = "]";
      return form;
    }
    case ToolCallFormat::kGemma:
    case ToolCallFormat::kPython:
    case ToolCallFormat::kInvokeTags: return std::nullopt;
  }
  return std::nullopt;
}

Json sequence_of(Json elements) { return {{"type", "sequence"}, {"elements", std::move(elements)}}; }

// A text as formats: what the family's control tokens spell is those tokens, everything else is text.
class MarkedTexts {
 public:
  MarkedTexts(ToolCallFormat format, const ServedModel& model) {
    for (const std::string_view mark : tool_call_marks(format)) {
      const auto ids = model.tokenizer->encode(mark, /*parse_special=*/true, /*add_bos=*/false);
      if (ids && ids->size() == 1 && model.tokenizer->is_control(ids->front()))
        tokens_.push_back({mark, ids->front()});
    }
  }

  void append(std::string_view text, Json& elements) const {
    while (!text.empty()) {
      std::size_t at = text.size();
      const Mark* first = nullptr;
      for (const Mark& mark : tokens_) {
        const std::size_t place = text.find(mark.text);
        if (place >= at) continue;
        at = place;
        first = &mark;
      }
      if (at > 0) elements.push_back({{"type", "const_string"}, {"value", text.substr(0, at)}});
      text.remove_prefix(at);
      if (first == nullptr) continue;
      elements.push_back({{"type", "token"}, {"token", first->token_id}});
      text.remove_prefix(first->text.size());
    }
  }

  bool empty() const { return tokens_.empty(); }

 private:
  struct Mark {
    std::string_view text;
    TokenId token_id;
  };
  std::vector<Mark> tokens_;
};

// A value between tags is text where it may be one, and else JSON (tool_arguments.h reads them).
Json value_between_tags(const Json& schema, const Json& root) {
  const Json* meant = &schema;
  for (int i = 0; i < 16 && meant->is_object() && meant->contains("$ref"); ++i)
    meant = &root.at(Json::json_pointer((*meant)["$ref"].get<std::string>().substr(1)));
  if (!meant->is_object()) return {{"type", "any_text"}};
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const Json choices =
      meant->contains("const") ? Json::array({meant->at("const")}) : meant->value("enum", Json::array());
  if (!choices.empty() && std::ranges::all_of(choices, is_text)) {
    Json texts = Json::array();
    for (const Json& text : choices) texts.push_back({{"type", "const_string"}, {"value", text}});
    return {{"type", "or"}, {"elements", std::move(texts)}};
  }
  const Json type = meant->value("type", Json());
  if (type == "string" && meant->contains("pattern"))
    return {{"type", "regex"}, {"pattern", meant->at("pattern")}};
  if (!type.is_string() || type == "string") return {{"type", "any_text"}};
  Json whole = *meant;
  for (const char* const definitions : {"$defs", "definitions"}) {
    if (root.contains(definitions)) whole[definitions] = root[definitions];
  }
  return {{"type", "json_schema"}, {"json_schema", std::move(whole)}};
}

// Of a schema that can be kept.
Json arguments_between_tags(const Json& schema, ArgumentForm form) {
  Json elements = Json::array();
  const Json required = schema.value("required", Json::array());
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, value] : properties.items()) {
    const bool has_keys = form == ArgumentForm::kKeyTags;
    Json one = {
        {"type", "tag"},
        {"begin", has_keys ? "\n<arg_key>" + name + "</arg_key>\n<arg_value>" : "<parameter=" + name + ">\n"},
        {"content", value_between_tags(value, schema)},
        {"end", has_keys ? "</arg_value>" : "\n</parameter>\n"}};
    const bool must_be_there = std::ranges::find(required, Json(name)) != required.end();
    elements.push_back(must_be_there ? std::move(one)
                                     : Json{{"type", "optional"}, {"content", std::move(one)}});
  }
  if (elements.empty()) return {{"type", "const_string"}, {"value", ""}};
  return sequence_of(std::move(elements));
}

// The arguments by the function's schema, which are an object whatever it says.
Result<Json> arguments_of(const FunctionTool& tool, ArgumentForm form, std::vector<std::string>* notes) {
  Json schema = tool.parameters;
  if (!schema.contains("type") && !schema.contains("$ref")) schema["type"] = "object";
  if (auto read = read_json_schema(dump(schema)); !read) {
    Error error = std::move(read).error();
    if (tool.strict) {
      error.message = "tools: the arguments of " + escape_for_message(tool.name) + ": " + error.message;
      error.subject = "tools";
      return error;
    }
    if (notes != nullptr)
      notes->push_back("arguments of " + tool.name + " are any JSON object: its schema cannot be kept");
    schema = {{"type", "object"}};
  }
  if (form != ArgumentForm::kJson) return arguments_between_tags(schema, form);
  return Json{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

}  // namespace

Result<Json> forced_calls_format(const std::vector<FunctionTool>& tools, const ToolChoice& choice,
                                 const ServedModel& model, std::vector<std::string>& notes) {
  const std::string_view source =
      model.tokenizer->knows_tools() ? model.tokenizer->chat_template_source() : std::string_view();
  const ToolCallFormat family = tool_call_format(source);
  const std::optional<CallForm> form = form_of(family, source);
  if (!form) {
    return Error{
        .code = ErrorCode::kUnsupported,
        .message =
            "tool_choice: this model writes calls in a form of its own that is no JSON, so that none can "
            "be forced; use auto or none",
        .subject = "tool_choice"};
  }
  const MarkedTexts marks(family, model);
  Json each = Json::array();
  for (const FunctionTool& tool : tools) {
    if (choice.name && tool.name != *choice.name) continue;
    Json elements = Json::array();
    marks.append(form->before_name + tool.name + form->behind_name, elements);
    OCTAVO_TRY(Json arguments, arguments_of(tool, form->arguments, &notes));
    elements.push_back(std::move(arguments));
    marks.append(form->behind_arguments, elements);
    each.push_back(sequence_of(std::move(elements)));
  }
  const Json one = each.size() == 1 ? each.front() : Json{{"type", "or"}, {"elements", std::move(each)}};
  Json all = Json::array();
  marks.append(form->begin, all);
  all.push_back(one);
  const bool may_be_many = !choice.only_first && (!form->separator.empty() || !form->end.empty());
  if (may_be_many) {
    Json next = Json::array();
    marks.append(form->separator, next);
    next.push_back(one);
    all.push_back({{"type", "repeat"},
                   {"min", 0},
                   {"max", kMostForcedCalls - 1},
                   {"content", sequence_of(std::move(next))}});
  }
  marks.append(form->end, all);
  return sequence_of(std::move(all));
}

Result<std::optional<Json>> strict_calls_format(const std::vector<FunctionTool>& tools,
                                                const ToolChoice& choice, const ServedModel& model) {
  const auto is_strict = [](const FunctionTool& tool) { return tool.strict; };
  const std::string_view source =
      model.tokenizer->knows_tools() ? model.tokenizer->chat_template_source() : std::string_view();
  const ToolCallFormat family = tool_call_format(source);
  const std::optional<CallForm> form = form_of(family, source);
  const bool begins_with_mark = form && form->begin.empty() && form->before_name.starts_with("<tool_call>");
  if (std::ranges::none_of(tools, is_strict) || !begins_with_mark || !MarkedTexts(family, model).empty())
    return std::optional<Json>();
  Json tags = Json::array();
  for (const FunctionTool& tool : tools) {
    OCTAVO_TRY(Json arguments, arguments_of(tool, form->arguments, nullptr));
    tags.push_back({{"type", "tag"},
                    {"begin", form->before_name + tool.name + form->behind_name},
                    {"content", std::move(arguments)},
                    {"end", form->behind_arguments}});
  }
  return std::optional<Json>(Json{{"type", "triggered_tags"},
                                  {"triggers", {"<tool_call>"}},
                                  {"tags", std::move(tags)},
                                  {"stop_after_first", choice.only_first}});
}

}  // namespace octavo::app
