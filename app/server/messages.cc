#include "app/server/messages.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/server/answer_calls.h"
#include "app/server/function_tools.h"
#include "app/server/growing_answer.h"
#include "app/server/request_fields.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Thinking is signed so that its maker knows it again. Nothing here reads it back; some clients drop thinking
// whose signature is empty.
constexpr std::string_view kThinkingSignature = "octavo";

// ---- the answer

class MessageAnswer final : public Answer {
 public:
  MessageAnswer(bool streams, const ServedModel& model, const CallIdentity& identity, std::string begun,
                std::optional<CallReading> calls, bool tells_diagnostics)
      : streams_(streams),
        tells_diagnostics_(tells_diagnostics),
        hex_(identity.hex),
        id_("msg_" + identity.hex),
        model_(model.name()),
        growing_({streams ? BlocksAreTold::kAsTheyGrow : BlocksAreTold::kAtTheEnd, model.tokenizer,
                  std::move(begun), std::move(calls)}) {}

  std::string add(std::size_t, const EngineEvent& event) override {
    const std::vector<AnswerStep> steps = growing_.add(event);
    if (!streams_) return {};
    std::string frames;
    if (std::holds_alternative<RequestAdmitted>(event) || !steps.empty()) frames += start_frames();
    for (const AnswerStep& step : steps) frames += frames_of(step);
    return frames;
  }

  bool done() const override { return growing_.done(); }
  const std::optional<Error>& failure() const override { return growing_.failure(); }

  void compared(const PromptDivergence& divergence) override {
    diagnostics_ = message_diagnostics(divergence);
  }

  // Nothing: the first event tells how much of the prompt was found in the cache.
  std::string first_frames() override { return {}; }

  std::string last_frames() override {
    const Json delta = {{"type", "message_delta"},
                        {"delta", {{"stop_reason", stop_reason()}, {"stop_sequence", stop_sequence()}}},
                        {"usage", usage()}};
    return start_frames() + typed_frame(delta) + typed_frame({{"type", "message_stop"}});
  }

  std::string waiting_frames() override { return typed_frame({{"type", "ping"}}); }
  std::string failure_frames(const ApiError& error) override {
    return typed_frame(anthropic_error(error, {}));
  }

  std::string body() override {
    Json content = Json::array();
    for (const AnswerBlock& block : growing_.blocks()) {
      content.push_back(block.is_call() ? call_block(block, block.text)
                                        : content_block(block.kind, block.text, kThinkingSignature));
    }
    return dump(message(std::move(content), stop_reason(), stop_sequence()));
  }

 private:
  std::string start_frames() {
    if (started_) return {};
    started_ = true;
    return typed_frame(
        {{"type", "message_start"}, {"message", message(Json::array(), Json(nullptr), Json(nullptr))}});
  }

  std::string frames_of(const AnswerStep& step) const {
    const AnswerBlock& block = growing_.blocks()[step.block];
    const bool thinks = block.kind == PartKind::kThinking;
    const auto delta = [&](const char* type, const char* field, std::string_view text) {
      return typed_frame({{"type", "content_block_delta"},
                          {"index", step.block},
                          {"delta", {{"type", type}, {field, text}}}});
    };
    switch (step.kind) {
      case AnswerStep::Kind::kOpened:
        return typed_frame({{"type", "content_block_start"},
                            {"index", step.block},
                            {"content_block",
                             block.is_call() ? call_block(block, "{}") : content_block(block.kind, {}, {})}});
      case AnswerStep::Kind::kGrew:
        if (block.is_call()) return delta("input_json_delta", "partial_json", step.text);
        return thinks ? delta("thinking_delta", "thinking", step.text)
                      : delta("text_delta", "text", step.text);
      case AnswerStep::Kind::kClosed:
        return (thinks ? delta("signature_delta", "signature", kThinkingSignature) : std::string()) +
               typed_frame({{"type", "content_block_stop"}, {"index", step.block}});
    }
    return {};
  }

