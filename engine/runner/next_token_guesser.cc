#include "engine/runner/next_token_guesser.h"

#include <algorithm>
#include <numeric>

#include "engine/base/check.h"

namespace octavo::runner {
namespace {

// Rows of a sequence as another pass sees them: neither drawn from nor guessed, and without a state.
scheduler::ScheduledSequence rows_of(const scheduler::ScheduledSequence& sequence,
                                     std::int32_t first_position, std::span<const TokenId> token_ids) {
  scheduler::ScheduledSequence rows;
  rows.sequence_id = sequence.sequence_id;
  rows.request_id = sequence.request_id;
  rows.start_position = first_position;
  rows.token_ids = token_ids;
  rows.block_table = sequence.block_table;
  return rows;
}

}  // namespace

std::vector<SequenceId> NextTokenGuesser::follow(const scheduler::SchedulerOutput& step,
                                                 std::span<const scheduler::CommittedToken> tokens,
                                                 std::int32_t block_size, model::Transformer& transformer,
                                                 kernels::KvCache& kv) {
  predictions_.clear();
  pass_.sequences.clear();
  rows_.clear();
  next_token_ids_.clear();
  std::int32_t first_row = 0;
  for (const scheduler::ScheduledSequence& sequence : step.sequences) {
    add_rows(sequence, tokens, first_row);
    first_row += static_cast<std::int32_t>(sequence.token_ids.size());
  }
  if (rows_.empty()) return {};
  input_.assemble(pass_, block_size);
  transformer.predict(input_.batch(), rows_, next_token_ids_, kv);
  std::vector<SequenceId> guessable;
  for (const Prediction& prediction : predictions_) guessable.push_back(prediction.sequence_id);
  return guessable;
}

void NextTokenGuesser::add_rows(const scheduler::ScheduledSequence& sequence,
                                std::span<const scheduler::CommittedToken> tokens, std::int32_t first_row) {
  const std::size_t num_before = next_token_ids_.size();
  const auto first = static_cast<std::size_t>(sequence.start_position);
  const std::size_t num_known_rows =
      sequence.token_ids.size() - static_cast<std::size_t>(sequence.num_draft_tokens);
  for (std::size_t i = 1; i < num_known_rows; ++i)
    next_token_ids_.push_back(sequence.known_token_ids[first + i]);
  const bool reaches_end = first + num_known_rows == sequence.known_token_ids.size();
  if (!reaches_end) next_token_ids_.push_back(sequence.known_token_ids[first + num_known_rows]);
  bool was_drawn = false;
  for (const scheduler::CommittedToken& token : tokens) {
    if (token.sequence_id != sequence.sequence_id) continue;
    next_token_ids_.push_back(token.token_id);
    was_drawn = true;
  }
  if (reaches_end && !was_drawn) next_token_ids_.push_back(sequence.token_ids[num_known_rows - 1]);
  const std::size_t num_rows = next_token_ids_.size() - num_before;
  for (std::size_t i = 0; i < num_rows; ++i) rows_.push_back(first_row + static_cast<std::int32_t>(i));
  pass_.sequences.push_back(rows_of(sequence, sequence.start_position, sequence.token_ids.first(num_rows)));
  if (was_drawn)
    predictions_.push_back({sequence.sequence_id, static_cast<std::int32_t>(next_token_ids_.size()) - 1});
}

std::int32_t NextTokenGuesser::row_of(SequenceId sequence_id) const {
  const auto found = std::ranges::find(predictions_, sequence_id, &Prediction::sequence_id);
  OCTAVO_CHECK(found != predictions_.end(), "nothing is predicted of sequence %llu",
               static_cast<unsigned long long>(sequence_id.value));
  return found->row;
}

Result<void> NextTokenGuesser::guess(const scheduler::SchedulerOutput& step, std::int32_t block_size,
                                     model::Transformer& transformer, kernels::KvCache& kv,
                                     const BestTokens& best_tokens) {
  std::vector<const scheduler::ScheduledSequence*> guessing;
  rows_.clear();
  for (const scheduler::ScheduledSequence& sequence : step.sequences) {
    if (sequence.to_guess.empty()) continue;
    guessing.push_back(&sequence);
    rows_.push_back(row_of(sequence.sequence_id));
  }
  for (std::size_t distance = 0; !guessing.empty(); ++distance) {
    best_.resize(guessing.size());
    OCTAVO_TRY_VOID(best_tokens(rows_, best_));
    for (std::size_t i = 0; i < guessing.size(); ++i) guessing[i]->to_guess[distance] = best_[i];
    // Who guesses further goes on behind its guess.
    std::vector<const scheduler::ScheduledSequence*> further;
    std::vector<std::int32_t> from;
    pass_.sequences.clear();
    next_token_ids_.clear();
    for (std::size_t i = 0; i < guessing.size(); ++i) {
      const scheduler::ScheduledSequence& sequence = *guessing[i];
      if (sequence.to_guess.size() <= distance + 1) continue;
      further.push_back(&sequence);
      from.push_back(rows_[i]);
      next_token_ids_.push_back(best_[i]);
      // The row stands where the token does behind which it guesses.
      pass_.sequences.push_back(rows_of(sequence,
                                        sequence.start_position + static_cast<std::int32_t>(distance),
                                        sequence.token_ids.subspan(distance, 1)));
    }
    guessing = std::move(further);
    if (guessing.empty()) break;
    input_.assemble(pass_, block_size);
    transformer.predict_further(input_.batch(), from, next_token_ids_, kv);
    rows_.resize(guessing.size());
    std::iota(rows_.begin(), rows_.end(), 0);
  }
  return {};
}

}  // namespace octavo::runner
