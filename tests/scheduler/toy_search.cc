#include "tests/scheduler/toy_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "engine/base/hash.h"

namespace octavo::scheduler {

ToySearch::ToySearch(std::int32_t width, std::uint64_t seed, SequenceId first_seat)
    : width_(width), seed_(seed), beams_{{.seat = first_seat, .tokens = {}}} {}

void ToySearch::report(SequenceId seat, std::vector<Continuation> candidates) {
  const auto beam = std::ranges::find(beams_, seat, &Beam::seat);
  ASSERT_NE(beam, beams_.end()) << "sequence " << seat.value << " carries no beam";
  beam->reported = std::move(candidates);
}

bool ToySearch::all_reported() const {
  return std::ranges::all_of(beams_, [](const Beam& beam) { return beam.reported.has_value(); });
}

std::size_t ToySearch::num_kept() const {
  const std::uint64_t hash = hash_combine(seed_, static_cast<std::uint64_t>(num_steps_));
  const auto width = static_cast<std::uint64_t>(width_);
  return hash % 4 == 0 ? 1 + (hash >> 8) % width : width;
}

std::vector<BeamContinuation> ToySearch::advance() {
  std::vector<Beam> next;
  for (const Beam& beam : beams_) {
    for (const Continuation& candidate : *beam.reported) {
      next.push_back({beam.seat, beam.tokens, beam.logprob + candidate.logprob});
      next.back().tokens.push_back(candidate.token_id);
    }
  }
  std::ranges::stable_sort(next, std::ranges::greater(), &Beam::logprob);
  next.resize(std::min(next.size(), num_kept()));
  beams_ = std::move(next);
  ++num_steps_;
  std::vector<BeamContinuation> chosen;
  for (const Beam& beam : beams_) chosen.push_back({.parent = beam.seat, .token_id = beam.tokens.back()});
  return chosen;
}

void ToySearch::take_seats(std::span<const SequenceId> seats) {
  ASSERT_EQ(seats.size(), beams_.size());
  for (std::size_t i = 0; i < seats.size(); ++i) beams_[i].seat = seats[i];
}

std::vector<Tokens> ToySearch::outputs() const {
  std::vector<Tokens> outputs;
  for (const Beam& beam : beams_) outputs.push_back(beam.tokens);
  return outputs;
}

}  // namespace octavo::scheduler
