#include "app/server/completions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "app/server/openai_answer.h"
#include "app/server/request_fields.h"
#include "app/server/structured_fields.h"
#include "app/server/token_text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMaxCompletionPrompts = 256;
constexpr std::size_t kMaxCompletionOutputs = 1024;  // that are generated for all prompts
constexpr std::size_t kMaxEchoedBytes = 16u << 20;
constexpr std::int32_t kUsualCompletionTokens = 16;

constexpr std::array kUnsupportedInCompletions = {
    UnsupportedField{"suffix", Harmless::kEmpty},
    UnsupportedField{"tools", Harmless::kEmpty},
    UnsupportedField{"tool_choice", Harmless::kAutoOrNone},
    UnsupportedField{"functions", Harmless::kEmpty},
    UnsupportedField{"function_call", Harmless::kAutoOrNone},
    UnsupportedField{"modalities", Harmless::kTextModality},
    UnsupportedField{"audio", Harmless::kEmpty},
    UnsupportedField{"add_special_tokens", Harmless::kTrue, "send token ids"},
};

// What a completion is, beside its sampling.
struct CompletionPlan {
  bool echo = false;
  std::optional<std::int32_t> logprobs = {};         // told of each token, in the legacy form
  std::optional<std::int32_t> prompt_logprobs = {};  // told of each prompt token, in vLLM's form
};

// Log-probabilities in the form of the first API. Readers take a token for the likeliest when its value
// equals the largest of the top ones exactly: so it is always among them, printed from the same float, and of
// tokens with the same text the larger value stands there.
class LegacyLogprobs {
 public:
  LegacyLogprobs(const tokenizer::Tokenizer& tokenizer, std::size_t num_top)
      : tokenizer_(tokenizer), num_top_(num_top) {}

  // `logprob` none: the first token of a prompt, of which nothing is known.
  void add(TokenId id, std::int64_t offset, std::optional<float> logprob, std::span<const TokenLogprob> top) {
    std::string text = token_text(tokenizer_, id);
    offsets_.push_back(offset);
    logprobs_.push_back(logprob ? Json(told_logprob(*logprob)) : Json(nullptr));
    tops_.push_back(logprob ? top_of(id, text, *logprob, top) : Json(nullptr));
    tokens_.push_back(std::move(text));
  }

  Json take() {
    return {{"tokens", std::move(tokens_)},
            {"token_logprobs", std::move(logprobs_)},
            {"top_logprobs", std::move(tops_)},
            {"text_offset", std::move(offsets_)}};
  }

 private:
  Json top_of(TokenId id, const std::string& text, float logprob, std::span<const TokenLogprob> top) const {
    std::vector<std::pair<std::string, double>> entries = {{text, told_logprob(logprob)}};
    for (const TokenLogprob& other : top.first(std::min(top.size(), num_top_))) {
      if (other.token_id == id) continue;
      std::string name = token_text(tokenizer_, other.token_id);
      const double value = told_logprob(other.logprob);
      const auto same = std::ranges::find(entries, name, &std::pair<std::string, double>::first);
      if (same == entries.end()) {
        entries.emplace_back(std::move(name), value);
      } else {
        same->second = std::max(same->second, value);
      }
    }
    std::ranges::stable_sort(entries, std::ranges::greater(), &std::pair<std::string, double>::second);
    Json object = Json::object();
    for (auto& [name, value] : entries) object[name] = value;
    return object;
  }

  const tokenizer::Tokenizer& tokenizer_;
  std::size_t num_top_;
  Json tokens_ = Json::array(), logprobs_ = Json::array(), tops_ = Json::array(), offsets_ = Json::array();
};

class CompletionAnswer final : public OpenAiAnswer {
 public:
  // `prompt_texts`: of each request when echo is asked for, else empty.
  CompletionAnswer(OpenAiForm form, CompletionPlan plan, const tokenizer::Tokenizer& tokenizer,
                   std::vector<std::string> prompt_texts)
      : OpenAiAnswer(std::move(form)),
        plan_(plan),
        tokenizer_(tokenizer),
        prompt_texts_(std::move(prompt_texts)),
        prompts_(this->form().num_requests),
        choices_(num_choices()) {
    for (std::size_t choice = 0; choice < choices_.size() && plan_.echo; ++choice)
      choices_[choice].place = CharacterCounter(count_characters(prompt_texts_[request_of(choice)]));
  }

