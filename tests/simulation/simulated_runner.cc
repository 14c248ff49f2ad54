#include "tests/simulation/simulated_runner.h"

#include <algorithm>
#include <array>
#include <functional>

#include "engine/base/hash.h"
#include "engine/scheduler/draft_gate.h"
#include "engine/scheduler/prompt_lookup.h"
#include "tests/simulation/toy_grammar.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {

using scheduler::kMostRowsWithDrafts;

namespace {

constexpr std::int64_t kUsPerRowWithTarget = 100;
constexpr std::uint64_t kBeforeFirstToken = 0x7a65726f;  // what a cleared state holds

std::string name_of(const scheduler::ScheduledSequence& scheduled) {
  return "request " + std::to_string(scheduled.request_id.value) + ", sequence " +
         std::to_string(scheduled.sequence_id.value);
}

std::int32_t end_position(const scheduler::ScheduledSequence& scheduled) {
  return scheduled.start_position + static_cast<std::int32_t>(scheduled.token_ids.size());
}

// Of the rows that are no guesses.
std::int32_t known_end(const scheduler::ScheduledSequence& scheduled) {
  return end_position(scheduled) - scheduled.num_draft_tokens;
}

bool is_below(BlockId block, std::int32_t num_blocks) { return block.value >= 0 && block.value < num_blocks; }

// One list of moves: where each comes from and goes to.
struct Move {
  BlockId source, target;
};

// Moves of a list happen at once: no target twice, and none of them a source when both lie in one pool.
bool may_happen_at_once(std::vector<Move> moves, bool within_one_pool) {
  std::ranges::sort(moves, {}, &Move::target);
  if (std::ranges::adjacent_find(moves, {}, &Move::target) != moves.end()) return false;
  return !within_one_pool || std::ranges::none_of(moves, [&](const Move& move) {
    return std::ranges::binary_search(moves, move.source, {}, &Move::target);
  });
}

}  // namespace

Pace pace_of(const scheduler::SchedulerOptions& options) {
  const std::array<Pace, 3> plain = {{{.us_per_block = 1, .us_per_row = 100},
                                      {.us_per_block = 100, .us_per_row = 1},
                                      {.us_per_block = 2 * options.block_size - 1, .us_per_row = 4}}};
  Pace pace = plain[static_cast<std::size_t>(options.num_blocks % 3)];
  if (options.target_step_us == 0) return pace;
  pace.us_per_block *= kUsPerRowWithTarget / pace.us_per_row;
  pace.us_per_row = kUsPerRowWithTarget;
  pace.ns_per_context_token = 500;
  pace.noise_percent = 10;
  return pace;
}

SimulatedRunner::SimulatedRunner(const Script& script, ManualClock& clock)
    : options_(script.options),
      model_(script.model),
      block_size_(static_cast<std::size_t>(script.options.block_size)),
      clock_(clock),
      random_(0x706f69736f6eu),
      noise_(0x6e6f697365u),
      slots_(static_cast<std::size_t>(options_.num_blocks) * block_size_),
      host_slots_(static_cast<std::size_t>(options_.num_host_blocks) * block_size_),
      states_(static_cast<std::size_t>(options_.num_states)),
      host_states_(static_cast<std::size_t>(options_.num_host_states)),
      windows_(options_.window > 0 ? static_cast<std::size_t>(options_.num_window_blocks) * block_size_ : 0),
      host_windows_(
          options_.window > 0 ? static_cast<std::size_t>(options_.num_host_window_blocks) * block_size_ : 0),
      num_filled_(static_cast<std::size_t>(options_.num_blocks)),
      has_draft_(num_filled_.size()),
      host_in_use_(static_cast<std::size_t>(options_.num_host_blocks)),
      host_named_(host_in_use_.size()),
      masks_(ToyTokenizer::kVocabularySize),
      runs_ahead_(script.device.runs_ahead) {
  spoil(slots_);
  spoil(host_slots_);
  spoil(states_);
  spoil(host_states_);
  spoil(windows_);
  spoil(host_windows_);
}

Result<void> SimulatedRunner::execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) {
  if (std::exchange(awaits_settling_, false)) note("the step before was not settled");
  check_budgets(step);
  check_moves(step);
  check_states(step);
  check_windows(step);
  for (const auto& scheduled : step.sequences) guess(scheduled);
  for (const auto& scheduled : step.sequences) check_rows(scheduled);
  if (problem_) return Error{ErrorCode::kInternal, *problem_};
  last_step_moved_memory_ = step.moves_memory();
  take_time(step, output);
  if (const auto point = failure_of(step)) return fail(*point, step);

  move_blocks(step);
  written_.clear();
  for (const auto& scheduled : step.sequences) write_rows(scheduled);
  masks_.compute(step);
  for (std::size_t index = 0; index < step.sequences.size(); ++index) {
    const auto& scheduled = step.sequences[index];
    report_prompt_logprobs(scheduled, output);
    if (scheduled.pooling) {
      report_hidden_states(scheduled, output);
    } else {
      draw(index, scheduled, output);
    }
  }
  awaits_settling_ = step.num_draft_tokens > 0 || options_.speculative == Speculation::kMtp;
  return {};
}

