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
  kInvokeTags,     // <atem:parameter name="NAME">VALUE</atem:parameter>\n
  kMarkedTags,     // <｜DSML｜parameter name="NAME" string="true">VALUE</｜DSML｜parameter>\n
  kGemma,          // NAME:<|"|>TEXT<|"|>,NAME:JSON
  kPython,         // NAME="TEXT", NAME=JSON
};
struct CallForm {
  std::string before_name, behind_name, behind_arguments;
  std::string begin = {}, end = {};           // of all calls
  std::optional<std::string> separator = {};  // none: one call at most
  ArgumentForm arguments = ArgumentForm::kJson;
  std::string before_recipient = {};  // of a message that is for the function; empty: it has no such header
};

CallForm form_of(ToolCallFormat format, std::string_view source) {
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
        return CallForm{.before_name = "[TOOL_CALLS]", .behind_name = "[ARGS]", .behind_arguments = ""};
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
      return CallForm{.before_name = "<|tool_call>call:",
                      .behind_name = "{",
                      .behind_arguments = "}<tool_call|>",
                      .separator = "",
                      .arguments = ArgumentForm::kGemma};
    case ToolCallFormat::kPython:
      return CallForm{.before_name = "",
                      .behind_name = "(",
                      .behind_arguments = ")",
                      .begin = "<|tool_call_start|>[",
                      .end = "]<|tool_call_end|>",
                      .separator = ", ",
                      .arguments = ArgumentForm::kPython};
    case ToolCallFormat::kInvokeTags:
      // Muse: a message for each, behind a prompt that ends with the beginning of one.
      if (!has("｜DSML｜")) {
        return CallForm{.before_name = "<|message|><atem:function_calls>\n<atem:invoke name=\"",
                        .behind_name = "\">\n",
                        .behind_arguments = "</atem:invoke>\n</atem:function_calls>",
                        .separator = "<|eom|><|start|>assistant",
                        .arguments = ArgumentForm::kInvokeTags,
                        .before_recipient = " to="};
      }
      return CallForm{.before_name = "<｜DSML｜invoke name=\"",
                      .behind_name = "\">\n",
                      .behind_arguments = "</｜DSML｜invoke>\n",
                      .begin = "<｜DSML｜function_calls>\n",
                      .end = "</｜DSML｜function_calls>",
                      .separator = "",
                      .arguments = ArgumentForm::kMarkedTags};
  }
  return hermes;
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

  // The content between two marks: text in it ends where the second begins.
  Json between(std::string_view begin, Json content, std::string_view end) const {
    Json before = Json::array(), behind = Json::array();
    append(begin, before);
    append(end, behind);
    Json tag = {{"type", "tag"},
                {"begin", mark_of_tag(before.back())},
                {"content", std::move(content)},
                {"end", mark_of_tag(behind.front())}};
    before.back() = std::move(tag);
    before.insert(before.end(), behind.begin() + 1, behind.end());
    return before.size() == 1 ? Json(before.front()) : sequence_of(std::move(before));
  }

  bool empty() const { return tokens_.empty(); }

 private:
  static Json mark_of_tag(const Json& element) {
    return element.at("type") == "token" ? element : element.at("value");
  }

  struct Mark {
    std::string_view text;
    TokenId token_id;
  };
  std::vector<Mark> tokens_;
};

// The schema that a value has to keep, of a schema that can be kept; nothing: it may be anything.
const Json* meant_schema(const Json& schema, const Json& root) {
  const Json* meant = &schema;
  for (int i = 0; i < 16 && meant->is_object() && meant->contains("$ref"); ++i)
    meant = &root.at(Json::json_pointer((*meant)["$ref"].get<std::string>().substr(1)));
  return meant->is_object() ? meant : nullptr;
}

