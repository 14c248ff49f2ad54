#include "engine/scheduler/sequence_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/scheduler/toy_model.h"

namespace octavo::scheduler {
namespace {

SequenceGroup group_of(Tokens prompt, const std::vector<Tokens>& outputs) {
  NewRequest request{.request_id = RequestId{1}, .prompt_token_ids = std::move(prompt), .sampling = {}};
  request.sampling.n = static_cast<std::int32_t>(outputs.size());
  SequenceGroup group(std::move(request), SequenceId{10}, /*shares_blocks=*/true);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const TokenId token : outputs[i]) group.sequences[i].append(token);
  }
  return group;
}

// Every pair compared from its first token on. The newest token of either has no KV to be shared.
void expect_plan(const SequenceGroup& group, std::int32_t block_size) {
  for (std::size_t i = 0; i < group.sequences.size(); ++i) {
    const Sequence& sequence = group.sequences[i];
    if (!sequence.is_live()) continue;
    std::int32_t most = 0;
    std::size_t source = 0;
    for (std::size_t k = 0; k < i; ++k) {
      const Sequence& other = group.sequences[k];
      if (!other.is_live()) continue;
      const auto differs = std::ranges::mismatch(sequence.token_ids(), other.token_ids()).in1;
      const auto num_equal = static_cast<std::int32_t>(differs - sequence.token_ids().begin());
      const std::int32_t num_shared =
          std::min({num_equal, sequence.num_tokens() - 1, other.num_tokens() - 1}) / block_size;
      if (num_shared > most) most = num_shared, source = k;
    }
    EXPECT_EQ(sequence.is_attached, &sequence == &group.lead());
    if (&sequence == &group.lead()) continue;
    EXPECT_EQ(sequence.num_shared_blocks, most) << "of output " << i;
    if (most > 0) {
      EXPECT_EQ(sequence.share_source, source) << "of output " << i;
    }
  }
}

TEST(SequenceGroup, SiblingsShareTheLongestStartThatAnEarlierOneComputes) {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int round = 0; round < 500 && !testing::Test::HasFailure(); ++round) {
    std::vector<Tokens> outputs(static_cast<std::size_t>(1 + below(8)));
    for (Tokens& output : outputs) {
      for (int i = 1 + below(24); i > 0; --i) output.push_back(below(6) == 0 ? 1 : 0);
    }
    const std::int32_t block_size = 1 + below(5);
    SequenceGroup group = group_of(random_like_tokens(7, 1 + below(20)), outputs);
    for (Sequence& sequence : group.sequences) {
      if (below(4) == 0 && group.num_live() > 1) sequence.status = SequenceStatus::kFinished;
    }
    group.plan_sharing(block_size);
    SCOPED_TRACE(round);
    expect_plan(group, block_size);
  }
}

// The first stops before its sixteenth token until its sibling has caught up: whoever waited for the block
// that this token ends would wait for ever.
TEST(SequenceGroup, NobodyWaitsForABlockWhoseLastTokenHasNoRowYet) {
  SequenceGroup group = group_of(random_like_tokens(7, 10), {Tokens(6, 3), Tokens(10, 3)});
  group.plan_sharing(16);
  EXPECT_EQ(group.sequences[1].num_shared_blocks, 0);
}

TEST(SequenceGroup, ASplitLeavesTheEarlierOutputsAsTheyWere) {
  SequenceGroup group = group_of(random_like_tokens(7, 10), {{1}, {2}, {3}, {4}});
  group.sequences[3].status = SequenceStatus::kFinished;
  group.was_admitted = true;
  ASSERT_TRUE(group.can_pause_output());
  const auto paused = group.split_last_output();
  EXPECT_EQ(group.num_live(), 2);
  EXPECT_EQ(paused->num_live(), 1);
  EXPECT_EQ(paused->first_sequence_id(), SequenceId{12});
  EXPECT_EQ(paused->lead().output_index, 2u);
  EXPECT_EQ(paused->lead().output_token_ids().front(), 3);
  EXPECT_EQ(paused->sequences.size(), 2u) << "with what ended behind it";
  EXPECT_TRUE(paused->was_admitted);
  EXPECT_EQ(paused->num_prompt_tokens(), 10);
  group.sequences[0].status = SequenceStatus::kFinished;
  EXPECT_FALSE(group.can_pause_output()) << "one must go on";
}

TEST(SequenceGroup, BeamsAndOutputsOfAPromptUnderWayDoNotPause) {
  SequenceGroup starting = group_of(random_like_tokens(7, 10), {{}, {}});
  EXPECT_FALSE(starting.can_pause_output());
  NewRequest request{.request_id = RequestId{1}, .prompt_token_ids = {1, 2}, .sampling = {}};
  request.sampling.beam_width = 2;
  SequenceGroup beams(std::move(request), SequenceId{10}, /*shares_blocks=*/true);
  beams.sequences[1].status = SequenceStatus::kRunning;
  for (Sequence& seat : beams.sequences) seat.append(5);
  EXPECT_FALSE(beams.can_pause_output());
}

}  // namespace
}  // namespace octavo::scheduler
