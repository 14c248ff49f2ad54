#include "app/server/chat_completions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/server/answer_blocks.h"
#include "app/server/answer_calls.h"
#include "app/server/function_tools.h"
#include "app/server/openai_answer.h"
#include "app/server/request_fields.h"
#include "app/server/token_text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMaxChatMessages = 10'000;

constexpr std::array kUnsupportedInChats = {
    UnsupportedField{"functions", Harmless::kEmpty},
    UnsupportedField{"function_call", Harmless::kAutoOrNone},
    UnsupportedField{"modalities", Harmless::kTextModality},
    UnsupportedField{"audio", Harmless::kEmpty},
    UnsupportedField{"web_search_options"},
    UnsupportedField{"documents", Harmless::kEmpty},
    UnsupportedField{"chat_template", Harmless::kNothing, "the model's own is used"},
    UnsupportedField{"add_special_tokens", Harmless::kFalse, "the chat template writes them"},
    UnsupportedField{"echo", Harmless::kFalse},
    UnsupportedField{"suffix", Harmless::kEmpty},
    UnsupportedField{"include_reasoning", Harmless::kTrue},
    UnsupportedField{"thinking_token_budget"},
};
constexpr std::array kUnsupportedInMessages = {
    UnsupportedField{"function_call"},
    UnsupportedField{"audio"},
};

// A text, or parts that are texts, a line each.
std::optional<std::string> read_chat_content(FieldReader& message, MessageName& name) {
  const Json* const content = message.find("content");
  if (content == nullptr) return std::nullopt;
  if (content->is_string()) return content->get<std::string>();
  const std::string path = message.path_of("content");
  if (!content->is_array()) {
    message.refuse("content", "a text or a list of parts");
    return std::nullopt;
  }
  std::string joined;
  for (std::size_t i = 0; i < content->size(); ++i) {
    FieldReader part((*content)[i], path + "[" + std::to_string(i) + "]");
    const std::string type = part.text("type").value_or(std::string());
    if (part.ok() && type != "text") {
      part.fail({.code = ErrorCode::kUnsupported,
                 .message = part.path_of("type") +
                            " must be \"text\", the only kind of part that this server "
                            "supports" +
                            (type.empty() ? std::string() : ", but it is " + value_for_message(type)),
                 .subject = part.path_of("type")});
    }
    const auto text = part.text("text");
    if (part.ok() && !text) part.refuse("text", "a text");
    message.adopt(part);
    if (!part.ok()) return std::nullopt;
    if (i > 0) joined += '\n';
    if (content->size() > 1) name.blocks.push_back({joined.size(), i});
    joined += *text;
  }
  return joined;
}

std::optional<Role> read_chat_role(FieldReader& message) {
  const std::string name = message.text("role").value_or(std::string());
  if (name == "developer") return Role::kSystem;
  const auto role = parse_role(name);
  if (!role) message.refuse("role", "system, developer, user, assistant or tool");
  return role;
}

// What models write in front of an answer; render() gives it to templates in their own way.
std::string with_thinking(const std::string& thinking, const std::string& answer) {
  return thinking.empty() ? answer : "<think>\n" + thinking + "\n</think>\n\n" + answer;
}

ToolCall read_chat_call(FieldReader& call) {
  ToolCall read{.id = read_required_text(call, "id")};
  const auto type = call.text("type");
  if (type && *type != "function") call.refuse("type", "\"function\"");
  const Json* const function = call.object("function");
  if (function == nullptr) {
    call.refuse("function", "an object");
    return read;
  }
  FieldReader inner(*function, call.path_of("function"));
  read.name = read_required_text(inner, "name");
  read.arguments = read_call_arguments(inner, "arguments");
  call.adopt(inner);
  return read;
}

std::vector<ToolCall> read_chat_calls(FieldReader& message) {
  std::vector<ToolCall> calls;
  const Json* const list = message.list("tool_calls");
  for (std::size_t i = 0; list != nullptr && i < list->size() && message.ok(); ++i) {
    FieldReader call((*list)[i], message.path_of("tool_calls") + "[" + std::to_string(i) + "]");
    calls.push_back(read_chat_call(call));
    message.adopt(call);
  }
  return calls;
}