// ---- steps that are begun

// As a device draws by itself: one token of a row, of which nothing else is asked.
bool SimulatedRunner::may_begin(const scheduler::SchedulerOutput& step) const {
  const bool moves_other_memory = !step.swap_outs.empty() || !step.swap_ins.empty() ||
                                  !step.state_moves.empty() || !step.window_moves.empty();
  if (!runs_ahead_ || step.empty() || moves_other_memory || step.num_draft_tokens > 0 ||
      options_.speculative == Speculation::kMtp)
    return false;
  return std::ranges::all_of(step.sequences, [](const scheduler::ScheduledSequence& scheduled) {
    const SamplingParams& sampling = *scheduled.sampling;
    return scheduled.samples.size() == 1 && scheduled.samples.front().num_candidates == 0 &&
           !scheduled.pooling && !sampling.prompt_logprobs && !sampling.logprobs && !sampling.grammar &&
           scheduled.samples.front().position() >= static_cast<std::size_t>(sampling.min_tokens);
  });
}

bool SimulatedRunner::begin(const scheduler::SchedulerOutput& step) {
  if (!may_begin(step)) return false;
  check_begun(step);
  BegunStep& begun = begun_.emplace_back();
  begun.plan = step;
  begun.plan.sequences.clear();
  for (const auto& scheduled : step.sequences) {
    BegunRow& row = begun.rows.emplace_back();
    row.plan = scheduled;
    row.known.assign(scheduled.known_token_ids.begin(), scheduled.known_token_ids.end());
    row.table.assign(scheduled.block_table.begin(), scheduled.block_table.end());
    row.is_ahead = scheduled.token_ids.front() == scheduler::kNotDrawnYet;
    num_rows_ahead_ += row.is_ahead ? 1 : 0;
  }
  return true;
}

// Rows that begin with what is not drawn yet follow a row of the step before, and nothing else follows it.
void SimulatedRunner::check_begun(const scheduler::SchedulerOutput& step) {
  if (begun_.size() > 1) note("a third step is begun");
  for (const auto& scheduled : step.sequences) {
    const bool is_ahead = scheduled.token_ids.front() == scheduler::kNotDrawnYet;
    if (is_ahead != !begun_.empty()) return note(name_of(scheduled) + " is begun at the wrong time");
    if (!is_ahead) continue;
    const auto before = std::ranges::find(begun_.back().rows, scheduled.sequence_id,
                                          [](const BegunRow& row) { return row.plan.sequence_id; });
    const bool follows =
        before != begun_.back().rows.end() &&
        before->plan.start_position + static_cast<std::int32_t>(before->plan.token_ids.size()) ==
            scheduled.start_position;
    if (!follows || scheduled.token_ids.size() != 1 || !scheduled.samples.front().follows_unknown)
      note(name_of(scheduled) + " does not follow what is under way");
  }
}

// As the step would have been planned at this time.
scheduler::ScheduledSequence SimulatedRunner::completed(BegunRow& row) {
  scheduler::ScheduledSequence scheduled = row.plan;
  const auto start = static_cast<std::size_t>(scheduled.start_position);
  if (row.is_ahead) row.known.push_back(truths_.at(scheduled.sequence_id).token_ids.at(start));
  const std::span<const TokenId> known = row.known;
  scheduled.token_ids = known.subspan(start, scheduled.token_ids.size());
  scheduled.known_token_ids = known;
  scheduled.prompt_token_ids = known.first(scheduled.prompt_token_ids.size());
  scheduled.block_table = row.table;
  scheduler::SampleTarget& target = scheduled.samples.front();
  target.output_token_ids = known.subspan(scheduled.prompt_token_ids.size());
  target.follows_unknown = false;
  return scheduled;
}

// Rows that are nobody's write their slots all the same.
Result<void> SimulatedRunner::finish(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) {
  if (begun_.empty()) {
    note("nothing was begun");
    return {};
  }
  BegunStep begun = std::move(begun_.front());
  begun_.pop_front();
  begun.plan.num_decode_tokens = step.num_decode_tokens;
  auto wanted = step.sequences.begin();
  for (BegunRow& row : begun.rows) {
    if (wanted != step.sequences.end() && wanted->sequence_id == row.plan.sequence_id) {
      begun.plan.sequences.push_back(completed(row));
      ++wanted;
      continue;
    }
    ++num_rows_in_vain_;
    row.plan.block_table = row.table;
    *slot(row.plan, row.plan.start_position) = rubbish();
  }
  if (wanted != step.sequences.end()) note(name_of(*wanted) + " was not begun");
  auto executed = execute(begun.plan, output);
  if (!executed) begun_.clear();
  return executed;
}

