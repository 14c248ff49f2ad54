#include "tests/scheduler/harness.h"

#include <algorithm>
#include <cmath>

namespace octavo::scheduler {
namespace {

constexpr std::uint64_t kPoison = 0xdeaddeaddeaddeadu;

std::uint64_t prefix_hash(std::uint64_t before, TokenId token_id) {
  return hash_combine(before, static_cast<std::uint64_t>(token_id));
}

TokenId draw(std::uint64_t prefix, std::uint64_t seed, std::uint32_t output_index, std::size_t position) {
  return static_cast<TokenId>(hash_combine(hash_combine(prefix, seed), hash_combine(output_index, position)) %
                              1000);
}

}  // namespace

Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens) {
  Tokens tokens;
  for (std::int32_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(static_cast<TokenId>(hash_combine(seed, static_cast<std::uint64_t>(i)) % 1000));
  }
  return tokens;
}

Harness::Harness(const SchedulerOptions& options)
    : scheduler(options),
      options_(options),
      replay_(options.num_blocks),
      slots_(static_cast<std::size_t>(options.num_blocks * options.block_size), kPoison) {}

Tokens Harness::expected_output(const SimulatedRequest& request, std::uint64_t seed,
                                std::uint32_t output_index, std::int32_t num_tokens) {
  std::uint64_t prefix = 0;
  for (const TokenId token_id : request.prompt) prefix = prefix_hash(prefix, token_id);
  Tokens output;
  while (static_cast<std::int32_t>(output.size()) < num_tokens) {
    output.push_back(draw(prefix, seed, output_index, output.size()));
    prefix = prefix_hash(prefix, output.back());
  }
  return output;
}

RequestId Harness::submit(const SimulatedRequest& request) {
  const RequestId request_id{++last_request_};
  NewRequest added{.request_id = request_id,
                   .prompt_token_ids = request.prompt,
                   .sampling = {},
                   .seed = seed_of(request_id),
                   .cache_salt = request.salt};
  added.sampling.n = request.n;
  added.sampling.max_tokens = request.max_tokens;
  added.sampling.prompt_logprobs = request.prompt_logprobs;
  const auto accepted = scheduler.add(std::move(added));
  EXPECT_TRUE(accepted) << accepted.error().message;
  requests_.emplace(request_id, request);
  return request_id;
}

bool Harness::abort(RequestId request_id) {
  const bool was_known = scheduler.abort(request_id);
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
  check_state();
  if (device_fails) {
    // What the device wrote before it failed is anyone's guess, within the slots it was given.
    copy_blocks(step);
    for (const ScheduledSequence& row : step.sequences) {
      for (std::size_t i = 0; i < row.token_ids.size(); ++i) {
        slot(row, row.start_position + static_cast<std::int32_t>(i)) = kPoison;
      }
    }
    scheduler.discard(step);
  } else {
    const auto tokens = execute(step);
    scheduler.commit(step, tokens);
    check_state();
    check_progress(tokens.size());
    num_prefill_tokens += step.num_prefill_tokens;
    std::vector<SequenceId> sampled;
    for (const CommittedToken& token : tokens) sampled.push_back(token.sequence_id);
    end_outputs(sampled);
  }
  num_out_of_memory += static_cast<std::int32_t>(step.out_of_memory.size());
  if (!step.out_of_memory.empty()) num_steps_without_token_ = 0;
  for (const SequenceId sequence_id : step.out_of_memory) scheduler.finish(sequence_id);
  check_state();
  return step;
}

void Harness::run_until_idle(int most_steps) {
  for (int i = 0; scheduler.has_work() && !::testing::Test::HasFailure(); ++i) {
    ASSERT_LT(i, most_steps) << "it does not come to an end";
    step();
  }
}

// ---- the simulated device ----

std::uint64_t& Harness::slot(const ScheduledSequence& row, std::int32_t position) {
  const BlockId block = row.block_table[static_cast<std::size_t>(position / options_.block_size)];
  return slots_[static_cast<std::size_t>(block.value * options_.block_size + position % options_.block_size)];
}

std::vector<CommittedToken> Harness::execute(const SchedulerOutput& step) {
  copy_blocks(step);
  written_slots_.clear();
  for (const ScheduledSequence& row : step.sequences) write_row(row);
  for (const ScheduledSequence& row : step.sequences) read_row(row);
  std::vector<CommittedToken> tokens;
  for (const ScheduledSequence& row : step.sequences) {
    const std::uint64_t last =
        slot(row, row.start_position + static_cast<std::int32_t>(row.token_ids.size()) - 1);
    for (const SampleTarget& target : row.samples) {
      const TokenId token = draw(last, target.seed, target.output_index, target.output_token_ids.size());
      tokens.push_back({target.sequence_id, token});
    }
  }
  return tokens;
}