ChatMessage read_chat_message(FieldReader& message, MessageName& name) {
  const auto role = read_chat_role(message);
  refuse_unsupported(message, kUnsupportedInMessages);
  const auto content = read_chat_content(message, name);
  name.role = message.text("role").value_or(std::string());
  std::string thinking;
  if (role == Role::kAssistant) {
    thinking = message.text("reasoning_content").value_or(std::string());
    if (thinking.empty()) thinking = message.text("reasoning").value_or(std::string());
  }
  std::vector<ToolCall> calls;
  if (role == Role::kAssistant) {
    calls = read_chat_calls(message);
  } else if (const Json* const list = message.list("tool_calls"); list != nullptr && !list->empty()) {
    message.refuse("tool_calls", "left out but in messages of the assistant");
  }
  std::string answered;
  if (role == Role::kTool) answered = read_required_text(message, "tool_call_id");
  if (!content && thinking.empty() && calls.empty()) message.refuse("content", "a text or a list of parts");
  const std::string text = content.value_or(std::string());
  std::string whole = with_thinking(thinking, text);
  for (MessageName::Block& block : name.blocks) block.begin += whole.size() - text.size();
  return {.role = role.value_or(Role::kUser),
          .content = std::move(whole),
          .tool_calls = std::move(calls),
          .tool_call_id = std::move(answered)};
}

std::vector<ChatMessage> read_chat_messages(FieldReader& fields, std::vector<MessageName>& names) {
  std::vector<ChatMessage> messages;
  const Json* const list = fields.list("messages", 1, kMaxChatMessages);
  if (list == nullptr) {
    fields.refuse("messages", "a list of at least one message");
    return messages;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    names.push_back({.path = fields.path_of("messages") + "[" + std::to_string(i) + "]"});
    FieldReader message((*list)[i], names.back().path);
    messages.push_back(read_chat_message(message, names.back()));
    fields.adopt(message);
    if (!message.ok()) break;
  }
  return messages;
}

// Whether the last message is the beginning of the answer. vLLM says so twice.
bool read_continues_answer(FieldReader& fields, std::span<const ChatMessage> messages) {
  const bool continues = fields.flag("continue_final_message").value_or(false);
  const bool adds_prompt = fields.flag("add_generation_prompt").value_or(!continues);
  const bool ends_with_answer = !messages.empty() && messages.back().role == Role::kAssistant;
  if (!continues && adds_prompt) return false;
  if (continues && adds_prompt) {
    fields.refuse("add_generation_prompt", "left out or false with continue_final_message");
  } else if (!ends_with_answer) {
    const std::string_view name = continues ? "continue_final_message" : "add_generation_prompt";
    fields.refuse(name, std::string(continues ? "false" : "true") +
                            " unless the last message is the assistant's, which is continued then");
  } else if (!messages.back().tool_calls.empty()) {
    fields.refuse("messages", "without calls in an answer that is continued");
  }
  return true;
}

FunctionTool read_chat_tool(FieldReader& tool) {
  if (tool.text("type") != "function") {
    const std::string path = tool.path_of("type");
    const Json* const type = tool.find("type");
    tool.fail({.code = ErrorCode::kUnsupported,
               .message = path + " must be \"function\", the only kind of tool that this server supports" +
                          (type == nullptr ? std::string() : ", but it is " + value_for_message(*type)),
               .subject = path});
    return {};
  }
  const Json* const function = tool.object("function");
  if (function == nullptr) {
    tool.refuse("function", "an object");
    return {};
  }
  FieldReader inner(*function, tool.path_of("function"));
  FunctionTool read = read_function_tool(inner, "parameters");
  tool.adopt(inner);
  return read;
}

OfferedTools read_chat_tools(FieldReader& fields, const ServedModel& model) {
  std::vector<FunctionTool> tools;
  const Json* const list = fields.list("tools", 0, kMaxTools);
  for (std::size_t i = 0; list != nullptr && i < list->size() && fields.ok(); ++i) {
    FieldReader tool((*list)[i], fields.path_of("tools") + "[" + std::to_string(i) + "]");
    tools.push_back(read_chat_tool(tool));
    fields.adopt(tool);
  }
  ToolChoice choice = read_tool_choice(fields);
  return offered_tools(fields, std::move(tools), std::move(choice), model);
}

