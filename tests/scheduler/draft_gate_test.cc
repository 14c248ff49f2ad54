#include "engine/scheduler/draft_gate.h"

#include <gtest/gtest.h>

namespace octavo::scheduler {
namespace {

// The number of tokens of a sequence whose drafts all fare alike, step by step; returns how many rows of
// drafts it had.
std::int32_t rows_drafted(double share_accepted, std::int32_t num_rows, std::int32_t num_tokens) {
  DraftGate gate;
  std::int32_t num_drafted = 0;
  double owed = 0.0;
  for (std::int32_t length = 1; length < num_tokens;) {
    const std::int32_t draft = gate.most_drafts(num_rows, length);
    std::int32_t num_accepted = 0;
    for (owed += share_accepted; num_accepted < draft && owed >= 1.0; owed += share_accepted) {
      ++num_accepted;
      owed -= 1.0;
    }
    num_drafted += draft;
    length += 1 + num_accepted;
    if (draft > 0) gate.note(draft, num_accepted, length);
  }
  return num_drafted;
}

TEST(DraftGate, BeginsWithTwoTokens) { EXPECT_EQ(DraftGate().most_drafts(1, 100), 2); }

TEST(DraftGate, DraftsFurtherAsDraftsAreAccepted) {
  DraftGate gate;
  std::int32_t before = gate.most_drafts(1, 100);
  for (int step = 0; step < 40; ++step) {
    gate.note(before, before, 100);
    const std::int32_t after = gate.most_drafts(1, 100);
    EXPECT_GE(after, before);
    before = after;
  }
  EXPECT_EQ(before, kMostRowsWithDrafts - 1);
}

TEST(DraftGate, StopsWhenDraftsAreRefusedAndTriesAgainLater) {
  DraftGate gate;
  std::int32_t num_tokens = 100;
  int num_refused = 0;
  while (gate.most_drafts(1, num_tokens) > 0) {
    const std::int32_t draft = gate.most_drafts(1, num_tokens);
    gate.note(draft, 0, ++num_tokens);
    ASSERT_LT(++num_refused, 20);
  }
  EXPECT_EQ(num_refused, 9);
  EXPECT_EQ(gate.most_drafts(1, num_tokens + kTokensUntilRetry - 1), 0);
  EXPECT_EQ(gate.most_drafts(1, num_tokens + kTokensUntilRetry), 1) << "one row, to see";
  gate.note(1, 1, num_tokens + kTokensUntilRetry + 2);
  EXPECT_GT(gate.most_drafts(1, num_tokens + kTokensUntilRetry + 2), 0) << "it was accepted";
}

TEST(DraftGate, CostsATextThatNeverRepeatsOneRowInFifty) {
  EXPECT_LE(rows_drafted(/*share_accepted=*/0.0, 1, 1000), 75);
  EXPECT_GT(rows_drafted(/*share_accepted=*/0.9, 1, 1000), 700);
}

TEST(DraftGate, AsksForMoreAcceptanceTheMoreRowsAreThere) {
  DraftGate gate;
  std::int32_t before = kMostRowsWithDrafts;
  for (std::int32_t num_rows = 1; num_rows <= kMostRowsWithDrafts + 2; ++num_rows) {
    const std::int32_t drafts = gate.most_drafts(num_rows, 100);
    EXPECT_LE(drafts, before);
    before = drafts;
    EXPECT_LE(num_rows + drafts, std::max(num_rows, kMostRowsWithDrafts));
  }
  EXPECT_EQ(gate.most_drafts(kMostRowsWithDrafts, 100), 0);
  EXPECT_EQ(before, 0);
}

TEST(DraftGate, CountsOnlyWhatWasPutToTheTest) {
  DraftGate refused_at_once, refused_at_the_end;
  for (int i = 0; i < 3; ++i) refused_at_once.note(5, 0, 100);
  for (int i = 0; i < 3; ++i) refused_at_the_end.note(1, 0, 100);
  EXPECT_EQ(refused_at_once.most_drafts(1, 100), refused_at_the_end.most_drafts(1, 100));
}

}  // namespace
}  // namespace octavo::scheduler
