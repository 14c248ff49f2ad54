#include "engine/output_collector.h"

#include <utility>
#include <variant>

namespace octavo {
namespace {

template <class Value>
void append(std::vector<Value>& target, const std::vector<Value>& source) {
  target.insert(target.end(), source.begin(), source.end());
}

}  // namespace

void OutputCollector::expect(RequestId request_id, std::int32_t num_outputs) {
  answer_of_[request_id] = answers_.size();
  answers_.emplace_back().request_id = request_id;
  num_outputs_.push_back(num_outputs);
  ++num_open_;
}

void OutputCollector::add(const EngineEvent& event) {
  const auto found = answer_of_.find(request_id_of(event));
  if (found == answer_of_.end()) return;
  std::visit([&](const auto& kind) { apply(answers_[found->second], kind); }, event);
}

CompletionOutput* OutputCollector::find_output(RequestOutput& answer, std::int32_t output_index) {
  const bool is_expected =
      std::cmp_greater_equal(output_index, 0) && std::cmp_less(output_index, answer.outputs.size());
  return is_expected ? &answer.outputs[static_cast<std::size_t>(output_index)] : nullptr;
}

void OutputCollector::apply(RequestOutput& answer, const RequestAccepted& event) {
  answer.prompt_token_ids = event.prompt_token_ids;
  answer.seed = event.seed;
  open_outputs(answer);
}

// An output that nothing more is heard of has ended with the error of its request.
void OutputCollector::open_outputs(RequestOutput& answer) {
  const std::int32_t num_outputs = num_outputs_[answer_of_.at(answer.request_id)];
  for (std::int32_t index = 0; index < num_outputs; ++index) {
    CompletionOutput& output = answer.outputs.emplace_back();
    output.index = index;
    output.finish_reason = FinishReason::kError;
  }
}

void OutputCollector::apply(RequestOutput& answer, const RequestAdmitted& event) {
  answer.num_cached_tokens = event.num_cached_tokens;
}

void OutputCollector::apply(RequestOutput& answer, const TokensGenerated& event) {
  CompletionOutput* const output = find_output(answer, event.output_index);
  if (output == nullptr) return;
  output->text += event.text;
  append(output->token_ids, event.token_ids);
  append(output->logprobs, event.logprobs);
  append(output->top_logprobs, event.top_logprobs);
  for (const float logprob : event.logprobs) output->cumulative_logprob += static_cast<double>(logprob);
}

void OutputCollector::apply(RequestOutput& answer, const BeamsAdvanced& event) {
  append(answer.beam_steps, event.steps);
}

void OutputCollector::apply(RequestOutput&, const RequestPreempted&) {}  // counted in the metrics at the end

void OutputCollector::apply(RequestOutput& answer, const EmbeddingComputed& event) {
  answer.embedding = event.values;
}

void OutputCollector::apply(RequestOutput& answer, const OutputFinished& event) {
  if (answer.outputs.empty()) open_outputs(answer);  // cancelled before it was accepted
  CompletionOutput* const output = find_output(answer, event.output_index);
  if (output == nullptr) return;
  output->finish_reason = event.finish_reason;
  output->stop_reason = event.stop_reason;
  output->finish_detail = event.detail;
  output->score = event.score;
}

void OutputCollector::apply(RequestOutput& answer, const RequestFinished& event) {
  answer.prompt_logprobs = event.prompt_logprobs;
  answer.prompt_top_logprobs = event.prompt_top_logprobs;
  answer.metrics = event.metrics;
  --num_open_;
}

void OutputCollector::apply(RequestOutput& answer, const RequestFailed& event) {
  answer.error = event.error;
  answer.metrics = event.metrics;
  --num_open_;
}

}  // namespace octavo
