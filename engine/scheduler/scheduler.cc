#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/block/block_manager.h"
#include "engine/scheduler/group_queue.h"
#include "engine/scheduler/policy.h"

namespace octavo::scheduler {
namespace {

// 9000 -> "9,000"
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

block::BlockManagerOptions block_manager_options(const SchedulerOptions& options) {
  return {.block_size = options.block_size,
          .num_blocks = options.num_blocks,
          .bytes_per_block = options.bytes_per_block,
          .enable_prefix_caching = options.enable_prefix_caching};
}

}  // namespace

struct Scheduler::State {
  explicit State(const SchedulerOptions& scheduler_options)
      : options(scheduler_options), blocks(block_manager_options(scheduler_options)) {}

  const SchedulerOptions options;
  block::BlockManager blocks;
  GroupQueue queue;
  std::uint64_t next_sequence_id = 1;
  std::int64_t step = 0;
  bool step_in_flight = false;
  // Scratch, kept between steps for their memory.
  std::vector<block::Growth> growths;
  std::vector<Sequence*> decoding;

  Result<void> check_fits(const NewRequest& request) const;
  Result<void> check_fits_pool(const SequenceGroup& group) const;

  // The passes of schedule(), in this order. `budget` is what is left of max_num_batched_tokens.
  void grow_running(SchedulerOutput& output);
  void give_rows_to_decodes(std::int32_t& budget);
  void give_rows_to_chunks(std::int32_t& budget);
  void admit_waiting(std::int32_t& budget, SchedulerOutput& output);
  void list_rows(SchedulerOutput& output);

  bool make_room(SequenceGroup& group, SchedulerOutput& output);
  void preempt_last(SchedulerOutput& output);
  void give_rows_to_group(SequenceGroup& group, std::int32_t& budget);
  AllocStatus may_start(const SequenceGroup& group) const;
  void start(SequenceGroup& group, SchedulerOutput& output);
  void list_row(SequenceGroup& group, Sequence& sequence, SchedulerOutput& output) const;
  void list_samples(SequenceGroup& group, Sequence& sequence, ScheduledSequence& row) const;

