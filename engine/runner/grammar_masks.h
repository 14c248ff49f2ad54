// What the grammars of a step's requests allow, as masks for the sampler. Each sequence has a matcher, which
// follows the sequence's tokens: it accepts what is new, takes back what is not there any more, and where a
// sequence goes on from the text of another (samples, beams, a seat that carries another beam) it starts as a
// copy of that one's. So a mask depends on the grammar and the tokens before the target alone, and forks,
// preemption and drafts need no word of their own; who schedules them knows nothing of grammars.
//
// Engine thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/grammar/token_grammar.h"
#include "engine/scheduler/scheduler_output.h"
#include "kernels/backend.h"

namespace octavo::runner {

// Bits as TokenMatcher::fill_mask() sets them; empty: everything may come.
using TokenMask = std::span<const std::uint32_t>;

class GrammarMasks {
 public:
  explicit GrammarMasks(std::int32_t vocabulary_size);

  // Of all targets of the step, drafts included, as far as guesses can come: behind one that cannot, nothing
  // may. Takes time for each target, by the backend's threads on the host where one is given, and none
  // without grammars.
  void compute(const scheduler::SchedulerOutput& step, kernels::Backend* backend = nullptr);

  // Of the sample of this index of the sequence of this index of the step.
  TokenMask of(std::size_t sequence_index, std::size_t sample_index) const;

 private:
  // Steps for which a sequence that gets no target keeps its matcher. Behind them its tokens are accepted
  // anew.
  static constexpr std::int64_t kKeptSteps = 64;

  struct Follower {
    std::shared_ptr<const TokenGrammar> grammar;
    std::unique_ptr<TokenMatcher> matcher;
    std::vector<TokenId> token_ids;  // that the matcher has accepted
    std::int64_t last_step = 0;
  };

  // What one matcher has to do in a step: masks behind ever more tokens, one after the other.
  struct Work {
    Follower* follower = nullptr;
    std::vector<std::size_t> masks;  // ascending; of `known_`
  };

  void forget_idle();
  std::size_t mask_index_of(const std::shared_ptr<const TokenGrammar>& grammar,
                            const scheduler::SampleTarget& target);
  void plan(Follower& follower, std::size_t mask);
  void fill(const Work& work);
  static bool follow(Follower& follower, std::span<const TokenId> wanted);
  Follower& nearest(const std::shared_ptr<const TokenGrammar>& grammar,
                    const scheduler::SampleTarget& target);

  const std::size_t num_words_;
  std::map<SequenceId, Follower> followers_;
  std::int64_t step_ = 0;
  // Of one step. Targets with the same grammar and tokens share a mask.
  struct Known {
    const TokenGrammar* grammar = nullptr;
    std::span<const TokenId> token_ids;
  };
  std::vector<std::uint32_t> masks_;                                   // one after the other
  std::vector<Known> known_;                                           // of each mask
  std::vector<Work> works_;                                            // of different followers
  std::vector<std::vector<std::optional<std::size_t>>> mask_indices_;  // by sequence and sample
};

}  // namespace octavo::runner
