#include "tests/scheduler/harness.h"

#include <algorithm>
#include <cmath>

namespace octavo::scheduler {

Harness::Harness(const SchedulerOptions& options)
    : scheduler(options),
      options_(options),
      device_(options),
      replay_(options.num_blocks, options.num_host_blocks) {}

Tokens Harness::expected_output(const SimulatedRequest& request, std::uint64_t seed,
                                std::uint32_t output_index, std::int32_t num_tokens) {
  Tokens all = request.prompt;
  Tokens output;
  while (static_cast<std::int32_t>(output.size()) < num_tokens) {
    output.push_back(draw(hash_of(all), seed, output_index, output.size(), request.period));
    all.push_back(output.back());
  }
  return output;
}

RequestId Harness::submit(const SimulatedRequest& request) {
  const RequestId request_id{++last_request_};
  NewRequest added{.request_id = request_id,
                   .prompt_token_ids = request.prompt,
                   .sampling = {},
                   .seed = seed_of(request_id),
                   .cache_salt = request.salt,
                   .retention = request.retention,
                   .num_system_tokens = request.num_system_tokens};
  added.sampling.n = request.n;
  added.sampling.max_tokens = request.max_tokens;
  added.sampling.prompt_logprobs = request.prompt_logprobs;
  added.sampling.beam_width = request.beam_width;
  if (request.beam_width) added.num_beam_candidates = 2 * *request.beam_width;
  const auto accepted = scheduler.add(std::move(added));
  EXPECT_TRUE(accepted) << accepted.error().message;
  requests_.emplace(request_id, request);
  if (request.beam_width) {
    const SequenceId first_seat = scheduler.sequences_of(request_id).front().sequence_id;
    searches_.try_emplace(request_id, *request.beam_width, seed_of(request_id), first_seat);
  }
  return request_id;
}

bool Harness::abort(RequestId request_id) {
  const bool was_known = scheduler.abort(request_id);
  searches_.erase(request_id);
  preempted_.erase(request_id);
  num_steps_without_token_ = 0;  // others begin where it was about to end
  check_state();
  return was_known;
}

void Harness::finish_early(SequenceId sequence_id) {
  scheduler.finish(sequence_id);
  num_steps_without_token_ = 0;
  check_state();
}

SchedulerOutput Harness::step(bool device_fails) {
  const SchedulerOutput step = scheduler.schedule();
  check_rules(step);
  if (step.swap_ins.empty()) check_state();  // what comes back is findable when it is there
  if (device_fails) {
    device_.fail_in(step);
    for (const RequestId request_id : scheduler.discard(step)) {
      failed.push_back(request_id);
      searches_.erase(request_id);
      preempted_.erase(request_id);
    }
    num_steps_without_token_ = 0;
    check_state();
  } else {
    device_.execute(step);
    const auto tokens = sample(step);
    scheduler.commit(step, tokens);
    const KvTotals& totals = scheduler.totals();
    EXPECT_GE(totals.peak_used_blocks, scheduler.figures().used_blocks);
    EXPECT_GE(totals.peak_logical_blocks, scheduler.figures().logical_blocks);
    check_state();
    note_accounts(step);
    num_prefill_tokens += step.num_prefill_tokens;
    advance_searches();
    end_outputs(tokens);
  }
  end_out_of_memory(step);
  check_state();
  return step;
}

void Harness::run_until_idle(int most_steps) {
  for (int i = 0; scheduler.has_work() && !::testing::Test::HasFailure(); ++i) {
    ASSERT_LT(i, most_steps) << "it does not come to an end";
    step();
  }
}

SchedulerOutput Harness::run_until_preempted(RequestId request_id) {
  while (scheduler.has_work() && !::testing::Test::HasFailure()) {
    const SchedulerOutput step = this->step();
    for (const Preemption& preemption : step.preemptions) {
      if (preemption.request_id == request_id) return step;
    }
  }
  ADD_FAILURE() << "request " << request_id.value << " is never preempted";
  SchedulerOutput none;
  none.preemptions.emplace_back();
  return none;
}

// ---- the caller

std::vector<CommittedToken> Harness::sample(const SchedulerOutput& step) {
  std::vector<CommittedToken> tokens;
  bool has_got_token = false;
  for (const ScheduledSequence& row : step.sequences) {
    num_draft_tokens += row.num_draft_tokens;
    for (std::size_t i = 0; i < row.samples.size(); ++i) {
      const SampleTarget& target = row.samples[i];
      if (row.num_draft_tokens > 0 && i > 0) {
        if (tokens.back().token_id != row.draft()[i - 1]) break;
        ++num_accepted_tokens;
      }
      has_got_token = true;
      const std::uint64_t prefix =
          row.num_draft_tokens > 0 ? device_.slot_of(row, i) : device_.last_slot(row);
      if (const auto search = searches_.find(row.request_id); search != searches_.end()) {
        EXPECT_EQ(target.num_candidates, search->second.num_candidates());
        search->second.report(target.sequence_id, continuations(prefix, target.num_candidates));
        continue;
      }
      EXPECT_EQ(target.num_candidates, 0);
      const TokenId token = draw(prefix, target.seed, target.output_index, target.output_token_ids.size(),
                                 requests_.at(row.request_id).period);
      tokens.push_back({target.sequence_id, token});
    }
  }
  check_progress(has_got_token);
  return tokens;
}

// Every prompt token is accounted for when the first token comes.
void Harness::note_accounts(const SchedulerOutput& step) {
  for (const ScheduledSequence& row : step.sequences) {
    if (row.samples.empty() || accounts_.contains(row.request_id)) continue;
    const PromptAccount account = scheduler.prompt_account(row.request_id);
    accounts_[row.request_id] = account;
    EXPECT_GE(std::min({account.num_computed, account.num_hit_live, account.num_hit_cached,
                        account.num_copied_partial, account.num_restored}),
              0);
    EXPECT_EQ(account.num_computed + account.num_hit_live + account.num_hit_cached +
                  account.num_copied_partial + account.num_restored,
              static_cast<std::int32_t>(requests_.at(row.request_id).prompt.size()));
    EXPECT_GE(account.num_computed + account.num_restored, 1) << "one token at least is computed";
  }
}

void Harness::advance_searches() {
  std::vector<RequestId> advancing;
  for (const auto& [request_id, search] : searches_) {
    if (search.all_reported()) advancing.push_back(request_id);
  }
  for (const RequestId request_id : advancing) {
    SimulatedSearch& search = searches_.at(request_id);
    const auto chosen = search.advance();
    search.take_seats(scheduler.advance_beams(request_id, chosen));
    check_state();
    const auto num_prompt = static_cast<std::int32_t>(requests_.at(request_id).prompt.size());
    const bool is_full = num_prompt + search.num_steps() == options_.max_model_len;
    if (search.num_steps() == requests_.at(request_id).max_tokens || is_full) end_search(request_id);
  }
}

void Harness::end_search(RequestId request_id) {
  const SimulatedSearch& search = searches_.at(request_id);
  const SimulatedRequest& asked = requests_.at(request_id);
  const auto found = search.outputs();
  EXPECT_EQ(found, SimulatedSearch::expected(asked.prompt, *asked.beam_width, seed_of(request_id),
                                             search.num_steps()));
  for (std::uint32_t rank = 0; rank < found.size(); ++rank) {
    EXPECT_TRUE(outputs.emplace(std::pair{request_id, rank}, found[rank]).second) << "it ended twice";
  }
  abort(request_id);
}

void Harness::end_outputs(std::span<const CommittedToken> tokens) {
  std::set<SequenceId> sampled;
  for (const CommittedToken& token : tokens) sampled.insert(token.sequence_id);
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    if (!sampled.contains(sequence.sequence_id)) continue;
    const RequestId request_id = sequence.request_id;
    const SimulatedRequest& asked = requests_.at(request_id);
    const std::int32_t num_output = sequence.num_tokens - sequence.num_prompt_tokens;
    if (num_output < asked.max_tokens && sequence.num_tokens < options_.max_model_len) continue;
    const auto index = static_cast<std::uint32_t>(sequence.output_index);
    const auto token_ids = scheduler.sequences_of(request_id)[index].token_ids;
    const Tokens output(token_ids.begin() + sequence.num_prompt_tokens, token_ids.end());
    EXPECT_EQ(output, expected_output(asked, seed_of(request_id), index, num_output));
    EXPECT_TRUE(outputs.emplace(std::pair{request_id, index}, output).second) << "an output ended twice";
    scheduler.finish(sequence.sequence_id);
    if (scheduler.sequences_of(request_id).empty()) preempted_.erase(request_id);
  }
}

