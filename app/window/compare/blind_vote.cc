#include "app/window/compare/blind_vote.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/rng.h"

namespace octavo::app {
namespace {

constexpr double kNormalQuantile = 1.959963984540054;  // of 97.5 %

bool has_answers(const ui::BatchRow& row) {
  return std::all_of(row.cells.begin(), row.cells.end(), [](const ui::BatchCell& cell) {
    return cell.phase == ui::ColumnPhase::kFinished && !cell.text.empty();
  });
}

}  // namespace

std::vector<std::size_t> ballot_order(std::uint64_t seed, std::size_t ballot, std::size_t num_settings) {
  std::vector<std::size_t> order(num_settings);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t left = num_settings; left > 1; --left) {
    const double drawn = uniform_at(seed, static_cast<std::uint32_t>(ballot), left);
    std::swap(order[left - 1], order[static_cast<std::size_t>(drawn * static_cast<double>(left))]);
  }
  return order;
}

Interval wilson_interval(std::int32_t num_hits, std::int32_t num_trials) {
  if (num_trials <= 0) return {};
  const double n = num_trials, p = num_hits / n, z2 = kNormalQuantile * kNormalQuantile;
  const double middle = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormalQuantile * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

BlindVote::BlindVote(const ui::BatchState& batch, std::uint64_t seed)
    : seed_(seed), num_settings_(batch.settings.size()) {
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    if (has_answers(batch.rows[row])) {
      ballots_.push_back({.row = row, .order = ballot_order(seed, ballots_.size(), num_settings_)});
    } else {
      ++num_left_out_;
    }
  }
}

ui::VoteState BlindVote::shown(const ui::BatchState& batch) const {
  OCTAVO_CHECK(!over(), "the vote is over");
  const ui::VotedBallot& ballot = ballots_[num_cast_];
  const ui::BatchRow& row = batch.rows[ballot.row];
  ui::VoteState state{
      .ballot = {.prompt = row.prompt, .answers = {}}, .index = num_cast_, .count = ballots_.size()};
  for (const std::size_t setting : ballot.order) state.ballot.answers.push_back(row.cells[setting].text);
  return state;
}

void BlindVote::cast(std::optional<std::size_t> place) {
  OCTAVO_CHECK(!over() && (!place || *place < num_settings_), "a vote for no answer");
  ui::VotedBallot& ballot = ballots_[num_cast_++];
  ballot.winner = place ? std::optional(ballot.order[*place]) : std::nullopt;
}

void BlindVote::undo() {
  if (num_cast_ > 0) --num_cast_;
}

ui::VoteResult BlindVote::result() const {
  ui::VoteResult result{
      .scores = std::vector<ui::VoteScore>(num_settings_),
      .ballots = {ballots_.begin(), ballots_.begin() + static_cast<std::ptrdiff_t>(num_cast_)},
      .num_left_out = num_left_out_,
      .seed = seed_};
  for (const ui::VotedBallot& ballot : result.ballots) {
    for (std::size_t setting = 0; setting < num_settings_; ++setting) {
      ui::VoteScore& score = result.scores[setting];
      ++(!ballot.winner ? score.num_ties : *ballot.winner == setting ? score.num_wins : score.num_losses);
    }
  }
  const auto num_ballots = static_cast<std::int32_t>(result.ballots.size());
  for (ui::VoteScore& score : result.scores) {
    const Interval interval = wilson_interval(score.num_wins, num_ballots);
    score.share = num_ballots > 0 ? static_cast<double>(score.num_wins) / num_ballots : 0;
    score.low = interval.low;
    score.high = interval.high;
  }
  return result;
}

}  // namespace octavo::app