// A guess that counts brings its token to the state.
std::vector<SequenceId> SimulatedRunner::settle(const scheduler::SchedulerOutput& step,
                                                std::span<const scheduler::CommittedToken> tokens) {
  if (!std::exchange(awaits_settling_, false)) note("a step is settled that need not be, or twice");
  guessable_.clear();
  for (const auto& scheduled : step.sequences) {
    const auto num_drawn =
        std::ranges::count(tokens, scheduled.sequence_id, &scheduler::CommittedToken::sequence_id);
    if (num_drawn == 0) continue;
    if (options_.speculative == Speculation::kMtp) guessable_.push_back(scheduled.sequence_id);
    if (scheduled.num_draft_tokens == 0 || states_.empty()) continue;
    std::uint64_t& state = states_[index_of(scheduled.state)];
    for (const TokenId token : scheduled.draft().first(static_cast<std::size_t>(num_drawn - 1)))
      state = ToyModel::extend(state, token);
  }
  return guessable_;
}

// As a model might that has seen texts like this one; else any token.
void SimulatedRunner::guess(const scheduler::ScheduledSequence& scheduled) {
  const std::span<TokenId> places = scheduled.to_guess;
  if (places.empty()) return;
  if (std::ranges::find(guessable_, scheduled.sequence_id) == guessable_.end())
    return note(name_of(scheduled) + " is to be guessed, and was not in the step before");
  std::ranges::fill(places, TokenId{1});
  const auto guesses =
      scheduler::guess_next(scheduled.known_token_ids, static_cast<std::int32_t>(places.size()));
  std::ranges::copy(guesses, places.begin());
}

// ---- a plan must make sense

void SimulatedRunner::check_budgets(const scheduler::SchedulerOutput& step) {
  std::int64_t num_rows = 0;
  std::size_t num_samples = 0;
  std::int32_t num_drafted = 0;
  const scheduler::ScheduledSequence* previous = nullptr;
  for (const auto& scheduled : step.sequences) {
    num_rows += static_cast<std::int64_t>(scheduled.token_ids.size());
    const auto num_targets = static_cast<std::int32_t>(scheduled.samples.size()) - scheduled.num_draft_tokens;
    num_samples += static_cast<std::size_t>(num_targets);
    num_drafted += scheduled.num_draft_tokens;
    const auto line_of = [this](const auto* one) { return asked(one->request_id).background; };
    const bool in_order =
        !previous || line_of(previous) < line_of(&scheduled) ||
        (line_of(previous) == line_of(&scheduled) && previous->request_id <= scheduled.request_id &&
         previous->sequence_id < scheduled.sequence_id);
    if (!in_order) note("the sequences of a step stand out of order");
    previous = &scheduled;
    if (scheduled_.empty() || scheduled_.back().request_id != scheduled.request_id)
      scheduled_.push_back({scheduled.request_id});
    const bool ends_embedding =
        scheduled.pooling &&
        known_end(scheduled) == static_cast<std::int32_t>(scheduled.prompt_token_ids.size());
    scheduled_.back().num_targets += num_targets + (ends_embedding ? 1 : 0);
  }
  const auto max_num_seqs = static_cast<std::size_t>(options_.max_num_seqs);
  if (num_rows > options_.max_num_batched_tokens) note("a step has more rows than max_num_batched_tokens");
  if (num_rows != step.num_prefill_tokens + step.num_decode_tokens + step.num_draft_tokens ||
      num_drafted != step.num_draft_tokens)
    note("a step miscounts its rows");
  if (num_drafted > 0 && num_rows > kMostRowsWithDrafts) note("drafts in a step of many rows");
  if (step.sequences.size() > max_num_seqs || num_samples > max_num_seqs) note("a step exceeds max_num_seqs");
}

void SimulatedRunner::check_moves(const scheduler::SchedulerOutput& step) {
  if (!step.moves_memory()) return;
  std::vector<Move> outs, ins, copies;
  for (const auto& swap : step.swap_outs) outs.push_back({swap.device_block, swap.host_block});
  for (const auto& swap : step.swap_ins) ins.push_back({swap.host_block, swap.device_block});
  for (const auto& copy : step.block_copies) copies.push_back({copy.source, copy.target});
  const auto check = [&](const std::vector<Move>& moves, std::int32_t num_sources, std::int32_t num_targets,
                         bool within_one_pool, const char* name) {
    for (const Move& move : moves) {
      if (!is_below(move.source, num_sources) || !is_below(move.target, num_targets)) {
        note(std::string(name) + " of a block that does not exist");
      }
    }
    if (!may_happen_at_once(moves, within_one_pool)) note(std::string(name) + " in conflict with each other");
  };
  std::ranges::sort(ins, {}, &Move::source);
  if (std::ranges::adjacent_find(ins, {}, &Move::source) != ins.end())
    note("a shared block is swapped in more than once");
  check(outs, options_.num_blocks, options_.num_host_blocks, false, "swaps out");
  check(ins, options_.num_host_blocks, options_.num_blocks, false, "swaps in");
  check(copies, options_.num_blocks, options_.num_blocks, true, "copies");
}