void Harness::end_out_of_memory(const SchedulerOutput& step) {
  if (step.out_of_memory.empty()) return;
  num_out_of_memory += static_cast<std::int32_t>(step.out_of_memory.size());
  num_steps_without_token_ = 0;
  std::set<RequestId> requests;
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    if (std::ranges::count(step.out_of_memory, sequence.sequence_id) > 0)
      requests.insert(sequence.request_id);
  }
  EXPECT_EQ(requests.size(), 1u) << "who is out of memory runs alone";
  for (const RequestId request_id : requests) {
    if (searches_.contains(request_id)) {
      abort(request_id);
      continue;
    }
    for (const SequenceId sequence_id : step.out_of_memory) scheduler.finish(sequence_id);
    EXPECT_TRUE(scheduler.sequences_of(request_id).empty()) << "all that had not ended are listed";
    preempted_.erase(request_id);
  }
}

// ---- the rules

void Harness::check_rules(const SchedulerOutput& step) {
  const KvSnapshot snapshot = scheduler.snapshot();
  num_running_.clear();
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kRunning) ++num_running_[sequence.request_id];
  }
  check_order(step, snapshot);
  check_rows(step, snapshot);
  for (const auto& [request_id, count] : num_running_) check_group(step, snapshot, request_id);
  check_preemptions(step);
  check_admissions(step, snapshot);
  if (!step.out_of_memory.empty()) {
    EXPECT_LE(num_running_.size(), 1u);
  }
  ran_before_.clear();
  for (const auto& [request_id, count] : num_running_) ran_before_.insert(request_id);
}

