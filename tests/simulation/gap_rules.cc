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
// prompts; and background requests wait for their turns.
GapRules::GapRules(const Script& script, Problem& problem)
    : script_(script),
      problem_(problem),
      has_target_(script.options.target_step_us > 0 && !script.options.prefill_first &&
                  script.options.memory_manager == MemoryManager::kPaged && !has_both_lines(script)),
      pace_(pace_of(script.options)) {}

void GapRules::check(const StepView& step, const std::optional<SimulatedRunner::Timing>& timing) {
  if (!has_target_) return;
  if (step.device_failed) return gaps_.clear();
  if (timing) add(step, *timing);
  forget_paused(step);
  for (const EngineEvent& event : step.events) {  // whoever was cancelled had no part in the step
    const auto* finished = std::get_if<OutputFinished>(&event);
    if (finished && finished->finish_reason == FinishReason::kAbort) forget(finished->request_id, 0);
  }
  for (const EngineEvent& event : step.events) {
    const RequestId request_id = request_id_of(event);
    if (const auto* tokens = std::get_if<TokensGenerated>(&event)) {
      end_gap({request_id, tokens->output_index});
    } else if (std::holds_alternative<BeamsAdvanced>(event)) {
      end_gap({request_id, 0});
    } else if (const auto* preempted = std::get_if<RequestPreempted>(&event)) {
      forget(request_id, preempted->first_output_index);
    } else if (const auto* finished = std::get_if<OutputFinished>(&event)) {
      gaps_.erase({request_id, finished->output_index});
    } else if (std::holds_alternative<RequestFinished>(event) ||
               std::holds_alternative<RequestFailed>(event)) {
      forget(request_id, 0);
    }
  }
}

// About the target or, where that takes longer, what outputs take and the fewest rows of prompts. Without
// prompts a step takes what it takes, with drafts.
void GapRules::add(const StepView& step, const SimulatedRunner::Timing& timing) {
  const bool is_shared = timing.us_of_costliest_row > 0.0, is_known = knows(timing.us_of_costliest_row);
  // (Prompts of models with recurrent layers stop where a checkpoint is wanted, and where a sibling takes
  // over.)
  if (is_known && !memory_ends_exactly(script_.options)) check_is_filled(step, timing);
  // Outputs of a group that is larger than a step take turns.
  if (!is_shared && timing.num_rows >= script_.options.max_num_batched_tokens) return;
  const double slowest = 1.0 + 0.01 * pace_.noise_percent;
  const double beside_us =
      is_shared ? scheduler::kFewestPromptRows * timing.us_of_costliest_row : timing.us_of_drafts;
  const double fewest_us = timing.us_of_decodes + beside_us;
  const double most_us = std::max(kLongest * script_.options.target_step_us, slowest * fewest_us);
  for (auto& [output, gap] : gaps_) {
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

void GapRules::end_gap(const Output& output) {
  const auto [found, is_first] = gaps_.try_emplace(output);
  const Gap gap = std::exchange(found->second, {});
  if (is_first || !gap.is_judged || gap.is_unknown) return;
  ++num_judged_;
  if (gap.us > gap.most_us)
    problem_.note(output.first, "the next token of output " + std::to_string(output.second) + " came after " +
                                    std::to_string(static_cast<int>(gap.us)) +
                                    " us, beside others; at most " +
                                    std::to_string(static_cast<int>(gap.most_us)));
}

// Who waits for blocks, and not for prompts.
void GapRules::forget_paused(const StepView& step) {
  if (script_.options.admission_reserve != AdmissionReserve::kLookAhead) return;
  for (const SequenceSnapshot& after : step.after.sequences) {
    const auto before =
        std::ranges::find(step.before.sequences, after.sequence_id, &SequenceSnapshot::sequence_id);
    const bool is_due = before != step.before.sequences.end() && before->state == SequenceState::kRunning &&
                        before->num_tokens - before->num_computed_tokens == 1;
    if (is_due && after.num_computed_tokens == before->num_computed_tokens) forget(after.request_id, 0);
  }
}

// This output and those behind it.
void GapRules::forget(RequestId request_id, std::int32_t first_output_index) {
  const auto is_of_request = [&](const auto& entry) { return entry.first.first == request_id; };
  const auto first = gaps_.lower_bound({request_id, first_output_index});
  gaps_.erase(first, std::find_if_not(first, gaps_.end(), is_of_request));
}

}  // namespace octavo::simulation