// One for each sequence, where there are any; moves name what exists.
void SimulatedRunner::check_windows(const scheduler::SchedulerOutput& step) {
  using enum block::PoolMoveKind;
  for (const block::PoolMove& move : step.window_moves) {
    const std::int32_t num_sources =
        move.kind == kSwapIn ? options_.num_host_window_blocks : options_.num_window_blocks;
    const std::int32_t num_targets =
        move.kind == kSwapOut ? options_.num_host_window_blocks : options_.num_window_blocks;
    if (options_.window == 0 || move.kind == kClear || !is_below(move.source, num_sources) ||
        !is_below(move.target, num_targets))
      return note("a window part is moved where there is none");
  }
  for (const auto& scheduled : step.sequences) {
    const std::size_t num_needed =
        options_.window == 0
            ? 0
            : (static_cast<std::size_t>(end_position(scheduled)) + block_size_ - 1) / block_size_;
    if (scheduled.window_places.size() != num_needed)
      return note(name_of(scheduled) + ": its list of window parts has the wrong length");
    if (options_.window == 0) continue;
    for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
      const BlockId place = scheduled.window_places[static_cast<std::size_t>(position) / block_size_];
      if (!is_below(place, options_.num_window_blocks))
        return note(name_of(scheduled) + " writes where no window part is");
    }
  }
}

void SimulatedRunner::check_states(const scheduler::SchedulerOutput& step) {
  std::vector<bool> is_taken(states_.size());
  for (const auto& scheduled : step.sequences) {
    if (states_.empty() != (scheduled.state == block::kNoBlock))
      return note(name_of(scheduled) + ": a state that it should not have, or none");
    if (states_.empty()) continue;
    if (!is_below(scheduled.state, options_.num_states)) return note(name_of(scheduled) + ": no such state");
    if (is_taken[index_of(scheduled.state)])
      return note(name_of(scheduled) + ": a state has two writers in one step");
    is_taken[index_of(scheduled.state)] = true;
  }
  for (const block::PoolMove& move : step.state_moves) {
    using enum block::PoolMoveKind;
    const bool has_source =
        move.kind == kClear ||
        is_below(move.source, move.kind == kSwapIn ? options_.num_host_states : options_.num_states);
    const bool has_target =
        is_below(move.target, move.kind == kSwapOut ? options_.num_host_states : options_.num_states);
    if (!has_source || !has_target) note("a move of a state that does not exist");
  }
}

// A state is exactly the tokens before the rows, or useless.
void SimulatedRunner::check_state(const scheduler::ScheduledSequence& scheduled) {
  const auto start = static_cast<std::size_t>(scheduled.start_position);
  const std::uint64_t expected =
      start == 0 ? kBeforeFirstToken : slots_of(truths_.at(scheduled.sequence_id), scheduled, start).back();
  if (contents_of_state(scheduled.state) != expected)
    note(name_of(scheduled) + " goes on at position " + std::to_string(start) +
         " from a state that is not of its tokens");
}

SimulatedRunner::Truth& SimulatedRunner::truth_of(SequenceId sequence_id,
                                                  const scheduler::ScheduledSequence& scheduled) {
  const auto [found, is_new] = truths_.try_emplace(sequence_id);
  if (is_new) found->second.token_ids = requests_.at(scheduled.request_id).asked->prompt;
  return found->second;
}

void SimulatedRunner::check_rows(const scheduler::ScheduledSequence& scheduled) {
  if (!requests_.contains(scheduled.request_id)) return note(name_of(scheduled) + ": nobody asked for it");
  if (scheduled.token_ids.empty()) return note(name_of(scheduled) + " has no rows");
  Truth& truth = truth_of(scheduled.sequence_id, scheduled);
  if (requests_.at(scheduled.request_id).asked->is_beam_search()) follow_seat(truth, scheduled);
  const std::int32_t end = known_end(scheduled);
  const auto num_known = static_cast<std::int32_t>(truth.token_ids.size());
  if (scheduled.start_position < 0 || end > num_known)
    return note(name_of(scheduled) + ": rows past its tokens");
  if (!std::equal(scheduled.token_ids.begin(), scheduled.draft().begin(),
                  truth.token_ids.begin() + scheduled.start_position)) {
    note(name_of(scheduled) + ": rows hold other tokens than were drawn");
  }
  if (!std::ranges::equal(scheduled.known_token_ids, truth.token_ids))
    note(name_of(scheduled) + ": it is told other tokens than were drawn");
  if (scheduled.pooling.has_value() != asked(scheduled.request_id).is_embedding())
    note(name_of(scheduled) + " gives hidden states that nobody asked for, or none");
  if (!scheduled.pooling && scheduled.samples.empty() == (end == num_known))
    note(name_of(scheduled) + ": drawn before its end, or not at it");
  if (static_cast<std::int64_t>(scheduled.block_table.size() * block_size_) < end_position(scheduled)) {
    return note(name_of(scheduled) + ": its table does not cover its rows");
  }
  for (const BlockId block : scheduled.block_table) {
    if (!is_below(block, options_.num_blocks)) note(name_of(scheduled) + ": no such block");
  }
  check_targets(scheduled);
  if (scheduled.num_draft_tokens > 0) check_draft(scheduled);
}