class ChatCompletionAnswer final : public OpenAiAnswer {
 public:
  // `continued`: what the answer begins with, told before.
  // `num_top`: none when no log-probabilities are told.
  // `calls`: none when nothing can be called.
  ChatCompletionAnswer(OpenAiForm form, const tokenizer::Tokenizer& tokenizer,
                       std::optional<std::int32_t> num_top, std::optional<std::int32_t> prompt_logprobs,
                       const std::string* continued, std::optional<CallReading> calls,
                       const CallIdentity& identity)
      : OpenAiAnswer(std::move(form)),
        tokenizer_(tokenizer),
        num_top_(num_top),
        prompt_logprobs_(prompt_logprobs),
        hex_(identity.hex) {
    const BlocksAreTold told = streams() ? BlocksAreTold::kAsTheyGrow : BlocksAreTold::kAtTheEnd;
    for (std::size_t i = 0; i < num_choices(); ++i)
      choices_.push_back(
          {.blocks = {told, &tokenizer, continued == nullptr ? std::string() : *continued, calls}});
  }

  std::string first_frames() override {
    std::string frames;
    for (std::size_t choice = 0; choice < choices_.size(); ++choice)
      frames += delta_chunk(choice, {{"role", "assistant"}, {"content", ""}}, nullptr);
    return frames;
  }

  std::string body() override {
    Json choices = Json::array();
    for (std::size_t choice = 0; choice < choices_.size(); ++choice) {
      Json message = message_of(choice);
      choices.push_back({{"index", choice},
                         {"message", std::move(message)},
                         {"logprobs", num_top_ ? content_of(std::move(choices_[choice].logprobs)) : nullptr},
                         {"finish_reason", finish_reason_with_calls(choice)},
                         {"stop_reason", stop_reason(choice)}});
    }
    Json told = whole(std::move(choices));
    if (prompt_logprobs_) told["prompt_logprobs"] = std::move(prompt_scores_);
    return dump(told);
  }

 protected:
  void take_prompt(std::size_t request, const RequestAccepted& event) override {
    for (std::size_t choice = 0; choice < choices_.size(); ++choice)
      if (request_of(choice) == request) choices_[choice].blocks.follow(event.prompt_token_ids);
    if (prompt_logprobs_) prompt_token_ids_ = event.prompt_token_ids;
  }

  std::string take_tokens(std::size_t choice, const TokensGenerated& event) override {
    Choice& kept = choices_[choice];
    Json logprobs = Json::array();
    if (num_top_) add_logprobs(event, streams() ? logprobs : kept.logprobs);
    const std::vector<AnswerStep> steps = kept.blocks.add(event);
    if (!streams() || (steps.empty() && logprobs.empty())) return {};
    return delta_chunks(choice, steps, num_top_ ? content_of(std::move(logprobs)) : nullptr);
  }

  std::string take_end(std::size_t choice) override {
    Choice& kept = choices_[choice];
    const std::vector<AnswerStep> steps = kept.blocks.end();
    if (!streams()) return {};
    std::string frames;
    if (kept.blocks.is_blank() && !kept.blocks.generated_text().empty()) {
      frames = delta_chunk(choice, {{"content", kept.blocks.generated_text()}}, nullptr);
    } else if (!steps.empty()) {
      frames = delta_chunks(choice, steps, nullptr);
    }
    return frames + chunk({{"index", choice},
                           {"delta", Json::object()},
                           {"logprobs", nullptr},
                           {"finish_reason", finish_reason_with_calls(choice)},
                           {"stop_reason", stop_reason(choice)}});
  }

  void take_prompt_logprobs(std::size_t, const RequestFinished& event) override {
    if (!prompt_logprobs_) return;
    prompt_scores_ =
        prompt_logprobs_json(tokenizer_, prompt_token_ids_, event.prompt_logprobs, event.prompt_top_logprobs,
                             static_cast<std::size_t>(*prompt_logprobs_));
  }

 private:
  struct Choice {
    AnswerBlocks blocks;
    Json logprobs = Json::array();                   // of an answer that is told whole
    bool has_thought = false, has_answered = false;  // told
  };

