#include "app/commands/generation_progress.h"

#include <algorithm>
#include <variant>

namespace octavo::app {

void GenerationProgress::expect(RequestId request_id, const SamplingParams& sampling) {
  Work& work = works_[request_id];
  work.num_outputs = sampling.num_outputs();
  if (counts_ == Counts::kPromptsAndOutputs) work.most_generated = work.num_outputs * sampling.max_tokens;
}

void GenerationProgress::add(const EngineEvent& event) {
  const auto found = works_.find(request_id_of(event));
  if (found == works_.end()) return;
  Work& work = found->second;
  if (const auto* const accepted = std::get_if<RequestAccepted>(&event)) {
    work.num_prompt = std::ssize(accepted->prompt_token_ids);
  } else if (const auto* const prompt = std::get_if<PromptProgress>(&event)) {
    work.num_computed = prompt->num_computed_tokens;
  } else if (const auto* const tokens = std::get_if<TokensGenerated>(&event)) {
    add_generated(work, std::ssize(tokens->token_ids));
  } else if (const auto* const beams = std::get_if<BeamsAdvanced>(&event)) {
    add_generated(work, std::ssize(beams->steps) * work.num_outputs);
  } else if (std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event)) {
    work.has_ended = true;
    work.num_prompt = std::max<std::int64_t>(work.num_prompt, 0);
  }
}

void GenerationProgress::add_generated(Work& work, std::int64_t num_tokens) {
  work.num_computed = work.num_prompt;
  work.num_generated = std::min(work.most_generated, work.num_generated + num_tokens);
}

std::optional<double> GenerationProgress::fraction() const {
  std::int64_t done = 0, total = 0;
  for (const auto& [unused, work] : works_) {
    if (work.num_prompt < 0) return std::nullopt;
    const std::int64_t of_it = work.num_prompt + work.most_generated;
    total += of_it;
    done += work.has_ended ? of_it : work.num_computed + work.num_generated;
  }
  return total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
}

}  // namespace octavo::app
