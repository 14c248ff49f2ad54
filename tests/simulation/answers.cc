#include "tests/simulation/answers.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace octavo::simulation {
namespace {

const ToyTokenizer kTokenizer;

bool is_letter(TokenId token) { return token >= 0 && token < kTokenizer.vocabulary_size(); }

}  // namespace

// ---- what is sent ----

void Answers::submitted(RequestId request_id, const ScriptedRequest& asked, std::int64_t now_us) {
  Request& request = open_[request_id];
  request.alone = {.asked = asked,
                   .stop = to_request(asked).sampling.stop,
                   .seed = asked.seed.value_or(0),
                   .max_model_len = script_.options.max_model_len};
  request.submitted_us = now_us;
  last_submitted_ = request_id;
  ++counts_.requests;
}

void Answers::cancelled(RequestId request_id) {
  if (const auto found = open_.find(request_id); found != open_.end()) found->second.cancelled = true;
}

bool Answers::is_open(RequestId request_id) const { return open_.contains(request_id); }

// ---- what is heard ----

void Answers::hear(std::span<const EngineEvent> events, const StepFacts& facts) {
  facts_ = facts;
  for (const EngineEvent& event : events) {
    if (problem_.exists()) return;
    const RequestId request_id = request_id_of(event);
    const auto found = open_.find(request_id);
    if (found != open_.end()) {
      std::visit([&](const auto& kind) { hear(kind, found->second); }, event);
    } else {
      problem_.note(request_id, request_id <= last_submitted_ ? "an event after its end" : "nobody submitted it");
    }
  }
}

void Answers::hear(const RequestAccepted& event, Request& request) {
  const RequestId id = event.request_id;
  if (std::exchange(request.accepted, true)) problem_.note(id, "accepted twice");
  if (is_impossible(request.alone.asked)) problem_.note(id, "should have been refused");
  if (event.prompt_token_ids != request.alone.asked.prompt) problem_.note(id, "another prompt");
  if (request.alone.asked.seed && event.seed != request.alone.seed) problem_.note(id, "another seed");
  request.alone.seed = event.seed;
  for (std::int32_t index = 0; index < request.alone.asked.n; ++index) {
    request.outputs.emplace_back(ExpectedOutput(script_.model, request.alone, static_cast<std::uint32_t>(index)));
  }
}

// First come, first served: everyone submitted earlier has been admitted or is over.
void Answers::hear(const RequestAdmitted& event, Request& request) {
  const RequestId id = event.request_id;
  if (!request.accepted || std::exchange(request.admitted, true)) problem_.note(id, "admitted twice or unasked");
  for (auto earlier = open_.begin(); earlier->first < id; ++earlier) {
    if (!earlier->second.admitted) problem_.note(id, "admitted before an earlier one");
  }
  const auto num_prompt = static_cast<std::int32_t>(request.alone.asked.prompt.size());
  if (event.num_cached_tokens < 0 || event.num_cached_tokens >= num_prompt)
    problem_.note(id, "impossible number of cached tokens");
  if (event.num_cached_tokens > 0 && !script_.options.enable_prefix_caching)
    problem_.note(id, "cached tokens without a prefix cache");
  if (event.queue_us != facts_.now_us - request.submitted_us) problem_.note(id, "wrong time in queue");
}

void Answers::hear(const TokensGenerated& event, Request& request) {
  const RequestId id = event.request_id;
  if (!request.admitted && !event.token_ids.empty()) return problem_.note(id, "a token before admission");
  Output& output = request.outputs[static_cast<std::size_t>(event.output_index)];
  if (output.has_ended) problem_.note(id, "a token after the output's end");
  if (event.token_ids.size() != event.logprobs.size()) return problem_.note(id, "tokens without logprobs");
  output.text += event.text;
  ExpectedOutput& expected = output.expected;
  for (std::size_t index = 0; index < event.token_ids.size(); ++index) {
    const std::size_t position = output.num_tokens++;
    expected.extend_to(output.num_tokens);
    if (position >= expected.token_ids().size()) return problem_.note(id, "more tokens than alone");
    if (event.token_ids[index] != expected.token_ids()[position])
      problem_.note(id, "tokens differ from those of the request alone");
    if (event.logprobs[index] != expected.logprobs()[position])
      problem_.note(id, "log-probabilities differ from those of the request alone");
  }
  counts_.tokens += static_cast<std::int64_t>(event.token_ids.size());
}

void Answers::hear(const RequestPreempted& event, Request& request) {
  if (!request.admitted) problem_.note(event.request_id, "preempted before it ran");
  ++request.num_preemptions;
}

void Answers::hear(const OutputFinished& event, Request& request) {
  Output& output = request.outputs[static_cast<std::size_t>(event.output_index)];
  if (std::exchange(output.has_ended, true)) problem_.note(event.request_id, "an output ended twice");
  output.finish_reason = event.finish_reason;
  output.stop_reason = event.stop_reason;
  check_output(event.request_id, request, output);
}

