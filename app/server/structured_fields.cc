#include "app/server/structured_fields.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/chat_template/answer_parts.h"
#include "engine/grammar/json_schema.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostBytesOfThinkingMark = 64;

// A schema as an object, or as the text of one. What cannot be kept is refused here, with the field's name.
std::optional<StructuredOutput> read_schema(FieldReader& fields, std::string_view name) {
  const Json* const value = fields.find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object() && !value->is_boolean() && !value->is_string()) {
    fields.refuse(name, "a JSON schema");
    return std::nullopt;
  }
  JsonSchema wanted{value->is_string() ? value->get<std::string>() : dump(*value)};
  if (auto read = read_json_schema(wanted.schema); !read) {
    Error error = std::move(read).error();
    error.message = fields.path_of(name) + ": " + error.message;
    error.subject = fields.path_of(name);
    fields.fail(std::move(error));
    return std::nullopt;
  }
  return StructuredOutput(std::move(wanted));
}

template <class Form>
std::optional<StructuredOutput> read_text_form(FieldReader& fields, std::string_view name) {
  auto text = fields.text(name);
  if (!text || text->empty()) return std::nullopt;
  return StructuredOutput(Form{*std::move(text)});
}

std::optional<StructuredOutput> read_choice(FieldReader& fields, std::string_view name) {
  auto texts = fields.texts(name, kMostChoices);
  if (!texts) return std::nullopt;
  if (texts->empty()) fields.refuse(name, "a list of at least one text");
  return StructuredOutput(ChoiceOfTexts{*std::move(texts)});
}

// As an object, or as its text.
std::optional<StructuredOutput> read_tag(FieldReader& fields, std::string_view name) {
  const Json* const value = fields.find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return StructuralTag{value->get<std::string>()};
  if (value->is_object()) return StructuralTag{dump(*value)};
  fields.refuse(name, "a structural tag");
  return std::nullopt;
}

// {"name", "schema", "strict"} of OpenAI's chat.
std::optional<StructuredOutput> read_named_schema(FieldReader& format) {
  const Json* const named = format.object("json_schema");
  if (named == nullptr) {
    if (format.ok()) format.refuse_absent("json_schema");
    return std::nullopt;
  }
  FieldReader inner(*named, format.path_of("json_schema"));
  auto read = read_schema(inner, "schema");
  if (inner.ok() && !read) inner.refuse_absent("schema");
  format.adopt(inner);
  return read;
}

std::optional<StructuredOutput> read_response_format(FieldReader& fields) {
  const Json* const format = fields.object("response_format");
  if (format == nullptr) return std::nullopt;
  FieldReader inner(*format, "response_format");
  const std::string type = inner.text("type").value_or(std::string());
  std::optional<StructuredOutput> read;
  if (type == "json_object") {
    // llama.cpp takes a schema here, too.
    read = inner.has("schema") ? read_schema(inner, "schema") : StructuredOutput(AnyJsonObject{});
  } else if (type == "json_schema") {
    read = read_named_schema(inner);
  } else if (type == "structural_tag") {
    read = StructuralTag{dump(*format)};
  } else if (type != "text") {
    inner.refuse("type", "text, json_object, json_schema or structural_tag");
  }
  fields.adopt(inner);
  return read;
}

std::optional<StructuredOutput> take_one(FieldReader& fields,
                                         std::vector<std::optional<StructuredOutput>> given) {
  std::optional<StructuredOutput> one;
  for (std::optional<StructuredOutput>& next : given) {
    if (!next) continue;
    if (one) {
      fields.fail({.code = ErrorCode::kInvalidArgument,
                   .message = "the answer cannot have two forms: give one of response_format, "
                              "structured_outputs and guided_json, guided_regex, guided_choice or "
                              "guided_grammar",
                   .subject = "response_format"});
      return one;
    }
    one = std::move(next);
  }
  return one;
}

constexpr std::array kUnsupportedInStructuredOutputs = {
    UnsupportedField{"whitespace_pattern", Harmless::kNothing, "white space is bounded here"},
    UnsupportedField{"disable_any_whitespace", Harmless::kFalse, "white space is bounded here"},
    UnsupportedField{"disable_additional_properties", Harmless::kFalse,
                     "only properties of the schema come unless it allows others"},
};

std::optional<StructuredOutput> read_structured_outputs(FieldReader& fields) {
  const Json* const given = fields.object("structured_outputs");
  if (given == nullptr) return std::nullopt;
  FieldReader inner(*given, "structured_outputs");
  refuse_unsupported(inner, kUnsupportedInStructuredOutputs);
  std::vector<std::optional<StructuredOutput>> forms;
  forms.push_back(read_schema(inner, "json"));
  forms.push_back(read_text_form<RegularExpression>(inner, "regex"));
  forms.push_back(read_choice(inner, "choice"));
  forms.push_back(read_text_form<GrammarText>(inner, "grammar"));
  forms.push_back(read_tag(inner, "structural_tag"));
  if (inner.flag("json_object").value_or(false)) forms.emplace_back(AnyJsonObject{});
  auto one = take_one(inner, std::move(forms));
  if (inner.ok() && !one)
    fields.refuse("structured_outputs",
                  "an object with one of json, json_object, regex, choice, grammar and structural_tag");
  fields.adopt(inner);
  return one;
}