// A schema that stands for itself.
Json value_as_json(Json schema, const Json& root) {
  for (const char* const definitions : {"$defs", "definitions"}) {
    if (schema.is_object() && root.contains(definitions)) schema[definitions] = root[definitions];
  }
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// A value between marks is text where it may be one, and else JSON (tool_arguments.h reads them).
struct MarkedValue {
  Json format;
  bool is_text = true;
};
MarkedValue marked_value(const Json& schema, const Json& root) {
  const Json any_text = {{"type", "any_text"}};
  const Json* const meant = meant_schema(schema, root);
  if (meant == nullptr) return {any_text};
  const auto is_text = [](const Json& value) { return value.is_string(); };
  const Json choices =
      meant->contains("const") ? Json::array({meant->at("const")}) : meant->value("enum", Json::array());
  if (!choices.empty() && std::ranges::all_of(choices, is_text)) {
    Json texts = Json::array();
    for (const Json& text : choices) texts.push_back({{"type", "const_string"}, {"value", text}});
    return {Json{{"type", "or"}, {"elements", std::move(texts)}}};
  }
  const Json type = meant->value("type", Json());
  if (type == "string" && meant->contains("pattern"))
    return {Json{{"type", "regex"}, {"pattern", meant->at("pattern")}}};
  if (!type.is_string() || type == "string") return {any_text};
  return {value_as_json(*meant, root), /*is_text=*/false};
}

// Names and values as a family writes them, where that is no JSON.
class MarkedArguments {
 public:
  MarkedArguments(ArgumentForm form, const MarkedTexts& marks) : form_(form), marks_(marks) {}

  // Of a schema that can be kept.
  Json format_of(const Json& schema) const {
    const Json required = schema.value("required", Json::array());
    const Json properties = schema.value("properties", Json::object());
    if (properties.empty()) return {{"type", "const_string"}, {"value", ""}};
    Json needed = Json::array(), optional = Json::array(), in_order = Json::array();
    for (const auto& [name, value] : properties.items()) {
      Json one = argument(name, value, schema);
      const bool must_be_there = std::ranges::find(required, Json(name)) != required.end();
      (must_be_there ? needed : optional).push_back(one);
      in_order.push_back(must_be_there ? std::move(one) : optional_of(std::move(one)));
    }
    if (separator().empty()) return sequence_of(std::move(in_order));
    return separated(needed, optional);
  }

 private:
  static Json optional_of(Json format) { return {{"type", "optional"}, {"content", std::move(format)}}; }
  std::string_view separator() const {
    if (form_ == ArgumentForm::kGemma) return ",";
    return form_ == ArgumentForm::kPython ? ", " : "";
  }

  Json argument(const std::string& name, const Json& schema, const Json& root) const {
    if (form_ == ArgumentForm::kPython)  // whose literals JSON's can be read as
      return sequence_of({{{"type", "const_string"}, {"value", name + "="}}, value_as_json(schema, root)});
    MarkedValue value = marked_value(schema, root);
    Json& format = value.format;
    switch (form_) {
      case ArgumentForm::kKeyTags:
        return marks_.between("\n<arg_key>" + name + "</arg_key>\n<arg_value>", std::move(format),
                              "</arg_value>");
      case ArgumentForm::kInvokeTags:
        return marks_.between("<atem:parameter name=\"" + name + "\">", std::move(format),
                              "</atem:parameter>\n");
      case ArgumentForm::kMarkedTags:
        return marks_.between(
            "<｜DSML｜parameter name=\"" + name + "\" string=\"" + (value.is_text ? "true" : "false") + "\">",
            std::move(format), "</｜DSML｜parameter>\n");
      case ArgumentForm::kGemma:
        if (value.is_text) return marks_.between(name + ":<|\"|>", std::move(format), "<|\"|>");
        return sequence_of({{{"type", "const_string"}, {"value", name + ":"}}, std::move(format)});
      default: return marks_.between("<parameter=" + name + ">\n", std::move(format), "\n</parameter>\n");
    }
  }

  // Those that must be there first: then each of the others brings its separator. Where none must, any of the
  // others may be the first.
  Json separated(const Json& needed, const Json& optional) const {
    const Json separator_format = {{"type", "const_string"}, {"value", separator()}};
    const auto add_others = [&](Json& elements, std::size_t first) {
      for (std::size_t i = first; i < optional.size(); ++i)
        elements.push_back(optional_of(sequence_of({separator_format, optional[i]})));
    };
    if (!needed.empty()) {
      Json elements = Json::array();
      for (const Json& one : needed) {
        if (!elements.empty()) elements.push_back(separator_format);
        elements.push_back(one);
      }
      add_others(elements, 0);
      return sequence_of(std::move(elements));
    }
    Json beginnings = Json::array();
    for (std::size_t first = 0; first < optional.size(); ++first) {
      Json elements = Json::array({optional[first]});
      add_others(elements, first + 1);
      beginnings.push_back(sequence_of(std::move(elements)));
    }
    return optional_of({{"type", "or"}, {"elements", std::move(beginnings)}});
  }

  ArgumentForm form_;
  const MarkedTexts& marks_;
};

// The arguments by the function's schema, which are an object whatever it says.
Result<Json> arguments_of(const FunctionTool& tool, ArgumentForm form, const MarkedTexts& marks,
                          std::vector<std::string>* notes) {
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
  if (form != ArgumentForm::kJson) return MarkedArguments(form, marks).format_of(schema);
  return Json{{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

}  // namespace

Result<Json> forced_calls_format(const std::vector<FunctionTool>& tools, const ToolChoice& choice,
                                 const ServedModel& model, std::vector<std::string>& notes) {
  const std::string_view source =
      model.tokenizer->knows_tools() ? model.tokenizer->chat_template_source() : std::string_view();
  const ToolCallFormat family = tool_call_format(source);
  const CallForm form = form_of(family, source);
  const MarkedTexts marks(family, model);
  Json each = Json::array();
  for (const FunctionTool& tool : tools) {
    if (choice.name && tool.name != *choice.name) continue;
    Json elements = Json::array();
    const std::string header = form.before_recipient.empty() ? "" : form.before_recipient + tool.name;
    marks.append(header + form.before_name + tool.name + form.behind_name, elements);
    OCTAVO_TRY(Json arguments, arguments_of(tool, form.arguments, marks, &notes));
    elements.push_back(std::move(arguments));
    marks.append(form.behind_arguments, elements);
    each.push_back(sequence_of(std::move(elements)));
  }
  const Json one = each.size() == 1 ? each.front() : Json{{"type", "or"}, {"elements", std::move(each)}};
  Json all = Json::array();
  marks.append(form.begin, all);
  all.push_back(one);
  if (!choice.only_first && form.separator) {
    Json next = Json::array();
    marks.append(*form.separator, next);
    next.push_back(one);
    all.push_back({{"type", "repeat"},
                   {"min", 0},
                   {"max", kMostForcedCalls - 1},
                   {"content", sequence_of(std::move(next))}});
  }
  marks.append(form.end, all);
  return sequence_of(std::move(all));
}

Result<std::optional<Json>> strict_calls_format(const std::vector<FunctionTool>& tools,
                                                const ToolChoice& choice, const ServedModel& model) {
  const auto is_strict = [](const FunctionTool& tool) { return tool.strict; };
  const std::string_view source =
      model.tokenizer->knows_tools() ? model.tokenizer->chat_template_source() : std::string_view();
  const ToolCallFormat family = tool_call_format(source);
  const CallForm form = form_of(family, source);
  const bool begins_with_mark = form.begin.empty() && form.before_name.starts_with("<tool_call>");
  const MarkedTexts marks(family, model);
  if (std::ranges::none_of(tools, is_strict) || !begins_with_mark || !marks.empty())
    return std::optional<Json>();
  Json tags = Json::array();
  for (const FunctionTool& tool : tools) {
    OCTAVO_TRY(Json arguments, arguments_of(tool, form.arguments, marks, nullptr));
    tags.push_back({{"type", "tag"},
                    {"begin", form.before_name + tool.name + form.behind_name},
                    {"content", std::move(arguments)},
                    {"end", form.behind_arguments}});
  }
  return std::optional<Json>(Json{{"type", "triggered_tags"},
                                  {"triggers", {"<tool_call>"}},
                                  {"tags", std::move(tags)},
                                  {"stop_after_first", choice.only_first}});
}

}  // namespace octavo::app