  static Json content_block(PartKind kind, std::string_view text, std::string_view signature) {
    if (kind == PartKind::kThinking)
      return {{"type", "thinking"}, {"thinking", text}, {"signature", signature}};
    return {{"type", "text"}, {"text", text}};
  }

  Json call_block(const AnswerBlock& block, std::string_view input) const {
    auto parsed = parse_json(input, "the arguments of a call");  // which are an object, or there is no call
    return {{"type", "tool_use"},
            {"id", call_id("toolu_", hex_, 0, block.call_index)},
            {"name", block.called},
            {"input", parsed ? *std::move(parsed) : Json::object()}};
  }

  Json message(Json content, Json stop_reason, Json stop_sequence) const {
    Json told = {{"id", id_},
                 {"type", "message"},
                 {"role", "assistant"},
                 {"model", model_},
                 {"content", std::move(content)},
                 {"stop_reason", std::move(stop_reason)},
                 {"stop_sequence", std::move(stop_sequence)},
                 {"usage", usage()}};
    if (tells_diagnostics_) told["diagnostics"] = diagnostics_;
    return told;
  }

  Json stop_reason() const {
    if (growing_.is_cut()) return "max_tokens";
    if (growing_.stop_string() != nullptr) return "stop_sequence";
    return growing_.has_calls() ? "tool_use" : "end_turn";
  }
  Json stop_sequence() const {
    const std::string* const stop = growing_.stop_string();
    return stop != nullptr ? Json(*stop) : Json(nullptr);
  }

  // Of the input, the three add up to the prompt. Nothing is told as written to the cache: that is a price,
  // and a part of the prompt that would be missing from input_tokens.
  Json usage() const {
    return {{"input_tokens", growing_.num_prompt_tokens() - growing_.num_cached_tokens()},
            {"cache_creation_input_tokens", 0},
            {"cache_read_input_tokens", growing_.num_cached_tokens()},
            {"output_tokens", growing_.num_output_tokens()},
            {"output_tokens_details", {{"thinking_tokens", growing_.num_thinking_tokens()}}}};
  }

  bool streams_;
  bool tells_diagnostics_;
  bool started_ = false;
  Json diagnostics_;
  std::string hex_, id_, model_;
  GrowingAnswer growing_;
};

// ---- the request

Error unsupported_message_part(const std::string& path, const std::string& sentence) {
  return {ErrorCode::kUnsupported, path + ": " + sentence, path};
}

// The text of one block; nullopt: nothing of it is for the model.
std::optional<std::string> read_message_block(FieldReader& block, const std::string& path) {
  const auto type = block.text("type");
  if (!type) {
    block.refuse_absent("type");
  } else if (*type == "text") {
    auto text = block.text("text");
    if (!text) block.refuse_absent("text");
    return text;
  } else if (*type != "thinking" && *type != "redacted_thinking") {  // what was thought is thought anew
    block.fail(unsupported_message_part(
        path, "blocks of type '" + escape_for_message(*type) + "' are not supported; send text blocks"));
  }
  return std::nullopt;
}

// A text block, and its place among the blocks that were sent.
struct MessageText {
  std::size_t index = 0;
  std::string text;
};

// Text, or a list of blocks.
std::vector<MessageText> read_message_texts(FieldReader& fields, std::string_view name) {
  std::vector<MessageText> texts;
  const Json* const content = fields.find(name);
  if (content == nullptr) return texts;
  if (content->is_string()) {
    texts.push_back({0, content->get<std::string>()});
    return texts;
  }
  if (!content->is_array()) {
    fields.refuse(name, "a text or a list of blocks");
    return texts;
  }
  for (std::size_t i = 0; i < content->size() && fields.ok(); ++i) {
    const std::string path = fields.path_of(name) + "[" + std::to_string(i) + "]";
    FieldReader block((*content)[i], path);
    auto text = block.ok() ? read_message_block(block, path) : std::nullopt;
    fields.adopt(block);
    if (text) texts.push_back({i, *std::move(text)});
  }
  return texts;
}

