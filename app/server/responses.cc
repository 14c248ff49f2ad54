#include "app/server/responses.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/server/answer_calls.h"
#include "app/server/api_error.h"
#include "app/server/function_tools.h"
#include "app/server/growing_answer.h"
#include "app/server/request_fields.h"
#include "engine/base/text.h"
#include "engine/chat_template/json_outline.h"

namespace octavo::app {
namespace {

// ---- the answer

// Blocks are items of the output, in their order: reasoning, a message of one part, or a call.
class ResponseAnswer final : public Answer {
 public:
  // `head` is the response without what the model makes of it.
  ResponseAnswer(bool streams, const ServedModel& model, const CallIdentity& identity, Json head,
                 std::optional<CallReading> calls)
      : streams_(streams),
        hex_(identity.hex),
        head_(std::move(head)),
        growing_({streams ? BlocksAreTold::kAsTheyGrow : BlocksAreTold::kAtTheEnd,
                  model.tokenizer,
                  {},
                  std::move(calls)}) {}

  std::string add(std::size_t, const EngineEvent& event) override {
    std::string frames;
    for (const AnswerStep& step : growing_.add(event)) append_frames(step, frames);
    return frames;
  }

  bool done() const override { return growing_.done(); }
  const std::optional<Error>& failure() const override { return growing_.failure(); }

  void compared(const PromptDivergence& divergence) override {
    head_["prompt_cache_diagnostics"] = response_diagnostics(divergence);
  }

  std::string first_frames() override {
    std::string frames = frame("response.created", {{"response", response("in_progress")}});
    frames += frame("response.in_progress", {{"response", response("in_progress")}});
    return frames;
  }

  std::string last_frames() override {
    const std::string status = final_status();
    return frame("response." + status, {{"response", response(status)}});
  }

  // Clients that count events would give up; a comment is none.
  std::string waiting_frames() override {
    return frame("response.in_progress", {{"response", response("in_progress")}});
  }

  std::string failure_frames(const ApiError& error) override {
    Json failed = response("failed");
    failed["error"] = {{"code", code_of(error)}, {"message", error.message}};
    return frame("response.failed", {{"response", std::move(failed)}});
  }

  std::string body() override { return dump(response(final_status())); }

 private:
  // Nothing when nobody listens; items_ is filled either way. Frames are numbered as they are made, so each
  // has a statement of its own.
  void append_frames(const AnswerStep& step, std::string& frames) {
    const std::size_t index = step.block;
    const AnswerBlock& block = growing_.blocks()[index];
    if (block.is_call()) return append_call_frames(step, block, frames);
    const bool thinks = block.kind == PartKind::kThinking;
    switch (step.kind) {
      case AnswerStep::Kind::kOpened:
        frames += item_frame("response.output_item.added", index, item(index, "in_progress"));
        frames += part_frame("response.content_part.added", index, "part", part(block.kind, {}));
        break;
      case AnswerStep::Kind::kGrew:
        frames += part_frame(thinks ? "response.reasoning_text.delta" : "response.output_text.delta", index,
                             "delta", step.text);
        break;
      case AnswerStep::Kind::kClosed: {
        const bool is_last = index + 1 == growing_.blocks().size();
        items_.push_back(item(index, is_last && growing_.is_cut() ? "incomplete" : "completed"));
        frames += part_frame(thinks ? "response.reasoning_text.done" : "response.output_text.done", index,
                             "text", block.text);
        frames += part_frame("response.content_part.done", index, "part", part(block.kind, block.text));
        frames += item_frame("response.output_item.done", index, items_.back());
        break;
      }
    }
  }

  void append_call_frames(const AnswerStep& step, const AnswerBlock& block, std::string& frames) {
    const std::size_t index = step.block;
    const auto arguments = [&](std::string_view type, Json fields) {
      Json told = {{"item_id", item_id(index)}, {"output_index", index}};
      told.update(fields);
      return frame(type, std::move(told));
    };
    switch (step.kind) {
      case AnswerStep::Kind::kOpened:
        frames += item_frame("response.output_item.added", index, item(index, "in_progress"));
        break;
      case AnswerStep::Kind::kGrew:
        frames += arguments("response.function_call_arguments.delta", {{"delta", step.text}});
        break;
      case AnswerStep::Kind::kClosed:
        // A call that the limit of tokens cut is the last block, and not whole.
        items_.push_back(
            item(index, growing_.is_cut() && !is_json_object(block.text) ? "incomplete" : "completed"));
        frames += arguments("response.function_call_arguments.done",
                            {{"name", block.called}, {"arguments", block.text}});
        frames += item_frame("response.output_item.done", index, items_.back());
        break;
    }
  }

  // The fields behind the type and the number.
  std::string frame(std::string_view type, Json fields) {
    if (!streams_) return {};
    Json event = {{"type", type}, {"sequence_number", next_sequence_number_++}};
    event.update(fields);
    return typed_frame(event);
  }

