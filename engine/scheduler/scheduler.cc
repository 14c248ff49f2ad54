#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/format.h"
#include "engine/scheduler/scheduler_state.h"

namespace octavo::scheduler {
namespace {

std::int32_t most_sequences_with_windows(const SchedulerOptions& options) {
  return block::most_sequences_with_windows(options.window, options.block_size, options.num_window_blocks,
                                            options.num_blocks, options.max_num_batched_tokens);
}

}  // namespace

Scheduler::State::State(const SchedulerOptions& scheduler_options)
    : options(scheduler_options),
      blocks(block_manager_options(options)),
      allocation(make_allocation_strategy(options, blocks)) {}

Scheduler::Scheduler(const SchedulerOptions& options) : state_(std::make_unique<State>(options)) {
  OCTAVO_CHECK(options.max_num_batched_tokens >= 1 && options.max_num_seqs >= 1, "%d tokens, %d sequences",
               options.max_num_batched_tokens, options.max_num_seqs);
  OCTAVO_CHECK(options.window == 0 || most_sequences_with_windows(options) > 0,
               "%d places for a window of %d", options.num_window_blocks, options.window);
  OCTAVO_CHECK(options.target_step_us >= 0, "a target of %d us", options.target_step_us);
}

Scheduler::~Scheduler() = default;

// ---- requests come

Result<void> Scheduler::add(NewRequest request) {
  OCTAVO_TRY_VOID(state_->check_fits(request));
  // A checkpoint behind a whole block is found at once, and by all.
  request.num_next_turn_tokens -= request.num_next_turn_tokens % state_->options.block_size;
  request.num_system_tokens -= request.num_system_tokens % state_->options.block_size;
  auto group = std::make_unique<SequenceGroup>(
      std::move(request), SequenceId{state_->next_sequence_id}, state_->allocation->shares_blocks(),
      LayerMemory{.has_states = state_->options.num_states > 0, .has_windows = state_->options.window > 0});
  OCTAVO_TRY_VOID(state_->check_fits_pool(*group));
  state_->next_sequence_id += group->sequences.size();
  state_->queue.push_back(std::move(group));
  return {};
}

Result<void> Scheduler::State::check_fits(const NewRequest& request) const {
  const std::size_t num_prompt = request.prompt_token_ids.size();
  const std::int32_t num_outputs = request.sampling.num_sequences();
  const char* const option = request.sampling.beam_width ? "beam_width"
                             : request.sampling.best_of  ? "best_of"
                                                         : "n";
  if (num_prompt == 0) return Error{ErrorCode::kInvalidArgument, "the prompt is empty; give it some text"};
  const std::int32_t most = most_sequences_of_request();
  if (num_outputs < 1 || num_outputs > most) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string(option) + " is " + with_thousands(num_outputs) +
                     "; outputs of a request run together, so it must be 1 to " + with_thousands(most) +
                     (most == options.max_num_seqs ? " (--max-num-seqs)"
                      : options.num_states > 0     ? " (--num-states)"
                                                   : " (--num-window-blocks)"),
                 option};
  }
  if (request.sampling.beam_width && !allocation->shares_blocks()) {
    return Error{ErrorCode::kInvalidArgument,
                 "beam search shares blocks, which needs paged memory: use --memory-manager paged", option};
  }
  if (num_prompt >= static_cast<std::size_t>(options.max_model_len)) {
    return Error{ErrorCode::kTooLong,
                 "the prompt has " + with_thousands(static_cast<std::int64_t>(num_prompt)) +
                     " tokens; the limit is " +
                     with_thousands(request.embedding ? options.max_model_len - 1 : options.max_model_len) +
                     (request.embedding ? "" : " including at least one generated token") +
                     ": shorten the prompt or raise --max-model-len"};
  }
  return {};
}

// Each of a model with recurrent layers has a state, and of one with windows what it reads.
std::int32_t Scheduler::State::most_sequences_of_request() const {
  std::int32_t most = options.max_num_seqs;
  if (options.num_states > 0) most = std::min(most, options.num_states);
  if (options.window > 0) most = std::min(most, most_sequences_with_windows(options));
  return most;
}