// Guesses follow a newest token, leave room for the token after them, and each is put to the test.
void SimulatedRunner::check_draft(const scheduler::ScheduledSequence& scheduled) {
  const auto num_known = static_cast<std::int32_t>(scheduled.known_token_ids.size());
  const auto num_prompt = static_cast<std::int32_t>(scheduled.prompt_token_ids.size());
  const std::int32_t num_drafted = scheduled.num_draft_tokens;
  const ScriptedRequest& asked = *requests_.at(scheduled.request_id).asked;
  if (options_.speculative == Speculation::kOff) note(name_of(scheduled) + " drafts, which nobody asked for");
  if (num_drafted > options_.num_speculative_tokens)
    note(name_of(scheduled) + " drafts more than was asked for");
  if (asked.is_beam_search()) note(name_of(scheduled) + " drafts for a beam");
  if (scheduled.start_position != num_known - 1 || num_known <= num_prompt)
    note(name_of(scheduled) + " drafts behind more than its newest token");
  if (static_cast<std::int32_t>(scheduled.samples.size()) != 1 + num_drafted)
    note(name_of(scheduled) + ": not every guess is put to the test");
  if (num_known + num_drafted - num_prompt >= asked.max_tokens ||
      num_known + num_drafted >= options_.max_model_len)
    note(name_of(scheduled) + " drafts past the end of its output");
  for (const TokenId token : scheduled.draft()) {
    if (token < 0 || token >= ToyTokenizer::kVocabularySize) note(name_of(scheduled) + " drafts no token");
  }
  drafted_.push_back(
      {scheduled.sequence_id, num_known, static_cast<std::int32_t>(scheduled.block_table.size())});
}

// A seat may carry another beam than before; what it carries must have been offered to the search.
void SimulatedRunner::follow_seat(Truth& truth, const scheduler::ScheduledSequence& scheduled) {
  const auto known = scheduled.known_token_ids;
  const auto differs = std::ranges::mismatch(known, truth.token_ids).in1;
  const auto num_equal = static_cast<std::size_t>(differs - known.begin());
  truth.token_ids.assign(known.begin(), known.end());
  truth.slots.resize(std::min(truth.slots.size(), num_equal));
  Request& request = requests_.at(scheduled.request_id);
  const auto& prompt = request.asked->prompt;
  const bool is_prompt = std::ranges::equal(known, prompt);
  if (!is_prompt && !request.offered.contains(slots_of(truth, scheduled, known.size()).back()))
    note(name_of(scheduled) + " carries a beam that was not offered");
}

void SimulatedRunner::check_targets(const scheduler::ScheduledSequence& scheduled) {
  const std::size_t num_prompt = scheduled.prompt_token_ids.size();
  std::size_t num_guessed = 0;
  for (const scheduler::SampleTarget& target : scheduled.samples) {
    const std::span<const TokenId> known = truth_of(target.sequence_id, scheduled).token_ids;
    const auto drawn = known.subspan(std::min(num_prompt, known.size()));
    const auto guessed = scheduled.draft().first(num_guessed);
    const auto output = target.output_token_ids;
    const bool is_right = output.size() == drawn.size() + guessed.size() &&
                          std::ranges::equal(output.first(drawn.size()), drawn) &&
                          std::ranges::equal(output.last(guessed.size()), guessed);
    if (!is_right) note(name_of(scheduled) + ": a target's output is not what was drawn for it");
    if (num_guessed < scheduled.draft().size()) ++num_guessed;
  }
}

// ---- failures

std::optional<FailurePoint> SimulatedRunner::failure_of(const scheduler::SchedulerOutput& step) {
  if (is_lost_) return FailurePoint::kAmongRows;
  const bool swaps = !step.swap_outs.empty() || !step.swap_ins.empty();
  if (swaps && next_swap_failure_) {
    ++num_failed_swaps_;
    return std::exchange(next_swap_failure_, std::nullopt);
  }
  return std::exchange(next_failure_, std::nullopt);
}

void SimulatedRunner::take_time(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) {
  const Pace pace = pace_of(options_);
  output.swap_out_us = pace.us_per_block * static_cast<std::int64_t>(step.swap_outs.size());
  output.swap_in_us = pace.us_per_block * static_cast<std::int64_t>(step.swap_ins.size());
  Timing timing;
  for (const auto& scheduled : step.sequences) {
    const bool is_decode =
        scheduled.start_position >= static_cast<std::int32_t>(scheduled.prompt_token_ids.size()) &&
        known_end(scheduled) == scheduled.start_position + 1 && !scheduled.samples.empty();
    for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
      const double us = pace.us_of_row(position);
      timing.us += us;
      ++timing.num_rows;
      if (is_decode)
        (position == scheduled.start_position ? timing.us_of_decodes : timing.us_of_drafts) += us;
      if (!is_decode) timing.us_of_costliest_row = std::max(timing.us_of_costliest_row, us);
    }
  }
  const std::int32_t percent = 100 + noise_.between(-pace.noise_percent, pace.noise_percent);
  const auto us = static_cast<std::int64_t>(timing.us) * percent / 100;
  timing.us = static_cast<double>(us);
  timing_ = timing;
  clock_.advance_us(output.swap_out_us + output.swap_in_us + us);
}

