#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/scheduler/preemption_choice.h"
#include "engine/scheduler/prompt_lookup.h"
#include "engine/scheduler/scheduler_state.h"

namespace octavo::scheduler {
namespace {

// Whether both begin with the same blocks, up to the one of this index. That one is looked at first: it is
// where prompts differ that have a system prompt in common.
bool starts_alike(std::span<const TokenId> a, std::span<const TokenId> b, std::int32_t last_block,
                  std::int32_t block_size) {
  const auto begin = static_cast<std::size_t>(last_block * block_size);
  const auto size = static_cast<std::size_t>(block_size);
  if (std::min(a.size(), b.size()) < begin + size) return false;
  return std::ranges::equal(a.subspan(begin, size), b.subspan(begin, size)) &&
         std::ranges::equal(a.first(begin), b.first(begin));
}

}  // namespace

SchedulerOutput Scheduler::schedule() {
  State& state = *state_;
  OCTAVO_CHECK(!state.step_in_flight && !state.has_step_ahead, "step %lld is not committed",
               static_cast<long long>(state.step));
  SchedulerOutput output;
  output.step = ++state.step;
  state.blocks.begin_step(state.step);

  state.is_mixed = state.lines_count() && state.queue.is_mixed();
  state.background_has_turn = state.turns.begin_step(state.is_mixed);
  state.parts = {};
  StepBudget budget(state.options.max_num_batched_tokens, state.options.target_step_us, state.costs.steps);
  state.make_way(output);
  state.grow_running(output);
  if (output.out_of_memory.empty()) {
    const bool decodes_wait = state.options.prefill_first;
    if (!decodes_wait) state.give_rows_to_decodes(budget);
    state.give_rows_to_chunks(budget);
    if (output.preemptions.empty()) state.admit_waiting(budget, output);
    if (decodes_wait && budget.num_taken() == 0) state.give_rows_to_decodes(budget);
    state.draft_ahead(budget, output);
  }
  state.list_rows(output);

  state.blocks.events().note_scheduled_tokens(budget.num_taken());
  state.step_in_flight = !output.empty() || output.moves_memory();
  if (!state.step_in_flight) state.end_step();
  return output;
}

// ---- the interactive line before the background one

// The baselines neither preempt nor let anybody join a batch: there the lines are an order only.
bool Scheduler::State::lines_count() const {
  return allocation->shares_blocks() && options.batching_policy == BatchingPolicy::kIteration;
}

// An interactive group that waits for blocks or a seat while background groups run: the latest of these give
// way, before they take anything in this step, and it starts in the next one.
void Scheduler::State::make_way(SchedulerOutput& output) {
  if (!is_mixed || queue.waiting().empty()) return;
  SequenceGroup& group = *queue.waiting().front();
  if (group.priority != RequestPriority::kInteractive || !rules_allow(group, /*nothing_ran=*/false) ||
      waits_for_same_prefix(group))
    return;
  while (!queue.running().empty() && queue.running().back()->priority == RequestPriority::kBackground &&
         may_start(group) == AllocStatus::kLater) {
    take_blocks_from(queue.preempt_last(), output);
  }
}

// In the step that is being made.
bool Scheduler::State::has_part(const SequenceGroup& group) const {
  return background_has_turn || group.priority == RequestPriority::kInteractive;
}

// ---- slots for what runs

// Older groups come first, so that the blocks of younger ones are still there to be taken.
void Scheduler::State::grow_running(SchedulerOutput& output) {
  for (const auto& group : queue.all()) group->is_paused = false;
  const SequenceGroup* const first = first_to_end();
  for (std::size_t i = 0; i < queue.running().size(); ++i) {
    SequenceGroup& group = *queue.running()[i];
    if (!has_part(group)) return;  // nor have those behind it
    attach_ready(group, output);
    group.is_paused = waits_for_an_end(group, first);
    if (group.is_paused) continue;
    if (!make_room(group, output)) return;
    grow_group(group, output);
  }
}

// Nobody gives way for a block that will be there in a few steps: who wants it waits for it, with all that it
// has. The oldest group goes on in any case, and so does the one that is waited for, so that a wait has an
// end and nobody starves. (The lines stay what they are: a background group does give way.)
bool Scheduler::State::waits_for_an_end(const SequenceGroup& group, const SequenceGroup* first_to_end) const {
  if (first_to_end == nullptr || first_to_end == &group || queue.running().front().get() == &group)
    return false;
  return group.is_decoding() && queue.running().back()->priority == group.priority &&
         allocation->num_blocks_to_grow(group) > blocks.num_available();
}

// By what is told of lengths, and if it is soon.
const SequenceGroup* Scheduler::State::first_to_end() const {
  if (options.admission_reserve != AdmissionReserve::kLookAhead) return nullptr;
  const SequenceGroup* first = nullptr;
  std::int32_t num_least = kStepsAhead + 1;
  for (const auto& group : queue.running()) {
    if (!ends_as_told(*group)) continue;
    std::int32_t num_left = 0;
    for (const Sequence& sequence : std::as_const(*group).live())
      num_left = std::max(num_left, group->num_tokens_left(sequence, options.max_model_len));
    if (num_left >= num_least) continue;
    num_least = num_left;
    first = group.get();
  }
  return first;
}

// Gets a row in every step until then, unless it is paused.
bool Scheduler::State::ends_as_told(const SequenceGroup& group) const {
  return group.is_decoding() && !(is_mixed && group.priority == RequestPriority::kBackground);
}

// Sequences that waited for a sibling to compute what both start with.
void Scheduler::State::attach_ready(SequenceGroup& group, SchedulerOutput& output) {
  if (group.awaits_fork()) return;
  for (Sequence& sequence : group.live()) {
    if (sequence.is_attached) continue;
    const Sequence& source = group.sequences[sequence.share_source];
    const std::int32_t num_shared = sequence.num_shared_blocks;
    // (With a state: exactly there, which is where the source stops. It is written again in this step, if at
    // all, after all have attached.)
    const bool is_ready = num_shared == 0 || (source.is_attached && source.num_computed_tokens() >=
                                                                        num_shared * options.block_size);
    if (!is_ready) continue;
    sequence.is_attached = true;
    if (num_shared > 0) blocks.share_start(source.table, sequence.table, num_shared);
    if (!group.reads_prefix_cache()) continue;
    const std::size_t num_copies_before = output.block_copies.size();
    blocks.append_match(sequence.table, group.content(sequence),
                        group.most_reused_tokens(sequence, options.block_size),
                        group.memory.has_states ? &output.block_copies : nullptr);
    if (output.block_copies.size() > num_copies_before) touched.push_back(group.request_id);
  }
}

// False when `group` itself had to give way, or cannot have more even alone. The last of the running groups
// gives way first; when there is but one, its last output does.
bool Scheduler::State::make_room(SequenceGroup& group, SchedulerOutput& output) {
  while (allocation->num_blocks_to_grow(group) > blocks.num_available()) {
    if (queue.running().size() > 1) {
      SequenceGroup& last = queue.preempt_last();
      take_blocks_from(last, output);
      if (&last == &group) return false;
    } else if (group.can_pause_output()) {
      take_blocks_from(queue.pause_last_output(group), output);
    } else if (!release_pins_for_progress()) {
      end_out_of_memory(group, output);
      return false;
    }
  }
  return true;
}

// What is pinned must not stop the only one who could go on. False when nothing was.
bool Scheduler::State::release_pins_for_progress() {
  if (blocks.prefix_cache().num_pinned_unused() == 0) return false;
  blocks.release_pins();
  return true;
}

void Scheduler::State::end_out_of_memory(const SequenceGroup& group, SchedulerOutput& output) const {
  for (const Sequence& sequence : group.live()) {
    output.out_of_memory.push_back({group.request_id, sequence.sequence_id, sequence.output_index});
  }
}

void Scheduler::State::grow_group(SequenceGroup& group, SchedulerOutput& output) {
  const std::size_t num_moves_before = output.block_copies.size() + output.state_moves.size();
  for (Sequence& sequence : group.live()) {
    if (!sequence.is_computing()) continue;
    OCTAVO_CHECK(sequence.num_tokens() < options.max_model_len,
                 "sequence %llu has %d tokens, the limit is %d",
                 static_cast<unsigned long long>(sequence.sequence_id.value), sequence.num_tokens(),
                 options.max_model_len);
    blocks.grow(sequence.table, sequence.num_tokens(), output.block_copies, &output.state_moves);
  }
  if (output.block_copies.size() + output.state_moves.size() > num_moves_before)
    touched.push_back(group.request_id);
}

// ---- preemption

// Of a group that ran until now.
void Scheduler::State::take_blocks_from(SequenceGroup& group, SchedulerOutput& output) {
  group.was_preempted = true;
  const std::int32_t num_tokens = group.num_distinct_computed_tokens(options.block_size);
  const bool is_swap =
      may_swap(group, num_tokens) && blocks.swap_out(group.tables(), output.swap_outs, &output.state_moves);
  for (const Sequence& sequence : group.live()) {
    blocks.events().record(BlockEventKind::kPreempt, sequence.sequence_id, block::kNoBlock, is_swap ? 1 : 0);
  }
  output.preemptions.push_back(
      {group.request_id, group.lead().output_index, is_swap, is_swap ? 0 : num_tokens});
  if (is_swap) {
    ++blocks.totals().preempted_swap;
    swapped_out.push_back(group.first_sequence_id());
    return group.set_status(SequenceStatus::kSwapped);
  }
  ++blocks.totals().preempted_recompute;
  release(group);
  group.plan_sharing(options.block_size);
  group.set_status(SequenceStatus::kWaiting);
}

bool Scheduler::State::may_swap(SequenceGroup& group, std::int32_t num_tokens) {
  const bool holds_nothing = group.lead().num_computed_tokens() == 0;
  if (holds_nothing || blocks.host_pool().num_blocks() == 0) return false;
  const PreemptedGroup preempted{.num_sequences = group.num_live(),
                                 .num_blocks = blocks.num_distinct_blocks(group.tables()) +
                                               num_blocks_as_large_as_states(group.num_live()),
                                 .num_tokens = num_tokens};
  return prefers_swap(preempted, options.preemption_mode, costs);
}

// For what a copy takes.
std::int32_t Scheduler::State::num_blocks_as_large_as_states(std::int32_t num_states) const {
  if (options.num_states == 0 || options.bytes_per_block == 0) return 0;
  return static_cast<std::int32_t>(num_states * options.bytes_per_state / options.bytes_per_block);
}

// ---- rows

// One row for each sequence of the groups that decode. They fit the budget, see most_running_sequences(),
// unless a single group of more outputs than that runs alone: then those with the fewest tokens go first,
// which takes turns.
void Scheduler::State::give_rows_to_decodes(StepBudget& budget) {
  decoding.clear();
  for (const auto& group : queue.running()) {
    if (!group->is_decoding() || group->is_paused || !has_part(*group)) continue;
    for (Sequence& sequence : group->live()) {
      if (sequence.is_computing()) decoding.push_back(&sequence);
    }
  }
  const auto num_left = static_cast<std::size_t>(budget.num_left());
  if (decoding.size() > num_left) {
    std::ranges::stable_sort(decoding, {}, &Sequence::num_tokens);
    decoding.resize(num_left);
  }
  for (Sequence* sequence : decoding) {
    sequence->num_scheduled_tokens = 1;
    budget.take_decode(sequence->num_computed_tokens());
  }
}

// In its turn the background line comes before interactive prompts, or a stream of these could starve it.
void Scheduler::State::give_rows_to_chunks(StepBudget& budget) {
  if (background_has_turn) give_rows_to_chunks_of(RequestPriority::kBackground, budget);
  give_rows_to_chunks_of(RequestPriority::kInteractive, budget);
}

void Scheduler::State::give_rows_to_chunks_of(RequestPriority line, StepBudget& budget) {
  for (const auto& group : queue.running()) {
    if (group->priority == line && !group->is_decoding()) give_rows_to_group(*group, budget);
  }
}

// A group decodes together: whoever catches up stops before its newest token and waits for its siblings. So
// nobody ends while others still wait for what it computes. And a group that resumes to decode beside others
// has a row for each sequence, or starts in the next step, where decodes come first.
void Scheduler::State::give_rows_to_group(SequenceGroup& group, StepBudget& budget) {
  const auto num_computing = std::ranges::count_if(group.sequences, &Sequence::is_computing);
  const bool is_decoding = group.is_decoding();
  const bool is_beside_others = budget.num_taken() > 0;
  if (is_decoding && is_beside_others && num_computing > budget.num_left()) return;
  const bool waits_for_siblings = group.num_live() > 1 && !is_decoding;
  if (group.priority == RequestPriority::kBackground) budget.keep_to_target();
  for (Sequence& sequence : group.live()) {
    if (!sequence.is_computing() || budget.num_left() == 0) continue;
    const std::int32_t num_held_back = waits_for_siblings && sequence.has_output() ? 1 : 0;
    const std::int32_t start = sequence.num_computed_tokens();
    if (is_decoding) {
      sequence.num_scheduled_tokens = 1;
      budget.take_decode(start);
    } else {
      const std::int32_t num_until_stop = group.next_stop(sequence, options.block_size) - start;
      sequence.num_scheduled_tokens = budget.take_chunk(
          start, std::min(sequence.num_uncomputed_tokens() - num_held_back, num_until_stop));
    }
  }
}

// ---- admission

void Scheduler::State::admit_waiting(StepBudget& budget, SchedulerOutput& output) {
  const bool nothing_ran = queue.running().empty();
  while (budget.has_rows_for_prompts() && !queue.waiting().empty()) {
    SequenceGroup& group = *queue.waiting().front();
    if (!has_part(group) || !rules_allow(group, nothing_ran)) return;
    const AllocStatus status = may_start(group);
    if (status != AllocStatus::kOk && queue.running().empty()) {
      if (release_pins_for_progress()) continue;
      if (group.can_pause_output()) {  // not even the empty pool holds all of it
        queue.pause_last_output(group);
        continue;
      }
      end_out_of_memory(group, output);
    }
    if (status != AllocStatus::kOk) return;
    start(queue.start_front(), output);
    give_rows_to_group(group, budget);
  }
}

// Of those who never ran. Who was preempted goes on as soon as it fits.
bool Scheduler::State::rules_allow(const SequenceGroup& group, bool nothing_ran) const {
  if (group.was_admitted) return true;
  if (options.admit_after_preemption == AdmissionAfterPreemption::kCompleted) {
    const auto was_preempted = [&](const auto& other) {
      return other->was_preempted && other->priority <= group.priority;
    };
    if (std::ranges::any_of(queue.all(), was_preempted)) return false;
  }
  switch (options.batching_policy) {
    case BatchingPolicy::kIteration: return true;
    case BatchingPolicy::kStatic: return nothing_ran;
    case BatchingPolicy::kOneAtATime: return queue.running().empty();
  }
  return true;
}

AllocStatus Scheduler::State::may_start(SequenceGroup& group) {
  const PoolLevel pool = level(&group);
  const bool has_seats = pool.num_running_sequences == 0 ||
                         pool.num_running_sequences + group.num_seats() <= most_running_sequences();
  if (!has_seats) return AllocStatus::kLater;
  if (waits_for_same_prefix(group)) return AllocStatus::kLater;
  return allocation->admission(group, pool);
}

// Somebody who runs is about to compute blocks with which this one starts too, and which nobody can find yet.
// (Nobody interactive waits for a background group, which has rows in its turns only.)
bool Scheduler::State::waits_for_same_prefix(SequenceGroup& group) const {
  if (!options.enable_prefix_caching || !group.reads_prefix_cache() || group.is_swapped_out()) return false;
  Sequence& lead = group.lead();
  const std::int32_t most = (lead.num_tokens() - 1) / options.block_size;
  const std::int32_t num_found =
      blocks.match(lead.table, group.content(lead), most * options.block_size).num_blocks;
  return std::ranges::any_of(queue.running(), [&](const auto& other) {
    const Sequence& peer = other->lead();
    if (peer.is_caught_up() || other->cache_salt != group.cache_salt || other->priority > group.priority)
      return false;
    if (group.memory.has_states) return is_about_to_keep(*other, peer, lead.token_ids(), num_found);
    // The first block that it would have to share: the first that nobody can find, and that the peer has yet
    // to finish.
    const std::int32_t decisive = std::max(num_found, peer.num_computed_tokens() / options.block_size);
    return decisive < most && starts_alike(peer.token_ids(), lead.token_ids(), decisive, options.block_size);
  });
}

// Whether `peer` comes to a checkpoint with which `token_ids` start too, behind the blocks that are found.
bool Scheduler::State::is_about_to_keep(const SequenceGroup& group, const Sequence& peer,
                                        std::span<const TokenId> token_ids, std::int32_t num_found) const {
  const std::int32_t stop = group.next_stop(peer, options.block_size);
  const auto size = static_cast<std::size_t>(stop);
  const bool is_wanted = stop < peer.num_tokens() && stop / options.block_size > num_found;
  return is_wanted && size < token_ids.size() &&
         std::ranges::equal(peer.token_ids().first(size), token_ids.first(size));
}

void Scheduler::State::start(SequenceGroup& group, SchedulerOutput& output) {
  touched.push_back(group.request_id);
  if (group.was_admitted) {
    for (const Sequence& sequence : group.live()) {
      blocks.events().record(BlockEventKind::kResume, sequence.sequence_id);
    }
  }
  const bool was_swapped_out = group.is_swapped_out();
  group.set_status(SequenceStatus::kRunning);
  if (was_swapped_out) {
    swap_in(group, output);
  } else {
    start_first(group, output);
  }
  grow_group(group, output);
}

// The first blocks, or the first after they were dropped.
void Scheduler::State::start_first(SequenceGroup& group, SchedulerOutput& output) {
  Sequence& lead = group.lead();
  allocation->reserve(group);
  block::BlockManager::AppendedMatch found;
  found.miss.cause = MissCause::kNotRead;
  if (group.reads_prefix_cache()) {
    found = blocks.append_match(lead.table, group.content(lead),
                                group.most_reused_tokens(lead, options.block_size), &output.block_copies);
  }
  if (!lead.has_output()) {
    group.account = {.num_hit_live = found.num_hit_live,
                     .num_hit_cached = found.num_hit_cached,
                     .num_copied_partial = found.num_copied_partial};
  }
  if (std::exchange(group.was_admitted, true)) return;
  group.miss = found.miss;
  output.admissions.push_back({group.request_id, found.num_tokens()});
  blocks.totals().prefix_hit_tokens += found.num_tokens();
}

void Scheduler::State::swap_in(SequenceGroup& group, SchedulerOutput& output) {
  std::vector<block::MovingTable> tables = group.tables();
  std::erase_if(tables, [](const block::MovingTable& moving) { return !moving.table->is_swapped_out(); });
  const auto found = blocks.swap_in(tables, output.swap_ins, &output.state_moves);
  restored.push_back(group.first_sequence_id());
  if (group.lead().has_output()) return;
  group.account = {.num_hit_live = found.num_hit_live, .num_hit_cached = found.num_hit_cached};
  group.account.num_restored = group.lead().num_computed_tokens() - found.num_tokens();
}

// Each step computes a row of everything that runs: decodes take one each, and one at least is left for each
// group that computes its prompt. So a small budget bounds what runs, and nobody in there can starve.
std::int32_t Scheduler::State::most_running_sequences() const {
  return std::min(most_sequences_of_request(), options.max_num_batched_tokens);
}

// As it is for a group that wants to start; none: for nobody else.
PoolLevel Scheduler::State::level(const SequenceGroup* starting) const {
  PoolLevel level{.num_blocks = options.num_blocks,
                  .num_available = blocks.num_available(),
                  .reserve = options.admission_reserve};
  if (level.reserve == AdmissionReserve::kLookAhead) level.num_taken_ahead = num_taken_ahead(starting);
  for (const auto& group : queue.running()) {
    level.num_running_sequences += group->num_seats();
    level.num_promised += group->num_blocks_promised(options.block_size);
    if (group->is_paused) level.num_promised += allocation->num_blocks_to_grow(*group);
  }
  return level;
}

std::int32_t Scheduler::State::num_taken_ahead(const SequenceGroup* starting) const {
  BlockForecast forecast(options.block_size);
  for (const auto& group : queue.running()) look_ahead(*group, forecast);
  if (starting != nullptr) look_ahead(*starting, forecast);
  return forecast.most_taken();
}

// What others hold too, what stays pinned and what is in the host pool does not come free with an end.
void Scheduler::State::look_ahead(const SequenceGroup& group, BlockForecast& forecast) const {
  const bool comes_free = ends_as_told(group) && group.lead().status == SequenceStatus::kRunning &&
                          group.retention != RetentionClass::kPinned;
  for (const Sequence& sequence : group.live()) {
    const std::int32_t num_left = group.num_tokens_left(sequence, options.max_model_len);
    std::optional<std::int32_t> num_own;
    if (comes_free && num_left <= kStepsAhead) {
      num_own = static_cast<std::int32_t>(std::ranges::count_if(
          sequence.table.blocks(), [&](BlockId block) { return blocks.pool().at(block).ref_count == 1; }));
    }
    forecast.add(sequence.num_tokens(), num_left, num_own);
  }
}

// ---- guesses

// Last of all, with what nobody else has taken in this step; what is left of the cheap rows is shared evenly.
void Scheduler::State::draft_ahead(StepBudget& budget, SchedulerOutput& output) {
  if (options.speculative == Speculation::kOff) return;
  const std::int32_t num_rows = budget.num_taken();
  std::int32_t num_left = std::min(budget.num_left(), kMostRowsWithDrafts - num_rows);
  if (num_left <= 0) return;
  collect_drafting();
  auto num_to_serve = static_cast<std::int32_t>(drafting.size());
  for (const GroupedSequence& one : drafting) {
    Sequence& sequence = *one.sequence;
    const std::int32_t share = (num_left + num_to_serve - 1) / num_to_serve;
    --num_to_serve;
    const std::int32_t num_most =
        std::min({share, most_drafts(one, num_rows), budget.most_draft_rows(sequence.num_tokens())});
    const std::vector<TokenId> guesses = guesses_of(sequence, num_most);
    if (guesses.empty()) continue;
    const auto num_drafted = static_cast<std::int32_t>(guesses.size());
    blocks.grow(sequence.table, sequence.num_tokens() + num_drafted, output.block_copies,
                &output.state_moves);
    budget.take_draft(sequence.num_tokens(), num_drafted);
    sequence.draft(guesses);
    num_left -= num_drafted;
  }
}

// Who extends its output in this step. Beams do not guess: their next tokens are chosen together.
void Scheduler::State::collect_drafting() {
  drafting.clear();
  for (const auto& group : queue.running()) {
    if (group->is_beam_search() || !group->is_decoding()) continue;
    for (Sequence& sequence : group->live()) {
      if (sequence.num_scheduled_tokens > 0 && can_guess(sequence))
        drafting.push_back({group.get(), &sequence});
    }
  }
}

// Of what the model guesses, only what it has just computed the last row of.
bool Scheduler::State::can_guess(const Sequence& sequence) const {
  return options.speculative != Speculation::kMtp ||
         std::ranges::find(guessable, sequence.sequence_id) != guessable.end();
}

// The model's are not known yet: their places are kept free.
std::vector<TokenId> Scheduler::State::guesses_of(const Sequence& sequence, std::int32_t most) const {
  if (options.speculative != Speculation::kMtp) return guess_next(sequence.token_ids(), most);
  return std::vector<TokenId>(static_cast<std::size_t>(std::max(0, most)), TokenId{0});
}

// A draft that is accepted whole is followed by one token more: both must be allowed.
std::int32_t Scheduler::State::most_drafts(const GroupedSequence& one, std::int32_t num_rows) const {
  const Sequence& sequence = *one.sequence;
  const std::int32_t num_output = sequence.num_tokens() - sequence.num_prompt_tokens();
  return std::min({sequence.draft_gate.most_drafts(num_rows, sequence.num_tokens()),
                   options.num_speculative_tokens, one.group->sampling.max_tokens - num_output - 1,
                   options.max_model_len - sequence.num_tokens() - 1, num_slots_to_draft_in(sequence)});
}

// Slots of its last block and, while nobody waits, of blocks that nobody else will want.
std::int32_t Scheduler::State::num_slots_to_draft_in(const Sequence& sequence) const {
  const std::int32_t num_own = sequence.table.num_blocks() * options.block_size - sequence.num_tokens();
  if (!queue.waiting().empty()) return num_own;
  return num_own + allocation->num_blocks_for_drafts(level()) * options.block_size;
}

// ---- the plan

void Scheduler::State::list_rows(SchedulerOutput& output) {
  for (const auto& group : queue.running()) {
    for (Sequence& sequence : group->live()) {
      if (sequence.num_scheduled_tokens > 0) list_row(*group, sequence, output);
      sequence.num_scheduled_tokens = 0;
    }
  }
  output.window_moves = blocks.take_window_moves();
}

void Scheduler::State::list_row(SequenceGroup& group, Sequence& sequence, SchedulerOutput& output) {
  const std::int32_t start = sequence.num_computed_tokens();
  blocks.open_window(sequence.table, start + sequence.num_scheduled_tokens + sequence.num_draft_tokens());
  ScheduledSequence& row = output.sequences.emplace_back(row_of(group, sequence));
  row.start_position = start;
  row.num_draft_tokens = sequence.num_draft_tokens();
  if (options.speculative == Speculation::kMtp) row.to_guess = sequence.draft_places();
  row.token_ids = sequence.with_draft().subspan(
      static_cast<std::size_t>(start),
      static_cast<std::size_t>(sequence.num_scheduled_tokens + row.num_draft_tokens));
  row.window_places = sequence.table.window_places();
  row.state = sequence.table.state();
  if (group.embedding) {
    row.pooling = group.embedding->pooling;
  } else if (start + sequence.num_scheduled_tokens == sequence.num_tokens()) {
    list_samples(group, sequence, row);
  }
  (sequence.is_caught_up() ? output.num_decode_tokens : output.num_prefill_tokens) +=
      sequence.num_scheduled_tokens;
  const bool is_interactive = group.priority == RequestPriority::kInteractive;
  (is_interactive ? parts.interactive : parts.background) +=
      StepWork::of_rows(start, static_cast<std::int32_t>(row.token_ids.size()));
  parts.has_interactive_prompt |= is_interactive && !sequence.is_caught_up();
  output.num_draft_tokens += row.num_draft_tokens;
}

// What does not depend on the step.
ScheduledSequence Scheduler::State::row_of(const SequenceGroup& group, const Sequence& sequence) {
  return {.sequence_id = sequence.sequence_id,
          .request_id = group.request_id,
          .sampling = &group.sampling,
          .prompt_token_ids = sequence.prompt_token_ids(),
          .known_token_ids = sequence.token_ids(),
          .token_ids = {},
          .block_table = sequence.table.blocks(),
          .samples = {}};
}

// The end of the prompt is sampled for every output that shares it, and a draft at each of its rows.
void Scheduler::State::list_samples(SequenceGroup& group, Sequence& sequence, ScheduledSequence& row) const {
  const auto add = [&](const Sequence& target, std::int32_t num_guessed) {
    const auto end = static_cast<std::size_t>(target.num_tokens() + num_guessed);
    const auto output = target.with_draft().first(end).subspan(target.prompt_token_ids().size());
    row.samples.push_back(
        {target.sequence_id, target.output_index, group.seed, output, group.num_beam_candidates});
  };
  if (!group.awaits_fork()) {
    for (std::int32_t i = 0; i <= row.num_draft_tokens; ++i) add(sequence, i);
    return;
  }
  for (const Sequence& target : group.live()) {
    if (!target.ends_at_fork) add(target, 0);
  }
}

}  // namespace octavo::scheduler
