#include "tests/simulation/simulated_runner.h"

#include <algorithm>
#include <set>

#include "engine/base/hash.h"

namespace octavo::simulation {
namespace {

std::string name_of(const scheduler::ScheduledSequence& scheduled) {
  return "request " + std::to_string(scheduled.request_id.value) + ", sequence " +
         std::to_string(scheduled.sequence_id.value);
}

std::int32_t end_position(const scheduler::ScheduledSequence& scheduled) {
  return scheduled.start_position + static_cast<std::int32_t>(scheduled.token_ids.size());
}

}  // namespace

SimulatedRunner::SimulatedRunner(const SimulatedRunnerOptions& options, std::uint64_t seed)
    : options_(options), random_(seed) {
  slots_.resize(static_cast<std::size_t>(options.num_blocks) * static_cast<std::size_t>(options.block_size));
  for (std::size_t index = 0; index < slots_.size(); ++index) slots_[index] = poison(index);
}

Result<void> SimulatedRunner::execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) {
  check_budgets(step);
  for (const auto& scheduled : step.sequences) check_rows(scheduled);
  if (problem_) return Error{ErrorCode::kInternal, *problem_};

  const bool fails = random_.chance(failure_rate_);
  if (!fails || random_.chance(0.5)) copy_blocks(step.block_copies);
  for (const auto& scheduled : step.sequences) write_rows(scheduled, fails);
  if (fails) return Error{ErrorCode::kDevice, "the simulated device failed"};

  for (const auto& scheduled : step.sequences) check_slots(scheduled);
  for (const auto& scheduled : step.sequences) {
    report_prompt_logprobs(scheduled, output);
    draw(scheduled, output);
  }
  return {};
}

void SimulatedRunner::poison_unfilled(const KvSnapshot& snapshot) {
  const auto block_size = static_cast<std::size_t>(options_.block_size);
  for (std::size_t block = 0; block < snapshot.blocks.size(); ++block) {
    const BlockSnapshot& state = snapshot.blocks[block];
    const std::size_t filled = state.state == BlockState::kFree ? 0 : static_cast<std::size_t>(state.filled);
    for (std::size_t offset = filled; offset < block_size; ++offset) {
      slots_[block * block_size + offset] = poison(block * block_size + offset);
    }
  }
}

SimulatedRunner::Truth& SimulatedRunner::truth_of(SequenceId sequence_id,
                                                  const scheduler::ScheduledSequence& scheduled) {
  const auto [found, is_new] = truths_.try_emplace(sequence_id);
  if (is_new)
    found->second.token_ids.assign(scheduled.prompt_token_ids.begin(), scheduled.prompt_token_ids.end());
  return found->second;
}

void SimulatedRunner::check_budgets(const scheduler::SchedulerOutput& step) {
  std::int64_t num_rows = 0;
  std::size_t num_samples = 0;
  const scheduler::ScheduledSequence* previous = nullptr;
  std::set<SequenceId> seen;
  for (const auto& scheduled : step.sequences) {
    num_rows += static_cast<std::int64_t>(scheduled.token_ids.size());
    num_samples += scheduled.samples.size();
    if (previous && scheduled.request_id < previous->request_id)
      note("the sequences of a step stand out of order");
    if (!seen.insert(scheduled.sequence_id).second) note(name_of(scheduled) + " stands twice in a step");
    previous = &scheduled;
    if (scheduled_requests_.empty() || scheduled_requests_.back() != scheduled.request_id) {
      scheduled_requests_.push_back(scheduled.request_id);
    }
  }
  const auto max_num_seqs = static_cast<std::size_t>(options_.max_num_seqs);
  if (num_rows > options_.max_num_batched_tokens) note("a step has more rows than max_num_batched_tokens");
  if (num_rows != step.num_prefill_tokens + step.num_decode_tokens) note("a step miscounts its rows");
  if (step.sequences.size() > max_num_seqs || num_samples > max_num_seqs) note("a step exceeds max_num_seqs");
}

void SimulatedRunner::check_rows(const scheduler::ScheduledSequence& scheduled) {
  const Truth& truth = truth_of(scheduled.sequence_id, scheduled);
  const std::int32_t end = end_position(scheduled);
  const auto num_known = static_cast<std::int32_t>(truth.token_ids.size());
  if (scheduled.token_ids.empty()) return note(name_of(scheduled) + " has no rows");
  if (scheduled.start_position < 0 || end > num_known)
    return note(name_of(scheduled) + ": rows past its tokens");
  if (!std::equal(scheduled.token_ids.begin(), scheduled.token_ids.end(),
                  truth.token_ids.begin() + scheduled.start_position)) {
    note(name_of(scheduled) + ": rows hold other tokens than were drawn");
  }
  if (scheduled.samples.empty() == (end == num_known))
    note(name_of(scheduled) + ": drawn before its end, or not at it");
  if (static_cast<std::int64_t>(scheduled.block_table.size()) * options_.block_size < end) {
    return note(name_of(scheduled) + ": its table does not cover its rows");
  }
  for (const BlockId block : scheduled.block_table) {
    if (block.value < 0 || block.value >= options_.num_blocks) note(name_of(scheduled) + ": no such block");
  }
  for (const scheduler::SampleTarget& target : scheduled.samples) {
    const auto& known = truth_of(target.sequence_id, scheduled).token_ids;
    const std::size_t num_prompt = scheduled.prompt_token_ids.size();
    if (!std::equal(target.output_token_ids.begin(), target.output_token_ids.end(),
                    known.begin() + static_cast<std::ptrdiff_t>(num_prompt), known.end())) {
      note(name_of(scheduled) + ": a target's output is not what was drawn for it");
    }
  }
}

