#include "engine/runner/grammar_masks.h"

#include <algorithm>
#include <iterator>

namespace octavo::runner {
namespace {

std::size_t num_alike(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

GrammarMasks::GrammarMasks(std::int32_t vocabulary_size)
    : num_words_(num_mask_words(static_cast<std::size_t>(vocabulary_size))) {}

void GrammarMasks::compute(const scheduler::SchedulerOutput& step, kernels::Backend* backend) {
  ++step_;
  known_.clear();
  works_.clear();
  mask_indices_.resize(step.sequences.size());
  for (std::size_t i = 0; i < step.sequences.size(); ++i) {
    const scheduler::ScheduledSequence& sequence = step.sequences[i];
    mask_indices_[i].clear();
    if (!sequence.sampling->grammar) continue;
    for (const scheduler::SampleTarget& target : sequence.samples)
      mask_indices_[i].emplace_back(mask_index_of(sequence.sampling->grammar, target));
  }
  masks_.resize(known_.size() * num_words_);
  const auto fill_of = [this](std::int64_t index) { fill(works_[static_cast<std::size_t>(index)]); };
  if (backend != nullptr)
    backend->for_each_on_host(std::ssize(works_), fill_of);
  else
    for (std::int64_t index = 0; index < std::ssize(works_); ++index) fill_of(index);
  forget_idle();
}

TokenMask GrammarMasks::of(std::size_t sequence_index, std::size_t sample_index) const {
  const auto& of_sequence = mask_indices_[sequence_index];
  if (of_sequence.empty()) return {};
  return TokenMask(masks_).subspan(*of_sequence[sample_index] * num_words_, num_words_);
}

void GrammarMasks::forget_idle() {
  std::erase_if(followers_, [&](const auto& entry) { return step_ - entry.second.last_step > kKeptSteps; });
}

std::size_t GrammarMasks::mask_index_of(const std::shared_ptr<const TokenGrammar>& grammar,
                                        const scheduler::SampleTarget& target) {
  const auto is_same = [&](const Known& known) {
    return known.grammar == grammar.get() && std::ranges::equal(known.token_ids, target.output_token_ids);
  };
  const auto found = std::ranges::find_if(known_, is_same);
  if (found != known_.end()) return static_cast<std::size_t>(found - known_.begin());
  known_.push_back({grammar.get(), target.output_token_ids});
  Follower& follower = nearest(grammar, target);
  follower.last_step = step_;
  plan(follower, known_.size() - 1);
  return known_.size() - 1;
}

void GrammarMasks::plan(Follower& follower, std::size_t mask) {
  const auto is_its = [&](const Work& work) { return work.follower == &follower; };
  auto work = std::ranges::find_if(works_, is_its);
  if (work == works_.end()) work = works_.insert(works_.end(), {.follower = &follower, .masks = {}});
  work->masks.push_back(mask);
}

// Beside the work of other followers.
void GrammarMasks::fill(const Work& work) {
  for (const std::size_t index : work.masks) {
    const std::span<std::uint32_t> mask = std::span(masks_).subspan(index * num_words_, num_words_);
    if (!follow(*work.follower, known_[index].token_ids) || !work.follower->matcher->fill_mask(mask))
      std::ranges::fill(mask, 0u);
  }
}

// False: the grammar does not allow these tokens, of which some are guesses then.
bool GrammarMasks::follow(Follower& follower, std::span<const TokenId> wanted) {
  std::vector<TokenId>& accepted = follower.token_ids;
  const std::size_t num_kept = num_alike(accepted, wanted);
  if (num_kept < accepted.size()) {
    follower.matcher->roll_back(static_cast<std::int32_t>(accepted.size() - num_kept));
    accepted.resize(num_kept);
  }
  for (const TokenId token_id : wanted.subspan(num_kept)) {
    if (!follower.matcher->accept(token_id)) return false;
    accepted.push_back(token_id);
  }
  return true;
}

// The target's own, which is that of another sequence if that has more of the target's tokens.
GrammarMasks::Follower& GrammarMasks::nearest(const std::shared_ptr<const TokenGrammar>& grammar,
                                              const scheduler::SampleTarget& target) {
  const auto num_common = [&](const Follower& follower) {
    return follower.grammar == grammar ? num_alike(follower.token_ids, target.output_token_ids) : 0;
  };
  Follower& own = followers_[target.sequence_id];
  const bool follows = own.grammar == grammar;
  const std::size_t num_own = num_common(own);
  if (follows && num_own == own.token_ids.size()) return own;
  const Follower* best = follows ? &own : nullptr;
  std::size_t most = num_own;
  for (const auto& [sequence_id, follower] : followers_) {
    if (follower.grammar != grammar || num_common(follower) <= most) continue;
    most = num_common(follower);
    best = &follower;
  }
  if (best == &own) return own;
  Follower copy{.grammar = grammar, .matcher = {}, .token_ids = {}};
  copy.matcher = best == nullptr ? grammar->start() : best->matcher->fork();
  if (best != nullptr) copy.token_ids = best->token_ids;
  own = std::move(copy);
  return own;
}

}  // namespace octavo::runner