  // An answer that was cut or stopped otherwise says so, for its client must know.
  Json finish_reason_with_calls(std::size_t choice) const {
    Json reason = finish_reason(choice);
    return choices_[choice].blocks.has_calls() && reason == "stop" ? Json("tool_calls") : std::move(reason);
  }

  Json call_head(std::size_t choice, std::size_t index, const std::string& name) const {
    return {{"id", call_id("call_", hex_, choice, index)},
            {"type", "function"},
            {"function", {{"name", name}, {"arguments", ""}}}};
  }

  // A chunk for the text and one for each piece of a call; the log-probabilities go with the first, and may
  // come without text.
  std::string delta_chunks(std::size_t choice, const std::vector<AnswerStep>& steps, Json logprobs) {
    std::string frames;
    Json text = Json::object();
    const auto append = [&](Json delta) {
      frames += delta_chunk(choice, std::move(delta), std::exchange(logprobs, nullptr));
    };
    const auto append_text = [&] {
      if (!text.empty()) append(std::exchange(text, Json::object()));
    };
    for (const AnswerStep& step : steps) {
      const AnswerBlock& block = choices_[choice].blocks.blocks()[step.block];
      if (!block.is_call()) {
        add_text(choice, step, block, text);
      } else if (step.kind == AnswerStep::Kind::kOpened) {
        append_text();
        Json call = {{"index", block.call_index}};
        call.update(call_head(choice, block.call_index, block.called));
        append({{"tool_calls", Json::array({std::move(call)})}});
      } else if (step.kind == AnswerStep::Kind::kGrew) {
        const Json call = {{"index", block.call_index}, {"function", {{"arguments", step.text}}}};
        append({{"tool_calls", Json::array({call})}});
      }
    }
    append_text();
    if (frames.empty() && !logprobs.is_null()) append({{"content", ""}});
    return frames;
  }

  // An empty line stands between blocks of one kind.
  void add_text(std::size_t choice, const AnswerStep& step, const AnswerBlock& block, Json& delta) {
    const bool thinks = block.kind == PartKind::kThinking;
    bool& has_told = thinks ? choices_[choice].has_thought : choices_[choice].has_answered;
    std::string text = step.text;
    if (step.kind == AnswerStep::Kind::kOpened && std::exchange(has_told, true)) text = "\n\n";
    if (text.empty()) return;
    const char* const name = thinks ? "reasoning_content" : "content";
    delta[name] = delta.value(name, std::string()) + text;
  }