// First come, first served, latest preempted first, resumed before newer: what runs is older than all that
// waits. All or nothing: no request is in two states.
void Harness::check_order(const SchedulerOutput& step, const KvSnapshot& snapshot) {
  std::map<RequestId, std::set<SequenceState>> states;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    states[sequence.request_id].insert(sequence.state);
    if (sequence.state != SequenceState::kRunning && !num_running_.empty()) {
      EXPECT_LT(num_running_.rbegin()->first, sequence.request_id);
    }
    if (sequence.state == SequenceState::kSwapped) {
      EXPECT_TRUE(step.admissions.empty()) << "something new starts while a group is swapped out";
    }
  }
  for (const auto& [request_id, of_it] : states) {
    EXPECT_EQ(of_it.size(), 1u) << "request " << request_id.value << " runs, waits or is swapped out in part";
  }
}

void Harness::check_rows(const SchedulerOutput& step, const KvSnapshot& snapshot) {
  std::int32_t num_rows = 0;
  for (const ScheduledSequence& row : step.sequences) {
    EXPECT_TRUE(num_running_.contains(row.request_id));
    EXPECT_FALSE(row.token_ids.empty());
    num_rows += static_cast<std::int32_t>(row.token_ids.size());
  }
  EXPECT_EQ(num_rows, step.num_prefill_tokens + step.num_decode_tokens + step.num_draft_tokens);
  EXPECT_LE(num_rows, options_.max_num_batched_tokens);
  EXPECT_TRUE(std::ranges::is_sorted(step.sequences, {}, &ScheduledSequence::sequence_id));
  std::int32_t num_running_sequences = 0;
  for (const auto& [id, count] : num_running_) num_running_sequences += count;
  EXPECT_LE(num_running_sequences, options_.max_num_seqs);
  if (num_running_.size() > 1) {
    EXPECT_LE(num_running_sequences, options_.max_num_batched_tokens) << "some could starve";
  }
  if (options_.memory_manager == MemoryManager::kPaged) return;
  EXPECT_TRUE(step.block_copies.empty()) << "nothing is shared";
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    for (std::size_t i = 1; i < sequence.block_table.size(); ++i) {
      EXPECT_EQ(sequence.block_table[i].value, sequence.block_table[i - 1].value + 1)
          << "a run is contiguous";
    }
  }
}

