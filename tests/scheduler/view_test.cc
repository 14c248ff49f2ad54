// How a scheduler looks from outside: any block explained, and broken invariants found.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "engine/scheduler/scheduler_state.h"
#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"
#include "tests/support/opened.h"

namespace octavo::opening {
struct SchedulerState {
  friend auto& opened(SchedulerState, scheduler::Scheduler&);
};
template struct Opened<SchedulerState, scheduler::Scheduler, &scheduler::Scheduler::state_>;
}  // namespace octavo::opening

namespace octavo::scheduler {
namespace {

const std::vector<BlockId>& table_of(const KvSnapshot& snapshot, std::size_t sequence) {
  return snapshot.sequences.at(sequence).block_table;
}

TEST(DescribeBlock, ExplainsAFreeOne) {
  Harness harness(options_with(8));
  const BlockDetail detail = harness.scheduler.describe_block(BlockId{5});
  EXPECT_EQ(detail.state.state, BlockState::kFree);
  EXPECT_TRUE(detail.token_ids.empty());
  EXPECT_TRUE(detail.owners.empty());
  EXPECT_EQ(detail.why, "free: not in use, and it holds nothing that can be reused");
  EXPECT_DEATH(harness.scheduler.describe_block(BlockId{8}), "block 8 of 8");
  EXPECT_DEATH(harness.scheduler.describe_block(BlockId{-1}), "block -1 of 8");
}

TEST(DescribeBlock, NamesOwnersTokensAndPredecessorsOfOneInUse) {
  Harness harness(options_with(32));
  const SimulatedRequest request = request_of(1, 40, 20, /*n=*/2);
  harness.submit(request);
  harness.step();
  const KvSnapshot snapshot = harness.scheduler.snapshot();
  const BlockDetail full = harness.scheduler.describe_block(table_of(snapshot, 0)[1]);
  EXPECT_EQ(full.first_position, 16);
  EXPECT_EQ(full.token_ids, Tokens(request.prompt.begin() + 16, request.prompt.begin() + 32));
  EXPECT_EQ(full.owners, (std::vector{SequenceId{1}, SequenceId{2}}));
  EXPECT_EQ(full.chain, std::vector{table_of(snapshot, 0)[0]});
  EXPECT_EQ(full.why, "in use by 2 sequences");
  const BlockDetail partial = harness.scheduler.describe_block(table_of(snapshot, 0)[2]);
  EXPECT_EQ(partial.first_position, 32);
  EXPECT_EQ(partial.token_ids, Tokens(request.prompt.begin() + 32, request.prompt.end()))
      << "known without a node";
  EXPECT_TRUE(partial.chain.empty());
  harness.step();
  EXPECT_EQ(harness.scheduler.describe_block(table_of(harness.scheduler.snapshot(), 1)[2]).why,
            "in use by 1 sequence");
}

TEST(DescribeBlock, SaysThatACopyReadsIt) {
  Scheduler scheduler(options_with(32));
  const auto run_one = [&](std::uint64_t id, Tokens prompt) {
    EXPECT_TRUE(scheduler.add({.request_id = {id}, .prompt_token_ids = std::move(prompt), .sampling = {}}));
    return scheduler.schedule();
  };
  const auto first = run_one(1, random_like_tokens(1, 10));
  const CommittedToken token{first.sequences[0].sequence_id, 7};
  scheduler.commit(first, {&token, 1});
  scheduler.finish(token.sequence_id);
  Tokens longer = random_like_tokens(1, 10);
  longer.push_back(5000);
  const auto second = run_one(2, longer);
  ASSERT_EQ(second.block_copies.size(), 1u);
  EXPECT_EQ(scheduler.describe_block(second.block_copies[0].source).why,
            "in use by 0 sequences, and being copied in this step");
}

TEST(DescribeBlock, ExplainsWhyACachedOneIsStillHere) {
  Harness harness(options_with(32));
  SimulatedRequest chat = request_of(1, 40, 1);
  chat.retention = RetentionClass::kChat;
  harness.submit(chat);
  harness.step();
  std::string of_the_root, of_the_leaf;
  for (std::int32_t id = 0; id < 32; ++id) {
    const BlockDetail detail = harness.scheduler.describe_block(BlockId{id});
    if (detail.state.state != BlockState::kCached) continue;
    if (detail.chain.empty()) of_the_root = detail.why;
    if (detail.num_children == 0) {
      of_the_leaf = detail.why;
      EXPECT_EQ(detail.token_ids, Tokens(chat.prompt.begin() + 32, chat.prompt.end()));
      EXPECT_EQ(detail.first_position, 32);
    }
  }
  EXPECT_EQ(of_the_root, "cached as " + std::string(retention_class_name(RetentionClass::kChat)) +
                             ": it stays until the 1 cached block that continue it are evicted");
  EXPECT_EQ(of_the_leaf, "cached as " + std::string(retention_class_name(RetentionClass::kChat)) +
                             ": it will be evicted when memory is needed, least recently used first");
}

TEST(DescribeBlock, SaysThatAPinnedOneStays) {
  Harness harness(options_with(32));
  SimulatedRequest pinned = request_of(1, 16, 1);
  pinned.retention = RetentionClass::kPinned;
  harness.submit(pinned);
  harness.step();
  EXPECT_EQ(harness.scheduler.describe_block(BlockId{0}).why,
            "cached and pinned: it stays until it is unpinned");
}

TEST(DescribeBlock, DoesNotTakeHostBlocksForDeviceBlocks) {
  SchedulerOptions options = options_with(12);
  options.num_host_blocks = 12;
  options.preemption_mode = PreemptionPolicy::kSwap;
  Harness harness(options);
  harness.submit(request_of(1, 70, 40));
  harness.submit(request_of(2, 70, 60));
  harness.run_until_preempted(kSecond);
  for (std::int32_t id = 0; id < 12; ++id) {
    for (const SequenceId owner : harness.scheduler.describe_block(BlockId{id}).owners) {
      EXPECT_EQ(owner, SequenceId{1}) << "the other one is swapped out";
    }
  }
  const KvSnapshot snapshot = harness.scheduler.snapshot();
  ASSERT_EQ(snapshot.sequences.size(), 2u);
  EXPECT_EQ(snapshot.sequences[1].state, SequenceState::kSwapped);
  EXPECT_GT(snapshot.sequences[1].num_computed_tokens, 70);
  EXPECT_EQ(snapshot.figures.host_used_blocks, std::ssize(table_of(snapshot, 1)));
}

TEST(Figures, CountReservedAheadApartFromWaste) {
  Harness harness(options_with(32, 20));
  harness.submit(request_of(1, 40, 4));
  harness.step();
  const KvFigures figures = harness.scheduler.figures();
  EXPECT_EQ(figures.filled_slots, 20);
  EXPECT_EQ(figures.reserved_ahead_slots, 20) << "the rest of the prompt";
  EXPECT_EQ(figures.unfilled_slots, 8);
  EXPECT_DOUBLE_EQ(figures.internal_fragmentation, 8.0 / 48.0);
}

TEST(Totals, KeepMeasuredSwapTimes) {
  Harness harness(options_with(8));
  harness.scheduler.note_swap_times(5, 7);
  harness.scheduler.note_swap_times(1, 2);
  EXPECT_EQ(harness.scheduler.totals().swap_out_us, 6);
  EXPECT_EQ(harness.scheduler.totals().swap_in_us, 9);
}

// ---- broken on purpose

struct BrokenScheduler {
  const char* sentence;
  std::function<void(GroupQueue& queue, SequenceGroup& running, SequenceGroup& swapped)> break_it;
};

TEST(BrokenInvariant, OfTheSchedulerIsFound) {
  const BrokenScheduler cases[] = {
      {"a group of request 2 stands behind a newer one",
       [](GroupQueue&, SequenceGroup&, SequenceGroup& swapped) {
         swapped.sequences[0].sequence_id = SequenceId{2};
       }},
      {"a group of request 1 is not found by its request",
       [](GroupQueue&, SequenceGroup& running, SequenceGroup&) {
         running.sequences[0].sequence_id = SequenceId{0};
       }},
      {"sequence 1 holds blocks that it may not have",
       [](GroupQueue&, SequenceGroup& running, SequenceGroup&) { running.sequences[0].is_attached = false; }},
      {"sequence 3 holds blocks that it may not have",
       [](GroupQueue&, SequenceGroup&, SequenceGroup& swapped) {
         swapped.set_status(SequenceStatus::kWaiting);
       }},
      {"sequence 1: its status is not that of its group",
       [](GroupQueue&, SequenceGroup& running, SequenceGroup&) {
         running.sequences[0].status = SequenceStatus::kWaiting;
       }},
      {"sequence 4: its status is not that of its group",
       [](GroupQueue&, SequenceGroup&, SequenceGroup& swapped) {
         swapped.sequences[1].status = SequenceStatus::kWaiting;
       }},
      {"sequence 3 has blocks in the host pool",
       [](GroupQueue& queue, SequenceGroup&, SequenceGroup& swapped) {
         queue.start_front();
         swapped.set_status(SequenceStatus::kRunning);
       }},
      {"sequence 1 was left on the device",
       [](GroupQueue& queue, SequenceGroup& running, SequenceGroup&) {
         queue.preempt_last();
         running.set_status(SequenceStatus::kSwapped);
       }},
      {"sequence 1 has KV of tokens that it does not have",
       [](GroupQueue&, SequenceGroup& running, SequenceGroup&) {
         running.sequences[0].carry(Sequence(SequenceId{9}, 0, {1, 2}));
       }},
  };
  for (const BrokenScheduler& broken : cases) {
    SchedulerOptions options = options_with(22);
    options.num_host_blocks = 22;
    options.enable_prefix_caching = false;  // whose own checks would speak first
    Harness harness(options);
    harness.submit(request_of(1, 100, 100, /*n=*/2));
    harness.submit(request_of(2, 100, 30, /*n=*/3));
    harness.run_until_preempted(kSecond);
    ASSERT_EQ(harness.scheduler.num_swapped_out(), 1);
    ASSERT_EQ(harness.scheduler.broken_invariant(), std::nullopt);
    GroupQueue& queue = opened(opening::SchedulerState{}, harness.scheduler)->queue;
    broken.break_it(queue, *queue.groups_of(kFirst).front(), *queue.groups_of(kSecond).front());
    EXPECT_EQ(harness.scheduler.broken_invariant().value_or("not found"), broken.sentence);
  }
}

TEST(BrokenInvariant, OfTheMostSequencesIsFound) {
  SchedulerOptions options = options_with(64);
  options.max_num_seqs = 4;
  Harness harness(options);
  harness.submit(request_of(1, 20, 20, /*n=*/2));
  harness.submit(request_of(2, 20, 20, /*n=*/3));
  harness.step();
  opened(opening::SchedulerState{}, harness.scheduler)
      ->queue.start_front()
      .set_status(SequenceStatus::kRunning);
  EXPECT_EQ(harness.scheduler.broken_invariant().value_or("not found"), "more sequences run than may");
}

}  // namespace
}  // namespace octavo::scheduler
