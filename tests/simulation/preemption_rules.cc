#include "tests/simulation/preemption_rules.h"

#include <algorithm>
#include <set>
#include <variant>

#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {

// A victim's swaps stand before the note of its preemption, one for each of its sequences.
void PreemptionRules::check(const StepView& step) {
  std::int32_t num_host_used = step.before.figures.host_used_blocks, num_swapped = 0;
  RequestId last{};
  for (const BlockEvent& event : step.block_events) {
    if (event.kind == BlockEventKind::kSwapOut) ++num_swapped;
    if (event.kind == BlockEventKind::kSwapDrop) --num_host_used;
    if (event.kind != BlockEventKind::kPreempt) continue;
    const auto sequence =
        std::ranges::find(step.before.sequences, SequenceId{event.sequence}, &SequenceSnapshot::sequence_id);
    if (sequence == step.before.sequences.end()) return problem_.note("preempted what did not run");
    if (sequence->request_id == last) continue;
    last = sequence->request_id;
    check_choice(step, last, event.aux == 1, script_.options.num_host_blocks - num_host_used);
    num_host_used += num_swapped;
    num_swapped = 0;
  }
}

void PreemptionRules::learn(const StepRecord& record, bool device_failed) {
  has_swapped_ |= !device_failed && record.num_swapped_out + record.num_swapped_in > 0;
  has_prefilled_ |= !device_failed && record.num_prefill_tokens > 0;
}

PreemptionRules::Victim PreemptionRules::victim_of(const KvSnapshot& before, RequestId request_id) const {
  const std::int32_t block_size = script_.options.block_size;
  Victim victim;
  std::set<BlockId> full, all;
  bool is_in_prompt = true, some_wait = false;
  for (const SequenceSnapshot& sequence : before.sequences) {
    if (sequence.request_id != request_id) continue;
    if (victim.num_sequences++ == 0) victim.holds_nothing = sequence.num_computed_tokens == 0;
    is_in_prompt &= sequence.num_tokens == sequence.num_prompt_tokens;
    some_wait |= sequence.block_table.empty();
    const auto table = sequence.block_table.begin();
    const std::int32_t num_full = sequence.num_computed_tokens / block_size;
    const std::int32_t num_partial = sequence.num_computed_tokens % block_size;
    full.insert(table, table + num_full);
    all.insert(table, table + num_full + (num_partial > 0 ? 1 : 0));
    victim.num_tokens += num_partial;
  }
  victim.num_blocks = static_cast<std::int32_t>(all.size());
  victim.num_tokens += block_size * static_cast<std::int32_t>(full.size());
  victim.may_change = some_wait && !is_in_prompt;
  return victim;
}

void PreemptionRules::check_choice(const StepView& step, RequestId request_id, bool was_swapped,
                                   std::int32_t num_host_free) {
  const Victim victim = victim_of(step.before, request_id);
  if (victim.may_change) return;
  const bool can_swap =
      !victim.holds_nothing && victim.num_blocks <= num_host_free && script_.options.num_host_blocks > 0;
  if (was_swapped && !can_swap) problem_.note(request_id, "was swapped out to where there is no room");
  if (can_swap && !is_right(victim, was_swapped))
    problem_.note(request_id,
                  was_swapped ? "was swapped out" : "lost its blocks, which should be swapped out");
  for (const EngineEvent& event : step.events) {
    const auto* told = std::get_if<RequestPreempted>(&event);
    if (told && told->request_id == request_id &&
        told->num_tokens_dropped != (was_swapped ? 0 : victim.num_tokens))
      problem_.note(request_id, "was told another number of dropped tokens");
  }
}

bool PreemptionRules::is_right(const Victim& victim, bool was_swapped) const {
  const PreemptionPolicy mode = script_.options.preemption_mode;
  if (mode == PreemptionPolicy::kSwap) return was_swapped;
  if (mode == PreemptionPolicy::kRecompute) return !was_swapped;
  const bool believes_prior = mode == PreemptionPolicy::kAuto && !has_swapped_;
  if (!has_prefilled_ || believes_prior) return was_swapped == (victim.num_sequences > 1);
  const Pace pace = pace_of(script_.options);
  const std::int64_t swap_us = has_swapped_ ? 2 * pace.us_per_block * victim.num_blocks : 0;
  const std::int64_t recompute_us = pace.us_per_row * victim.num_tokens;
  return swap_us == recompute_us || was_swapped == (swap_us < recompute_us);
}

}  // namespace octavo::simulation