  void fork_from_lead(SequenceGroup& group);
  void end_step();
  void release(SequenceGroup& group);
  void collect_growths(SequenceGroup& group);
  PoolLevel level() const;
  std::int32_t most_running_sequences() const;
  Sequence& sequence_of(SequenceId sequence_id) const;
  Sequence& owner_of_copy(const BlockCopyOp& copy) const;
  std::optional<std::string> broken_group(const SequenceGroup& group, bool is_running) const;
  std::vector<block::OwnedTable> owned_tables() const;
};

Scheduler::Scheduler(const SchedulerOptions& options) : state_(std::make_unique<State>(options)) {
  OCTAVO_CHECK(options.max_num_batched_tokens >= 1 && options.max_num_seqs >= 1, "%d tokens, %d sequences",
               options.max_num_batched_tokens, options.max_num_seqs);
}

Scheduler::~Scheduler() = default;

// ---- requests come ----

Result<void> Scheduler::add(NewRequest request) {
  OCTAVO_TRY_VOID(state_->check_fits(request));
  auto group = std::make_unique<SequenceGroup>(
      request.request_id, SequenceId{state_->next_sequence_id}, std::move(request.prompt_token_ids),
      std::move(request.sampling), request.seed, std::move(request.cache_salt));
  OCTAVO_TRY_VOID(state_->check_fits_pool(*group));
  state_->next_sequence_id += group->sequences.size();
  state_->queue.push_back(std::move(group));
  return {};
}

Result<void> Scheduler::State::check_fits(const NewRequest& request) const {
  const std::size_t num_prompt = request.prompt_token_ids.size();
  const std::int32_t n = request.sampling.n;
  if (num_prompt == 0)
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens: give it some text"};
  if (n < 1 || n > options.max_num_seqs) {
    return Error{ErrorCode::kInvalidArgument,
                 "n is " + with_commas(n) + "; outputs run together, from 1 to " +
                     with_commas(options.max_num_seqs) + " of them (--max-num-seqs)",
                 "n"};
  }
  if (num_prompt >= static_cast<std::size_t>(options.max_model_len)) {
    return Error{ErrorCode::kTooLong, "prompt has " + with_commas(static_cast<std::int64_t>(num_prompt)) +
                                          " tokens; the limit is " + with_commas(options.max_model_len) +
                                          " with at least one generated token: shorten the prompt or raise "
                                          "--max-model-len"};
  }
  return {};
}

Result<void> Scheduler::State::check_fits_pool(const SequenceGroup& group) const {
  const std::int32_t num_required = group.num_blocks_required(options.block_size);
  if (num_required <= options.num_blocks) return {};
  return Error{ErrorCode::kTooLong,
               "the request needs at least " + with_commas(num_required) + " KV blocks of " +
                   with_commas(options.block_size) + " tokens; the pool has " +
                   with_commas(options.num_blocks) +
                   ": shorten the prompt, ask for fewer outputs or raise --num-kv-blocks"};
}

// ---- requests go ----

bool Scheduler::abort(RequestId request_id) {
  OCTAVO_CHECK(!state_->step_in_flight, "step %lld is not committed", static_cast<long long>(state_->step));
  SequenceGroup* group = state_->queue.find(request_id);
  if (group == nullptr) return false;
  state_->release(*group);
  state_->queue.remove(*group);
  return true;
}

void Scheduler::finish(SequenceId sequence_id) {
  OCTAVO_CHECK(!state_->step_in_flight, "step %lld is not committed", static_cast<long long>(state_->step));
  const auto found = state_->queue.find(sequence_id);
  OCTAVO_CHECK(found && !found->sequence.is_finished(), "sequence %llu has ended",
               static_cast<unsigned long long>(sequence_id.value));
  auto& [group, sequence] = *found;
  const bool was_computing_prompt = group.awaits_fork() && &group.lead() == &sequence;
  sequence.status = SequenceStatus::kFinished;
  if (was_computing_prompt) {
    state_->blocks.hand_over(sequence.table, group.lead().table);
  } else {
    state_->blocks.release(sequence.table);
  }
  if (group.num_unfinished() == 0) state_->queue.remove(group);
}

void Scheduler::State::release(SequenceGroup& group) {
  // The lead last: what all share is used latest, so it is evicted latest.
  for (std::size_t i = group.sequences.size(); i-- > 0;) blocks.release(group.sequences[i].table);
  group.has_forked = false;
}

// ---- a step is made ----

SchedulerOutput Scheduler::schedule() {
  State& state = *state_;
  OCTAVO_CHECK(!state.step_in_flight, "step %lld is not committed", static_cast<long long>(state.step));
  SchedulerOutput output;
  output.step = ++state.step;
  state.blocks.events().begin_step(state.step);

  std::int32_t budget = state.options.max_num_batched_tokens;
  state.grow_running(output);
  if (output.out_of_memory.empty()) {
    const bool decodes_wait = state.options.prefill_first;
    if (!decodes_wait) state.give_rows_to_decodes(budget);
    state.give_rows_to_chunks(budget);
    if (output.preemptions.empty()) state.admit_waiting(budget, output);
    if (decodes_wait && budget == state.options.max_num_batched_tokens) state.give_rows_to_decodes(budget);
  }
  state.list_rows(output);

  state.blocks.events().note_scheduled_tokens(state.options.max_num_batched_tokens - budget);
  state.step_in_flight = !output.empty();
  if (output.empty()) state.end_step();
  return output;
}

// Slots for the known tokens of all that run. Older groups come first, so that the blocks of younger ones are
// still there to be taken.
void Scheduler::State::grow_running(SchedulerOutput& output) {
  for (std::size_t i = 0; i < queue.running().size(); ++i) {
    SequenceGroup& group = *queue.running()[i];
    collect_growths(group);
    if (!make_room(group, output)) return;
    for (Sequence& sequence : group.sequences) {
      if (sequence.is_finished()) continue;
      const bool is_written = !group.awaits_fork() || &sequence == &group.lead();
      if (is_written) blocks.grow(sequence.table, group.num_target_tokens(sequence), output.block_copies);
    }
  }
}

void Scheduler::State::collect_growths(SequenceGroup& group) {
  growths.clear();
  for (Sequence& sequence : group.sequences) {
    if (sequence.is_finished()) continue;
    const std::int32_t num_tokens = group.num_target_tokens(sequence);
    OCTAVO_CHECK(num_tokens > sequence.num_computed_tokens() && num_tokens < options.max_model_len,
                 "sequence %llu: %d tokens, %d computed, the limit is %d",
                 static_cast<unsigned long long>(sequence.sequence_id.value), num_tokens,
                 sequence.num_computed_tokens(), options.max_model_len);
    growths.push_back({&sequence.table, num_tokens});
    if (group.awaits_fork()) return;
  }
}

// False when `group` itself had to give way, or has the whole pool and needs more.
bool Scheduler::State::make_room(SequenceGroup& group, SchedulerOutput& output) {
  while (blocks.num_blocks_to_grow(growths) > blocks.num_available()) {
    if (queue.running().size() == 1) {
      for (const Sequence& sequence : group.sequences) {
        if (!sequence.is_finished()) output.out_of_memory.push_back(sequence.sequence_id);
      }
      return false;
    }
    const bool gives_way = queue.running().back().get() == &group;
    preempt_last(output);
    if (gives_way) return false;
  }
  return true;
}

void Scheduler::State::preempt_last(SchedulerOutput& output) {
  SequenceGroup& group = queue.preempt_last();
  output.preemptions.push_back({group.request_id, group.num_distinct_computed_tokens()});
  ++blocks.totals().preempted_recompute;
  for (const Sequence& sequence : group.sequences) {
    if (sequence.is_finished()) continue;
    blocks.events().record(BlockEventKind::kPreempt, sequence.sequence_id);
  }
  release(group);
  group.set_status(SequenceStatus::kWaiting);
}

// One row for each sequence of the groups that decode. They fit the budget, see most_running_sequences(),
// unless a single group of more outputs than that runs alone: then those with the fewest tokens go first,
// which takes turns.
void Scheduler::State::give_rows_to_decodes(std::int32_t& budget) {
  decoding.clear();
  for (const auto& group : queue.running()) {
    if (!group->is_decoding()) continue;
    for (Sequence& sequence : group->sequences) {
      if (!sequence.is_finished()) decoding.push_back(&sequence);
    }
  }
  if (decoding.size() > static_cast<std::size_t>(budget)) {
    std::ranges::stable_sort(decoding, {}, &Sequence::num_tokens);
    decoding.resize(static_cast<std::size_t>(budget));
  }
  for (Sequence* sequence : decoding) sequence->num_scheduled_tokens = 1;
  budget -= static_cast<std::int32_t>(decoding.size());
}

void Scheduler::State::give_rows_to_chunks(std::int32_t& budget) {
  for (const auto& group : queue.running()) {
    if (!group->is_decoding()) give_rows_to_group(*group, budget);
  }
}

// What has caught up waits for its siblings: a group decodes together. (One that has just resumed may have
// found all but its newest token in the cache.)
void Scheduler::State::give_rows_to_group(SequenceGroup& group, std::int32_t& budget) {
  const bool is_decoding = group.is_decoding();
  for (Sequence& sequence : group.sequences) {
    if (sequence.is_finished()) continue;
    if (is_decoding || !sequence.is_caught_up()) {
      const std::int32_t num_missing = group.num_target_tokens(sequence) - sequence.num_computed_tokens();
      sequence.num_scheduled_tokens = std::min(budget, num_missing);
      budget -= sequence.num_scheduled_tokens;
    }
    if (group.awaits_fork()) return;
  }
}

void Scheduler::State::admit_waiting(std::int32_t& budget, SchedulerOutput& output) {
  while (budget > 0 && !queue.waiting().empty()) {
    SequenceGroup& group = *queue.waiting().front();
    const AllocStatus status = may_start(group);
    if (status == AllocStatus::kNever && queue.running().empty()) {
      for (const Sequence& sequence : group.sequences) {
        if (!sequence.is_finished()) output.out_of_memory.push_back(sequence.sequence_id);
      }
    }
    if (status != AllocStatus::kOk) return;
    start(queue.start_front(), output);
    give_rows_to_group(group, budget);
  }
}

AllocStatus Scheduler::State::may_start(const SequenceGroup& group) const {
  const PoolLevel pool = level();
  const bool has_seats = pool.num_running_sequences == 0 ||
                         pool.num_running_sequences + group.num_unfinished() <= most_running_sequences();
  if (!has_seats) return AllocStatus::kLater;
  const std::int32_t num_required = group.num_blocks_required(options.block_size);
  BlockDemand demand{.num_required = num_required, .num_taken = num_required};
  if (group.reads_prefix_cache()) {
    const Sequence& lead = group.lead();
    demand.num_taken -=
        blocks.match(lead.table, group.content(lead), group.num_target_tokens(lead) - 1).num_used_blocks;
  }
  return admission_status(demand, pool);
}

void Scheduler::State::start(SequenceGroup& group, SchedulerOutput& output) {
  group.set_status(SequenceStatus::kRunning);
  if (group.was_admitted) {
    for (const Sequence& sequence : group.sequences) {
      if (sequence.is_finished()) continue;
      blocks.events().record(BlockEventKind::kResume, sequence.sequence_id);
    }
  }
  Sequence& lead = group.lead();
  const std::int32_t num_tokens = group.num_target_tokens(lead);
  std::int32_t num_cached_tokens = 0;
  if (group.reads_prefix_cache()) {
    num_cached_tokens = blocks.append_match(lead.table, group.content(lead), num_tokens - 1);
  }
  blocks.grow(lead.table, num_tokens, output.block_copies);
  if (std::exchange(group.was_admitted, true)) return;
  output.admissions.push_back({group.request_id, num_cached_tokens});
  blocks.totals().prefix_hit_tokens += num_cached_tokens;
}

// Each step computes a row of everything that runs: decodes take one each, and one at least is left for each
// group that computes its prompt. So a small budget bounds what runs, and nobody in there can starve.
std::int32_t Scheduler::State::most_running_sequences() const {
  return std::min(options.max_num_seqs, options.max_num_batched_tokens);
}

PoolLevel Scheduler::State::level() const {
  PoolLevel level{.num_blocks = options.num_blocks, .num_available = blocks.num_available()};
  for (const auto& group : queue.running()) {
    level.num_running_sequences += group->num_unfinished();
    if (!group->awaits_fork()) continue;
    level.num_promised += group->num_blocks_required(options.block_size) - group->lead().table.num_blocks();
  }
  return level;
}

void Scheduler::State::list_rows(SchedulerOutput& output) {
  for (const auto& group : queue.running()) {
    for (Sequence& sequence : group->sequences) {
      if (sequence.num_scheduled_tokens > 0) list_row(*group, sequence, output);
      sequence.num_scheduled_tokens = 0;
    }
  }
}

void Scheduler::State::list_row(SequenceGroup& group, Sequence& sequence, SchedulerOutput& output) const {
  const std::int32_t start = sequence.num_computed_tokens();
  ScheduledSequence& row = output.sequences.emplace_back();
  row.sequence_id = sequence.sequence_id;
  row.request_id = group.request_id;
  row.sampling = &group.sampling;
  row.prompt_token_ids = sequence.prompt_token_ids();
  row.start_position = start;
  row.token_ids = sequence.token_ids().subspan(static_cast<std::size_t>(start),
                                               static_cast<std::size_t>(sequence.num_scheduled_tokens));
  row.block_table = sequence.table.blocks();
  if (start + sequence.num_scheduled_tokens == sequence.num_tokens()) list_samples(group, sequence, row);
  (sequence.is_caught_up() ? output.num_decode_tokens : output.num_prefill_tokens) +=
      sequence.num_scheduled_tokens;
}

// The end of the prompt is sampled for every output that shares it.
void Scheduler::State::list_samples(SequenceGroup& group, Sequence& sequence, ScheduledSequence& row) const {
  const auto add = [&](const Sequence& target) {
    row.samples.push_back({target.sequence_id, target.output_index, group.seed, target.output_token_ids()});
  };
  if (!group.awaits_fork()) return add(sequence);
  for (const Sequence& target : group.sequences) {
    if (!target.is_finished()) add(target);
  }
}

// ---- a step was executed, or not ----

void Scheduler::commit(const SchedulerOutput& step, std::span<const CommittedToken> tokens) {
  if (step.empty()) return;
  State& state = *state_;
  OCTAVO_CHECK(state.step_in_flight && step.step == state.step, "step %lld is not in flight",
               static_cast<long long>(step.step));
  for (const ScheduledSequence& row : step.sequences) {
    const auto [group, sequence] = *state.queue.find(row.sequence_id);
    const std::int32_t num_computed = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
    state.blocks.commit(sequence.table, group.content(sequence), num_computed);
    if (group.awaits_fork() && num_computed == group.num_prompt_tokens()) state.fork_from_lead(group);
  }
  for (const CommittedToken& token : tokens) state.sequence_of(token.sequence_id).append(token.token_id);
  state.end_step();
}

// Blocks of an output's own tokens that survived a preemption in the cache are taken instead of computed.
void Scheduler::State::fork_from_lead(SequenceGroup& group) {
  Sequence& lead = group.lead();
  for (Sequence& sequence : group.sequences) {
    if (sequence.is_finished()) continue;
    if (&sequence != &lead) blocks.fork(lead.table, sequence.table);
  }
  group.has_forked = true;
  if (!group.reads_prefix_cache()) return;
  for (Sequence& sequence : group.sequences) {
    if (sequence.is_finished()) continue;
    blocks.append_match(sequence.table, group.content(sequence), sequence.num_tokens() - 1);
  }
}

void Scheduler::discard(const SchedulerOutput& step) {
  if (step.empty()) return;
  State& state = *state_;
  OCTAVO_CHECK(state.step_in_flight && step.step == state.step, "step %lld is not in flight",
               static_cast<long long>(step.step));
  for (const BlockCopyOp& copy : step.block_copies)
    state.blocks.undo_copy(state.owner_of_copy(copy).table, copy);
  state.end_step();
}

void Scheduler::State::end_step() {
  step_in_flight = false;
  blocks.events().record(BlockEventKind::kStepEnd, SequenceId{}, block::kNoBlock, blocks.pool().num_used());
}

Sequence& Scheduler::State::sequence_of(SequenceId sequence_id) const {
  const auto found = queue.find(sequence_id);
  OCTAVO_CHECK(found && found->sequence.status == SequenceStatus::kRunning, "sequence %llu does not run",
               static_cast<unsigned long long>(sequence_id.value));
  return found->sequence;
}

Sequence& Scheduler::State::owner_of_copy(const BlockCopyOp& copy) const {
  for (const auto& group : queue.running()) {
    for (Sequence& sequence : group->sequences) {
      if (std::ranges::count(sequence.table.blocks(), copy.target) > 0) return sequence;
    }
  }
  OCTAVO_CHECK(false, "nobody owns block %d", copy.target.value);
}

// ---- being looked at ----

bool Scheduler::has_work() const { return !state_->queue.all().empty(); }
std::int32_t Scheduler::num_waiting() const {
  return static_cast<std::int32_t>(state_->queue.waiting().size());
}
std::int32_t Scheduler::num_running() const {
  return static_cast<std::int32_t>(state_->queue.running().size());
}

std::vector<Scheduler::SequenceView> Scheduler::sequences_of(RequestId request_id) const {
  std::vector<SequenceView> views;
  const SequenceGroup* group = state_->queue.find(request_id);
  if (group == nullptr) return views;
  for (const Sequence& sequence : group->sequences) {
    views.push_back({sequence.sequence_id, request_id, sequence.output_index, sequence.token_ids(),
                     sequence.num_prompt_tokens(), sequence.num_computed_tokens()});
  }
  return views;
}

void Scheduler::reset_prefix_cache() { state_->blocks.reset_prefix_cache(); }
std::vector<BlockEvent> Scheduler::take_events() { return state_->blocks.events().take(); }
const KvTotals& Scheduler::totals() const { return state_->blocks.totals(); }
KvFigures Scheduler::figures() const { return state_->blocks.figures(); }

std::vector<block::OwnedTable> Scheduler::State::owned_tables() const {
  std::vector<block::OwnedTable> tables;
  for (const auto& group : queue.all()) {
    for (const Sequence& sequence : group->sequences) {
      if (!sequence.is_finished()) tables.push_back({&sequence.table, group->content(sequence)});
    }
  }
  return tables;
}

KvSnapshot Scheduler::snapshot() const {
  KvSnapshot snapshot;
  snapshot.step = state_->step;
  snapshot.totals = totals();
  snapshot.figures = figures();
  snapshot.blocks = state_->blocks.snapshot(state_->owned_tables());
  for (const auto& group : state_->queue.all()) {
    for (const Sequence& sequence : group->sequences) {
      if (sequence.is_finished()) continue;
      const auto table = sequence.table.blocks();
      snapshot.sequences.push_back({.sequence_id = sequence.sequence_id,
                                    .request_id = group->request_id,
                                    .output_index = static_cast<std::int32_t>(sequence.output_index),
                                    .state = sequence.status == SequenceStatus::kRunning
                                                 ? SequenceState::kRunning
                                                 : SequenceState::kWaiting,
                                    .num_prompt_tokens = sequence.num_prompt_tokens(),
                                    .num_tokens = sequence.num_tokens(),
                                    .num_computed_tokens = sequence.num_computed_tokens(),
                                    .block_table = {table.begin(), table.end()}});
    }
  }
  return snapshot;
}

std::optional<std::string> Scheduler::broken_invariant() const {
  const State& state = *state_;
  if (auto broken = state.blocks.broken_invariant(state.owned_tables())) return broken;
  for (const auto& group : state.queue.running()) {
    if (auto broken = state.broken_group(*group, /*is_running=*/true)) return broken;
  }
  for (const auto& group : state.queue.waiting()) {
    if (auto broken = state.broken_group(*group, /*is_running=*/false)) return broken;
  }
  if (state.queue.running().size() > 1 &&
      state.level().num_running_sequences > state.most_running_sequences()) {
    return "more sequences run than may";
  }
  return std::nullopt;
}

std::optional<std::string> Scheduler::State::broken_group(const SequenceGroup& group, bool is_running) const {
  for (const Sequence& sequence : group.sequences) {
    const std::string name = "sequence " + std::to_string(sequence.sequence_id.value);
    const bool may_hold_blocks =
        is_running && !sequence.is_finished() && (!group.awaits_fork() || &sequence == &group.lead());
    if (!may_hold_blocks && !sequence.table.empty()) return name + " holds blocks that it may not have";
    if (sequence.is_finished()) continue;
    if ((sequence.status == SequenceStatus::kRunning) != is_running)
      return name + ": status and queue disagree";
    if (sequence.num_computed_tokens() > sequence.num_tokens())
      return name + " has KV of tokens that it does not have";
    if (may_hold_blocks && sequence.table.empty()) return name + " runs without blocks";
  }
  return std::nullopt;
}

}  // namespace octavo::scheduler