Error SimulatedRunner::fail(FailurePoint point, const scheduler::SchedulerOutput& step) {
  ++num_failed_steps_;
  if (point == FailurePoint::kAmongMoves) spoil_moves(step);
  if (point == FailurePoint::kAmongRows) {
    move_blocks(step);
    for (const auto& scheduled : step.sequences) spoil_rows(scheduled);
  }
  return Error{is_lost_ ? ErrorCode::kDeviceLost : ErrorCode::kDevice, "the simulated device failed"};
}

void SimulatedRunner::spoil_moves(const scheduler::SchedulerOutput& step) {
  for (const auto& swap : step.swap_outs) spoil(host_block(swap.host_block));
  for (const auto& swap : step.swap_ins) spoil(device_block(swap.device_block));
  for (const auto& copy : step.block_copies) spoil(device_block(copy.target));
  for (const block::PoolMove& move : step.state_moves) {
    const bool is_on_host = move.kind == block::PoolMoveKind::kSwapOut;
    (is_on_host ? host_states_ : states_)[static_cast<std::size_t>(move.target.value)] = rubbish();
  }
  for (const block::PoolMove& move : step.window_moves) {
    if (move.kind != block::PoolMoveKind::kSwapOut) spoil(window_block(move.target));
  }
}

void SimulatedRunner::spoil_rows(const scheduler::ScheduledSequence& scheduled) {
  for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
    *slot(scheduled, position) = rubbish();
    if (!windows_.empty())
      spoil(window_block(scheduled.window_places[static_cast<std::size_t>(position) / block_size_]));
  }
  if (!states_.empty()) states_[index_of(scheduled.state)] = rubbish();
}

void SimulatedRunner::spoil(std::span<std::uint64_t> slots) {
  for (std::uint64_t& slot : slots) slot = rubbish();
}

// ---- what a device does

void SimulatedRunner::move_blocks(const scheduler::SchedulerOutput& step) {
  for (const auto& swap : step.swap_outs)
    std::ranges::copy(device_block(swap.device_block), host_block(swap.host_block).begin());
  for (const auto& swap : step.swap_ins)
    std::ranges::copy(host_block(swap.host_block), device_block(swap.device_block).begin());
  for (const auto& copy : step.block_copies)
    std::ranges::copy(device_block(copy.source), device_block(copy.target).begin());
  move_states(step);
  move_windows(step);
}

void SimulatedRunner::move_states(const scheduler::SchedulerOutput& step) {
  const auto at = [](std::vector<std::uint64_t>& pool, BlockId state) -> std::uint64_t& {
    return pool[index_of(state)];
  };
  for (const block::PoolMove& move : step.state_moves) {
    switch (move.kind) {
      case block::PoolMoveKind::kClear: at(states_, move.target) = kBeforeFirstToken; break;
      case block::PoolMoveKind::kCopy: at(states_, move.target) = at(states_, move.source); break;
      case block::PoolMoveKind::kSwapOut: at(host_states_, move.target) = at(states_, move.source); break;
      case block::PoolMoveKind::kSwapIn: at(states_, move.target) = at(host_states_, move.source); break;
    }
  }
}

void SimulatedRunner::move_windows(const scheduler::SchedulerOutput& step) {
  const auto at = [this](std::vector<std::uint64_t>& pool, BlockId place) {
    return std::span(pool).subspan(index_of(place) * block_size_, block_size_);
  };
  for (const block::PoolMove& move : step.window_moves) {
    const bool comes_from_host = move.kind == block::PoolMoveKind::kSwapIn;
    const bool goes_to_host = move.kind == block::PoolMoveKind::kSwapOut;
    std::ranges::copy(at(comes_from_host ? host_windows_ : windows_, move.source),
                      at(goes_to_host ? host_windows_ : windows_, move.target).begin());
  }
}

// The same contents as in the slots that all layers have.
void SimulatedRunner::write_window(const scheduler::ScheduledSequence& scheduled) {
  for (std::int32_t position = scheduled.start_position; position < end_position(scheduled); ++position) {
    const auto index = static_cast<std::size_t>(position);
    window_block(scheduled.window_places[index / block_size_])[index % block_size_] =
        *slot(scheduled, position);
  }
}

// All that layers with a window read for the rows of this step up to the last one that counts.
bool SimulatedRunner::read_window(const scheduler::ScheduledSequence& scheduled,
                                  std::span<const std::uint64_t> expected) {
  const std::int32_t first = std::max(0, scheduled.start_position - options_.window + 1);
  for (auto position = static_cast<std::size_t>(first); position < expected.size(); ++position) {
    const BlockId place = scheduled.window_places[position / block_size_];
    if (place != block::kNoBlock && window_block(place)[position % block_size_] == expected[position])
      continue;
    note(name_of(scheduled) + " reads at position " + std::to_string(position) +
         " a window that does not hold its prefix");
    return false;
  }
  return true;
}