// Blocks have a line each; `name` learns where they begin.
std::string joined_message_texts(const std::vector<MessageText>& texts, MessageName& name) {
  std::string joined;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) joined += '\n';
    if (texts.size() > 1 || texts[i].index > 0) name.blocks.push_back({joined.size(), texts[i].index});
    joined += texts[i].text;
  }
  return joined;
}

// A block of which nothing is left is as if it had not been sent.
std::string joined_system_texts(const std::vector<MessageText>& texts, MessageName& name) {
  std::vector<MessageText> kept;
  for (const MessageText& text : texts) {
    const std::string_view rest = without_billing_lines(text.text);
    if (rest.size() == text.text.size() || !rest.empty()) kept.push_back({text.index, std::string(rest)});
  }
  return joined_message_texts(kept, name);
}

// Messages for the template, each with its name.
struct NamedMessages {
  std::vector<ChatMessage> messages;
  std::vector<MessageName> names;

  void add(ChatMessage message, MessageName name) {
    messages.push_back(std::move(message));
    names.push_back(std::move(name));
  }
};

ToolCall read_tool_use(FieldReader& block) {
  ToolCall call{.id = read_required_text(block, "id"), .name = read_required_text(block, "name")};
  const Json* const input = block.object("input");
  if (input == nullptr) block.refuse_absent("input");
  call.arguments = input == nullptr ? "{}" : dump(*input);
  return call;
}

ChatMessage read_tool_result(FieldReader& block) {
  ChatMessage result{
      .role = Role::kTool, .content = {}, .tool_call_id = read_required_text(block, "tool_use_id")};
  MessageName unused;
  result.content = joined_message_texts(read_message_texts(block, "content"), unused);
  // No template knows that a call failed.
  if (block.flag("is_error").value_or(false)) result.content = "Error: " + result.content;
  return result;
}

bool is_block_of(const Json& block, std::string_view type) {
  return block.is_object() && block.contains("type") && block.at("type") == type;
}

// The calls of an answer behind its texts; results as messages of their own, where they stand among the
// texts.
void read_content_blocks(FieldReader& fields, const Json& content, ChatMessage message,
                         const MessageName& name, NamedMessages& messages) {
  const Role role = message.role;
  std::vector<MessageText> texts;
  bool has_results = false;
  const auto end_texts = [&] {
    if (texts.empty() && has_results) return;
    MessageName named = name;
    message.content =
        role == Role::kSystem ? joined_system_texts(texts, named) : joined_message_texts(texts, named);
    messages.add(std::exchange(message, {.role = role, .content = {}}), std::move(named));
    texts.clear();
  };
  for (std::size_t i = 0; i < content.size() && fields.ok(); ++i) {
    const std::string path = fields.path_of("content") + "[" + std::to_string(i) + "]";
    FieldReader block(content[i], path);
    if (role == Role::kAssistant && is_block_of(content[i], "tool_use")) {
      message.tool_calls.push_back(read_tool_use(block));
    } else if (role == Role::kUser && is_block_of(content[i], "tool_result")) {
      if (!texts.empty()) end_texts();
      has_results = true;
      messages.add(read_tool_result(block), {.path = path, .role = "tool_result"});
    } else if (auto text = block.ok() ? read_message_block(block, path) : std::nullopt) {
      texts.push_back({i, *std::move(text)});
    }
    fields.adopt(block);
  }
  end_texts();
}

