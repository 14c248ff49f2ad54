#include "app/remote/remote_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>

#include "app/json/json_text.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {
namespace {

constexpr std::int32_t kMostTopLogprobs = 20;  // that OpenAI's protocol allows

Error not_remote(const std::string& what) {
  return {ErrorCode::kUnsupported, "a remote model takes no " + what};
}

// What was said, without what was thought before it.
std::string said_text(const std::string& content) {
  std::string said;
  for (const AnswerPart& part : answer_parts(content, /*is_final=*/true)) {
    if (part.kind != PartKind::kAnswer || part.empty()) continue;
    if (!said.empty()) said += "\n";
    said += content.substr(part.begin, part.end - part.begin);
  }
  return said;
}

Json message_json(const ChatMessage& message, bool is_continued) {
  const bool is_earlier_answer = message.role == Role::kAssistant && !is_continued;
  Json json = {{"role", role_name(message.role)},
               {"content", is_earlier_answer ? said_text(message.content) : message.content}};
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls) {
    json["tool_calls"].push_back({{"id", call.id},
                                  {"type", "function"},
                                  {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return json;
}

Result<void> add_prompt(const Prompt& prompt, Json& body) {
  if (std::holds_alternative<TokenPrompt>(prompt)) {
    return not_remote("token ids, with which a fork or an exact repetition begins; ask anew");
  }
  if (const auto* const text = std::get_if<TextPrompt>(&prompt)) {
    body["prompt"] = text->text;
    return {};
  }
  const auto& chat = std::get<ChatPrompt>(prompt);
  Json& messages = body["messages"] = Json::array();
  for (const ChatMessage& message : chat.messages) {
    const bool is_last = &message == &chat.messages.back();
    messages.push_back(message_json(message, chat.continue_answer && is_last));
  }
  if (chat.continue_answer) {  // vLLM's; llama.cpp continues an answer at the end by itself
    body["continue_final_message"] = true;
    body["add_generation_prompt"] = false;
  }
  if (!chat.tools.empty()) {
    OCTAVO_TRY(body["tools"], parse_json(chat.tools, "the tools"));
  }
  for (const auto& [name, value] : chat.template_values)
    body["chat_template_kwargs"][name] = std::visit([](const auto& known) { return Json(known); }, value);
  return {};
}

Result<void> check_sampling(const SamplingParams& sampling) {
  if (sampling.beam_width) return not_remote("beam search; compare samples instead");
  if (sampling.best_of) return not_remote("best_of; ask for n answers instead");
  if (sampling.prompt_logprobs) return not_remote("log-probabilities of the prompt");
  const bool names_tokens = !sampling.stop_token_ids.empty() || !sampling.logprob_token_ids.empty() ||
                            !sampling.logit_bias.empty() || sampling.allowed_token_ids;
  if (names_tokens)
    return not_remote("token ids: logit bias, stop tokens and allowed tokens are a local model's");
  return {};
}

void add_sampling(const SamplingParams& sampling, std::uint64_t seed, Json& body) {
  body["max_tokens"] = sampling.max_tokens;
  body["temperature"] = sampling.temperature;
  body["top_p"] = sampling.top_p;
  body["seed"] = seed;
  const auto add_unless = [&body](const char* name, const auto& value, const auto& off) {
    if (value != off) body[name] = value;
  };
  add_unless("n", sampling.n, 1);
  add_unless("presence_penalty", sampling.presence_penalty, 0.0);
  add_unless("frequency_penalty", sampling.frequency_penalty, 0.0);
  if (sampling.top_k > 0) body["top_k"] = sampling.top_k;
  add_unless("min_p", sampling.min_p, 0.0);
  add_unless("repetition_penalty", sampling.repetition_penalty, 1.0);
  add_unless("min_tokens", sampling.min_tokens, 0);
  add_unless("ignore_eos", sampling.ignore_eos, false);
  if (!sampling.stop.empty()) body["stop"] = sampling.stop;
  add_unless("include_stop_str_in_output", sampling.include_stop_str_in_output, false);
  add_unless("skip_special_tokens", sampling.skip_special_tokens, true);
  if (!sampling.bad_words.empty()) body["bad_words"] = sampling.bad_words;
}

void add_logprobs(std::int32_t num_top, bool is_chat, Json& body) {
  if (num_top <= 0) return;
  num_top = std::min(num_top, kMostTopLogprobs);
  if (is_chat) {
    body["logprobs"] = true;
    body["top_logprobs"] = num_top;
  } else {
    body["logprobs"] = num_top;
  }
}

}  // namespace

Result<RemoteCall> remote_call(const GenerationRequest& request, const std::string& model,
                               std::uint64_t seed) {
  OCTAVO_TRY_VOID(check_sampling(request.sampling));
  Json body = {{"model", model}};
  OCTAVO_TRY_VOID(add_prompt(request.prompt, body));
  add_sampling(request.sampling, seed, body);
  const bool is_chat = std::holds_alternative<ChatPrompt>(request.prompt);
  add_logprobs(request.sampling.logprobs, is_chat, body);
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  return RemoteCall{is_chat ? "/chat/completions" : "/completions", dump(body)};
}

}  // namespace octavo::app