Result<void> Scheduler::State::check_fits_pool(const SequenceGroup& group) const {
  if (allocation->could_ever_fit(group)) return {};
  return Error{ErrorCode::kTooLong,
               "the request needs at least " + with_thousands(allocation->num_blocks_required(group)) +
                   " KV blocks of " + with_thousands(options.block_size) + " tokens; the pool has " +
                   with_thousands(options.num_blocks) +
                   ": shorten the prompt, ask for fewer outputs or raise --num-kv-blocks"};
}

// ---- requests go

bool Scheduler::abort(RequestId request_id) {
  OCTAVO_CHECK(!state_->step_in_flight, "step %lld is not committed", static_cast<long long>(state_->step));
  const std::vector<SequenceGroup*> groups = state_->queue.groups_of(request_id);
  if (groups.empty()) return false;
  for (std::size_t i = groups.size(); i-- > 0;) state_->release_findable(*groups[i]);
  state_->queue.remove(request_id);
  return true;
}

void Scheduler::finish(SequenceId sequence_id) {
  OCTAVO_CHECK(!state_->step_in_flight, "step %lld is not committed", static_cast<long long>(state_->step));
  const auto found = state_->queue.find(sequence_id);
  OCTAVO_CHECK(found && found->sequence.is_live(), "sequence %llu has ended",
               static_cast<unsigned long long>(sequence_id.value));
  SequenceGroup& group = found->group;
  if (!group.awaits_fork()) return state_->end(group, found->sequence);
  found->sequence.ends_at_fork = true;
  const auto goes_on = [](const Sequence& one) { return one.is_live() && !one.ends_at_fork; };
  OCTAVO_CHECK(std::ranges::any_of(group.sequences, goes_on), "request %llu computes a prompt for nobody",
               static_cast<unsigned long long>(group.request_id.value));
}

void Scheduler::State::end(SequenceGroup& group, Sequence& sequence) {
  const bool holds_nothing_yet = sequence.status == SequenceStatus::kWaiting;  // nor does its group
  blocks.release_findable(sequence.table, group.content(sequence));
  sequence.status = SequenceStatus::kFinished;
  if (group.num_live() == 0) return queue.remove(group);
  if (holds_nothing_yet) return group.plan_sharing(options.block_size);
  for (Sequence& sibling : group.live()) {  // who waited for its blocks goes on alone
    const bool waits = !sibling.is_attached && &group.sequences[sibling.share_source] == &sequence;
    if (waits) sibling.num_shared_blocks = 0;
  }
}

// The lead last, here and below: what all share is used latest, so it is evicted latest.
void Scheduler::State::release_findable(SequenceGroup& group) {
  for (std::size_t i = group.sequences.size(); i-- > 0;) {
    blocks.release_findable(group.sequences[i].table, group.content(group.sequences[i]));
  }
}

void Scheduler::State::release(SequenceGroup& group) {
  for (std::size_t i = group.sequences.size(); i-- > 0;) blocks.release(group.sequences[i].table);
}

// ---- a step was executed, or not

void Scheduler::commit(const SchedulerOutput& step, std::span<const CommittedToken> tokens,
                       std::span<const SequenceId> guessable) {
  State& state = *state_;
  if (!state.is_in_flight(step)) return;
  for (const SequenceId first : state.restored) {
    SequenceGroup& group = state.queue.find(first)->group;
    for (Sequence& sequence : group.live()) state.blocks.seal_full(sequence.table, group.content(sequence));
  }
  state.commit_rows(step);
  state.drop_drafts(step, tokens);
  for (const CommittedToken& token : tokens) state.sequence_of(token.sequence_id).append(token.token_id);
  state.commit_drafts(step);
  state.end_step();
  state.guessable.assign(guessable.begin(), guessable.end());
  state.trim_drafts(step);
  for (const SequenceId sequence_id : std::exchange(state.ended_at_fork, {})) {
    const auto [group, sequence] = *state.queue.find(sequence_id);
    state.end(group, sequence);
  }
}

// False: there was nothing to do in it.
bool Scheduler::State::is_in_flight(const SchedulerOutput& one) const {
  const bool is_in_flight = step_in_flight && one.step == step - (has_step_ahead ? 1 : 0);
  OCTAVO_CHECK(is_in_flight || (one.empty() && !one.moves_memory()), "step %lld is not in flight",
               static_cast<long long>(one.step));
  return is_in_flight;
}

void Scheduler::State::commit_rows(const SchedulerOutput& step) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.num_draft_tokens > 0) continue;
    const auto [group, sequence] = *queue.find(row.sequence_id);
    const std::int32_t num_computed = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
    blocks.commit(sequence.table, group.content(sequence), num_computed);
    keep_checkpoint(group, sequence);
    if (group.awaits_fork() && num_computed == group.num_prompt_tokens()) fork_from_lead(group);
  }
}