// Most are one message for the template.
void read_one_message(FieldReader& fields, const std::string& path, NamedMessages& messages) {
  ChatMessage message;
  const auto role = fields.text("role");
  if (!role) fields.refuse_absent("role");
  if (role == "assistant") {
    message.role = Role::kAssistant;
  } else if (role == "system") {
    message.role = Role::kSystem;
  } else if (role && *role != "user") {
    fields.refuse("role", "user, assistant or system");
  }
  MessageName name{.path = path, .role = std::string(role_name(message.role))};
  const Json* const content = fields.find("content");
  if (content == nullptr) fields.refuse_absent("content");
  if (content != nullptr && content->is_array())
    return read_content_blocks(fields, *content, std::move(message), name, messages);
  const std::vector<MessageText> texts = read_message_texts(fields, "content");
  message.content =
      message.role == Role::kSystem ? joined_system_texts(texts, name) : joined_message_texts(texts, name);
  messages.add(std::move(message), std::move(name));
}

void read_message_list(FieldReader& fields, NamedMessages& read, ChatPrompt& prompt) {
  const Json* const list = fields.list("messages", /*least=*/1);
  if (list == nullptr) {
    if (!fields.has("messages")) fields.refuse_absent("messages");
    return;
  }
  for (std::size_t i = 0; i < list->size() && fields.ok(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    FieldReader message((*list)[i], path);
    if (message.ok()) read_one_message(message, path, read);
    fields.adopt(message);
  }
  if (!fields.ok()) return;
  prompt.messages = std::move(read.messages);
  prompt.continue_answer = prompt.messages.back().role == Role::kAssistant;
  if (prompt.continue_answer && prompt.messages.size() == 1) {
    fields.fail({ErrorCode::kInvalidArgument,
                 "messages: an answer can only be continued behind another message; put a user message first",
                 "messages"});
  }
  if (prompt.continue_answer && !prompt.messages.back().tool_calls.empty()) {
    fields.fail(
        {ErrorCode::kInvalidArgument,
         "messages: the last answer has a tool_use; put a user message with its tool_result behind it",
         "messages"});
  }
}

// Tools that somebody else would have to run.
Error unsupported_tool(const std::string& path, const Json& tool) {
  const bool is_named = tool.is_object() && tool.contains("name") && tool.at("name").is_string();
  const std::string called =
      is_named ? " ('" + escape_for_message(tool.at("name").get<std::string>()) + "')" : std::string();
  return unsupported_message_part(path, "tools of this type" + called + " are not supported; leave them out");
}

FunctionTool read_message_tool(FieldReader& tool, const std::string& path, const Json& given) {
  const auto type = tool.text("type");
  if (type && *type != "custom") tool.fail(unsupported_tool(path, given));
  if (tool.ok() && !tool.has("input_schema")) tool.refuse_absent("input_schema");
  return read_function_tool(tool, "input_schema");
}

// {"type": "auto", "none", "any" or "tool" with a "name", "disable_parallel_tool_use"}
ToolChoice read_message_tool_choice(FieldReader& fields) {
  ToolChoice read;
  const Json* const choice = fields.object("tool_choice");
  if (choice == nullptr) return read;
  FieldReader inner(*choice, "tool_choice");
  const auto type = inner.text("type");
  read.only_first = inner.flag("disable_parallel_tool_use").value_or(false);
  read.may_call = type != "none";
  read.must_call = type == "any" || type == "tool";
  if (type == "tool") {
    read.name = read_required_text(inner, "name");
    read.only_first = true;
  } else if (!type) {
    inner.refuse_absent("type");
  } else if (*type != "auto" && *type != "none" && *type != "any") {
    inner.refuse("type", "auto, any, tool or none");
  }
  fields.adopt(inner);
  return read;
}

OfferedTools read_message_tools(FieldReader& fields, const ServedModel& model) {
  if (const Json* const servers = fields.list("mcp_servers"); servers != nullptr && !servers->empty())
    fields.fail(unsupported_tool("mcp_servers[0]", servers->front()));
  std::vector<FunctionTool> tools;
  const Json* const list = fields.list("tools", 0, kMaxAgentTools);
  for (std::size_t i = 0; list != nullptr && i < list->size() && fields.ok(); ++i) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    FieldReader tool((*list)[i], path);
    if (tool.ok()) tools.push_back(read_message_tool(tool, path, (*list)[i]));
    fields.adopt(tool);
  }
  ToolChoice choice = read_message_tool_choice(fields);
  return offered_tools(fields, std::move(tools), std::move(choice), model);
}