void SimulatedRunner::write_rows(const scheduler::ScheduledSequence& scheduled) {
  if (!states_.empty()) check_state(scheduled);
  std::uint64_t prefix_hash = scheduled.start_position == 0 ? root_of(scheduled.request_id)
                                                            : *slot(scheduled, scheduled.start_position - 1);
  std::int32_t position = scheduled.start_position;
  for (const TokenId token : scheduled.token_ids) {
    prefix_hash = ToyModel::extend(prefix_hash, token);
    std::uint64_t* const written = slot(scheduled, position++);
    *written = prefix_hash;
    if (!written_.insert(written).second) note(name_of(scheduled) + ": a slot has two writers in one step");
  }
  if (!windows_.empty()) write_window(scheduled);
  if (!states_.empty()) {
    states_[index_of(scheduled.state)] = *slot(scheduled, known_end(scheduled) - 1);
  }
  for (position = known_end(scheduled); position < end_position(scheduled); ++position) {
    const BlockId block = scheduled.block_table[static_cast<std::size_t>(position) / block_size_];
    has_draft_[index_of(block)] = true;
  }
}

// What the slots of the first tokens must hold.
std::span<const std::uint64_t> SimulatedRunner::slots_of(Truth& truth,
                                                         const scheduler::ScheduledSequence& scheduled,
                                                         std::size_t num_tokens) {
  while (truth.slots.size() < num_tokens) {
    const std::uint64_t before = truth.slots.empty() ? root_of(scheduled.request_id) : truth.slots.back();
    truth.slots.push_back(ToyModel::extend(before, truth.token_ids[truth.slots.size()]));
  }
  return std::span(truth.slots).first(num_tokens);
}

// Compares each slot of the first tokens with what it must hold; returns what attention makes of them.
std::uint64_t SimulatedRunner::read_slots(const scheduler::ScheduledSequence& scheduled,
                                          std::int32_t num_tokens) {
  const auto end = static_cast<std::size_t>(num_tokens);
  const auto expected = slots_of(truths_.at(scheduled.sequence_id), scheduled, end);
  if (!windows_.empty() && !read_window(scheduled, expected)) return 0;
  std::uint64_t folded = 0;
  for (std::size_t first = 0; first < end; first += block_size_) {
    const auto block = device_block(scheduled.block_table[first / block_size_]);
    const std::size_t num_slots = std::min(block_size_, end - first);
    for (std::size_t offset = 0; offset < num_slots; ++offset) {
      if (block[offset] != expected[first + offset]) {
        note(name_of(scheduled) + " reads at position " + std::to_string(first + offset) +
             " a slot that does not hold its prefix");
        return 0;
      }
      folded = ToyModel::fold(folded, block[offset]);
    }
  }
  return folded;
}

// A guess that was drawn makes the next row's prefix true, so that its slot must hold it.
void SimulatedRunner::draw(std::size_t index, const scheduler::ScheduledSequence& scheduled,
                           runner::RunnerOutput& output) {
  const bool has_draft = scheduled.num_draft_tokens > 0;
  std::int32_t num_read = known_end(scheduled);
  std::uint64_t folded = read_slots(scheduled, num_read);
  for (std::size_t i = 0; i < scheduled.samples.size(); ++i) {
    if (has_draft && i > 0) {
      const runner::SampledToken& before = output.tokens.back();
      if (before.invalid_logits || before.token_id != scheduled.draft()[i - 1]) return;
      folded = read_slots(scheduled, ++num_read);
    }
    const scheduler::SampleTarget& target = scheduled.samples[i];
    const runner::TokenMask mask = masks_.of(index, i);
    output.tokens.push_back(target.num_candidates > 0 ? rank_candidates(scheduled, target, folded, mask)
                                                      : draw_token(scheduled, target, folded, mask));
  }
}

runner::SampledToken SimulatedRunner::draw_token(const scheduler::ScheduledSequence& scheduled,
                                                 const scheduler::SampleTarget& target, std::uint64_t folded,
                                                 runner::TokenMask mask) {
  std::vector<TokenId>& known = truth_of(target.sequence_id, scheduled).token_ids;
  ToyModel::Draw drawn = model_.draw(folded, known.back(), scheduled.sampling->temperature == 0.0,
                                     target.seed, target.output_index, target.output_token_ids.size());
  if (!mask.empty())
    drawn.token = allowed_from(drawn.token, [&](TokenId token) { return allows(mask, token); });
  known.push_back(drawn.token);
  return {.sequence_id = target.sequence_id,
          .token_id = drawn.token,
          .logprob = drawn.logprob,
          .top_logprobs = ToyModel::alternatives(folded, scheduled.sampling->logprobs),
          .candidates = {},
          .invalid_logits = drawn.invalid_logits};
}

runner::SampledToken SimulatedRunner::rank_candidates(const scheduler::ScheduledSequence& scheduled,
                                                      const scheduler::SampleTarget& target,
                                                      std::uint64_t folded, runner::TokenMask mask) {
  runner::SampledToken sampled{.sequence_id = target.sequence_id, .top_logprobs = {}, .candidates = {}};
  sampled.invalid_logits = model_.has_invalid_logits(folded);
  if (sampled.invalid_logits) return sampled;
  sampled.top_logprobs = ToyModel::alternatives(folded, scheduled.sampling->logprobs);
  const auto& bias = scheduled.sampling->logit_bias;
  for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
    if (!mask.empty() && !allows(mask, token)) continue;
    const float logprob = ToyModel::beam_logprob(folded, token);
    const auto biased = bias.find(token);
    sampled.candidates.push_back(
        {token, logprob, static_cast<double>(logprob) + (biased == bias.end() ? 0.0 : biased->second)});
  }
  std::ranges::stable_sort(sampled.candidates, std::greater(), &runner::BeamCandidate::search_logprob);
  const auto num_wanted = static_cast<std::size_t>(target.num_candidates);
  if (sampled.candidates.size() > num_wanted) sampled.candidates.resize(num_wanted);
  Request& request = requests_.at(scheduled.request_id);
  const std::uint64_t prefix_hash = truths_.at(scheduled.sequence_id).slots.back();
  for (const auto& candidate : sampled.candidates)
    request.offered.insert(ToyModel::extend(prefix_hash, candidate.token_id));
  return sampled;
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