void Scheduler::State::keep_checkpoint(const SequenceGroup& group, Sequence& sequence) {
  if (!group.memory.has_states || !group.reads_prefix_cache()) return;
  const std::int32_t position = sequence.num_computed_tokens();
  const bool is_long =
      block::BlockManager::num_tokens_since_checkpoint(sequence.table) >= kTokensBetweenCheckpoints;
  if (position == group.num_next_turn_tokens) {
    blocks.keep_state(sequence.table, group.content(sequence), CheckpointReason::kNextTurn);
  } else if (position == group.num_system_tokens) {
    blocks.keep_state(sequence.table, group.content(sequence), CheckpointReason::kSystemPrompt);
  } else if (is_long) {
    blocks.keep_state(sequence.table, group.content(sequence), CheckpointReason::kLong);
  }
}

// The tokens that were drawn take the place of those that were guessed.
void Scheduler::State::drop_drafts(const SchedulerOutput& step, std::span<const CommittedToken> tokens) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.num_draft_tokens == 0) continue;
    const auto draft = row.draft();
    std::size_t num_right = 0, num_drawn = 0;
    for (const CommittedToken& token : tokens) {
      if (token.sequence_id != row.sequence_id) continue;
      if (num_right == num_drawn && num_drawn < draft.size() && draft[num_drawn] == token.token_id)
        ++num_right;
      ++num_drawn;
    }
    OCTAVO_CHECK(num_drawn <= num_right + 1, "%zu tokens for sequence %llu, of which %zu were guessed",
                 num_drawn, static_cast<unsigned long long>(row.sequence_id.value), num_right);
    sequence_of(row.sequence_id).drop_draft();
  }
}

// All but the newest token were rows of the draft's step, and have KV; a state stands behind them.
void Scheduler::State::commit_drafts(const SchedulerOutput& step) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.num_draft_tokens == 0) continue;
    const auto [group, sequence] = *queue.find(row.sequence_id);
    const std::int32_t num_computed = std::max(row.start_position + 1, sequence.num_tokens() - 1);
    blocks.commit(sequence.table, group.content(sequence), num_computed);
    keep_checkpoint(group, sequence);
    sequence.draft_gate.note(row.num_draft_tokens, num_computed - row.start_position - 1,
                             sequence.num_tokens());
  }
}

// After the step's peaks were noted: until here they were in use.
void Scheduler::State::trim_drafts(const SchedulerOutput& step) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.num_draft_tokens > 0) blocks.trim(sequence_of(row.sequence_id).table);
  }
}

void Scheduler::State::fork_from_lead(SequenceGroup& group) {
  const Sequence& lead = group.lead();
  for (Sequence& sequence : group.live()) {
    if (&sequence != &lead && !sequence.ends_at_fork) blocks.fork(lead.table, sequence.table);
    sequence.is_attached = true;
    if (sequence.ends_at_fork) ended_at_fork.push_back(sequence.sequence_id);
  }
}

std::vector<RequestId> Scheduler::discard(const SchedulerOutput& step) {
  State& state = *state_;
  std::vector<RequestId> ended;
  if (!state.is_in_flight(step)) return ended;
  state.has_step_ahead = false;  // rows of the same sequences
  state.parts_ahead = {};
  for (const SequenceId first : state.swapped_out) {
    SequenceGroup& group = state.queue.find(first)->group;
    state.release(group);
    group.plan_sharing(state.options.block_size);
    group.set_status(SequenceStatus::kWaiting);
  }
  for (const ScheduledSequence& row : step.sequences) state.touched.push_back(row.request_id);
  std::ranges::sort(state.touched);
  ended.assign(state.touched.begin(), std::unique(state.touched.begin(), state.touched.end()));
  state.end_step();
  for (const RequestId request_id : ended) {
    const std::vector<SequenceGroup*> groups = state.queue.groups_of(request_id);
    for (std::size_t i = groups.size(); i-- > 0;) state.release(*groups[i]);
    state.queue.remove(request_id);
  }
  return ended;
}

void Scheduler::State::end_step() {
  blocks.end_step();
  touched.clear();
  swapped_out.clear();
  restored.clear();
  guessable.clear();
  step_in_flight = false;
}

