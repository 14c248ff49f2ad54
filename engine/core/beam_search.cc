#include "engine/core/beam_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"

namespace octavo {

BeamSearch::BeamSearch(const SamplingParams& sampling, OutputProcessor fresh, SequenceId first_seat)
    : sampling_(&sampling), fresh_(std::move(fresh)) {
  beams_.push_back({.seat = first_seat, .output = fresh_});
}

void BeamSearch::report(const runner::SampledToken& continuations) {
  const auto beam = std::ranges::find(beams_, continuations.sequence_id, &Beam::seat);
  OCTAVO_CHECK(beam != beams_.end(), "sequence %llu carries no beam",
               static_cast<unsigned long long>(continuations.sequence_id.value));
  beam->reported = continuations;
}

bool BeamSearch::all_reported() const {
  return std::ranges::all_of(beams_, [](const Beam& beam) { return beam.reported.has_value(); });
}

double BeamSearch::score_of(double logprob, std::int32_t num_tokens) const {
  return logprob / std::pow(static_cast<double>(num_tokens), sampling_->length_penalty);
}

// ---- a step

BeamSearch::Advance BeamSearch::advance() {
  OCTAVO_CHECK(all_reported() && !beams_.empty(), "%zu beams, not all have reported", beams_.size());
  Advance advance;
  advance.step.first_node = static_cast<std::int32_t>(nodes_.size());
  ++num_generated_;
  std::vector<Beam> next;
  std::size_t rank = 0;
  for (const Candidate& candidate : ranked_candidates()) {
    if (next.size() == width()) break;
    const Beam& parent = beams_[candidate.rank];
    OutputProcessor output = parent.output;
    auto end = output.append(candidate.token->token_id).end;
    const bool is_among_best = rank++ < width();
    if (end && !is_among_best) continue;
    const std::int32_t node = add_node(candidate, advance.step);
    if (end) {
      advance.step.ended.push_back(node);
      add_ended(ended_, {node, score_of(candidate.search_logprob, num_generated_), *std::move(end)}, width());
      continue;
    }
    advance.step.live.push_back(node);
    advance.continuations.push_back({parent.seat, candidate.token->token_id});
    next.push_back({.node = node, .search_logprob = candidate.search_logprob, .output = std::move(output)});
  }
  beams_ = std::move(next);
  advance.is_over = is_over();
  return advance;
}

std::vector<BeamSearch::Candidate> BeamSearch::ranked_candidates() const {
  std::vector<Candidate> candidates;
  for (std::size_t rank = 0; rank < beams_.size(); ++rank) {
    for (const runner::BeamCandidate& token : beams_[rank].reported->candidates) {
      candidates.push_back({rank, &token, beams_[rank].search_logprob + token.search_logprob});
    }
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.search_logprob != b.search_logprob) return a.search_logprob > b.search_logprob;
    return a.rank != b.rank ? a.rank < b.rank : a.token->token_id < b.token->token_id;
  });
  return candidates;
}

std::int32_t BeamSearch::add_node(const Candidate& candidate, BeamStep& step) {
  const Beam& parent = beams_[candidate.rank];
  const double before =
      parent.node < 0 ? 0.0 : nodes_[static_cast<std::size_t>(parent.node)].shown.cumulative_logprob;
  const float logprob = candidate.token->logprob;
  Node& node = nodes_.emplace_back();
  node.shown = {.parent = parent.node,
                .token_id = candidate.token->token_id,
                .logprob = logprob,
                .cumulative_logprob = before + static_cast<double>(logprob)};
  if (sampling_->num_top_logprobs() > 0) node.top_logprobs = parent.reported->top_logprobs;
  step.nodes.push_back(node.shown);
  return static_cast<std::int32_t>(nodes_.size()) - 1;
}

void BeamSearch::add_ended(std::vector<Ended>& ended, Ended candidate, std::size_t width) {
  const auto place =
      std::ranges::upper_bound(ended, candidate.search_score, std::greater(), &Ended::search_score);
  ended.insert(place, std::move(candidate));
  if (ended.size() > width) ended.pop_back();
}

bool BeamSearch::is_over() const {
  if (beams_.empty()) return true;
  if (ended_.size() < width()) return false;
  if (sampling_->early_stopping) return true;
  return score_of(beams_.front().search_logprob, num_generated_) <= ended_.back().search_score;
}

void BeamSearch::take_seats(std::span<const SequenceId> seats) {
  OCTAVO_CHECK(seats.size() == beams_.size(), "%zu seats for %zu beams", seats.size(), beams_.size());
  for (std::size_t i = 0; i < seats.size(); ++i) beams_[i].seat = seats[i];
}

// ---- the end

std::vector<BeamSearch::Hypothesis> BeamSearch::best(FinishReason of_those_under_way) const {
  std::vector<Ended> ended = ended_;
  if (!is_over()) {
    for (const Beam& beam : beams_) {
      if (beam.node < 0) continue;
      add_ended(ended, {beam.node, score_of(beam.search_logprob, num_generated_), {of_those_under_way, {}}},
                width());
    }
  }
  std::vector<Hypothesis> best;
  for (const Ended& one : ended) best.push_back(hypothesis_of(one));
  std::ranges::stable_sort(best, std::greater(), &Hypothesis::score);
  return best;
}

BeamSearch::Hypothesis BeamSearch::hypothesis_of(const Ended& ended) const {
  Hypothesis hypothesis{.end = ended.end};
  for (std::int32_t id = ended.node; id >= 0; id = nodes_[static_cast<std::size_t>(id)].shown.parent) {
    const Node& node = nodes_[static_cast<std::size_t>(id)];
    hypothesis.token_ids.push_back(node.shown.token_id);
    hypothesis.logprobs.push_back(node.shown.logprob);
    if (sampling_->num_top_logprobs() > 0) hypothesis.top_logprobs.push_back(node.top_logprobs);
  }
  std::ranges::reverse(hypothesis.token_ids);
  std::ranges::reverse(hypothesis.logprobs);
  std::ranges::reverse(hypothesis.top_logprobs);
  hypothesis.score = score_of(nodes_[static_cast<std::size_t>(ended.node)].shown.cumulative_logprob,
                              static_cast<std::int32_t>(hypothesis.token_ids.size()));
  OutputProcessor output = fresh_;
  for (const TokenId token_id : hypothesis.token_ids) hypothesis.text += output.append(token_id).text;
  if (!output.ended()) hypothesis.text += output.end_now();
  return hypothesis;
}

}  // namespace octavo