  std::string first_frames() override {
    std::string frames;
    for (std::size_t choice = 0; choice < choices_.size() && plan_.echo; ++choice) {
      frames += chunk({{"index", choice},
                       {"text", prompt_texts_[request_of(choice)]},
                       {"logprobs", nullptr},
                       {"finish_reason", nullptr},
                       {"stop_reason", nullptr}});
    }
    return frames;
  }

  std::string body() override {
    Json choices = Json::array();
    for (std::size_t choice = 0; choice < choices_.size(); ++choice)
      choices.push_back(choice_of_body(choice));
    return dump(whole(std::move(choices)));
  }

 protected:
  void take_prompt(std::size_t request, const RequestAccepted& event) override {
    if (scores_prompts()) prompts_[request].token_ids = event.prompt_token_ids;
  }

  std::string take_tokens(std::size_t choice, const TokensGenerated& event) override {
    Choice& kept = choices_[choice];
    if (!streams()) {
      kept.text += event.text;
      if (plan_.logprobs) keep_logprobs(kept, event);
      return {};
    }
    if (event.text.empty() && !(plan_.logprobs && !event.token_ids.empty())) return {};
    Json logprobs = nullptr;
    if (plan_.logprobs) {
      LegacyLogprobs told = legacy_logprobs();
      add_generated(kept.place, event.token_ids, event.logprobs, event.top_logprobs, told);
      logprobs = told.take();
    }
    return chunk({{"index", choice},
                  {"text", event.text},
                  {"logprobs", std::move(logprobs)},
                  {"finish_reason", nullptr},
                  {"stop_reason", nullptr}});
  }

  std::string take_end(std::size_t choice) override {
    if (!streams()) return {};
    return chunk({{"index", choice},
                  {"text", ""},
                  {"logprobs", nullptr},
                  {"finish_reason", finish_reason(choice)},
                  {"stop_reason", stop_reason(choice)}});
  }

  void take_prompt_logprobs(std::size_t request, const RequestFinished& event) override {
    if (!scores_prompts()) return;
    prompts_[request].logprobs = event.prompt_logprobs;
    prompts_[request].top_logprobs = event.prompt_top_logprobs;
  }

 private:
  struct ScoredPrompt {
    std::vector<TokenId> token_ids;
    std::vector<std::optional<float>> logprobs;
    std::vector<std::vector<TokenLogprob>> top_logprobs;
  };
  struct Choice {
    std::string text;
    std::vector<TokenId> token_ids;
    std::vector<float> logprobs;
    std::vector<std::vector<TokenLogprob>> top_logprobs;
    CharacterCounter place;
  };

  bool scores_prompts() const { return plan_.prompt_logprobs || (plan_.echo && plan_.logprobs); }

  LegacyLogprobs legacy_logprobs() const {
    return {tokenizer_, static_cast<std::size_t>(plan_.logprobs.value_or(0))};
  }

