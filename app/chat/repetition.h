// Notices that an answer goes round in circles: its newest tokens are one run of tokens again and again.
//
// A run counts when it stands four times behind each other and all together have kFewestTokens or more. A run
// of few different tokens must cover more: rows of zeros, empty cells and laughter are no circles yet. What
// comes back with something else between, as a refrain does, is none. Time plays no part: the same tokens are
// noticed at the same token.
//
// A value type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/ids.h"

namespace octavo::app {

class RepetitionDetector {
 public:
  static constexpr std::size_t kLongestRun = 512;  // tokens
  static constexpr std::size_t kFewestTimes = 4;
  static constexpr std::size_t kFewestTokens = 60;
  static constexpr std::size_t kFewDifferent = 9;  // tokens in a run
  static constexpr std::size_t kFewestTokensOfFew = 240;

  // The tokens that followed.
  void take(std::span<const TokenId> token_ids);
  // Whether what was taken ends in a circle.
  bool repeats() const { return repeats_; }

 private:
  void take_one(TokenId token_id);
  bool is_circle(std::size_t run) const;
  std::size_t num_different(std::size_t run) const;
  TokenId before_end(std::size_t distance) const { return newest_[(count_ - distance) % kLongestRun]; }

  std::array<TokenId, kLongestRun> newest_ = {};  // a ring
  // For each run length: how many of the newest tokens are those that stood so far before them.
  std::array<std::uint32_t, kLongestRun + 1> num_same_ = {};
  std::size_t count_ = 0;
  bool repeats_ = false;
};

}  // namespace octavo::app
