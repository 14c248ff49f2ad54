#include "engine/core/request_intake.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/api/option_error.h"
#include "engine/base/text.h"

namespace octavo {
namespace {

using tokenizer::EncodeLimits;

Error refusal(std::string message, std::string subject) {
  return Error{ErrorCode::kInvalidArgument, std::move(message), std::move(subject)};
}

Result<void> check_token_ids(std::span<const TokenId> ids, std::int32_t vocabulary_size,
                             std::string_view subject) {
  for (std::size_t index = 0; index < ids.size(); ++index) {
    if (ids[index] >= 0 && ids[index] < vocabulary_size) continue;
    return refusal(std::string(subject) + ": token id " + std::to_string(ids[index]) + " at index " +
                       std::to_string(index) + " is not in the vocabulary; use ids from 0 to " +
                       std::to_string(vocabulary_size - 1),
                   std::string(subject));
  }
  return {};
}

// Stop strings are searched in text of whole characters, and bad words are kept from becoming such.
Result<void> check_utf8(std::string_view option, std::span<const std::string> texts) {
  for (const std::string& text : texts) {
    if (sanitise_utf8(text) != text)
      return option_out_of_range(option, "valid UTF-8", escape_for_message(text));
  }
  return {};
}

std::string_view without_leading_spaces(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
}

RetentionClass retention_of(const GenerationRequest& request) {
  const bool is_chat = std::holds_alternative<ChatPrompt>(request.prompt);
  return request.retention.value_or(is_chat ? RetentionClass::kChat : RetentionClass::kScratch);
}

// A step of the search wants `width` continuations that go on, whatever ends stand before them. Of tokens
// that end a text it is known how many there are; how many complete a stop string depends on the text, and on
// " " nearly all may.
std::int32_t num_beam_candidates(const SamplingParams& sampling, const IntakeSources& sources) {
  constexpr std::int32_t kForStopStrings = 256;
  if (!sampling.beam_width) return 0;
  const auto num_ends = sources.num_end_tokens + static_cast<std::int32_t>(sampling.stop_token_ids.size());
  const std::int64_t num_wanted = std::int64_t{*sampling.beam_width} * (1 + std::max(1, num_ends)) +
                                  (sampling.stop.empty() ? 0 : kForStopStrings);
  return static_cast<std::int32_t>(std::min<std::int64_t>(num_wanted, sources.tokenizer->vocabulary_size()));
}

Result<std::vector<TokenId>> encode(const TextPrompt& prompt, const IntakeSources& sources,
                                    const EncodeLimits& limits) {
  return sources.tokenizer->encode(prompt.text, prompt.parse_special, /*add_bos=*/true, limits);
}

// The ids that an answer was generated as, when they are exactly its text; else its text as ids.
Result<std::vector<TokenId>> encode_answer(const ChatMessage& answer, const IntakeSources& sources,
                                           const EncodeLimits& limits) {
  const tokenizer::Tokenizer& tokenizer = *sources.tokenizer;
  const bool exact = !answer.token_ids.empty() && std::ranges::none_of(answer.token_ids, [&](TokenId id) {
    return tokenizer.is_control(id);
  }) && tokenizer.decode(answer.token_ids, /*skip_special=*/true) == answer.content;
  if (exact) return answer.token_ids;
  return tokenizer.encode(answer.content, /*parse_special=*/false, /*add_bos=*/false, limits);
}

TemplateInputs inputs_of(const ChatPrompt& prompt, const IntakeSources& sources) {
  TemplateInputs inputs(sources.unix_time_s(), prompt.template_values);
  inputs.tools = prompt.tools;
  return inputs;
}

// The prompt for the answer, and then the beginning that it has already.
Result<std::vector<TokenId>> encode_continued(const ChatPrompt& prompt, const IntakeSources& sources,
                                              const EncodeLimits& limits) {
  const ChatMessage& answer = prompt.messages.back();
  if (answer.role != Role::kAssistant || prompt.messages.size() < 2) {
    return refusal(
        "messages: only an answer that follows another message can be continued; end the list with an "
        "assistant message",
        "messages");
  }
  const auto before = std::span(prompt.messages).first(prompt.messages.size() - 1);
  OCTAVO_TRY(auto token_ids, sources.tokenizer->encode_chat(before, inputs_of(prompt, sources), limits));
  OCTAVO_TRY(const auto begun, encode_answer(answer, sources, limits));
  token_ids.insert(token_ids.end(), begun.begin(), begun.end());
  return token_ids;
}

Result<std::vector<TokenId>> encode(const ChatPrompt& prompt, const IntakeSources& sources,
                                    const EncodeLimits& limits) {
  if (prompt.messages.empty())
    return refusal("messages: the list is empty; give at least one message", "messages");
  const std::int32_t vocabulary_size = sources.tokenizer->vocabulary_size();
  for (const ChatMessage& message : prompt.messages) {
    OCTAVO_TRY_VOID(check_token_ids(message.token_ids, vocabulary_size, "messages"));
  }
  OCTAVO_TRY_VOID(validate(prompt.template_values));
  if (prompt.continue_answer) return encode_continued(prompt, sources, limits);
  return sources.tokenizer->encode_chat(prompt.messages, inputs_of(prompt, sources), limits);
}

Result<std::vector<TokenId>> encode(const TokenPrompt& prompt, const IntakeSources& sources,
                                    const EncodeLimits&) {
  OCTAVO_TRY_VOID(
      check_token_ids(prompt.token_ids, sources.tokenizer->vocabulary_size(), "prompt_token_ids"));
  return prompt.token_ids;
}

std::int32_t num_alike_at_start(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

PreparedRequest RequestIntake::prepare(SubmitRequest submit, std::stop_token stop) {
  const EncodeLimits limits{.max_tokens = sources_.max_prompt_tokens, .stop = std::move(stop)};
  const bool reports_progress = submit.request.reports_prompt_progress;
  return {submit.request_id, prepare_request(submit.request_id, std::move(submit.request), limits),
          submit.submitted_us, reports_progress};
}

Result<scheduler::NewRequest> RequestIntake::prepare_request(RequestId request_id, GenerationRequest request,
                                                             const EncodeLimits& limits) {
  if (request.embedding) request.sampling = {.max_tokens = 1};
  OCTAVO_TRY_VOID(validate(request.sampling, sources_.tokenizer->vocabulary_size()));
  OCTAVO_TRY_VOID(check_utf8("stop", request.sampling.stop));
  OCTAVO_TRY_VOID(check_utf8("bad_words", request.sampling.bad_words));
  OCTAVO_TRY_VOID(find_bad_words(request.sampling, limits));
  OCTAVO_TRY_VOID(compile_structure(request.sampling, limits));
  OCTAVO_TRY(
      auto prompt_token_ids,
      std::visit([&](const auto& prompt) { return encode(prompt, sources_, limits); }, request.prompt));
  if (prompt_token_ids.empty()) {
    return refusal("prompt: it is empty; give at least one character or token id", "prompt");
  }
  const std::int32_t num_system_tokens = count_system_tokens(request.prompt, prompt_token_ids, limits);
  const std::int32_t num_next_turn_tokens = count_next_turn_tokens(request.prompt, prompt_token_ids, limits);
  const std::uint64_t seed = request.sampling.seed ? *request.sampling.seed : sources_.draw_seed();
  const std::int32_t num_candidates = num_beam_candidates(request.sampling, sources_);
  return scheduler::NewRequest{.request_id = request_id,
                               .prompt_token_ids = std::move(prompt_token_ids),
                               .sampling = std::move(request.sampling),
                               .seed = seed,
                               .cache_salt = std::move(request.cache_salt),
                               .retention = retention_of(request),
                               .num_system_tokens = num_system_tokens,
                               .num_beam_candidates = num_candidates,
                               .num_next_turn_tokens = num_next_turn_tokens,
                               .priority = request.priority,
                               .embedding = request.embedding};
}

// As vLLM does: a word as it begins a text, and after a space where that is another first token and not one
// token more.
Result<void> RequestIntake::find_bad_words(SamplingParams& sampling, const EncodeLimits& limits) const {
  const auto encode = [&](const std::string& text) {
    return sources_.tokenizer->encode(text, /*parse_special=*/false, /*add_bos=*/false, limits);
  };
  sampling.bad_word_token_ids.clear();
  for (const std::string& word : sampling.bad_words) {
    const std::string text(without_leading_spaces(word));
    OCTAVO_TRY(auto token_ids, encode(text));
    if (token_ids.empty()) {
      return option_out_of_range("bad_words", "texts that the model has tokens for",
                                 "'" + escape_for_message(word) + "'");
    }
    OCTAVO_TRY(auto after_space, encode(" " + text));
    const bool is_other = after_space.size() == token_ids.size() && after_space.front() != token_ids.front();
    sampling.bad_word_token_ids.push_back(std::move(token_ids));
    if (is_other) sampling.bad_word_token_ids.push_back(std::move(after_space));
  }
  return {};
}

// An output that must have a form has to be able to end.
Result<void> RequestIntake::compile_structure(SamplingParams& sampling, const EncodeLimits& limits) const {
  sampling.grammar = nullptr;
  if (!sampling.structured_output) return {};
  const auto is_end = [&](TokenId token_id) { return sources_.tokenizer->is_end_of_sequence(token_id); };
  if (sampling.allowed_token_ids && std::ranges::none_of(*sampling.allowed_token_ids, is_end)) {
    return refusal(
        "allowed_token_ids: none of them ends an output, which structured output needs; add the "
        "end-of-sequence token",
        "allowed_token_ids");
  }
  if (!sources_.compile_grammar) {
    return option_not_built("structured_output",
                            "this model's outputs cannot be held to a form; leave it out");
  }
  OCTAVO_TRY(sampling.grammar, sources_.compile_grammar(*sampling.structured_output, limits.stop));
  return {};
}

// Tokens of the leading system message: what a chat of that message alone would start with too. A template
// that does not take one alone leaves it without a class of its own.
std::int32_t RequestIntake::count_system_tokens(const Prompt& prompt,
                                                std::span<const TokenId> prompt_token_ids,
                                                const EncodeLimits& limits) {
  const auto* const chat = std::get_if<ChatPrompt>(&prompt);
  if (chat == nullptr || chat->messages.size() < 2 || chat->messages.front().role != Role::kSystem) return 0;
  const std::vector<TokenId>* const alone = encode_system(*chat, limits);
  if (alone == nullptr) return 0;
  return num_alike_at_start(prompt_token_ids, *alone);
}

// What the next turn will start with too, found by asking for one: templates drop what an answer thought, or
// write an answer that has begun otherwise than one that has ended.
std::int32_t RequestIntake::count_next_turn_tokens(const Prompt& prompt,
                                                   std::span<const TokenId> prompt_token_ids,
                                                   const EncodeLimits& limits) const {
  const auto* const chat = std::get_if<ChatPrompt>(&prompt);
  if (!sources_.memory_ends_exactly || chat == nullptr || chat->continue_answer) return 0;
  std::vector<ChatMessage> messages = chat->messages;
  messages.push_back({.role = Role::kAssistant, .content = "Yes."});
  messages.push_back({.role = Role::kUser, .content = "Why?"});
  const auto next =
      sources_.tokenizer->encode_chat(messages, inputs_of(*chat, sources_), {.stop = limits.stop});
  if (!next) return 0;
  return num_alike_at_start(prompt_token_ids, *next);
}

// By the rendered text, which may hold a date. Rendering is cheap beside encoding.
const std::vector<TokenId>* RequestIntake::encode_system(const ChatPrompt& prompt,
                                                         const EncodeLimits& limits) {
  const std::span<const ChatMessage> alone(&prompt.messages.front(), 1);
  const TemplateInputs inputs = inputs_of(prompt, sources_);
  const auto spans = sources_.tokenizer->apply_chat_template(alone, inputs);
  if (!spans) return nullptr;
  std::string rendered;
  for (const tokenizer::PromptSpan& span : *spans) rendered += span.text;
  const auto known = std::ranges::find(system_messages_, rendered, &SystemMessage::rendered);
  if (known != system_messages_.end()) {
    std::rotate(system_messages_.begin(), known, std::next(known));
    return &system_messages_.front().token_ids;
  }
  ++num_encoded_system_messages_;
  auto token_ids = sources_.tokenizer->encode_chat(alone, inputs, limits);
  if (!token_ids) return nullptr;
  if (system_messages_.size() == kMaxSystemMessages) system_messages_.pop_back();
  system_messages_.push_front({std::move(rendered), *std::move(token_ids)});
  return &system_messages_.front().token_ids;
}

Result<std::int32_t> count_outputs(const GenerationRequest& request, const tokenizer::Tokenizer& tokenizer) {
  if (request.embedding) return 0;
  OCTAVO_TRY_VOID(validate(request.sampling, tokenizer.vocabulary_size()));
  return request.sampling.num_outputs();
}

}  // namespace octavo
