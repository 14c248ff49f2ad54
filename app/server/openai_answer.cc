#include "app/server/openai_answer.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "app/json/stop_reason_json.h"
#include "app/server/api_error.h"

namespace octavo::app {

std::string data_frame(const Json& json) { return "data: " + dump(json) + "\n\n"; }

void check_streams(FieldReader& fields, const SamplingParams& sampling, bool stream) {
  if (!stream) return;
  const auto refuse = [&](const char* name, const char* why) {
    const std::string path = fields.path_of(name);
    fields.fail({.code = ErrorCode::kInvalidArgument,
                 .message = path + " does not go with stream: " + why + "; set stream to false",
                 .subject = path});
  };
  if (sampling.best_of) refuse("best_of", "which outputs are the best is known when all have ended");
  if (sampling.prompt_logprobs) refuse("prompt_logprobs", "they are known when the request has ended");
}

OpenAiAnswer::OpenAiAnswer(OpenAiForm form)
    : form_(std::move(form)),
      prompts_(form_.num_requests),
      ends_(form_.num_requests * static_cast<std::size_t>(form_.num_choices)) {}

std::string OpenAiAnswer::add(std::size_t request, const EngineEvent& event) {
  if (request >= prompts_.size()) return {};
  return std::visit([&](const auto& kind) { return apply(request, kind); }, event);
}

std::optional<std::size_t> OpenAiAnswer::choice_of(std::size_t request, std::int32_t output) const {
  if (output < 0 || output >= form_.num_choices) return std::nullopt;
  return request * static_cast<std::size_t>(form_.num_choices) + static_cast<std::size_t>(output);
}

std::string OpenAiAnswer::apply(std::size_t request, const RequestAccepted& event) {
  prompts_[request].num_tokens = static_cast<std::int64_t>(event.prompt_token_ids.size());
  take_prompt(request, event);
  return {};
}

std::string OpenAiAnswer::apply(std::size_t request, const RequestAdmitted& event) {
  prompts_[request].num_cached_tokens = event.num_cached_tokens;
  return {};
}

std::string OpenAiAnswer::apply(std::size_t request, const TokensGenerated& event) {
  const auto choice = choice_of(request, event.output_index);
  if (!choice || form_.scores_only) return {};
  num_generated_ += static_cast<std::int64_t>(event.token_ids.size());
  return take_tokens(*choice, event);
}

std::string OpenAiAnswer::apply(std::size_t, const BeamsAdvanced&) { return {}; }
std::string OpenAiAnswer::apply(std::size_t, const RequestPreempted&) { return {}; }

// With llama-server's names. Of several prompts each has a chunk of its own.
std::string OpenAiAnswer::apply(std::size_t, const PromptProgress& event) {
  if (!streams()) return {};
  Json told = head(form_.chunk_object, Json::array());
  told["prompt_progress"] = {{"total", event.num_prompt_tokens},
                             {"cache", event.num_cached_tokens},
                             {"processed", event.num_computed_tokens},
                             {"time_ms", event.elapsed_us / 1000}};
  return data_frame(told);
}

std::string OpenAiAnswer::apply(std::size_t request, const OutputFinished& event) {
  const auto choice = choice_of(request, event.output_index);
  if (!choice) return {};
  End& end = ends_[*choice];
  end = {event.finish_reason, event.stop_reason};
  // The one token that was generated may have been a stop token: it says nothing.
  if (form_.scores_only && end.reason == FinishReason::kStop) end = {FinishReason::kLength, {}};
  return take_end(*choice);
}

std::string OpenAiAnswer::apply(std::size_t request, const RequestFinished& event) {
  ++num_ended_;
  take_prompt_logprobs(request, event);
  return {};
}

std::string OpenAiAnswer::apply(std::size_t, const RequestFailed& event) {
  ++num_ended_;
  if (!failure_) failure_ = event.error;
  return {};
}

std::string OpenAiAnswer::last_frames() {
  std::string frames;
  if (form_.stream.include_usage) {
    Json last = head(form_.chunk_object, Json::array());
    last["usage"] = usage();
    frames = data_frame(last);
  }
  return frames + "data: [DONE]\n\n";
}

std::string OpenAiAnswer::failure_frames(const ApiError& error) { return data_frame(openai_error(error)); }

Json OpenAiAnswer::finish_reason(std::size_t choice) const {
  return finish_reason_name(ends_[choice].reason);
}

Json OpenAiAnswer::stop_reason(std::size_t choice) const { return stop_reason_json(ends_[choice].stop); }

std::string OpenAiAnswer::chunk(Json choice) const {
  Json choices = Json::array();
  choices.push_back(std::move(choice));
  Json told = head(form_.chunk_object, std::move(choices));
  if (form_.stream.continuous_usage_stats) told["usage"] = usage();
  return data_frame(told);
}

Json OpenAiAnswer::whole(Json choices) const {
  Json told = head(form_.object, std::move(choices));
  told["usage"] = usage();
  return told;
}

Json OpenAiAnswer::head(const std::string& object, Json choices) const {
  return {{"id", form_.id},
          {"object", object},
          {"created", form_.created},
          {"model", form_.model},
          {"choices", std::move(choices)}};
}

Json OpenAiAnswer::usage() const {
  Prompt sum;
  for (const Prompt& prompt : prompts_) {
    sum.num_tokens += prompt.num_tokens;
    sum.num_cached_tokens += prompt.num_cached_tokens;
  }
  Json details = nullptr;
  if (sum.num_cached_tokens > 0) details = {{"cached_tokens", sum.num_cached_tokens}};
  return {{"prompt_tokens", sum.num_tokens},
          {"total_tokens", sum.num_tokens + num_generated_},
          {"completion_tokens", num_generated_},
          {"prompt_tokens_details", std::move(details)}};
}

}  // namespace octavo::app