// All at once, as one kernel does.
void Harness::copy_blocks(const SchedulerOutput& step) {
  const auto size = static_cast<std::ptrdiff_t>(options_.block_size);
  const std::vector<std::uint64_t> before = slots_;
  std::set<BlockId> targets;
  for (const BlockCopyOp& copy : step.block_copies) {
    EXPECT_TRUE(targets.insert(copy.target).second) << "block " << copy.target.value << " is copied to twice";
    std::copy_n(before.begin() + copy.source.value * size, size, slots_.begin() + copy.target.value * size);
  }
  for (const BlockCopyOp& copy : step.block_copies) {
    EXPECT_FALSE(targets.contains(copy.source)) << "block " << copy.source.value << " is source and target";
  }
}

void Harness::write_row(const ScheduledSequence& row) {
  std::uint64_t prefix = row.start_position == 0 ? 0 : slot(row, row.start_position - 1);
  for (std::size_t i = 0; i < row.token_ids.size(); ++i) {
    prefix = prefix_hash(prefix, row.token_ids[i]);
    std::uint64_t& place = slot(row, row.start_position + static_cast<std::int32_t>(i));
    place = prefix;
    EXPECT_TRUE(written_slots_.insert(static_cast<std::size_t>(&place - slots_.data())).second)
        << "a slot has two writers";
  }
}

// Every slot that attention reads was written for exactly that prefix.
void Harness::read_row(const ScheduledSequence& row) {
  const auto views = scheduler.sequences_of(row.request_id);
  const auto view = std::ranges::find(views, row.sequence_id, &Scheduler::SequenceView::sequence_id);
  ASSERT_NE(view, views.end());
  std::uint64_t prefix = 0;
  const std::int32_t end = row.start_position + static_cast<std::int32_t>(row.token_ids.size());
  for (std::int32_t position = 0; position < end; ++position) {
    prefix = prefix_hash(prefix, view->token_ids[static_cast<std::size_t>(position)]);
    ASSERT_EQ(slot(row, position), prefix)
        << "sequence " << row.sequence_id.value << ", position " << position;
  }
}

// ---- the caller ----

void Harness::end_outputs(std::span<const SequenceId> sampled) {
  std::set<SequenceId> open(sampled.begin(), sampled.end());
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    if (!open.contains(sequence.sequence_id)) continue;
    const SimulatedRequest& asked = requests_.at(sequence.request_id);
    const auto num_prompt = static_cast<std::int32_t>(asked.prompt.size());
    const bool is_full = sequence.num_tokens == options_.max_model_len;
    if (sequence.num_tokens - num_prompt < asked.max_tokens && !is_full) continue;
    const auto index = static_cast<std::uint32_t>(sequence.output_index);
    const auto token_ids = scheduler.sequences_of(sequence.request_id)[index].token_ids;
    const Tokens output(token_ids.begin() + num_prompt, token_ids.end());
    EXPECT_EQ(output,
              expected_output(asked, seed_of(sequence.request_id), index, sequence.num_tokens - num_prompt));
    EXPECT_TRUE(outputs.emplace(std::pair{sequence.request_id, index}, output).second)
        << "an output ended twice";
    scheduler.finish(sequence.sequence_id);
  }
}

// ---- the rules ----

void Harness::check_rules(const SchedulerOutput& step) {
  const KvSnapshot snapshot = scheduler.snapshot();
  std::map<RequestId, std::int32_t> num_running;  // sequences of running requests
  std::set<RequestId> waiting;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kRunning) ++num_running[sequence.request_id];
    if (sequence.state != SequenceState::kRunning) waiting.insert(sequence.request_id);
  }
  // First come, first served, latest preempted first, resumed before newer: what runs is older than all that
  // waits.
  for (const RequestId request_id : waiting) {
    EXPECT_FALSE(num_running.contains(request_id)) << "request " << request_id.value << " runs in part";
    if (!num_running.empty()) {
      EXPECT_LT(num_running.rbegin()->first, request_id);
    }
  }
  std::int32_t num_rows = 0;
  for (const ScheduledSequence& row : step.sequences) {
    EXPECT_TRUE(num_running.contains(row.request_id));
    EXPECT_FALSE(row.token_ids.empty());
    num_rows += static_cast<std::int32_t>(row.token_ids.size());
  }
  EXPECT_EQ(num_rows, step.num_prefill_tokens + step.num_decode_tokens);
  EXPECT_LE(num_rows, options_.max_num_batched_tokens);
  EXPECT_TRUE(std::ranges::is_sorted(step.sequences, {}, &ScheduledSequence::sequence_id));
  std::int32_t num_running_sequences = 0;
  for (const auto& [id, count] : num_running) num_running_sequences += count;
  EXPECT_LE(num_running_sequences, options_.max_num_seqs);
  if (num_running.size() > 1) {
    EXPECT_LE(num_running_sequences, options_.max_num_batched_tokens) << "some could starve";
  }
  for (const auto& [request_id, count] : num_running) check_group(step, snapshot, request_id);

  bool has_started = false;
  for (const auto& [request_id, count] : num_running) has_started |= !running_before_.contains(request_id);
  if (!step.preemptions.empty()) {
    EXPECT_FALSE(has_started) << "admission in a step that preempted";
  }
  if (has_started && num_running.size() > 1) {
    const std::int32_t num_older = num_running_sequences - num_running.rbegin()->second;
    const std::int32_t watermark =
        static_cast<std::int32_t>(std::ceil(0.01 * options_.num_blocks)) + num_older;
    EXPECT_GE(snapshot.figures.free_blocks + snapshot.figures.cached_blocks, watermark);
  }
  for (const Admission& admission : step.admissions) {
    EXPECT_TRUE(start_order.empty() || start_order.back() < admission.request_id)
        << "start order is arrival order";
    start_order.push_back(admission.request_id);
    num_cached_tokens[admission.request_id] = admission.num_cached_tokens;
  }
  for (const Preemption& preemption : step.preemptions) {
    EXPECT_TRUE(running_before_.contains(preemption.request_id));
    EXPECT_FALSE(num_running.contains(preemption.request_id));
    preemptions.push_back(preemption);
  }
  if (!step.out_of_memory.empty()) {
    EXPECT_LE(num_running.size(), 1u);
  }
  running_before_.clear();
  for (const auto& [request_id, count] : num_running) running_before_.insert(request_id);
}