// ---- beams

std::vector<SequenceId> Scheduler::advance_beams(RequestId request_id,
                                                 std::span<const BeamContinuation> continuations) {
  State& state = *state_;
  OCTAVO_CHECK(!state.step_in_flight, "step %lld is not committed", static_cast<long long>(state.step));
  SequenceGroup& group = state.first_group_of(request_id);
  OCTAVO_CHECK(!continuations.empty() && continuations.size() <= group.sequences.size(),
               "%zu beams for %zu seats", continuations.size(), group.sequences.size());
  const auto index_of = [&](SequenceId sequence_id) {
    return static_cast<std::size_t>(sequence_id.value - group.first_sequence_id().value);
  };
  std::vector<bool> goes_on(group.sequences.size());
  for (const BeamContinuation& continuation : continuations) goes_on[index_of(continuation.parent)] = true;
  for (Sequence& sequence : group.live()) {
    if (goes_on[index_of(sequence.sequence_id)]) continue;
    state.blocks.events().record(BlockEventKind::kPrune, sequence.sequence_id);
    state.blocks.release(sequence.table);
    sequence.status = SequenceStatus::kIdle;
  }
  // The best continuation of a beam stays in its seat; the others take free ones. All forks come before any
  // token is appended.
  std::vector<SequenceId> seats;
  std::vector<bool> is_taken(group.sequences.size());
  for (const BeamContinuation& continuation : continuations) {
    const Sequence& parent = group.sequences[index_of(continuation.parent)];
    if (!is_taken[index_of(parent.sequence_id)]) {
      is_taken[index_of(parent.sequence_id)] = true;
      seats.push_back(parent.sequence_id);
      continue;
    }
    Sequence& child = *std::ranges::find(group.sequences, SequenceStatus::kIdle, &Sequence::status);
    child.carry(parent);
    child.status = SequenceStatus::kRunning;
    child.is_attached = true;
    state.blocks.fork(parent.table, child.table);
    is_taken[index_of(child.sequence_id)] = true;
    seats.push_back(child.sequence_id);
  }
  for (std::size_t i = 0; i < seats.size(); ++i) {
    group.sequences[index_of(seats[i])].append(continuations[i].token_id);
  }
  return seats;
}

// ---- what is known of a request

SequenceGroup& Scheduler::State::first_group_of(RequestId request_id) const {
  const std::vector<SequenceGroup*> groups = queue.groups_of(request_id);
  OCTAVO_CHECK(!groups.empty(), "request %llu is not known",
               static_cast<unsigned long long>(request_id.value));
  return *groups.front();
}

Sequence& Scheduler::State::sequence_of(SequenceId sequence_id) const {
  const auto found = queue.find(sequence_id);
  OCTAVO_CHECK(found && found->sequence.status == SequenceStatus::kRunning, "sequence %llu does not run",
               static_cast<unsigned long long>(sequence_id.value));
  return found->sequence;
}

PromptAccount Scheduler::prompt_account(RequestId request_id) const {
  const SequenceGroup& group = state_->first_group_of(request_id);
  PromptAccount account = group.account;
  account.num_computed = group.num_prompt_tokens() - account.num_hit_live - account.num_hit_cached -
                         account.num_copied_partial - account.num_restored;
  return account;
}

PrefixMiss Scheduler::prefix_miss(RequestId request_id) const {
  return state_->first_group_of(request_id).miss;
}

void Scheduler::set_costs(const MeasuredCosts& costs) { state_->costs = costs; }
void Scheduler::note_step_time(std::int64_t us, bool has_ended) {
  State& state = *state_;
  state.untimed += std::exchange(state.parts, {});
  state.untimed_us += us;
  if (!has_ended) return;
  state.turns.learn(std::exchange(state.untimed, {}), static_cast<double>(std::exchange(state.untimed_us, 0)),
                    state.costs.steps);
}
void Scheduler::note_swap_times(std::int64_t out_us, std::int64_t in_us) {
  state_->blocks.totals().swap_out_us += out_us;
  state_->blocks.totals().swap_in_us += in_us;
}
void Scheduler::reset_prefix_cache() { state_->blocks.reset_prefix_cache(); }
void Scheduler::release_pins() { state_->blocks.release_pins(); }
std::vector<BlockEvent> Scheduler::take_events() { return state_->blocks.events().take(); }

}  // namespace octavo::scheduler