void Harness::check_preemptions(const SchedulerOutput& step) {
  for (const Preemption& preemption : step.preemptions) {
    EXPECT_TRUE(ran_before_.contains(preemption.request_id));
    EXPECT_FALSE(num_running_.contains(preemption.request_id));
    EXPECT_TRUE(!preemption.is_swap || preemption.num_tokens_dropped == 0);
    preemptions.push_back(preemption);
    preempted_.insert(preemption.request_id);
  }
  if (!step.preemptions.empty()) {
    for (const auto& [request_id, count] : num_running_) {
      EXPECT_TRUE(ran_before_.contains(request_id)) << "admission in a step that preempted";
    }
  }
}

void Harness::check_admissions(const SchedulerOutput& step, const KvSnapshot& snapshot) {
  for (const Admission& admission : step.admissions) {
    EXPECT_TRUE(start_order.empty() || start_order.back() < admission.request_id)
        << "start order is arrival order";
    start_order.push_back(admission.request_id);
    num_cached_tokens[admission.request_id] = admission.num_cached_tokens;
  }
  if (!step.admissions.empty()) {
    if (options_.admit_after_preemption == AdmissionAfterPreemption::kCompleted) {
      EXPECT_TRUE(preempted_.empty()) << "something new starts before the preempted ones have ended";
    }
    if (options_.batching_policy == BatchingPolicy::kOneAtATime) {
      EXPECT_EQ(num_running_.size(), 1u);
    }
    if (options_.batching_policy == BatchingPolicy::kStatic) {
      const auto is_old = [&](const auto& entry) {
        return ran_before_.contains(entry.first) && !std::ranges::count(start_order, entry.first);
      };
      EXPECT_TRUE(std::ranges::none_of(num_running_, is_old));
    }
  }
  std::int32_t num_older = 0;
  bool has_started = false;
  for (const auto& [request_id, count] : num_running_) {
    if (request_id != num_running_.rbegin()->first) num_older += count;
    has_started |= !ran_before_.contains(request_id);
  }
  if (!has_started || num_running_.size() < 2 || options_.memory_manager != MemoryManager::kPaged) return;
  const auto num_copied_from = static_cast<std::int32_t>(
      std::ranges::count_if(snapshot.blocks, [](const BlockSnapshot& block) { return block.num_pins > 0; }));
  EXPECT_GE(snapshot.figures.free_blocks + snapshot.figures.cached_blocks + num_copied_from,
            static_cast<std::int32_t>(std::ceil(0.01 * options_.num_blocks)) +
                (options_.reserve_block_per_sequence ? num_older : 0))
      << "the watermark";
}

