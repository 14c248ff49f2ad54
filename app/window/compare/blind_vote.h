// A vote about the answers of a batch by somebody who does not know which settings gave which: the order of
// the answers is drawn anew for each prompt, from a seed that is drawn when the vote begins.
//
// Pure but for its own state. Prompts without a text from every one of the settings are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ui/batch_state.h"

namespace octavo::app {

// The setting at each place of the n-th ballot. Every order is equally likely (Fisher and Yates' shuffle).
std::vector<std::size_t> ballot_order(std::uint64_t seed, std::size_t ballot, std::size_t num_settings);

// In which a share of `num_hits` of `num_trials` lies, 95 % confidence: Wilson's score interval (Wilson
// 1927), which holds for few trials and for shares near 0 and 1, where the normal interval does not.
struct Interval {
  double low = 0, high = 1;
};
Interval wilson_interval(std::int32_t num_hits, std::int32_t num_trials);

class BlindVote {
 public:
  BlindVote(const ui::BatchState& batch, std::uint64_t seed);

  std::size_t num_ballots() const { return ballots_.size(); }
  bool over() const { return num_cast_ == ballots_.size(); }
  // The ballot whose turn it is. REQUIRES: !over()
  ui::VoteState shown(const ui::BatchState& batch) const;
  // For the answer at this place; none: a tie. REQUIRES: !over(); a place of the ballot
  void cast(std::optional<std::size_t> place);
  // Takes the newest back; no effect before the first.
  void undo();
  // Of what was cast so far.
  ui::VoteResult result() const;

 private:
  std::uint64_t seed_;
  std::size_t num_settings_;
  std::int32_t num_left_out_ = 0;
  std::vector<ui::VotedBallot> ballots_;
  std::size_t num_cast_ = 0;
};

}  // namespace octavo::app