  std::string delta_chunk(std::size_t choice, Json delta, Json logprobs) const {
    return chunk({{"index", choice},
                  {"delta", std::move(delta)},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", nullptr}});
  }

  Json message_of(std::size_t choice) {
    const AnswerBlocks& told = choices_[choice].blocks;
    Json text = Json::object(), calls = Json::array();
    for (const AnswerBlock& block : told.blocks()) {
      if (block.is_call()) {
        calls.push_back(call_head(choice, block.call_index, block.called));
        calls.back()["function"]["arguments"] = block.text;
      } else {
        add_text(choice, {.kind = AnswerStep::Kind::kOpened}, block, text);
        add_text(choice, {.text = block.text}, block, text);
      }
    }
    const std::string blank = told.is_blank() ? told.generated_text() : std::string();
    Json message = {{"role", "assistant"}, {"content", text.value("content", blank)}};
    if (!calls.empty() && message["content"] == "") message["content"] = nullptr;
    if (text.contains("reasoning_content")) message["reasoning_content"] = text["reasoning_content"];
    if (!calls.empty()) message["tool_calls"] = std::move(calls);
    return message;
  }

  static Json content_of(Json entries) { return {{"content", std::move(entries)}}; }

  Json logprob_entry(TokenId id, float logprob) const {
    return {{"token", token_text(tokenizer_, id)},
            {"logprob", told_logprob(logprob)},
            {"bytes", token_bytes_json(tokenizer_, id)}};
  }

  void add_logprobs(const TokensGenerated& event, Json& entries) const {
    for (std::size_t i = 0; i < std::min(event.token_ids.size(), event.logprobs.size()); ++i) {
      Json entry = logprob_entry(event.token_ids[i], event.logprobs[i]);
      Json& top = entry["top_logprobs"] = Json::array();
      const std::size_t num_known = i < event.top_logprobs.size() ? event.top_logprobs[i].size() : 0;
      for (std::size_t rank = 0; rank < std::min(num_known, static_cast<std::size_t>(*num_top_)); ++rank) {
        const TokenLogprob& other = event.top_logprobs[i][rank];
        top.push_back(logprob_entry(other.token_id, other.logprob));
      }
      entries.push_back(std::move(entry));
    }
  }

  const tokenizer::Tokenizer& tokenizer_;
  const std::optional<std::int32_t> num_top_;
  const std::optional<std::int32_t> prompt_logprobs_;
  const std::string hex_;
  std::vector<Choice> choices_;
  std::vector<TokenId> prompt_token_ids_;
  Json prompt_scores_;
};

// The number of alternatives of each token; none: not even its own log-probability.
std::optional<std::int32_t> read_chat_logprobs(FieldReader& fields) {
  const bool wanted = fields.flag("logprobs").value_or(false);
  const auto num_top = fields.small_integer("top_logprobs", 0, kMaxTopLogprobs);
  if (!wanted && num_top.value_or(0) > 0) fields.refuse("top_logprobs", "left out unless logprobs is true");
  return wanted ? std::optional(num_top.value_or(0)) : std::nullopt;
}

std::int32_t read_chat_max_tokens(FieldReader& fields, const ServedModel& model) {
  const auto old_name = fields.small_integer("max_tokens", 1);
  const auto new_name = fields.small_integer("max_completion_tokens", 1);
  return new_name ? *new_name : old_name.value_or(tokens_to_context_end(model));
}

}  // namespace

Result<Call> parse_chat_completion(const Json& body, const ServedModel& model, const CallIdentity& identity) {
  FieldReader fields(body);
  read_model(fields, model);
  if (!model.description.model.has_chat_template) {
    fields.fail({.code = ErrorCode::kUnsupported,
                 .message = "the model has no chat template, so that it knows no messages; use "
                            "/v1/completions with a prompt",
                 .subject = "messages"});
  }
  refuse_unsupported(fields, commonly_unsupported());
  refuse_unsupported(fields, kUnsupportedInChats);
  OfferedTools tools = read_chat_tools(fields, model);
  std::vector<MessageName> names;
  ChatPrompt prompt{.messages = read_chat_messages(fields, names)};
  prompt.tools = tools.text;
  prompt.continue_answer = read_continues_answer(fields, prompt.messages);
  prompt.template_values = read_template_values(fields, model);

  SamplingFields read = read_sampling(fields, model);
  SamplingParams& sampling = read.sampling;
  sampling.max_tokens = read_chat_max_tokens(fields, model);
  const auto num_top = read_chat_logprobs(fields);
  sampling.logprobs = num_top.value_or(0);
  sampling.prompt_logprobs = fields.small_integer("prompt_logprobs", 0, kMaxTopLogprobs);
  const StreamFields stream = read_stream(fields);
  check_streams(fields, sampling, stream.stream);
  std::string cache_salt = read_cache_salt(fields);
  Call call;
  demand_form(fields, read_structured_output(fields), tools, prompt, model, identity, sampling, call.notes);
  OCTAVO_TRY_VOID(fields.check());
  OCTAVO_TRY_VOID(check_sampling(sampling, model));

  OpenAiForm form{.id = "chatcmpl-" + identity.hex,
                  .object = "chat.completion",
                  .chunk_object = "chat.completion.chunk",
                  .created = identity.created,
                  .model = model.name(),
                  .stream = stream,
                  .num_choices = read.num_choices};
  call.stream = stream.stream;
  call.names = std::move(names);
  call.answer = std::make_unique<ChatCompletionAnswer>(
      std::move(form), *model.tokenizer, num_top, sampling.prompt_logprobs,
      prompt.continue_answer ? &prompt.messages.back().content : nullptr, std::move(tools.calls), identity);
  call.requests.push_back({.prompt = std::move(prompt),
                           .sampling = std::move(sampling),
                           .cache_salt = std::move(cache_salt),
                           .reports_prompt_progress = stream.return_progress});
  return call;
}

}  // namespace octavo::app