void Answers::hear(const RequestFinished& event, Request& request) {
  const RequestId id = event.request_id;
  bool was_aborted = false;
  for (const Output& output : request.outputs) {
    if (!output.has_ended) problem_.note(id, "finished before its outputs");
    was_aborted |= output.finish_reason == FinishReason::kAbort;
  }
  if (request.outputs.empty()) problem_.note(id, "finished without being accepted");
  if (event.metrics.num_preemptions != request.num_preemptions) problem_.note(id, "wrong preemption count");
  if (event.metrics.e2e_us != facts_.now_us - request.submitted_us) problem_.note(id, "wrong e2e time");
  if (!was_aborted && event.prompt_logprobs != expected_prompt_logprobs(request.alone))
    problem_.note(id, "wrong prompt log-probabilities");
  open_.erase(id);
}

void Answers::hear(const RequestFailed& event, Request& request) {
  const RequestId id = event.request_id;
  switch (event.error.code) {
    case ErrorCode::kInvalidArgument:
      ++counts_.refused;
      if (!is_impossible(request.alone.asked)) problem_.note(id, "refused: " + event.error.message);
      break;
    case ErrorCode::kTooLong:
      ++counts_.refused;
      if (!is_too_long(request)) problem_.note(id, "refused: " + event.error.message);
      break;
    case ErrorCode::kDevice:
      ++counts_.failed_by_device;
      if (!facts_.device_failed) problem_.note(id, "failed without a failing device");
      break;
    case ErrorCode::kInvalidLogits:
      ++counts_.failed_by_logits;
      if (!some_output_fails(request)) problem_.note(id, "failed without invalid logits");
      break;
    default: problem_.note(id, "failed: " + event.error.message);
  }
  open_.erase(id);
}

void Answers::check_all_ended() {
  for (const auto& [request_id, request] : open_) problem_.note(request_id, "never ended");
}

// ---- against the request alone ----

void Answers::check_output(RequestId id, const Request& request, Output& output) {
  ExpectedOutput& expected = output.expected;
  if (output.finish_reason == FinishReason::kAbort) {
    if (!request.cancelled) problem_.note(id, "aborted, but nobody cancelled it");
  } else {
    expected.extend_to(output.num_tokens + 1);
    const bool is_complete = expected.has_ended() && expected.token_ids().size() == output.num_tokens;
    if (is_complete) {
      if (output.text != expected.text()) problem_.note(id, "wrong text");
      if (output.finish_reason != expected.finish_reason()) problem_.note(id, "wrong finish reason");
      if (output.stop_reason != expected.stop_reason()) problem_.note(id, "wrong stop reason");
      return;
    }
    if (output.finish_reason != FinishReason::kLength || !may_outgrow_pool(request))
      return problem_.note(id, "ended too early");
    ++counts_.out_of_memory_outputs;
  }
  const auto tokens = std::span(expected.token_ids()).first(output.num_tokens);
  if (output.text != kTokenizer.decode(tokens, /*skip_special=*/true))
    problem_.note(id, "wrong text of an output that was ended");
}

// The next token of an output cannot be drawn.
bool Answers::some_output_fails(Request& request) const {
  return std::ranges::any_of(request.outputs, [](Output& output) {
    output.expected.extend_to(output.num_tokens + 1);
    return output.expected.fails() && output.expected.token_ids().size() == output.num_tokens;
  });
}

bool Answers::is_impossible(const ScriptedRequest& asked) const {
  return asked.prompt.empty() || !std::ranges::all_of(asked.prompt, is_letter) || asked.max_tokens < 1 ||
         asked.min_tokens < 0 || asked.min_tokens > asked.max_tokens || asked.n < 1 ||
         asked.n > script_.options.max_num_seqs || asked.stop_token >= kTokenizer.vocabulary_size();
}

bool Answers::is_too_long(const Request& request) const {
  const auto num_prompt = static_cast<std::int32_t>(request.alone.asked.prompt.size());
  return num_prompt >= script_.options.max_model_len ||
         most_blocks(request, num_prompt + 1) > script_.options.num_blocks;
}

bool Answers::may_outgrow_pool(const Request& request) const {
  std::size_t num_tokens = 0;
  for (const Output& output : request.outputs) num_tokens = std::max(num_tokens, output.num_tokens);
  num_tokens += request.alone.asked.prompt.size() + 1;
  return most_blocks(request, static_cast<std::int32_t>(num_tokens)) > script_.options.num_blocks;
}

// Sharing nothing.
std::int32_t Answers::most_blocks(const Request& request, std::int32_t num_tokens) const {
  const std::int32_t block_size = script_.options.block_size;
  return request.alone.asked.n * ((num_tokens + block_size - 1) / block_size);
}

}  // namespace octavo::simulation