  std::string item_frame(std::string_view type, std::size_t index, Json item) {
    return frame(type, {{"output_index", index}, {"item", std::move(item)}});
  }

  std::string part_frame(std::string_view type, std::size_t index, const char* name, Json value) {
    Json fields = {
        {"item_id", item_id(index)}, {"output_index", index}, {"content_index", 0}, {name, std::move(value)}};
    if (type.starts_with("response.output_text.")) fields["logprobs"] = Json::array();
    return frame(type, std::move(fields));
  }

  std::string item_id(std::size_t index) const {
    const AnswerBlock& block = growing_.blocks()[index];
    const bool thinks = block.kind == PartKind::kThinking;
    return (block.is_call() ? "fc_" : thinks ? "rs_" : "msg_") + hex_ + "_" + std::to_string(index);
  }

  static Json part(PartKind kind, std::string_view text) {
    if (kind == PartKind::kThinking) return {{"type", "reasoning_text"}, {"text", text}};
    return {
        {"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
  }

  // Without content or arguments while it is in progress: they are told as they are added.
  Json item(std::size_t index, std::string_view status) const {
    const AnswerBlock& block = growing_.blocks()[index];
    if (block.is_call()) {
      const bool is_begun = status == "in_progress";
      return {{"id", item_id(index)}, {"type", "function_call"},
              {"status", status},     {"call_id", call_id("call_", hex_, 0, block.call_index)},
              {"name", block.called}, {"arguments", is_begun ? std::string() : block.text}};
    }
    Json content = Json::array();
    if (status != "in_progress") content.push_back(part(block.kind, block.text));
    if (block.kind == PartKind::kThinking) {
      return {{"id", item_id(index)},
              {"type", "reasoning"},
              {"status", status},
              {"summary", Json::array()},
              {"content", std::move(content)}};
    }
    return {{"id", item_id(index)},
            {"type", "message"},
            {"status", status},
            {"role", "assistant"},
            {"content", std::move(content)}};
  }

  std::string final_status() const { return growing_.is_cut() ? "incomplete" : "completed"; }

  Json response(const std::string& status) const {
    Json told = head_;
    told["status"] = status;
    told["output"] = items_;
    if (status == "incomplete") told["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (status == "incomplete" || status == "completed") told["usage"] = usage();
    return told;
  }

  // Clients expect each of these. Writing to the cache costs nothing here, so nothing is told of it.
  Json usage() const {
    return {{"input_tokens", growing_.num_prompt_tokens()},
            {"input_tokens_details",
             {{"cached_tokens", growing_.num_cached_tokens()}, {"cache_write_tokens", 0}}},
            {"output_tokens", growing_.num_output_tokens()},
            {"output_tokens_details", {{"reasoning_tokens", growing_.num_thinking_tokens()}}},
            {"total_tokens", growing_.num_prompt_tokens() + growing_.num_output_tokens()}};
  }

  // Clients try again what is a server_error; Codex shortens its history on context_length_exceeded.
  static std::string code_of(const ApiError& error) {
    if (!error.code.empty()) return error.code;
    if (error.status == 429) return "rate_limit_exceeded";
    return error.status >= 500 ? "server_error" : "invalid_prompt";
  }

  bool streams_;
  std::string hex_;
  Json head_;
  GrowingAnswer growing_;
  Json items_ = Json::array();  // that are closed
  std::int64_t next_sequence_number_ = 0;
};

// ---- the request

constexpr std::array kUnsupportedByResponses = {
    UnsupportedField{"previous_response_id", Harmless::kNothing,
                     "answers are not kept, so send the whole input"},
    UnsupportedField{"conversation", Harmless::kNothing, "answers are not kept, so send the whole input"},
    UnsupportedField{"prompt", Harmless::kNothing, "send its text as instructions"},
    UnsupportedField{"background", Harmless::kFalse, "wait for the answer, or stream it"},
    UnsupportedField{"top_logprobs", Harmless::kZero, "/v1/completions tells them"},
};

std::string response_element_path(std::string_view list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

// Items for the template, each with its name.
struct ResponseInput {
  std::vector<ChatMessage> messages;
  std::vector<MessageName> names;
};

std::string read_response_part(FieldReader& part, const std::string& path) {
  const auto type = part.text("type");
  if (!type) {
    part.refuse_absent("type");
    return {};
  }
  const bool is_refusal = *type == "refusal";
  if (!is_refusal && *type != "input_text" && *type != "output_text" && *type != "text") {
    part.fail({ErrorCode::kUnsupported,
               path + ": parts of type '" + escape_for_message(*type) +
                   "' are not supported; send input_text or output_text",
               path});
    return {};
  }
  const char* const name = is_refusal ? "refusal" : "text";
  auto text = part.text(name);
  if (!text) part.refuse_absent(name);
  return std::move(text).value_or(std::string());
}

// Text, or a list of parts.
std::string read_response_content(FieldReader& item, std::string_view name, MessageName& told) {
  const Json* const content = item.find(name);
  if (content == nullptr) {
    item.refuse_absent(name);
    return {};
  }
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) {
    item.refuse(name, "a text or a list of parts");
    return {};
  }
  std::string joined;
  for (std::size_t i = 0; i < content->size() && item.ok(); ++i) {
    const std::string path = response_element_path(item.path_of(name), i);
    FieldReader part((*content)[i], path);
    if (i > 0) joined += '\n';
    if (content->size() > 1) told.blocks.push_back({joined.size(), i});
    if (part.ok()) joined += read_response_part(part, path);
    item.adopt(part);
  }
  return joined;
}

ChatMessage read_response_message(FieldReader& item, MessageName& told) {
  ChatMessage message;
  const auto role = item.text("role");
  if (!role) {
    item.refuse_absent("role");
  } else if (*role == "assistant") {
    message.role = Role::kAssistant;
  } else if (*role == "system" || *role == "developer") {
    message.role = Role::kSystem;
  } else if (*role != "user") {
    item.refuse("role", "user, assistant, system or developer");
  }
  message.content = read_response_content(item, "content", told);
  told.role = role.value_or(std::string());
  return message;
}

// Calls that follow an answer, or each other, are one message.
void read_response_call(FieldReader& item, MessageName name, ResponseInput& input) {
  ToolCall call{.id = read_required_text(item, "call_id"),
                .name = read_required_text(item, "name"),
                .arguments = read_call_arguments(item, "arguments")};
  std::vector<ChatMessage>& messages = input.messages;
  if (messages.empty() || messages.back().role != Role::kAssistant) {
    messages.push_back({.role = Role::kAssistant, .content = {}});
    name.role = "function_call";
    input.names.push_back(std::move(name));
  }
  messages.back().tool_calls.push_back(std::move(call));
}

void read_response_item(FieldReader& item, const std::string& path, ResponseInput& input) {
  const auto type = item.text("type");
  MessageName name{.path = path};
  if (!type || *type == "message") {
    input.messages.push_back(read_response_message(item, name));
    input.names.push_back(std::move(name));
  } else if (*type == "function_call") {
    read_response_call(item, std::move(name), input);
  } else if (*type == "function_call_output") {
    std::string answered = read_required_text(item, "call_id");
    input.messages.push_back({.role = Role::kTool,
                              .content = read_response_content(item, "output", name),
                              .tool_call_id = std::move(answered)});
    name.role = *type;
    input.names.push_back(std::move(name));
  } else if (*type == "item_reference") {
    item.fail({ErrorCode::kUnsupported, path + ": items are not kept, so send the item itself", path});
  }
}

ResponseInput read_response_input(FieldReader& fields) {
  ResponseInput read;
  std::vector<ChatMessage>& messages = read.messages;
  if (auto instructions = fields.text("instructions"); instructions && !instructions->empty()) {
    messages.push_back({.role = Role::kSystem, .content = *std::move(instructions)});
    read.names.push_back({.path = "instructions"});
  }
  const Json* const input = fields.find("input");
  if (input == nullptr) {
    fields.refuse_absent("input");
  } else if (input->is_string()) {
    messages.push_back({.role = Role::kUser, .content = input->get<std::string>()});
    read.names.push_back({.path = "input"});
  } else if (!input->is_array()) {
    fields.refuse("input", "a text or a list of items");
  } else {
    const std::size_t num_before = messages.size();
    for (std::size_t i = 0; i < input->size() && fields.ok(); ++i) {
      const std::string path = response_element_path("input", i);
      FieldReader item((*input)[i], path);
      if (item.ok()) read_response_item(item, path, read);
      fields.adopt(item);
    }
    if (messages.size() == num_before)
      fields.fail({ErrorCode::kInvalidArgument, "input has no message; send at least one", "input"});
  }
  return read;
}

// {"comparison_response_id": text or null}
std::optional<std::string> read_compared_response(FieldReader& fields) {
  const Json* const options = fields.object("prompt_cache_options");
  if (options == nullptr) return std::nullopt;
  FieldReader inner(*options, "prompt_cache_options");
  auto compared_with = inner.text("comparison_response_id");
  fields.adopt(inner);
  return compared_with;
}

struct ResponseTools : OfferedTools {
  Json told = Json::array();  // as the answer repeats them
};

// What a server would have to run itself is passed over: agents send it to everyone.
ResponseTools read_response_tools(FieldReader& fields, const ServedModel& model) {
  std::vector<FunctionTool> tools;
  ResponseTools read;
  const Json* const list = fields.list("tools", 0, kMaxAgentTools);
  for (std::size_t i = 0; list != nullptr && i < list->size() && fields.ok(); ++i) {
    FieldReader tool((*list)[i], response_element_path("tools", i));
    if (tool.text("type") == "function") {
      tools.push_back(read_function_tool(tool, "parameters"));
      const FunctionTool& added = tools.back();
      read.told.push_back({{"type", "function"},
                           {"name", added.name},
                           {"description", added.description ? Json(*added.description) : Json(nullptr)},
                           {"parameters", added.parameters},
                           {"strict", added.strict}});
    }
    fields.adopt(tool);
  }
  ToolChoice choice = read_tool_choice(fields);
  static_cast<OfferedTools&>(read) = offered_tools(fields, std::move(tools), std::move(choice), model);
  return read;
}

SamplingParams read_response_sampling(FieldReader& fields, const ServedModel& model) {
  SamplingParams sampling = read_plain_sampling(fields, model);
  sampling.max_tokens = fields.small_integer("max_output_tokens", 1).value_or(tokens_to_context_end(model));
  return sampling;
}

TemplateValues read_response_reasoning(FieldReader& fields, const ServedModel& model) {
  TemplateValues values;
  const Json* const reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return values;
  FieldReader inner(*reasoning, "reasoning");
  if (const auto effort = inner.text("effort")) choose_effort(inner, "effort", *effort, model, values);
  fields.adopt(inner);
  return values;
}

std::optional<StructuredOutput> read_response_text_format(FieldReader& fields) {
  const Json* const text = fields.object("text");
  if (text == nullptr) return std::nullopt;
  FieldReader inner(*text, "text");
  auto read = read_output_format(inner, "format");
  fields.adopt(inner);
  return read;
}

Json repeated_text_format(FieldReader& fields) {
  const Json* const text = fields.find("text");
  const bool has_format = text != nullptr && text->is_object() && text->contains("format");
  return {{"format", has_format ? text->at("format") : Json{{"type", "text"}}}};
}

// What the answer repeats of the request, and what is the same in every answer.
Json response_head(FieldReader& fields, const SamplingParams& sampling, Json tools, const ServedModel& model,
                   const CallIdentity& identity) {
  const auto repeated = [&](std::string_view name, Json otherwise = nullptr) {
    const Json* const value = fields.find(name);
    return value != nullptr ? *value : std::move(otherwise);
  };
  return {{"id", "resp_" + identity.hex},
          {"object", "response"},
          {"created_at", identity.created},
          {"status", nullptr},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", repeated("instructions")},
          {"max_output_tokens", repeated("max_output_tokens")},
          {"model", model.name()},
          {"output", Json::array()},
          {"parallel_tool_calls", repeated("parallel_tool_calls", true)},
          {"previous_response_id", nullptr},
          {"reasoning", repeated("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"store", false},
          {"temperature", sampling.temperature},
          {"text", repeated_text_format(fields)},
          {"tool_choice", repeated("tool_choice", "auto")},
          {"tools", std::move(tools)},
          {"top_p", sampling.top_p},
          {"truncation", "disabled"},
          {"usage", nullptr},
          {"metadata", repeated("metadata", Json::object())}};
}

}  // namespace

Result<Call> parse_response_call(const Json& body, const ServedModel& model, const CallIdentity& identity) {
  FieldReader fields(body);
  read_model(fields, model);
  refuse_unsupported(fields, kUnsupportedByResponses);
  ResponseTools tools = read_response_tools(fields, model);
  ResponseInput input = read_response_input(fields);
  ChatPrompt prompt{.messages = std::move(input.messages)};
  auto compared_with = read_compared_response(fields);
  prompt.tools = tools.text;
  prompt.template_values = read_response_reasoning(fields, model);
  SamplingParams sampling = read_response_sampling(fields, model);
  const bool stream = fields.flag("stream").value_or(false);
  fields.flag("store");
  fields.flag("parallel_tool_calls");
  fields.object("metadata");
  std::string cache_salt = read_cache_salt(fields);
  refuse_unsupported(fields, commonly_unsupported());
  Call call;
  demand_form(fields, read_response_text_format(fields), tools, prompt, model, identity, sampling,
              call.notes);
  OCTAVO_TRY_VOID(fields.check());
  OCTAVO_TRY_VOID(check_sampling(sampling, model));

  Json head = response_head(fields, sampling, std::move(tools.told), model, identity);
  call.stream = stream;
  call.names = std::move(input.names);
  call.compared_with = std::move(compared_with);
  call.requests.push_back(
      {.prompt = std::move(prompt), .sampling = std::move(sampling), .cache_salt = std::move(cache_salt)});
  call.answer =
      std::make_unique<ResponseAnswer>(stream, model, identity, std::move(head), std::move(tools.calls));
  return call;
}

}  // namespace octavo::app
