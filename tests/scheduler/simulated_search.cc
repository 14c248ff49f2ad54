#include "tests/scheduler/simulated_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace octavo::scheduler {

SimulatedSearch::SimulatedSearch(std::int32_t width, std::uint64_t seed, SequenceId first_seat)
    : width_(width), seed_(seed), beams_{{.seat = first_seat, .tokens = {}}} {}

void SimulatedSearch::report(SequenceId seat, std::vector<Continuation> candidates) {
  const auto beam = std::ranges::find(beams_, seat, &Beam::seat);
  ASSERT_NE(beam, beams_.end()) << "sequence " << seat.value << " carries no beam";
  beam->reported = std::move(candidates);
}

bool SimulatedSearch::all_reported() const {
  return std::ranges::all_of(beams_, [](const Beam& beam) { return beam.reported.has_value(); });
}

std::size_t SimulatedSearch::num_kept() const {
  const std::uint64_t hash = hash_combine(seed_, static_cast<std::uint64_t>(num_steps_));
  const auto width = static_cast<std::uint64_t>(width_);
  return hash % 4 == 0 ? 1 + (hash >> 8) % width : width;
}

std::vector<BeamContinuation> SimulatedSearch::advance() {
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

void SimulatedSearch::take_seats(std::span<const SequenceId> seats) {
  ASSERT_EQ(seats.size(), beams_.size());
  for (std::size_t i = 0; i < seats.size(); ++i) beams_[i].seat = seats[i];
}

std::vector<Tokens> SimulatedSearch::outputs() const {
  std::vector<Tokens> outputs;
  for (const Beam& beam : beams_) outputs.push_back(beam.tokens);
  return outputs;
}

std::vector<Tokens> SimulatedSearch::expected(const Tokens& prompt, std::int32_t width, std::uint64_t seed,
                                              std::int32_t num_steps) {
  SimulatedSearch search(width, seed, SequenceId{0});
  while (search.num_steps_ < num_steps) {
    for (std::size_t i = 0; i < search.beams_.size(); ++i) {
      Tokens all = prompt;
      all.insert(all.end(), search.beams_[i].tokens.begin(), search.beams_[i].tokens.end());
      search.beams_[i].seat = SequenceId{i};
      search.beams_[i].reported = continuations(hash_of(all), search.num_candidates());
    }
    search.advance();
  }
  return search.outputs();
}

}  // namespace octavo::scheduler
