#include "tests/simulation/gap_rules.h"

#include <algorithm>
#include <string>
#include <variant>

#include "engine/scheduler/step_budget.h"

namespace octavo::simulation {
namespace {

// The engine knows what a row costs when it has measured some steps with prompts, some of them as far back as
// this one.
constexpr std::size_t kStepsToLearn = 20, kStepsRemembered = 50;
constexpr std::ptrdiff_t kStepsAsFarBack = 5;

constexpr double kLongest = 1.5, kShortest = 0.5;  // of the target

}  // namespace

// Where prompts come first nobody shares; without paging the outputs of a group wait for each other's
// prompts.
GapRules::GapRules(const Script& script, Problem& problem)
    : script_(script),
      problem_(problem),
      has_target_(script.options.target_step_us > 0 && !script.options.prefill_first &&
                  script.options.memory_manager == MemoryManager::kPaged),
      pace_(pace_of(script.options)) {}

void GapRules::check(const StepView& step, const std::optional<SimulatedRunner::Timing>& timing) {
  if (!has_target_) return;
  if (step.device_failed) return gaps_.clear();
  if (timing) add(step, *timing);
  for (const EngineEvent& event : step.events) {  // whoever was cancelled had no part in the step
    const auto* finished = std::get_if<OutputFinished>(&event);
    if (finished && finished->finish_reason == FinishReason::kAbort) gaps_.erase(finished->request_id);
    const auto* preempted = std::get_if<RequestPreempted>(&event);
    if (preempted && preempted->first_output_index > 0) paused_.insert(preempted->request_id);
  }
  for (const EngineEvent& event : step.events) {
    const RequestId request_id = request_id_of(event);
    const bool is_token =
        std::holds_alternative<TokensGenerated>(event) || std::holds_alternative<BeamsAdvanced>(event);
    if (is_token) end_gap(request_id);
    const bool is_end = std::holds_alternative<RequestPreempted>(event) ||
                        std::holds_alternative<RequestFinished>(event) ||
                        std::holds_alternative<RequestFailed>(event);
    if (is_end) gaps_.erase(request_id);
  }
}

// About the target or, where that takes longer, what outputs take and the fewest rows of prompts.
void GapRules::add(const StepView& step, const SimulatedRunner::Timing& timing) {
  const bool is_shared = timing.us_of_costliest_row > 0.0, is_known = knows(timing.us_of_costliest_row);
  // (Prompts of models with recurrent layers stop where a checkpoint is wanted.)
  if (is_known && script_.options.num_states == 0) check_is_filled(step, timing);
  const double slowest = 1.0 + 0.01 * pace_.noise_percent;
  const double fewest_us = timing.us_of_decodes + scheduler::kFewestPromptRows * timing.us_of_costliest_row;
  const double most_us = std::max(kLongest * script_.options.target_step_us, slowest * fewest_us);
  for (auto& [request_id, gap] : gaps_) {
    gap.us += timing.us;
    gap.most_us = std::max(gap.most_us, most_us);
    gap.is_judged |= is_shared && is_known;
    gap.is_unknown |= is_shared && !is_known;
  }
  if (is_shared) costliest_rows_us_.push_back(timing.us_of_costliest_row);
  if (costliest_rows_us_.size() > kStepsRemembered) costliest_rows_us_.pop_front();
}

bool GapRules::knows(double us_of_costliest_row) const {
  const auto is_as_far_back = [&](double us) { return us >= 0.9 * us_of_costliest_row; };
  return costliest_rows_us_.size() >= kStepsToLearn &&
         std::ranges::count_if(costliest_rows_us_, is_as_far_back) >= kStepsAsFarBack;
}

// A prompt that could have had more rows would have made the step no longer than the target.
void GapRules::check_is_filled(const StepView& step, const SimulatedRunner::Timing& timing) {
  if (timing.us >= kShortest * script_.options.target_step_us ||
      timing.num_rows >= script_.options.max_num_batched_tokens)
    return;
  for (const SequenceSnapshot& after : step.after.sequences) {
    const auto before =
        std::ranges::find(step.before.sequences, after.sequence_id, &SequenceSnapshot::sequence_id);
    const bool had_rows = before != step.before.sequences.end() && after.state == SequenceState::kRunning &&
                          before->state == SequenceState::kRunning &&
                          after.num_computed_tokens > before->num_computed_tokens;
    const bool is_prompt = had_rows && before->num_tokens == before->num_prompt_tokens;
    if (is_prompt && after.num_computed_tokens < after.num_prompt_tokens)
      problem_.note(after.request_id, "its prompt got few rows in a step of " +
                                          std::to_string(static_cast<int>(timing.us)) + " us");
  }
}

void GapRules::end_gap(RequestId request_id) {
  if (paused_.contains(request_id)) return;
  const auto [found, is_first] = gaps_.try_emplace(request_id);
  const Gap gap = std::exchange(found->second, {});
  if (is_first || !gap.is_judged || gap.is_unknown) return;
  ++num_judged_;
  if (gap.us > gap.most_us)
    problem_.note(request_id, "its next token came after " + std::to_string(static_cast<int>(gap.us)) +
                                  " us, beside others; at most " +
                                  std::to_string(static_cast<int>(gap.most_us)));
}

}  // namespace octavo::simulation