Json const_string(std::string_view text) { return {{"type", "const_string"}, {"value", text}}; }

Json format_of_form(const AnyJsonObject&) {
  return {{"type", "json_schema"}, {"json_schema", {{"type", "object"}}}};
}
Json format_of_form(const JsonSchema& wanted) {
  return {{"type", "json_schema"}, {"json_schema", parse_json(wanted.schema, "schema").value()}};
}
Json format_of_form(const RegularExpression& wanted) {
  return {{"type", "regex"}, {"pattern", wanted.pattern}};
}
Json format_of_form(const GrammarText& wanted) { return {{"type", "grammar"}, {"grammar", wanted.text}}; }
Json format_of_form(const ChoiceOfTexts& wanted) {
  Json texts = Json::array();
  for (const std::string& text : wanted.texts) texts.push_back(const_string(text));
  return {{"type", "or"}, {"elements", std::move(texts)}};
}
Json format_of_form(const StructuralTag& wanted) {
  const auto tag = parse_json(wanted.json, "structural_tag");
  return tag && tag->contains("format") ? tag->at("format") : tag ? *tag : Json(nullptr);
}

}  // namespace

std::optional<StructuredOutput> read_structured_output(FieldReader& fields) {
  refuse_unsupported(fields, std::array{UnsupportedField{"guided_whitespace_pattern", Harmless::kNothing,
                                                         "white space is bounded here"}});
  std::vector<std::optional<StructuredOutput>> given;
  given.push_back(read_response_format(fields));
  given.push_back(read_structured_outputs(fields));
  given.push_back(read_schema(fields, "guided_json"));
  given.push_back(read_text_form<RegularExpression>(fields, "guided_regex"));
  given.push_back(read_choice(fields, "guided_choice"));
  given.push_back(read_text_form<GrammarText>(fields, "guided_grammar"));
  // llama.cpp's clients send an empty one for none.
  if (const Json* const schema = fields.find("json_schema");
      schema != nullptr && *schema != "" && !schema->empty())
    given.push_back(read_schema(fields, "json_schema"));
  given.push_back(read_text_form<GrammarText>(fields, "grammar"));
  given.push_back(read_tag(fields, "structural_tag"));
  return take_one(fields, std::move(given));
}

std::optional<StructuredOutput> read_output_format(FieldReader& fields, std::string_view name) {
  const Json* const format = fields.object(name);
  if (format == nullptr) return std::nullopt;
  FieldReader inner(*format, fields.path_of(name));
  const std::string type = inner.text("type").value_or(std::string());
  std::optional<StructuredOutput> read;
  if (type == "json_schema") {
    read = read_schema(inner, "schema");
    if (inner.ok() && !read) inner.refuse_absent("schema");
  } else if (type == "json_object") {
    read = StructuredOutput(AnyJsonObject{});
  } else if (type != "text") {
    inner.refuse("type", "text, json_object or json_schema");
  }
  fields.adopt(inner);
  return read;
}

Json format_of(const StructuredOutput& wanted) {
  return std::visit([](const auto& form) { return format_of_form(form); }, wanted);
}

StructuredOutput structure_of(Json format) {
  return StructuralTag{dump({{"type", "structural_tag"}, {"format", std::move(format)}}),
                       /*may_name_tokens=*/true};
}

Json behind_thinking(Json format, const ChatPrompt& prompt, const ServedModel& model, std::int64_t now_s) {
  const bool may_think = model.tokenizer->chat_template_source().find("<think>") != std::string_view::npos;
  if (!may_think || prompt.continue_answer) return format;
  TemplateInputs inputs(now_s, prompt.template_values);
  inputs.tools = prompt.tools;
  const auto spans = model.tokenizer->apply_chat_template(prompt.messages, inputs);
  if (!spans || spans->empty()) return format;
  std::string end(spans->back().text);
  end = end.substr(end.size() - std::min(end.size(), kMostBytesOfThinkingMark));
  const std::size_t last_mark = end.rfind("</think>");
  const bool has_thought = last_mark != std::string::npos;
  if (has_thought) return format;
  const bool has_begun = begins_thinking(end);
  Json thinking = {{"type", "tag"},
                   {"begin", has_begun ? "" : "<think>"},
                   {"content", {{"type", "any_text"}}},
                   {"end", "</think>"}};
  Json blanks = {{"type", "regex"}, {"pattern", "\\n{0,2}"}};
  Json first = {{"type", "sequence"}, {"elements", Json::array({std::move(thinking), std::move(blanks)})}};
  if (!has_begun) first = {{"type", "optional"}, {"content", std::move(first)}};
  return {{"type", "sequence"}, {"elements", Json::array({std::move(first), std::move(format)})}};
}

}  // namespace octavo::app