// The form of the answer, which stood in `output_format` before it came to `output_config`.
std::optional<StructuredOutput> read_output_config(FieldReader& fields, const ServedModel& model,
                                                   TemplateValues& values) {
  auto wanted = read_output_format(fields, "output_format");
  const Json* const config = fields.object("output_config");
  if (config == nullptr) return wanted;
  FieldReader inner(*config, "output_config");
  if (auto newer = read_output_format(inner, "format")) wanted = std::move(newer);
  if (const auto effort = inner.text("effort")) choose_effort(inner, "effort", *effort, model, values);
  fields.adopt(inner);
  return wanted;
}

void read_thinking(FieldReader& fields, const ServedModel& model, TemplateValues& values) {
  const Json* const thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  FieldReader inner(*thinking, "thinking");
  const auto type = inner.text("type");
  if (!type) {
    inner.refuse_absent("type");
  } else if (*type == "enabled" || *type == "adaptive" || *type == "disabled") {
    choose_thinking(*type != "disabled", model, values);
  } else if (*type != "between_tools") {  // of which there are none: as usual
    inner.refuse("type", "enabled, adaptive, between_tools or disabled");
  }
  fields.adopt(inner);
}

struct MessagePrompt {
  ChatPrompt prompt;
  OfferedTools tools;
  std::optional<StructuredOutput> wanted;
  std::vector<MessageName> names;
};

// Everything that the prompt is made of.
MessagePrompt read_message_prompt(FieldReader& fields, const ServedModel& model) {
  ChatPrompt prompt;
  read_model(fields, model);
  OfferedTools tools = read_message_tools(fields, model);
  prompt.tools = tools.text;
  NamedMessages messages;
  MessageName system_name{.path = "system"};
  std::string system = joined_system_texts(read_message_texts(fields, "system"), system_name);
  if (!system.empty())
    messages.add({.role = Role::kSystem, .content = std::move(system)}, std::move(system_name));
  read_message_list(fields, messages, prompt);
  read_thinking(fields, model, prompt.template_values);
  auto wanted = read_output_config(fields, model, prompt.template_values);
  return {std::move(prompt), std::move(tools), std::move(wanted), std::move(messages.names)};
}

// {"previous_message_id": text or null}; whether the client wants to know, and of which message.
bool read_diagnostics(FieldReader& fields, std::optional<std::string>& compared_with) {
  const Json* const diagnostics = fields.object("diagnostics");
  if (diagnostics == nullptr) return false;
  FieldReader inner(*diagnostics, "diagnostics");
  compared_with = inner.text("previous_message_id");
  fields.adopt(inner);
  return true;
}

SamplingParams read_message_sampling(FieldReader& fields, const ServedModel& model) {
  SamplingParams sampling = read_plain_sampling(fields, model);
  if (!fields.has("max_tokens")) fields.refuse_absent("max_tokens");
  sampling.max_tokens = fields.small_integer("max_tokens", 1).value_or(1);
  if (auto texts = fields.texts("stop_sequences", kMaxStopTexts)) sampling.stop = *std::move(texts);
  return sampling;
}

// ---- errors