// The outputs of a group decode together; one that is behind is waited for. A beam whose continuations are
// known waits for the others.
void Harness::check_group(const SchedulerOutput& step, const KvSnapshot& snapshot, RequestId request_id) {
  std::set<SequenceId> caught_up, behind;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.request_id != request_id) continue;
    const std::int32_t num_uncomputed = sequence.num_tokens - sequence.num_computed_tokens;
    const bool is_decoding = sequence.num_tokens > sequence.num_prompt_tokens && num_uncomputed <= 1;
    if (!is_decoding) behind.insert(sequence.sequence_id);
    if (is_decoding && num_uncomputed == 1) caught_up.insert(sequence.sequence_id);
  }
  const auto num_decodes = static_cast<std::size_t>(std::ranges::count_if(
      step.sequences, [&](const ScheduledSequence& row) { return caught_up.contains(row.sequence_id); }));
  const bool decodes_wait =
      options_.prefill_first && step.num_prefill_tokens > 0 && ran_before_.contains(request_id);
  if (!step.out_of_memory.empty() || !behind.empty() || decodes_wait) {
    EXPECT_EQ(num_decodes, 0u) << "request " << request_id.value << " decodes in part";
  } else if (!options_.prefill_first) {
    const bool resumes_without_rows = num_decodes == 0 && !ran_before_.contains(request_id);
    const auto most = static_cast<std::size_t>(options_.max_num_batched_tokens);
    EXPECT_EQ(num_decodes, resumes_without_rows ? 0 : std::min(caught_up.size(), most))
        << "request " << request_id.value << " decodes in part";
  }
}

void Harness::check_progress(bool has_got_token) {
  if (has_got_token) num_steps_without_token_ = 0;
  if (has_got_token || !scheduler.has_work()) return;
  // Known tokens of a group count together: after a preemption each output's own tokens are computed again,
  // from the start of the block on in which it parts from the others.
  std::map<RequestId, std::int32_t> num_known;
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    auto& num = num_known.try_emplace(sequence.request_id, sequence.num_prompt_tokens).first->second;
    const std::int32_t num_own = sequence.num_tokens - sequence.num_prompt_tokens;
    num += num_own + (num_own > 0 ? options_.block_size - 1 : 0);
  }
  std::int32_t longest = 0;
  for (const auto& [request_id, num] : num_known) {
    longest =
        options_.prefill_first ? longest + num : std::max(longest, num);  // all prompts come before a decode
  }
  const std::int32_t chunk = options_.max_num_batched_tokens;
  EXPECT_LE(++num_steps_without_token_, (longest + chunk - 1) / chunk + 2) << "no progress";
}

void Harness::check_state() {
  EXPECT_EQ(scheduler.broken_invariant(), std::nullopt);
  replay_.apply(scheduler.take_events());
  const KvSnapshot snapshot = scheduler.snapshot();
  EXPECT_EQ(replay_.difference(snapshot), std::nullopt);

  std::set<BlockId> used, host_used;
  std::int32_t num_logical = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto& table = sequence.block_table;
    if (sequence.state == SequenceState::kSwapped) {
      host_used.insert(table.begin(), table.end());
    } else {
      num_logical += static_cast<std::int32_t>(table.size());
      used.insert(table.begin(), table.end());
    }
  }
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    if (snapshot.blocks[i].num_pins > 0) used.insert(BlockId{static_cast<std::int32_t>(i)});
  }
  const KvFigures& figures = snapshot.figures;
  EXPECT_EQ(figures.used_blocks, std::ssize(used));
  EXPECT_EQ(figures.host_used_blocks, std::ssize(host_used));
  EXPECT_EQ(scheduler.totals().host_used_blocks, figures.host_used_blocks);
  EXPECT_EQ(figures.logical_blocks, num_logical);
  EXPECT_EQ(figures.used_blocks + figures.cached_blocks + figures.free_blocks, options_.num_blocks);
  if (snapshot.sequences.empty()) {
    EXPECT_EQ(figures.used_blocks, 0) << "the pool is whole when nothing is left";
  }
}

}  // namespace octavo::scheduler