void SimulatedRunner::copy_blocks(const std::vector<scheduler::BlockCopyOp>& copies) {
  const auto block_size = static_cast<std::ptrdiff_t>(options_.block_size);
  for (const scheduler::BlockCopyOp& copy : copies) {
    const auto source = slots_.begin() + copy.source.value * block_size;
    std::copy(source, source + block_size, slots_.begin() + copy.target.value * block_size);
  }
}

void SimulatedRunner::write_rows(const scheduler::ScheduledSequence& scheduled, bool rubbish) {
  std::uint64_t prefix_hash = scheduled.start_position == 0 ? root_of(scheduled.request_id)
                                                            : *slot(scheduled, scheduled.start_position - 1);
  for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
    const auto row = static_cast<std::size_t>(position - scheduled.start_position);
    prefix_hash = ToyModel::extend(prefix_hash, scheduled.token_ids[row]);
    *slot(scheduled, position) = rubbish ? random_.next() : prefix_hash;
  }
}

void SimulatedRunner::check_slots(const scheduler::ScheduledSequence& scheduled) {
  Truth& truth = truths_.at(scheduled.sequence_id);
  for (std::int32_t position = 0; position < end_position(scheduled); ++position) {
    const auto index = static_cast<std::size_t>(position);
    if (index == truth.slots.size()) {
      const std::uint64_t before = index == 0 ? root_of(scheduled.request_id) : truth.slots.back();
      truth.slots.push_back(ToyModel::extend(before, truth.token_ids[index]));
    }
    if (*slot(scheduled, position) != truth.slots[index]) {
      return note(name_of(scheduled) + " reads at position " + std::to_string(position) +
                  " a slot that does not hold its prefix");
    }
  }
}

void SimulatedRunner::draw(const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output) {
  if (scheduled.samples.empty()) return;
  std::uint64_t folded = 0;
  for (std::int32_t position = 0; position < end_position(scheduled); ++position) {
    folded = ToyModel::fold(folded, *slot(scheduled, position));
  }
  for (const scheduler::SampleTarget& target : scheduled.samples) {
    const ToyModel::Draw drawn = options_.model.draw(folded, *scheduled.sampling, target.seed,
                                                     target.output_index, target.output_token_ids.size());
    output.tokens.push_back({.sequence_id = target.sequence_id,
                             .token_id = drawn.token,
                             .logprob = drawn.logprob,
                             .top_logprobs = {},
                             .invalid_logits = drawn.invalid_logits});
    truth_of(target.sequence_id, scheduled).token_ids.push_back(drawn.token);
  }
}

void SimulatedRunner::report_prompt_logprobs(const scheduler::ScheduledSequence& scheduled,
                                             runner::RunnerOutput& output) {
  if (!scheduled.sampling->prompt_logprobs) return;
  const auto num_prompt = static_cast<std::int32_t>(scheduled.prompt_token_ids.size());
  for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
    if (position + 1 >= num_prompt) break;
    const TokenId next = scheduled.prompt_token_ids[static_cast<std::size_t>(position) + 1];
    output.prompt_logprobs.push_back({.sequence_id = scheduled.sequence_id,
                                      .position = position + 1,
                                      .logprob = ToyModel::prompt_logprob(*slot(scheduled, position), next)});
  }
}

std::uint64_t* SimulatedRunner::slot(const scheduler::ScheduledSequence& scheduled, std::int32_t position) {
  const std::int32_t block =
      scheduled.block_table[static_cast<std::size_t>(position / options_.block_size)].value;
  return &slots_[static_cast<std::size_t>(block) * static_cast<std::size_t>(options_.block_size) +
                 static_cast<std::size_t>(position % options_.block_size)];
}

std::uint64_t SimulatedRunner::root_of(RequestId request_id) const {
  const auto found = salts_.find(request_id);
  return ToyModel::root_of(found == salts_.end() ? 0 : found->second);
}

std::uint64_t SimulatedRunner::poison(std::size_t slot_index) {
  return hash_combine(0x706f69736f6eu, hash_combine(slot_index, ++num_poisoned_));
}

void SimulatedRunner::note(const std::string& problem) {
  if (!problem_) problem_ = problem;
}

}  // namespace octavo::simulation