// "8,192" at the beginning of the text, which then goes on behind it.
std::optional<std::int64_t> take_grouped_number(std::string_view& text) {
  const std::size_t length = std::min(text.find_first_not_of("0123456789,"), text.size());
  std::string digits(text.substr(0, length));
  std::erase(digits, ',');
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (problem != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

bool take_words(std::string_view& text, std::string_view words) {
  if (!text.starts_with(words)) return false;
  text.remove_prefix(words.size());
  return true;
}

// The engine's limit has room for one generated token: of the prompt that is one less. Any other sentence of
// its kind (bytes, blocks) stays as it is, behind the words that agents look for.
std::string too_long_sentence(std::string_view sentence) {
  const std::string words = "prompt is too long: ";
  std::string_view rest = sentence;
  if (take_words(rest, "the prompt has ")) {
    const auto num_tokens = take_grouped_number(rest);
    if (num_tokens && take_words(rest, " tokens; the limit is ")) {
      const auto limit = take_grouped_number(rest);
      if (limit && *limit > 0 && take_words(rest, " including at least one generated token")) {
        return words + std::to_string(*num_tokens) + " tokens > " + std::to_string(*limit - 1) + " maximum";
      }
    }
  }
  return words + std::string(sentence);
}

std::string_view anthropic_type_of(int status) {
  switch (status) {
    case 413: return "request_too_large";
    case 503:
    case 529: return "overloaded_error";
    default: return error_type_of(status);
  }
}

}  // namespace

Result<Call> parse_message_call(const Json& body, const ServedModel& model, const CallIdentity& identity) {
  FieldReader fields(body);
  auto [prompt, tools, wanted, names] = read_message_prompt(fields, model);
  Call call;
  const bool tells_diagnostics = read_diagnostics(fields, call.compared_with);
  SamplingParams sampling = read_message_sampling(fields, model);
  const bool stream = fields.flag("stream").value_or(false);
  std::string cache_salt = read_cache_salt(fields);
  refuse_unsupported(fields, commonly_unsupported());
  demand_form(fields, std::move(wanted), tools, prompt, model, identity, sampling, call.notes);
  OCTAVO_TRY_VOID(fields.check());
  OCTAVO_TRY_VOID(check_sampling(sampling, model));

  std::string begun = prompt.continue_answer ? prompt.messages.back().content : std::string();
  call.stream = stream;
  call.names = std::move(names);
  if (has_billing_line(body))
    call.notes.push_back("a line with a checksum, different in every request, was left out");
  call.requests.push_back(
      {.prompt = std::move(prompt), .sampling = std::move(sampling), .cache_salt = std::move(cache_salt)});
  call.answer = std::make_unique<MessageAnswer>(stream, model, identity, std::move(begun),
                                                std::move(tools.calls), tells_diagnostics);
  return call;
}

Result<ChatPrompt> parse_counted_messages(const Json& body, const ServedModel& model) {
  FieldReader fields(body);
  MessagePrompt read = read_message_prompt(fields, model);
  OCTAVO_TRY_VOID(fields.check());
  return std::move(read.prompt);
}

std::string_view without_billing_lines(std::string_view text) {
  while (text.starts_with(kBillingHeader)) {
    const std::size_t line_end = text.find('\n');
    text.remove_prefix(line_end == std::string_view::npos ? text.size() : line_end + 1);
  }
  return text;
}

bool has_billing_line(const Json& body) {
  const auto begins = [](const Json& text) {
    return text.is_string() && text.get_ref<const std::string&>().starts_with(kBillingHeader);
  };
  const auto holds = [&](const Json& content) {
    if (!content.is_array()) return begins(content);
    return std::any_of(content.begin(), content.end(), [&](const Json& block) {
      return block.is_object() && block.contains("text") && begins(block.at("text"));
    });
  };
  if (!body.is_object()) return false;
  if (body.contains("system") && holds(body.at("system"))) return true;
  if (!body.contains("messages") || !body.at("messages").is_array()) return false;
  const Json& messages = body.at("messages");
  return std::any_of(messages.begin(), messages.end(), [&](const Json& message) {
    return message.is_object() && message.value("role", Json()) == "system" && message.contains("content") &&
           holds(message.at("content"));
  });
}

Json anthropic_error(const ApiError& error, std::string_view request_id) {
  const bool is_too_long = error.code == "context_length_exceeded";
  Json told = {{"type", "error"},
               {"error",
                {{"type", anthropic_type_of(error.status)},
                 {"message", is_too_long ? too_long_sentence(error.message) : error.message}}}};
  if (!request_id.empty()) told["request_id"] = request_id;
  return told;
}

}  // namespace octavo::app
