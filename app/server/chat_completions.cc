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

#include "app/server/answer_calls.h"
#include "app/server/function_tools.h"
#include "app/server/openai_answer.h"
#include "app/server/request_fields.h"
#include "app/server/thinking_split.h"
#include "app/server/token_text.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMaxChatMessages = 10'000;
// At the end of a prompt, which may have begun the thinking.
constexpr std::size_t kMostTokensOfThinkingMark = 16;

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
std::optional<std::string> read_chat_content(FieldReader& message) {
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
    joined += (i == 0 ? "" : "\n") + *text;
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

ChatMessage read_chat_message(FieldReader& message) {
  const auto role = read_chat_role(message);
  refuse_unsupported(message, kUnsupportedInMessages);
  const auto content = read_chat_content(message);
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
  return {.role = role.value_or(Role::kUser),
          .content = with_thinking(thinking, content.value_or(std::string())),
          .tool_calls = std::move(calls),
          .tool_call_id = std::move(answered)};
}

std::vector<ChatMessage> read_chat_messages(FieldReader& fields) {
  std::vector<ChatMessage> messages;
  const Json* const list = fields.list("messages", 1, kMaxChatMessages);
  if (list == nullptr) {
    fields.refuse("messages", "a list of at least one message");
    return messages;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    FieldReader message((*list)[i], fields.path_of("messages") + "[" + std::to_string(i) + "]");
    messages.push_back(read_chat_message(message));
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
        calls_(std::move(calls)),
        hex_(identity.hex),
        beginning_known_(continued != nullptr && !continued->empty()),
        choices_(num_choices()) {
    for (Choice& choice : choices_) {
      if (calls_) choice.marked.emplace(calls_->format, &tokenizer);
      choice.split = ThinkingSplit(AnswerBeginning::kUnknown, calls_);
    }
    if (!beginning_known_) return;
    const auto parts = answer_parts(*continued, /*is_final=*/true);
    if (!parts.empty() && parts.back().open) begin_with_thinking();
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
  void take_prompt(std::size_t, const RequestAccepted& event) override {
    const std::span<const TokenId> ids = event.prompt_token_ids;
    if (!beginning_known_) {
      const auto end = ids.last(std::min(ids.size(), kMostTokensOfThinkingMark));
      if (begins_thinking(tokenizer_.decode(end, /*skip_special=*/false))) begin_with_thinking();
    }
    if (prompt_logprobs_) prompt_token_ids_ = event.prompt_token_ids;
  }

  std::string take_tokens(std::size_t choice, const TokensGenerated& event) override {
    Choice& kept = choices_[choice];
    Json logprobs = Json::array();
    if (num_top_) add_logprobs(event, streams() ? logprobs : kept.logprobs);
    const std::string marked = kept.marked ? kept.marked->add(event) : std::string();
    const std::string& text = kept.marked ? marked : event.text;
    if (!streams()) {
      kept.text += text;
      return {};
    }
    const SplitPieces pieces = kept.split.add(text);
    if (pieces.empty() && logprobs.empty()) return {};
    return delta_chunks(choice, pieces, num_top_ ? content_of(std::move(logprobs)) : nullptr);
  }

  std::string take_end(std::size_t choice) override {
    if (!streams()) return {};
    std::string frames;
    const SplitPieces rest = choices_[choice].split.end();
    if (!rest.empty()) frames = delta_chunks(choice, rest, nullptr);
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
    std::string text;  // of an answer that is told whole
    Json logprobs = Json::array();
    std::optional<TextWithCallMarks> marked;
    ThinkingSplit split;
    std::size_t num_calls = 0;  // told
  };

  void begin_with_thinking() {
    for (Choice& choice : choices_) choice.split = ThinkingSplit(AnswerBeginning::kThinking, calls_);
  }

  // An answer that was cut or stopped otherwise says so, for its client must know.
  Json finish_reason_with_calls(std::size_t choice) const {
    Json reason = finish_reason(choice);
    return choices_[choice].num_calls > 0 && reason == "stop" ? Json("tool_calls") : std::move(reason);
  }

  Json call_head(std::size_t choice, std::size_t index, const std::string& name) const {
    return {{"id", call_id("call_", hex_, choice, index)},
            {"type", "function"},
            {"function", {{"name", name}, {"arguments", ""}}}};
  }

  // A chunk for the text and one for each piece of a call; the log-probabilities go with the first.
  std::string delta_chunks(std::size_t choice, const SplitPieces& pieces, Json logprobs) {
    std::string frames;
    const auto append = [&](Json delta) {
      frames += delta_chunk(choice, std::move(delta), std::exchange(logprobs, nullptr));
    };
    const bool has_text = !pieces.thinking.empty() || !pieces.answer.empty();
    if (has_text || pieces.calls.empty()) append(delta_of(pieces));
    for (const ToolCallPiece& piece : pieces.calls) {
      std::size_t& num_calls = choices_[choice].num_calls;
      Json call = Json::object();
      if (piece.kind == ToolCallPiece::Kind::kCallBegun) {
        call["index"] = num_calls;
        call.update(call_head(choice, num_calls, piece.text));
        ++num_calls;
      } else if (piece.kind == ToolCallPiece::Kind::kArguments) {
        call = {{"index", num_calls - 1}, {"function", {{"arguments", piece.text}}}};
      } else {
        continue;
      }
      append({{"tool_calls", Json::array({std::move(call)})}});
    }
    return frames;
  }

  std::string delta_chunk(std::size_t choice, Json delta, Json logprobs) const {
    return chunk({{"index", choice},
                  {"delta", std::move(delta)},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", nullptr}});
  }

  // Log-probabilities may come without text.
  static Json delta_of(const SplitPieces& pieces) {
    Json delta = Json::object();
    if (!pieces.thinking.empty()) delta["reasoning_content"] = pieces.thinking;
    if (!pieces.answer.empty() || pieces.thinking.empty()) delta["content"] = pieces.answer;
    return delta;
  }

  Json message_of(std::size_t choice) {
    Choice& kept = choices_[choice];
    const SplitPieces pieces = kept.split.add(kept.text);
    const SplitPieces rest = kept.split.end();
    Json calls = Json::array();
    for (const SplitPieces* const told : {&pieces, &rest}) {
      for (const ToolCallPiece& piece : told->calls) {
        if (piece.kind == ToolCallPiece::Kind::kCallBegun)
          calls.push_back(call_head(choice, kept.num_calls++, piece.text));
        if (piece.kind == ToolCallPiece::Kind::kArguments) calls.back()["function"]["arguments"] = piece.text;
      }
    }
    Json message = {{"role", "assistant"}, {"content", pieces.answer + rest.answer}};
    if (!calls.empty() && message["content"] == "") message["content"] = nullptr;
    const std::string thinking = pieces.thinking + rest.thinking;
    if (!thinking.empty()) message["reasoning_content"] = thinking;
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
  const std::optional<CallReading> calls_;
  const std::string hex_;
  const bool beginning_known_;
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
  ChatPrompt prompt{.messages = read_chat_messages(fields)};
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
