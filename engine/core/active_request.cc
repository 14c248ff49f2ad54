#include "engine/core/active_request.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace octavo {
namespace {

std::int32_t longest_output(const std::vector<OutputProcessor>& outputs) {
  std::int32_t num_tokens = 0;
  for (const OutputProcessor& output : outputs) num_tokens = std::max(num_tokens, output.num_tokens());
  return num_tokens;
}

}  // namespace

std::vector<ActiveRequest::Untold> ActiveRequest::take_best() {
  const auto cumulative_logprob = [](const Untold& one) {
    double sum = 0.0;
    for (const TokensGenerated& tokens : one.tokens) {
      for (const float logprob : tokens.logprobs) sum += static_cast<double>(logprob);
    }
    return sum;
  };
  std::vector<Untold> best = std::exchange(untold, {});
  std::ranges::stable_sort(best, std::greater(), cumulative_logprob);
  if (best.size() > static_cast<std::size_t>(sampling.n)) best.resize(static_cast<std::size_t>(sampling.n));
  for (std::size_t index = 0; index < best.size(); ++index) {
    const auto number = static_cast<std::int32_t>(index);
    for (TokensGenerated& tokens : best[index].tokens) tokens.output_index = number;
    best[index].end.output_index = number;
  }
  return best;
}

RequestMetrics ActiveRequest::metrics_at(std::int64_t now_us) const {
  RequestMetrics metrics;
  metrics.queue_us = admitted_us.value_or(now_us) - submitted_us;
  metrics.e2e_us = now_us - submitted_us;
  metrics.num_preemptions = num_preemptions;
  metrics.num_draft_tokens = num_draft_tokens;
  metrics.num_accepted_tokens = num_accepted_tokens;
  metrics.prompt = prompt;
  metrics.prefix_miss = prefix_miss;
  if (!first_token_us) return metrics;
  metrics.ttft_us = *first_token_us - submitted_us;
  const std::int32_t num_tokens = beams ? beams->num_generated_tokens() : longest_output(outputs);
  if (num_tokens > 1) metrics.tpot_us = (last_token_us - *first_token_us) / (num_tokens - 1);
  return metrics;
}

}  // namespace octavo