  static void keep_logprobs(Choice& kept, const TokensGenerated& event) {
    kept.token_ids.insert(kept.token_ids.end(), event.token_ids.begin(), event.token_ids.end());
    kept.logprobs.insert(kept.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
    kept.top_logprobs.insert(kept.top_logprobs.end(), event.top_logprobs.begin(), event.top_logprobs.end());
  }

  // A control token is no text, so the next one begins where it does.
  std::string_view text_bytes(TokenId id) const {
    return tokenizer_.is_control(id) ? std::string_view() : tokenizer_.token_bytes(id);
  }

  void add_generated(CharacterCounter& place, std::span<const TokenId> ids, std::span<const float> logprobs,
                     std::span<const std::vector<TokenLogprob>> tops, LegacyLogprobs& told) const {
    for (std::size_t i = 0; i < std::min(ids.size(), logprobs.size()); ++i) {
      const std::int64_t offset = place.place_of(text_bytes(ids[i]));
      told.add(ids[i], offset, logprobs[i],
               i < tops.size() ? std::span<const TokenLogprob>(tops[i]) : std::span<const TokenLogprob>());
    }
  }

  void add_prompt(std::size_t request, LegacyLogprobs& told) const {
    const ScoredPrompt& prompt = prompts_[request];
    const std::string& text = prompt_texts_[request];
    CharacterCounter place;
    std::size_t at = 0;  // in the text
    for (std::size_t i = 0; i < std::min(prompt.token_ids.size(), prompt.logprobs.size()); ++i) {
      // BOS that was put in front, and the space that some vocabularies begin every text with, are not in it.
      std::string_view bytes = tokenizer_.token_bytes(prompt.token_ids[i]);
      if (tokenizer_.is_control(prompt.token_ids[i]) && !text.substr(at, bytes.size()).starts_with(bytes))
        bytes = {};
      if (at == 0 && bytes.starts_with(' ') && !text.starts_with(' ')) bytes.remove_prefix(1);
      at = std::min(text.size(), at + bytes.size());
      const bool has_top = i < prompt.top_logprobs.size();
      told.add(
          prompt.token_ids[i], place.place_of(bytes), prompt.logprobs[i],
          has_top ? std::span<const TokenLogprob>(prompt.top_logprobs[i]) : std::span<const TokenLogprob>());
    }
  }

  Json choice_of_body(std::size_t choice) const {
    const Choice& kept = choices_[choice];
    const std::size_t request = request_of(choice);
    Json logprobs = nullptr, prompt_logprobs = nullptr;
    if (plan_.logprobs) {
      LegacyLogprobs told = legacy_logprobs();
      if (plan_.echo) add_prompt(request, told);
      CharacterCounter place = kept.place;
      add_generated(place, kept.token_ids, kept.logprobs, kept.top_logprobs, told);
      logprobs = told.take();
    }
    if (plan_.prompt_logprobs) {
      const ScoredPrompt& prompt = prompts_[request];
      prompt_logprobs =
          prompt_logprobs_json(tokenizer_, prompt.token_ids, prompt.logprobs, prompt.top_logprobs,
                               static_cast<std::size_t>(*plan_.prompt_logprobs));
    }
    return {{"index", choice},
            {"text", plan_.echo ? prompt_texts_[request] + kept.text : kept.text},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", finish_reason(choice)},
            {"stop_reason", stop_reason(choice)},
            {"prompt_logprobs", std::move(prompt_logprobs)}};
  }

  const CompletionPlan plan_;
  const tokenizer::Tokenizer& tokenizer_;
  const std::vector<std::string> prompt_texts_;
  std::vector<ScoredPrompt> prompts_;
  std::vector<Choice> choices_;
};

std::optional<Prompt> prompt_of_ids(const Json& list, std::int32_t vocabulary_size) {
  auto ids = token_ids_of(list, vocabulary_size);
  if (!ids || ids->empty()) return std::nullopt;
  return TokenPrompt{*std::move(ids)};
}

std::string echoed_text(const Prompt& prompt, const tokenizer::Tokenizer& tokenizer) {
  if (const auto* const text = std::get_if<TextPrompt>(&prompt)) return text->text;
  const auto* const ids = std::get_if<TokenPrompt>(&prompt);
  return ids == nullptr ? std::string() : tokenizer.decode(ids->token_ids, /*skip_special=*/false);
}

void check_completion_size(FieldReader& fields, std::size_t num_prompts, const SamplingParams& sampling) {
  const std::size_t num_outputs = num_prompts * static_cast<std::size_t>(sampling.num_sequences());
  if (num_outputs <= kMaxCompletionOutputs) return;
  fields.fail({.code = ErrorCode::kInvalidArgument,
               .message = "prompt: " + std::to_string(num_prompts) + " prompts with " +
                          std::to_string(sampling.num_sequences()) + " outputs each are more than " +
                          std::to_string(kMaxCompletionOutputs) + " outputs; send several requests",
               .subject = "prompt"});
}

// Every choice repeats its prompt.
Result<void> check_echo_size(std::span<const std::string> prompt_texts, std::int32_t num_choices) {
  std::size_t num_bytes = 0;
  for (const std::string& text : prompt_texts) num_bytes += text.size();
  if (num_bytes * static_cast<std::size_t>(num_choices) <= kMaxEchoedBytes) return {};
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = "echo: the prompts in all choices would be more than " +
                          std::to_string(kMaxEchoedBytes >> 20) + " MiB; use a smaller n or several requests",
               .subject = "echo"};
}

}  // namespace

