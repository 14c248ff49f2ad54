// A caller's beam search over the toy model, reduced to what matters to a scheduler: which beams go on.
// Now and then it lets some die, so that seats empty and fill again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/scheduler/toy_model.h"

namespace octavo::scheduler {

class ToySearch {
 public:
  ToySearch(std::int32_t width, std::uint64_t seed, SequenceId first_seat);

  std::int32_t num_candidates() const { return 2 * width_; }
  void report(SequenceId seat, std::vector<Continuation> candidates);
  bool all_reported() const;
  std::vector<BeamContinuation> advance();  // best first
  void take_seats(std::span<const SequenceId> seats);

  std::int32_t num_steps() const { return num_steps_; }
  std::vector<Tokens> outputs() const;  // of the beams under way, best first

 private:
  struct Beam {
    SequenceId seat;
    Tokens tokens;
    double logprob = 0.0;
    std::optional<std::vector<Continuation>> reported = {};
  };

  std::size_t num_kept() const;

  std::int32_t width_;
  std::uint64_t seed_;
  std::int32_t num_steps_ = 0;
  std::vector<Beam> beams_;  // best first
};

}  // namespace octavo::scheduler
