#include "app/server/growing_answer.h"

#include <nlohmann/json.hpp>
#include <variant>

namespace octavo::app {

std::vector<AnswerStep> GrowingAnswer::add(const EngineEvent& event) {
  return std::visit(
      [&](const auto& e) -> std::vector<AnswerStep> {
        if constexpr (requires { this->fold(e); }) return fold(e);
        return {};
      },
      event);
}

const std::string* GrowingAnswer::stop_string() const {
  return finish_reason_ == FinishReason::kStop ? std::get_if<std::string>(&stop_reason_) : nullptr;
}

std::vector<AnswerStep> GrowingAnswer::fold(const RequestAccepted& event) {
  num_prompt_tokens_ = static_cast<std::int32_t>(event.prompt_token_ids.size());
  blocks_.follow(event.prompt_token_ids);
  return {};
}

std::vector<AnswerStep> GrowingAnswer::fold(const RequestAdmitted& event) {
  num_cached_tokens_ = event.num_cached_tokens;
  return {};
}

std::vector<AnswerStep> GrowingAnswer::fold(const TokensGenerated& event) {
  num_output_tokens_ += static_cast<std::int32_t>(event.token_ids.size());
  return blocks_.add(event);
}

std::vector<AnswerStep> GrowingAnswer::fold(const OutputFinished& event) {
  finish_reason_ = event.finish_reason;
  stop_reason_ = event.stop_reason;
  finish_detail_ = event.detail;
  return blocks_.end();
}

std::vector<AnswerStep> GrowingAnswer::fold(const RequestFinished&) {
  done_ = true;
  if (finish_reason_ == FinishReason::kAbort) {
    failure_ = Error{ErrorCode::kCancelled, "the answer was cancelled before its end"};
  } else if (finish_reason_ == FinishReason::kError) {
    failure_ = Error{ErrorCode::kInternal, finish_detail_.empty() ? "the answer failed" : finish_detail_};
  }
  return {};
}

std::vector<AnswerStep> GrowingAnswer::fold(const RequestFailed& event) {
  done_ = true;
  failure_ = event.error;
  return {};
}

std::string typed_frame(const Json& event) {
  return "event: " + event.at("type").get<std::string>() + "\ndata: " + dump(event) + "\n\n";
}

}  // namespace octavo::app