// The outputs of a group decode together; one that is behind is waited for.
void Harness::check_group(const SchedulerOutput& step, const KvSnapshot& snapshot, RequestId request_id) {
  std::set<SequenceId> caught_up, behind;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.request_id != request_id) continue;
    const auto num_prompt = static_cast<std::int32_t>(requests_.at(request_id).prompt.size());
    const bool is_decoding =
        sequence.num_tokens > num_prompt && sequence.num_tokens - sequence.num_computed_tokens == 1;
    (is_decoding ? caught_up : behind).insert(sequence.sequence_id);
  }
  const auto num_decodes = static_cast<std::size_t>(std::ranges::count_if(
      step.sequences, [&](const ScheduledSequence& row) { return caught_up.contains(row.sequence_id); }));
  const bool decodes_wait = options_.prefill_first && step.num_prefill_tokens > 0;
  if (!step.out_of_memory.empty() || !behind.empty() || decodes_wait) {
    EXPECT_EQ(num_decodes, 0u) << "request " << request_id.value << " decodes in part";
  } else {
    EXPECT_EQ(num_decodes,
              std::min(caught_up.size(), static_cast<std::size_t>(options_.max_num_batched_tokens)));
  }
}

void Harness::check_progress(std::size_t num_tokens) {
  if (num_tokens > 0) num_steps_without_token_ = 0;
  if (num_tokens > 0 || !scheduler.has_work()) return;
  // Known tokens of a group count together: after a preemption each output's own tokens are computed again.
  std::map<RequestId, std::int32_t> num_known;
  for (const SequenceSnapshot& sequence : scheduler.snapshot().sequences) {
    const auto num_prompt = static_cast<std::int32_t>(requests_.at(sequence.request_id).prompt.size());
    auto& num = num_known.try_emplace(sequence.request_id, num_prompt).first->second;
    num += sequence.num_tokens - num_prompt;
  }
  std::int32_t longest = 0;
  for (const auto& [request_id, num] : num_known) longest = std::max(longest, num);
  const std::int32_t chunk = options_.max_num_batched_tokens;
  EXPECT_LE(++num_steps_without_token_, (longest + chunk - 1) / chunk + 2) << "no progress";
}

void Harness::check_state() {
  EXPECT_EQ(scheduler.broken_invariant(), std::nullopt);
  replay_.apply(scheduler.take_events());
  const KvSnapshot snapshot = scheduler.snapshot();
  EXPECT_EQ(replay_.difference(snapshot), std::nullopt);

  std::set<BlockId> used;
  std::int32_t num_logical = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    num_logical += static_cast<std::int32_t>(sequence.block_table.size());
    used.insert(sequence.block_table.begin(), sequence.block_table.end());
  }
  const KvFigures& figures = snapshot.figures;
  EXPECT_EQ(figures.used_blocks, static_cast<std::int32_t>(used.size()));
  EXPECT_EQ(figures.logical_blocks, num_logical);
  EXPECT_EQ(figures.used_blocks + figures.cached_blocks + figures.free_blocks, options_.num_blocks);
  EXPECT_GE(scheduler.totals().peak_used_blocks, figures.used_blocks);
  EXPECT_GE(scheduler.totals().peak_logical_blocks, figures.logical_blocks);
  if (snapshot.sequences.empty()) {
    EXPECT_EQ(figures.used_blocks, 0) << "the pool is whole when nothing is left";
  }
}

}  // namespace octavo::scheduler