// Each made of what its slot holds; of the last row's, all slots are looked at.
void SimulatedRunner::report_hidden_states(const scheduler::ScheduledSequence& scheduled,
                                           runner::RunnerOutput& output) {
  read_slots(scheduled, end_position(scheduled));
  const auto num_prompt = static_cast<std::int32_t>(scheduled.prompt_token_ids.size());
  if (scheduled.pooling == Pooling::kLast && end_position(scheduled) < num_prompt) return;
  const std::int32_t first = scheduled.pooling == Pooling::kLast ? num_prompt - 1 : scheduled.start_position;
  runner::HiddenStates hidden{scheduled.sequence_id, scheduled.request_id, first, ToyModel::kWidth, {}};
  for (std::int32_t position = first; position < end_position(scheduled); ++position) {
    for (std::int32_t i = 0; i < ToyModel::kWidth; ++i)
      hidden.values.push_back(ToyModel::hidden_state(*slot(scheduled, position), i));
  }
  output.hidden_states.push_back(std::move(hidden));
}

// ---- memory

void SimulatedRunner::poison_unfilled(const KvSnapshot& snapshot) {
  for (std::size_t index = 0; index < snapshot.blocks.size(); ++index) {
    const BlockSnapshot& block = snapshot.blocks[index];
    const std::int32_t num_filled = block.state == BlockState::kFree ? 0 : block.filled;
    if (num_filled < num_filled_[index] || has_draft_[index]) {
      spoil(device_block(BlockId{static_cast<std::int32_t>(index)})
                .subspan(static_cast<std::size_t>(num_filled)));
    }
    num_filled_[index] = num_filled;
    has_draft_[index] = false;
  }
  if (!states_.empty()) poison_unused_states(snapshot);
  if (!windows_.empty()) poison_unused_windows(snapshot);
  if (host_in_use_.empty()) return;
  host_named_.assign(host_named_.size(), false);
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state != SequenceState::kSwapped) continue;
    for (const BlockId block : sequence.block_table) host_named_[index_of(block)] = true;
  }
  for (std::size_t index = 0; index < host_named_.size(); ++index) {
    if (host_in_use_[index] && !host_named_[index])
      spoil(host_block(BlockId{static_cast<std::int32_t>(index)}));
  }
  host_in_use_ = host_named_;
}

void SimulatedRunner::poison_unused_states(const KvSnapshot& snapshot) {
  for (std::size_t index = 0; index < states_.size(); ++index) {
    if (snapshot.states[index].state == BlockState::kFree) states_[index] = rubbish();
  }
  std::vector<bool> is_named(host_states_.size());
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kSwapped && sequence.state_slot != block::kNoBlock)
      is_named[index_of(sequence.state_slot)] = true;
  }
  for (std::size_t index = 0; index < host_states_.size(); ++index) {
    if (!is_named[index]) host_states_[index] = rubbish();
  }
}

void SimulatedRunner::poison_unused_windows(const KvSnapshot& snapshot) {
  std::vector<bool> is_named(windows_.size() / block_size_);
  for (const BlockSnapshot& block : snapshot.blocks) {
    if (block.window != WindowPart::kNone) is_named[index_of(block.window_place)] = true;
  }
  for (std::size_t place = 0; place < is_named.size(); ++place) {
    if (!is_named[place]) spoil(window_block(BlockId{static_cast<std::int32_t>(place)}));
  }
}

std::span<std::uint64_t> SimulatedRunner::window_block(BlockId place) {
  return std::span(windows_).subspan(index_of(place) * block_size_, block_size_);
}

std::span<std::uint64_t> SimulatedRunner::device_block(BlockId block) {
  return std::span(slots_).subspan(index_of(block) * block_size_, block_size_);
}

std::span<std::uint64_t> SimulatedRunner::host_block(BlockId block) {
  return std::span(host_slots_).subspan(index_of(block) * block_size_, block_size_);
}

std::uint64_t* SimulatedRunner::slot(const scheduler::ScheduledSequence& scheduled, std::int32_t position) {
  const auto index = static_cast<std::size_t>(position);
  return &device_block(scheduled.block_table[index / block_size_])[index % block_size_];
}

std::uint64_t SimulatedRunner::root_of(RequestId request_id) const {
  return ToyModel::root_of(requests_.at(request_id).asked->salt);
}

void SimulatedRunner::note(std::string problem) {
  if (!problem_) problem_ = std::move(problem);
}

}  // namespace octavo::simulation
