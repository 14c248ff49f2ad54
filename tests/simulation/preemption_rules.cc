#include "tests/simulation/preemption_rules.h"

#include <algorithm>
#include <set>
#include <variant>
#include <vector>

#include "tests/simulation/simulated_runner.h"

namespace octavo::simulation {
namespace {

constexpr double kDoubt = 2.0;

RequestId request_of(const KvSnapshot& snapshot, std::uint64_t sequence) {
  const auto found =
      std::ranges::find(snapshot.sequences, SequenceId{sequence}, &SequenceSnapshot::sequence_id);
  return found == snapshot.sequences.end() ? RequestId{} : found->request_id;
}

}  // namespace

// A victim's swaps stand before the note of its preemption, one for each of its sequences. Victims come from
// the newest to the oldest of the background line, then of the other one, each with an event of its own.
void PreemptionRules::check(const StepView& step) {
  std::int32_t num_host_used = step.before.figures.host_used_blocks, num_swapped = 0;
  std::vector<const RequestPreempted*> told;
  for (const EngineEvent& event : step.events) {
    if (const auto* preemption = std::get_if<RequestPreempted>(&event)) told.push_back(preemption);
  }
  std::vector<std::uint64_t> victim;
  std::size_t num_victims = 0;
  const auto notes = step.block_events;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (notes[i].kind == BlockEventKind::kSwapOut) ++num_swapped;
    if (notes[i].kind == BlockEventKind::kSwapDrop) --num_host_used;
    if (notes[i].kind != BlockEventKind::kPreempt) continue;
    victim.push_back(notes[i].sequence);
    const bool goes_on =
        i + 1 < notes.size() && notes[i + 1].kind == BlockEventKind::kPreempt &&
        notes[i + 1].sequence > notes[i].sequence &&
        request_of(step.before, notes[i + 1].sequence) == request_of(step.before, notes[i].sequence);
    if (goes_on) continue;
    if (num_victims == told.size()) return problem_.note("a preemption that nobody was told of");
    check_choice(step.before, victim, *told[num_victims++], notes[i].aux == 1,
                 script_.options.num_host_blocks - num_host_used);
    victim.clear();
    num_host_used += num_swapped;
    num_swapped = 0;
  }
  if (num_victims < told.size()) problem_.note("told of a preemption that did not happen");
}

void PreemptionRules::learn(const StepRecord& record, bool device_failed) {
  has_swapped_ |= !device_failed && record.num_swapped_out + record.num_swapped_in > 0;
  has_prefilled_ |= !device_failed && record.num_prefill_tokens > 0;
}

PreemptionRules::Victim PreemptionRules::victim_of(const KvSnapshot& before,
                                                   std::span<const std::uint64_t> sequences) const {
  const std::int32_t block_size = script_.options.block_size;
  Victim victim;
  std::set<BlockId> full, all;
  bool is_in_prompt = true, some_wait = false;
  for (const SequenceSnapshot& sequence : before.sequences) {
    if (!std::ranges::binary_search(sequences, sequence.sequence_id.value)) continue;
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

void PreemptionRules::check_choice(const KvSnapshot& before, std::span<const std::uint64_t> sequences,
                                   const RequestPreempted& told, bool was_swapped,
                                   std::int32_t num_host_free) {
  const RequestId request_id = told.request_id;
  const auto first =
      std::ranges::find(before.sequences, SequenceId{sequences.front()}, &SequenceSnapshot::sequence_id);
  if (first == before.sequences.end() || first->request_id != request_id ||
      first->output_index != told.first_output_index)
    return problem_.note(request_id, "was told of another preemption");
  const Victim victim = victim_of(before, sequences);
  if (victim.may_change) return;
  const bool can_swap =
      !victim.holds_nothing && victim.num_blocks <= num_host_free && script_.options.num_host_blocks > 0;
  if (was_swapped && !can_swap) problem_.note(request_id, "was swapped out to where there is no room");
  // (How many states or window parts the host has room for is not told from step to step.)
  const bool may_lack_room = script_.options.num_host_states < script_.options.num_states ||
                             script_.options.num_host_window_blocks < script_.options.num_window_blocks;
  if (can_swap && !was_swapped && may_lack_room) return;
  if (can_swap && !is_right(victim, was_swapped))
    problem_.note(request_id,
                  was_swapped ? "was swapped out" : "lost its blocks, which should be swapped out");
  if (told.num_tokens_dropped != (was_swapped ? 0 : victim.num_tokens))
    problem_.note(request_id, "was told another number of dropped tokens");
}

bool PreemptionRules::is_right(const Victim& victim, bool was_swapped) const {
  const PreemptionPolicy mode = script_.options.preemption_mode;
  if (mode == PreemptionPolicy::kSwap) return was_swapped;
  if (mode == PreemptionPolicy::kRecompute) return !was_swapped;
  const bool believes_prior = mode == PreemptionPolicy::kAuto && !has_swapped_;
  if (!has_prefilled_ || believes_prior) return was_swapped == (victim.num_sequences > 1);
  const Pace pace = pace_of(script_.options);
  const double swap_us = has_swapped_ ? static_cast<double>(2 * pace.us_per_block * victim.num_blocks) : 0.0;
  double recompute_us = 0.0;
  for (std::int32_t position = 0; position < victim.num_tokens; ++position)
    recompute_us += pace.us_of_row(position);
  // What changes by chance, and with the context, is known as far as it was seen.
  const double doubt = pace.noise_percent > 0 ? kDoubt : 1.0;
  if (swap_us <= doubt * recompute_us && recompute_us <= doubt * swap_us) return true;
  return was_swapped == (swap_us < recompute_us);
}

}  // namespace octavo::simulation
