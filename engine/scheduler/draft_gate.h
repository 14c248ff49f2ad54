// Whether guessing ahead pays for a sequence, and how far: from how its drafts fared, and from what a row
// costs beside the others of the step. A value; no clock, and no effect on tokens. Engine thread.
//
// A step of m rows costs about 1 + kRowCost * (m - 1) steps of one row. A row more is worth its cost when the
// chance that its token is accepted exceeds the cost of a row over that of a token: kRowCost * m / (1 +
// kRowCost * (m - 1)). A guess counts only if all guesses before it were right, so that with an acceptance a
// the i-th has the chance a^i.
#pragma once

#include <cstdint>

namespace octavo::scheduler {

// Measured on the default model with one thread: a row more in a step of up to 8 costs 0.17 of a step of one
// row after 512 tokens, 0.24 after 2,048; from 8 to 9 rows it costs 0.5.
inline constexpr double kRowCost = 0.25;
inline constexpr std::int32_t kMostRowsWithDrafts = 8;

// What a layer that predicts one token further was made for gets worse with each that it predicts from its
// own guess.
inline constexpr std::int32_t kUsualPredictions = 3;

// Drafts of repeated texts are accepted to 0.7, of free chat to 0.6. So a new sequence drafts two tokens at
// once; a sequence that fails nine times in a row stops, and then tries one row in 17 steps: below 2 % of its
// time.
inline constexpr double kFirstAcceptance = 0.6;
inline constexpr double kWeightOfNewest = 0.1;
inline constexpr std::int32_t kTokensUntilRetry = 16;

class DraftGate {
 public:
  // How many tokens to draft for a sequence of `num_tokens` tokens, in a step that has `num_rows` rows
  // without drafts. REQUIRES: num_rows >= 1
  std::int32_t most_drafts(std::int32_t num_rows, std::int32_t num_tokens) const;

  // What became of a draft of a sequence that has `num_tokens` tokens now. REQUIRES: num_drafted >= 1
  void note(std::int32_t num_drafted, std::int32_t num_accepted, std::int32_t num_tokens);

 private:
  double acceptance_ = kFirstAcceptance;  // moving average over the guesses that were put to the test
  std::int32_t resumes_at_ = 0;           // tokens
};

}  // namespace octavo::scheduler
