#include "app/chat/repetition.h"

#include <algorithm>
#include <vector>

namespace octavo::app {

void RepetitionDetector::take(std::span<const TokenId> token_ids) {
  for (const TokenId token_id : token_ids) take_one(token_id);
}

void RepetitionDetector::take_one(TokenId token_id) {
  const std::size_t longest = std::min(count_, kLongestRun);
  for (std::size_t run = 1; run <= longest; ++run)
    num_same_[run] = before_end(run) == token_id ? num_same_[run] + 1 : 0;
  newest_[count_ % kLongestRun] = token_id;
  ++count_;
  repeats_ = false;
  for (std::size_t run = 1; run <= longest && !repeats_; ++run) repeats_ = is_circle(run);
}

// (Of a run that is made of a shorter one the shorter says the same.)
bool RepetitionDetector::is_circle(std::size_t run) const {
  const std::size_t covered = num_same_[run] + run;
  if (covered < std::max(kFewestTimes * run, kFewestTokens)) return false;
  return covered >= kFewestTokensOfFew || num_different(run) > kFewDifferent;
}

std::size_t RepetitionDetector::num_different(std::size_t run) const {
  std::vector<TokenId> ids;
  for (std::size_t i = 1; i <= run; ++i) ids.push_back(before_end(i));
  std::sort(ids.begin(), ids.end());
  return static_cast<std::size_t>(std::unique(ids.begin(), ids.end()) - ids.begin());
}

}  // namespace octavo::app
