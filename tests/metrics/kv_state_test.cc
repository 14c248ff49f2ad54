#include "engine/metrics/kv_state.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::metrics {
namespace {

using Kind = BlockEventKind;

constexpr PoolShape kPool = {.block_size = 4, .num_blocks = 8, .num_host_blocks = 2};

BlockEvent event(Kind kind, std::uint64_t sequence, std::int32_t block = -1, std::int32_t aux = 0) {
  return {.sequence = sequence, .block = block, .aux = aux, .kind = kind};
}

KvState state_after(const std::vector<BlockEvent>& events) {
  KvState state(kPool);
  for (const BlockEvent& each : events) {
    const auto applied = state.apply(each);
    EXPECT_TRUE(applied.has_value()) << applied.error().message;
  }
  return state;
}

std::vector<std::int32_t> table(const KvState& state, std::uint64_t sequence) {
  std::vector<std::int32_t> ids;
  for (const BlockId block : state.table_of(SequenceId{sequence})) ids.push_back(block.value);
  return ids;
}

TEST(KvState, AForkSharesAndACopyOnWriteTakesTheSourcesPlace) {
  std::vector<BlockEvent> events = {event(Kind::kAlloc, 1, 0),    event(Kind::kFill, 1, 0, 4),
                                    event(Kind::kSeal, 1, 0),     event(Kind::kAlloc, 1, 1),
                                    event(Kind::kFill, 1, 1, 2),  event(Kind::kFork, 1, -1, 2),
                                    event(Kind::kShare, 2, 0, 2), event(Kind::kShare, 2, 1, 2)};
  const KvState forked = state_after(events);
  EXPECT_EQ(forked.num_used(), 2);
  EXPECT_EQ(forked.num_logical(), 4);
  EXPECT_EQ(forked.num_filled_slots(), 6);
  EXPECT_EQ(forked.owners_of(BlockId{1}), (std::vector<SequenceId>{{1}, {2}}));
  EXPECT_TRUE(forked.block(BlockId{0}).is_findable);
  EXPECT_FALSE(forked.block(BlockId{1}).is_findable);

  for (const BlockEvent& each : {event(Kind::kAlloc, 2, 2), event(Kind::kCopyOnWrite, 2, 1, 2),
                                 event(Kind::kUnref, 2, 1, 1), event(Kind::kAlloc, 2, 3)}) {
    events.push_back(each);
  }
  const KvState copied = state_after(events);
  EXPECT_EQ(table(copied, 1), (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(table(copied, 2), (std::vector<std::int32_t>{0, 2, 3}));
  EXPECT_EQ(copied.block(BlockId{2}).num_filled, 2);
  EXPECT_EQ(copied.num_filled_slots(), 8);
}

TEST(KvState, ABlockWithoutReferencesIsCachedUntilItIsFreed) {
  const KvState state =
      state_after({event(Kind::kAlloc, 1, 5), event(Kind::kFill, 1, 5, 4), event(Kind::kSeal, 1, 5),
                   event(Kind::kUnref, 1, 5, 0), event(Kind::kAlloc, 1, 6), event(Kind::kUnref, 1, 6, 0),
                   event(Kind::kFree, 1, 6)});
  EXPECT_EQ(state.num_used(), 0);
  EXPECT_EQ(state.num_cached(), 1);
  EXPECT_EQ(state.num_free(), 7);
  EXPECT_EQ(state.num_filled_slots(), 0);  // of used blocks
  EXPECT_EQ(state.block(BlockId{5}).num_filled, 4);
  EXPECT_TRUE(state.sequences().empty());
}

TEST(KvState, APinHoldsABlockThatNoTableNames) {
  const std::vector<BlockEvent> events = {event(Kind::kAlloc, 1, 0), event(Kind::kFill, 1, 0, 3),
                                          event(Kind::kSeal, 1, 0), event(Kind::kUnref, 1, 0, 0),
                                          event(Kind::kPin, 0, 0, 1)};
  const KvState pinned = state_after(events);
  EXPECT_EQ(pinned.num_used(), 1);
  EXPECT_EQ(pinned.num_logical(), 0);
  KvState let_go = pinned;
  ASSERT_TRUE(let_go.apply(event(Kind::kUnref, 0, 0, 0)));
  EXPECT_EQ(let_go.num_cached(), 1);
}

TEST(KvState, ASwapTakesAHostBlockAndBringsBackWhatWasFilled) {
  const KvState state =
      state_after({event(Kind::kAlloc, 1, 0), event(Kind::kFill, 1, 0, 3), event(Kind::kSwapOut, 1, 0, 1),
                   event(Kind::kUnref, 1, 0, 0), event(Kind::kFree, 1, 0)});
  EXPECT_EQ(state.num_host_used(), 1);
  KvState back = state;
  ASSERT_TRUE(back.apply(event(Kind::kAlloc, 1, 4)));
  ASSERT_TRUE(back.apply(event(Kind::kSwapIn, 1, 4, 1)));
  ASSERT_TRUE(back.apply(event(Kind::kSwapDrop, 0, -1, 1)));
  EXPECT_EQ(back.num_host_used(), 0);
  EXPECT_EQ(back.block(BlockId{4}).num_filled, 3);
}

TEST(KvState, WhatCannotBeIsOneSentenceAndChangesNothing) {
  const std::vector<BlockEvent> before = {event(Kind::kAlloc, 1, 0),    event(Kind::kFill, 1, 0, 4),
                                          event(Kind::kAlloc, 1, 1),    event(Kind::kAlloc, 2, 2),
                                          event(Kind::kUnref, 2, 2, 0), event(Kind::kSwapOut, 1, 0, 0)};
  const KvState state = state_after(before);
  const std::vector<BlockEvent> impossible = {
      event(Kind::kAlloc, 1, 0),  // in use
      event(Kind::kAlloc, 1, 8),  // beyond the pool
      event(Kind::kAlloc, 1, -1),
      event(Kind::kAlloc, 0, 3),     // for nobody
      event(Kind::kAlloc, 1, 2),     // cached, not free
      event(Kind::kHit, 1, 3, 1),    // free
      event(Kind::kShare, 2, 0, 3),  // the count is 2
      event(Kind::kPin, 0, 3, 1),
      event(Kind::kUnref, 2, 0, 0),  // not its block
      event(Kind::kUnref, 9, 0, 0),
      event(Kind::kUnref, 0, 0, 0),   // no pin
      event(Kind::kUnref, 1, 0, 1),   // the count is 0
      event(Kind::kUnref, 1, 3, -1),  // has none
      event(Kind::kFree, 1, 0),       // in use
      event(Kind::kEvict, 1, 3),      // free
      event(Kind::kFill, 1, 0, 5),    // of 4 slots
      event(Kind::kFill, 1, 0, -1),
      event(Kind::kFill, 2, 0, 1),         // not its block
      event(Kind::kFill, 1, 2, 1),         // nobody's
      event(Kind::kSeal, 1, 3),            // free
      event(Kind::kCopyOnWrite, 1, 0, 3),  // the target is free
      event(Kind::kCopyOnWrite, 1, 3, 1),  // the source is free
      event(Kind::kCopyOnWrite, 1, 0, 0),  // onto itself
      event(Kind::kCopyPartial, 1, 0, 8),
      event(Kind::kCopyPartial, 1, 0, -1),
      event(Kind::kSwapOut, 1, 0, 2),  // beyond the host pool
      event(Kind::kSwapOut, 1, 0, -1),
      event(Kind::kSwapOut, 1, 1, 0),    // taken
      event(Kind::kSwapOut, 1, 3, 1),    // free
      event(Kind::kSwapIn, 1, 1, 1),     // the host block is free
      event(Kind::kSwapIn, 1, 2, 0),     // the block is not in use
      event(Kind::kSwapDrop, 0, -1, 1),  // free
      event(Kind::kStepEnd, 0, -1, 3),   // two are in use
      event(static_cast<Kind>(200), 1, 0),
  };
  for (const BlockEvent& each : impossible) {
    KvState tried = state;
    const auto applied = tried.apply(each);
    EXPECT_FALSE(applied.has_value())
        << block_event_kind_name(each.kind) << " of block " << each.block << ", aux " << each.aux;
    EXPECT_EQ(tried.difference(state), std::nullopt);
    if (applied.has_value()) continue;
    EXPECT_EQ(applied.error().message.find('\n'), std::string::npos);
    EXPECT_NE(applied.error().message.find("is impossible: "), std::string::npos) << applied.error().message;
  }
  KvState late = state;
  ASSERT_TRUE(late.apply({.step = 5, .kind = Kind::kStepBegin}));
  EXPECT_FALSE(late.apply({.step = 4, .kind = Kind::kStepBegin})) << "steps go back";
}

constexpr PoolShape kWithStates = {.block_size = 4,
                                   .num_blocks = 8,
                                   .num_host_blocks = 2,
                                   .num_states = 3,
                                   .num_host_states = 2,
                                   .window = 6,
                                   .num_window_blocks = 4,
                                   .num_host_window_blocks = 2};

KvState states_after(const std::vector<BlockEvent>& events) {
  KvState state(kWithStates);
  for (const BlockEvent& each : events) {
    const auto applied = state.apply(each);
    EXPECT_TRUE(applied.has_value()) << applied.error().message;
  }
  return state;
}

TEST(KvState, AStateStaysAsLongAsSomebodyOwnsItOrItIsACheckpoint) {
  KvState state = states_after({event(Kind::kStateTake, 1, 0), event(Kind::kStateShare, 2, 0)});
  EXPECT_EQ(state.state(BlockId{0}).num_owners, 2);
  ASSERT_TRUE(state.apply(event(Kind::kStateCopy, 2, 0, 1)));
  EXPECT_EQ(state.state(BlockId{0}).num_owners, 1);
  EXPECT_EQ(state.state_of(SequenceId{2}), (KvState::StatePlace{BlockId{1}, false}));
  const std::int32_t place = checkpoint_aux(812, CheckpointReason::kNextTurn);
  ASSERT_TRUE(state.apply(event(Kind::kStateKeep, 1, 0, place)));
  ASSERT_TRUE(state.apply(event(Kind::kStateRelease, 1, 0)));
  EXPECT_EQ(state.state(BlockId{0}).state(), BlockState::kCached);
  EXPECT_EQ(state.state(BlockId{0}).position, 812);
  EXPECT_EQ(state.state(BlockId{0}).reason, CheckpointReason::kNextTurn);
  ASSERT_TRUE(state.apply(event(Kind::kStateResume, 3, 0, 812)));
  EXPECT_EQ(state.state(BlockId{0}).state(), BlockState::kUsed);
  ASSERT_TRUE(state.apply(event(Kind::kStateRelease, 3, 0)));
  ASSERT_TRUE(state.apply(event(Kind::kStateForget, 0, 0, 1)));
  EXPECT_EQ(state.state(BlockId{0}).state(), BlockState::kFree);
}

TEST(KvState, AStateMovesToTheHostWithAllItsOwners) {
  const KvState state =
      states_after({event(Kind::kStateTake, 1, 2), event(Kind::kStateShare, 2, 2),
                    event(Kind::kStateSwapOut, 1, 2, 1), event(Kind::kStateSwapOut, 2, 2, 1)});
  EXPECT_EQ(state.state(BlockId{2}).state(), BlockState::kFree);
  EXPECT_EQ(state.num_host_state_owners(BlockId{1}), 2);
  EXPECT_EQ(states_after(state.as_events()).difference(state), std::nullopt);
  KvState back = state;
  ASSERT_TRUE(back.apply(event(Kind::kStateSwapIn, 2, 0, 1)));
  ASSERT_TRUE(back.apply(event(Kind::kStateRelease, 1, 1, 1))) << "who ends while swapped out";
  EXPECT_EQ(back.num_host_state_owners(BlockId{1}), 0);
  EXPECT_EQ(back.state_of(SequenceId{2}), (KvState::StatePlace{BlockId{0}, false}));
}

TEST(KvState, WhatCannotBecomeOfAStateChangesNothing) {
  const std::int32_t place = checkpoint_aux(4, CheckpointReason::kEnd);
  const KvState state = states_after({event(Kind::kStateTake, 1, 0), event(Kind::kStateKeep, 1, 0, place),
                                      event(Kind::kStateTake, 2, 1), event(Kind::kStateSwapOut, 2, 1, 0)});
  const std::vector<BlockEvent> impossible = {
      event(Kind::kStateTake, 3, 0),         // in use
      event(Kind::kStateTake, 1, 1),         // owns one already
      event(Kind::kStateTake, 3, 3),         // beyond the pool
      event(Kind::kStateTake, 0, 1),         // for nobody
      event(Kind::kStateShare, 3, 1),        // free
      event(Kind::kStateResume, 1, 0, 4),    // owns one already
      event(Kind::kStateCopy, 1, 0, 0),      // onto itself
      event(Kind::kStateCopy, 1, 0, 3),      // beyond the pool
      event(Kind::kStateCopy, 3, 0, 1),      // not its state
      event(Kind::kStateRelease, 3, 0),      // not its state
      event(Kind::kStateRelease, 1, 0, 1),   // is not on the host
      event(Kind::kStateRelease, 2, 0),      // is on the host
      event(Kind::kStateKeep, 1, 0, place),  // is one already
      event(Kind::kStateKeep, 3, 1, place),  // not its state
      event(Kind::kStateForget, 0, 1),       // is none
      event(Kind::kStateSwapOut, 1, 0, 2),   // beyond the host pool
      event(Kind::kStateSwapOut, 2, 1, 1),   // is out
      event(Kind::kStateSwapIn, 1, 1, 0),    // is not out
      event(Kind::kStateSwapIn, 2, 1, 1),    // is elsewhere
  };
  for (const BlockEvent& each : impossible) {
    KvState tried = state;
    EXPECT_FALSE(tried.apply(each).has_value())
        << block_event_kind_name(each.kind) << " of state " << each.block << ", aux " << each.aux;
    EXPECT_EQ(tried.difference(state), std::nullopt);
  }
}

TEST(KvState, WhatACheckpointSavesIsToldAndToldAgain) {
  const std::int32_t place = checkpoint_aux(812, CheckpointReason::kNextTurn);
  KvState state = states_after({event(Kind::kStateTake, 1, 0), event(Kind::kStateKeep, 1, 0, place)});
  EXPECT_FALSE(state.apply(event(Kind::kStateWorth, 0, 1, 5))) << "no checkpoint";
  EXPECT_FALSE(state.apply(event(Kind::kStateWorth, 0, 0, -1)));
  const std::int32_t worth = checkpoint_worth_aux(300, RetentionClass::kSystemPrompt);
  ASSERT_TRUE(state.apply(event(Kind::kStateWorth, 0, 0, worth)));
  EXPECT_EQ(state.state(BlockId{0}).num_saved_tokens, 300);
  EXPECT_EQ(state.state(BlockId{0}).retention, RetentionClass::kSystemPrompt);
  EXPECT_EQ(states_after(state.as_events()).difference(state), std::nullopt);
}

// ---- window parts

// Two blocks of sequence 1, each with its part.
std::vector<BlockEvent> two_parts() {
  return {event(Kind::kAlloc, 1, 0), event(Kind::kWindowOpen, 1, 0, 2), event(Kind::kAlloc, 1, 1),
          event(Kind::kWindowOpen, 1, 1, 0)};
}

TEST(KvState, AWindowPartIsReadUntilEveryWindowHasPassed) {
  KvState state = states_after(two_parts());
  ASSERT_TRUE(state.apply(event(Kind::kShare, 2, 0, 2)));
  EXPECT_EQ(state.window(BlockId{0}).num_readers, 2);
  EXPECT_EQ(state.num_used_windows(), 2);
  ASSERT_TRUE(state.apply(event(Kind::kLeaveWindow, 1, 0, 1)));
  EXPECT_EQ(state.num_left_behind(SequenceId{1}), 1);
  EXPECT_EQ(state.window(BlockId{0}).part(), WindowPart::kUsed);
  const auto keep = event(Kind::kWindowKeep, 0, 0, static_cast<std::int32_t>(RetentionClass::kSystemPrompt));
  ASSERT_TRUE(state.apply(keep));
  ASSERT_TRUE(state.apply(event(Kind::kLeaveWindow, 2, 0, 0)));
  EXPECT_EQ(state.window(BlockId{0}).part(), WindowPart::kCached);
  EXPECT_EQ(state.window(BlockId{0}).retention, RetentionClass::kSystemPrompt);
  EXPECT_EQ(state.num_used_windows(), 1);
  EXPECT_EQ(state.num_cached_windows(), 1);
  EXPECT_EQ(states_after(state.as_events()).difference(state), std::nullopt);
  ASSERT_TRUE(state.apply(event(Kind::kWindowClose, 3, 0, 1)));
  EXPECT_EQ(state.window(BlockId{0}).part(), WindowPart::kNone);
  ASSERT_TRUE(state.apply(event(Kind::kAlloc, 3, 5)));
  EXPECT_TRUE(state.apply(event(Kind::kWindowOpen, 3, 5, 2))) << "the place is free again";
}

// Who starts behind what is kept names blocks and reads none of their parts.
TEST(KvState, ASequenceMayStartWithBlocksLeftBehind) {
  KvState state = states_after(two_parts());
  ASSERT_TRUE(state.apply(event(Kind::kWindowSkip, 2, -1, 1)));
  ASSERT_TRUE(state.apply(event(Kind::kShare, 2, 0, 2)));
  ASSERT_TRUE(state.apply(event(Kind::kShare, 2, 1, 2)));
  EXPECT_EQ(state.window(BlockId{0}).num_readers, 1);
  EXPECT_EQ(state.window(BlockId{1}).num_readers, 2);
  EXPECT_EQ(states_after(state.as_events()).difference(state), std::nullopt);
  ASSERT_TRUE(state.apply(event(Kind::kUnref, 2, 1, 1)));
  ASSERT_TRUE(state.apply(event(Kind::kUnref, 2, 0, 1)));
  EXPECT_EQ(state.window(BlockId{0}).num_readers, 1);
  EXPECT_EQ(state.window(BlockId{1}).num_readers, 1);
  EXPECT_EQ(state.num_left_behind(SequenceId{2}), 0) << "it has no table";
}

TEST(KvState, WindowPartsMoveWithTheirBlocks) {
  KvState state = states_after(two_parts());
  ASSERT_TRUE(state.apply(event(Kind::kSwapOut, 1, 1, 0)));
  ASSERT_TRUE(state.apply(event(Kind::kWindowSwapOut, 1, 1, 0)));
  EXPECT_TRUE(state.host_block(BlockId{0}).has_window);
  EXPECT_EQ(states_after(state.as_events()).difference(state), std::nullopt);
  ASSERT_TRUE(state.apply(event(Kind::kAlloc, 1, 3)));
  ASSERT_TRUE(state.apply(event(Kind::kSwapIn, 1, 3, 0)));
  EXPECT_FALSE(state.apply(event(Kind::kWindowSwapIn, 1, 3, 0))) << "it has no place yet";
  ASSERT_TRUE(state.apply(event(Kind::kWindowOpen, 1, 3, 1)));
  ASSERT_TRUE(state.apply(event(Kind::kWindowSwapIn, 1, 3, 0)));
  ASSERT_TRUE(state.apply(event(Kind::kSwapDrop, 0, -1, 0)));
  EXPECT_FALSE(state.host_block(BlockId{0}).has_window);
}

TEST(KvState, WhatCannotBecomeOfAWindowPartChangesNothing) {
  std::vector<BlockEvent> events = two_parts();
  events.push_back(event(Kind::kAlloc, 2, 4));
  events.push_back(event(Kind::kUnref, 2, 4, 0));
  events.push_back(event(Kind::kAlloc, 2, 5));
  const KvState state = states_after(events);
  const std::vector<BlockEvent> impossible = {
      event(Kind::kLeaveWindow, 1, 1, 0),    // not the first that it reads
      event(Kind::kLeaveWindow, 1, 0, 1),    // nobody else reads it
      event(Kind::kLeaveWindow, 3, 0, 0),    // has no blocks
      event(Kind::kLeaveWindow, 0, 0, 0),    // nobody
      event(Kind::kWindowSkip, 1, -1, 0),    // skips nothing
      event(Kind::kWindowSkip, 0, -1, 1),    // nobody
      event(Kind::kWindowOpen, 1, 0, 1),     // has one
      event(Kind::kWindowOpen, 2, 5, 2),     // the place is taken
      event(Kind::kWindowOpen, 2, 5, 4),     // beyond the pool
      event(Kind::kWindowOpen, 2, 5, -1),    // nowhere
      event(Kind::kWindowOpen, 2, 4, 1),     // not in use
      event(Kind::kWindowOpen, 2, 7, 1),     // free
      event(Kind::kWindowKeep, 0, 5, 0),     // has none
      event(Kind::kWindowKeep, 0, 0, 4),     // no class
      event(Kind::kWindowClose, 0, 5, 0),    // has none
      event(Kind::kWindowSwapOut, 1, 0, 0),  // the host block is free
      event(Kind::kWindowSwapOut, 1, 0, 2),  // beyond the host pool
  };
  for (const BlockEvent& each : impossible) {
    KvState tried = state;
    EXPECT_FALSE(tried.apply(each).has_value())
        << block_event_kind_name(each.kind) << " of block " << each.block << ", aux " << each.aux;
    EXPECT_EQ(tried.difference(state), std::nullopt);
  }
  KvState tried = state;
  ASSERT_TRUE(tried.apply(event(Kind::kUnref, 1, 1, 0)));
  EXPECT_FALSE(tried.apply(event(Kind::kFree, 1, 1))) << "a block goes after its window part";
}

void expect_readers_recounted(const KvState& state) {
  std::int32_t num_read = 0, num_kept = 0;
  for (std::int32_t id = 0; id < kWithStates.num_blocks; ++id) {
    std::int32_t num_readers = state.block(BlockId{id}).num_pins;
    for (const SequenceId sequence : state.sequences()) {
      const auto table = state.table_of(sequence);
      const auto first = std::min(static_cast<std::size_t>(state.num_left_behind(sequence)), table.size());
      num_readers += static_cast<std::int32_t>(std::ranges::count(table.subspan(first), BlockId{id}));
    }
    const KvState::WindowPlace window = state.window(BlockId{id});
    ASSERT_EQ(window.num_readers, num_readers) << "block " << id;
    num_read += window.part() == WindowPart::kUsed ? 1 : 0;
    num_kept += window.part() == WindowPart::kCached ? 1 : 0;
  }
  ASSERT_EQ(state.num_used_windows(), num_read);
  ASSERT_EQ(state.num_cached_windows(), num_kept);
}

// Random events of any kind and any numbers: most are refused, none crashes, and the counts always add up.
TEST(KvState, TrustsNoEvent) {
  std::mt19937 random(test_seed());
  KvState state(kWithStates);
  int num_applied = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto draw = [&](int bound) {
      return static_cast<std::int32_t>(random() % static_cast<unsigned>(bound));
    };
    const BlockEvent each = {.sequence = random() % 4,
                             .block = draw(10) - 1,
                             .aux = draw(10) - 1,
                             .kind = static_cast<Kind>(draw(40))};
    num_applied += state.apply(each).has_value() ? 1 : 0;
    std::int32_t num_used = 0, num_logical = 0;
    for (std::int32_t id = 0; id < kPool.num_blocks; ++id) {
      const KvState::Block block = state.block(BlockId{id});
      num_used += block.state == BlockState::kUsed ? 1 : 0;
      ASSERT_EQ(block.ref_count,
                static_cast<std::int32_t>(state.owners_of(BlockId{id}).size()) + block.num_pins);
      ASSERT_EQ(block.ref_count > 0, block.state == BlockState::kUsed);
    }
    for (const SequenceId sequence : state.sequences()) {
      num_logical += static_cast<std::int32_t>(state.table_of(sequence).size());
    }
    ASSERT_EQ(state.num_used(), num_used);
    expect_readers_recounted(state);
    ASSERT_EQ(state.num_logical(), num_logical);
    std::int32_t num_owners = 0;
    for (std::int32_t id = 0; id < kWithStates.num_states; ++id) {
      ASSERT_GE(state.state(BlockId{id}).num_owners, 0);
      num_owners += state.state(BlockId{id}).num_owners;
    }
    for (std::int32_t id = 0; id < kWithStates.num_host_states; ++id)
      num_owners += state.num_host_state_owners(BlockId{id});
    ASSERT_EQ(static_cast<std::size_t>(num_owners), state.state_places().size());
  }
  EXPECT_GT(num_applied, 10'000);
}

TEST(KvState, CanBeToldAsEvents) {
  const unsigned first_seed = test_seed();
  for (unsigned seed = first_seed; seed < first_seed + 20; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    for (int i = 0; i < 40; ++i) {
      traffic.step();
      const KvState state = KvState::from(traffic.core().snapshot());
      KvState again(state.shape());
      for (const BlockEvent& each : state.as_events()) ASSERT_TRUE(again.apply(each));
      ASSERT_EQ(again.difference(state), std::nullopt);
      ASSERT_EQ(again.num_filled_slots(), state.num_filled_slots());
    }
  }
}

TEST(KvState, CanTellAPinnedBlockAsEvents) {
  const KvState state =
      state_after({event(Kind::kAlloc, 1, 0), event(Kind::kFill, 1, 0, 3), event(Kind::kSeal, 1, 0),
                   event(Kind::kUnref, 1, 0, 0), event(Kind::kPin, 0, 0, 1), event(Kind::kPin, 0, 0, 2)});
  EXPECT_EQ(state_after(state.as_events()).difference(state), std::nullopt);
}

TEST(KvState, DifferencesAreFound) {
  const std::vector<BlockEvent> events = {event(Kind::kAlloc, 1, 0), event(Kind::kFill, 1, 0, 3)};
  const KvState state = state_after(events);
  for (const BlockEvent& more :
       {event(Kind::kFill, 1, 0, 4), event(Kind::kSeal, 1, 0), event(Kind::kShare, 2, 0, 2),
        event(Kind::kPin, 0, 0, 2), event(Kind::kAlloc, 1, 1), event(Kind::kSwapOut, 1, 0, 0)}) {
    KvState other = state;
    ASSERT_TRUE(other.apply(more));
    EXPECT_NE(state.difference(other), std::nullopt) << block_event_kind_name(more.kind);
    EXPECT_NE(other.difference(state), std::nullopt) << block_event_kind_name(more.kind);
  }
  // The same blocks in another order.
  const KvState one = state_after({event(Kind::kAlloc, 1, 0), event(Kind::kAlloc, 1, 1)});
  const KvState two = state_after({event(Kind::kAlloc, 1, 1), event(Kind::kAlloc, 1, 0)});
  EXPECT_NE(one.difference(two), std::nullopt);
}

}  // namespace
}  // namespace octavo::metrics