std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name, std::int32_t vocabulary_size,
                                 std::size_t most) {
  const bool parse_special = fields.flag("parse_special").value_or(true);
  const Json* const given = fields.find(name);
  std::vector<Prompt> prompts;
  const auto add = [&](std::optional<Prompt> prompt) {
    if (prompt) prompts.push_back(*std::move(prompt));
    return prompt.has_value();
  };
  const auto read_one = [&](const Json& one) -> std::optional<Prompt> {
    if (one.is_string()) return TextPrompt{one.get<std::string>(), parse_special};
    return prompt_of_ids(one, vocabulary_size);
  };
  bool good = false;
  if (given == nullptr) {
    fields.refuse(name, "a text, a list of texts, or token ids");
    return prompts;
  }
  const bool holds_ids = given->is_array() && !given->empty() && given->front().is_number();
  if (given->is_string() || holds_ids) {
    good = add(read_one(*given));
  } else if (given->is_array() && given->size() > most) {
    fields.list(name, 1, most);
    return prompts;
  } else if (given->is_array() && !given->empty()) {
    good = std::ranges::all_of(*given, [&](const Json& one) { return add(read_one(one)); });
  }
  if (!good) {
    fields.refuse(name, "a text, a list of texts, a list of token ids below " +
                            std::to_string(vocabulary_size) + " or a list of such lists, none of them empty");
  }
  return prompts;
}

Result<Call> parse_completion(const Json& body, const ServedModel& model, const CallIdentity& identity) {
  FieldReader fields(body);
  read_model(fields, model);
  refuse_unsupported(fields, commonly_unsupported());
  refuse_unsupported(fields, kUnsupportedInCompletions);
  std::vector<Prompt> prompts =
      read_prompts(fields, "prompt", model.description.model.vocabulary_size, kMaxCompletionPrompts);
  SamplingFields read = read_sampling(fields, model);
  SamplingParams& sampling = read.sampling;
  sampling.structured_output = read_structured_output(fields);
  const std::int32_t max_tokens = fields.small_integer("max_tokens", 0).value_or(kUsualCompletionTokens);
  sampling.max_tokens = std::max(1, max_tokens);  // the engine generates something always

  const CompletionPlan plan{.echo = fields.flag("echo").value_or(false),
                            .logprobs = fields.small_integer("logprobs", 0, kMaxTopLogprobs),
                            .prompt_logprobs = fields.small_integer("prompt_logprobs", 0, kMaxTopLogprobs)};
  sampling.logprobs = max_tokens == 0 ? 0 : plan.logprobs.value_or(0);
  sampling.prompt_logprobs = plan.prompt_logprobs;
  const StreamFields stream = read_stream(fields);
  if (plan.echo && plan.logprobs) {
    if (stream.stream) {
      fields.fail({.code = ErrorCode::kInvalidArgument,
                   .message =
                       "echo with logprobs does not go with stream: log-probabilities of the prompt are "
                       "known when the request has ended; set stream to false",
                   .subject = "echo"});
    }
    sampling.prompt_logprobs = std::max(*plan.logprobs, plan.prompt_logprobs.value_or(0));
  }
  check_streams(fields, sampling, stream.stream);
  check_completion_size(fields, prompts.size(), sampling);
  const std::string cache_salt = read_cache_salt(fields);
  OCTAVO_TRY_VOID(fields.check());
  OCTAVO_TRY_VOID(check_sampling(sampling, model));

  std::vector<std::string> prompt_texts;
  if (plan.echo) {
    for (const Prompt& prompt : prompts) prompt_texts.push_back(echoed_text(prompt, *model.tokenizer));
    OCTAVO_TRY_VOID(check_echo_size(prompt_texts, read.num_choices));
  }
  Call call;
  call.stream = stream.stream;
  for (Prompt& prompt : prompts)
    call.requests.push_back({.prompt = std::move(prompt),
                             .sampling = sampling,
                             .cache_salt = cache_salt,
                             .reports_prompt_progress = stream.return_progress});
  OpenAiForm form{.id = "cmpl-" + identity.hex,
                  .object = "text_completion",
                  .chunk_object = "text_completion",
                  .created = identity.created,
                  .model = model.name(),
                  .stream = stream,
                  .num_requests = call.requests.size(),
                  .num_choices = read.num_choices,
                  .scores_only = max_tokens == 0};
  call.answer =
      std::make_unique<CompletionAnswer>(std::move(form), plan, *model.tokenizer, std::move(prompt_texts));
  return call;
}

}  // namespace octavo::app
