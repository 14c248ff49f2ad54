// Window parts of blocks: who reads which, what is left behind, found again, swapped and given up.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/block/block_manager.h"
#include "tests/block/owner.h"

namespace octavo::block {
namespace {

constexpr std::int32_t kWindow = 32;

// A window of two blocks: three of them are read at most, and a fourth is written.
class Window : public ::testing::Test {
 protected:
  explicit Window(std::int32_t num_window_blocks = 16)
      : manager_({.block_size = kBlockSize,
                  .num_blocks = 32,
                  .num_host_blocks = 32,
                  .window = kWindow,
                  .num_window_blocks = num_window_blocks,
                  .num_host_window_blocks = 8}) {}

  void compute(Owner& owner, std::int32_t num_tokens) {
    manager_.grow(owner.table, num_tokens, copies_);
    manager_.open_window(owner.table, num_tokens);
    manager_.commit(owner.table, owner.content(), num_tokens);
    append(manager_.take_window_moves());
  }
  // As a scheduler does: in chunks.
  void compute(Owner& owner) {
    while (owner.table.num_computed_tokens() < owner.size())
      compute(owner, std::min(owner.size(), owner.table.num_computed_tokens() + kBlockSize));
  }
  BlockManager::AppendedMatch find(Owner& owner) {
    return manager_.append_match(owner.table, owner.content(), owner.size() - 1, &copies_);
  }
  void end(Owner& owner) { manager_.release_findable(owner.table, owner.content()); }
  void append(const std::vector<PoolMove>& moves) { moves_.insert(moves_.end(), moves.begin(), moves.end()); }
  std::int32_t num_used() const { return manager_.figures().used_window_blocks; }
  std::int32_t num_cached() const { return manager_.figures().cached_window_blocks; }

  BlockManager manager_;
  std::vector<BlockCopy> copies_;
  std::vector<PoolMove> moves_;
};

TEST_F(Window, HoldsNoMoreThanTheWindowTheChunkAndABlock) {
  Owner owner(1, counting(400));
  for (std::int32_t end = kBlockSize; end <= owner.size(); end += kBlockSize) {
    manager_.grow(owner.table, owner.size(), copies_);
    manager_.open_window(owner.table, end);
    EXPECT_LE(num_used() * kBlockSize, kWindow + kBlockSize + 2 * kBlockSize) << end;
    manager_.commit(owner.table, owner.content(), end);
    EXPECT_LE(owner.table.num_computed_tokens() - owner.table.num_blocks_left_behind() * kBlockSize,
              kWindow + kBlockSize)
        << end;
    expect_whole(manager_, {&owner});
  }
  // The next row, at position 400, reads positions 369 and up: those of blocks 23 and 24.
  EXPECT_EQ(owner.table.num_blocks_left_behind(), 23);
  EXPECT_EQ(manager_.totals().windows.num_left, 0) << "totals are those of the end of a step";
  manager_.begin_step(1);
  manager_.end_step();
  EXPECT_EQ(manager_.totals().windows.num_left, 23);
  EXPECT_EQ(manager_.totals().windows.num_evicted, 25 - 16);
}

TEST_F(Window, ThePlacesOfAStepAreThoseThatAreReadOrWritten) {
  Owner owner(1, counting(70));
  compute(owner, 64);
  manager_.grow(owner.table, 70, copies_);
  manager_.open_window(owner.table, 70);
  // Position 64 reads 33 to 64: blocks 2, 3 and the new one.
  const auto places = owner.table.window_places();
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[0], kNoBlock);
  EXPECT_EQ(places[1], kNoBlock);
  for (std::size_t i = 2; i < 5; ++i) EXPECT_NE(places[i], kNoBlock) << i;
}

TEST_F(Window, LeavingOneBehindIsAnEvent) {
  Owner owner(1, counting(48));
  compute(owner);
  const auto events = manager_.events().take();
  const auto left = std::ranges::find(events, BlockEventKind::kLeaveWindow, &BlockEvent::kind);
  ASSERT_NE(left, events.end());
  EXPECT_EQ(left->block, owner.table.blocks()[0].value);
  EXPECT_EQ(left->aux, 0);
}

TEST_F(Window, WhoStartsAlikeResumesAtTheEnd) {
  Owner first(1, counting(160));
  compute(first);
  end(first);
  EXPECT_EQ(num_used(), 0);
  Owner next(2, counting(200));
  const auto found = find(next);
  EXPECT_EQ(found.num_hit_cached, 160);
  EXPECT_EQ(next.table.num_blocks_left_behind(), 8);
  EXPECT_EQ(num_used(), 2) << "of ten blocks, those of the window";
  expect_whole(manager_, {&next});
}

TEST_F(Window, WhatALastBlockHoldsIsCopiedInBothPools) {
  Owner first(1, counting(72));
  compute(first);
  end(first);
  moves_.clear();
  Owner next(2, counting(90));
  const auto found = find(next);
  append(manager_.take_window_moves());
  EXPECT_EQ(found.num_copied_partial, 8);
  ASSERT_EQ(copies_.size(), 1u);
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_EQ(moves_[0].kind, PoolMoveKind::kCopy);
  manager_.open_window(next.table, 72);
  EXPECT_EQ(moves_[0].target, next.table.window_places().back());
  manager_.end_step();
  expect_whole(manager_, {&next});
}

// The windows of long texts push each other out.
class NarrowWindow : public Window {
 protected:
  NarrowWindow() : Window(8) {}
};

TEST_F(NarrowWindow, APrefixWithoutItsWindowIsNotFoundThere) {
  Owner first(1, counting(160));
  compute(first);
  Owner branch(2, counting(100));
  branch.tokens[90] = 999;
  const auto found = find(branch);
  // Of the first, blocks 2 to 9 have their parts: behind block 5 there is a whole window, and of the branch
  // five blocks are alike.
  EXPECT_EQ(found.num_hit_live, 80);
  EXPECT_EQ(found.miss.cause, MissCause::kDifferingToken);
  Owner early(3, counting(40));
  const auto nothing = find(early);
  EXPECT_EQ(nothing.num_tokens(), 0) << "the start's window parts have been given up";
  EXPECT_EQ(nothing.miss.cause, MissCause::kBehindWindow);
  EXPECT_EQ(nothing.miss.position, 0);
  expect_whole(manager_, {&first, &branch, &early});
}

TEST_F(NarrowWindow, WhatASystemPromptEndsWithStaysLonger) {
  Owner first(1, counting(400));
  first.num_system_tokens = 64;
  compute(first);
  Owner second(2, counting(100));
  second.num_system_tokens = 64;
  second.tokens[64] = 999;
  EXPECT_EQ(find(second).num_tokens(), 64);
  EXPECT_EQ(second.table.num_blocks_left_behind(), 2);
  expect_whole(manager_, {&first, &second});
}

TEST_F(NarrowWindow, WhatTheNextTurnStartsWithStaysLonger) {
  Owner first(1, counting(400));
  first.retention = RetentionClass::kChat;
  first.num_next_turn_tokens = 96;
  compute(first);
  end(first);
  Owner next(2, counting(200));
  next.tokens[96] = 999;
  EXPECT_EQ(find(next).num_tokens(), 96);
}

TEST_F(Window, AForkReadsTheSamePartsUntilItWrites) {
  Owner parent(1, counting(72)), child(2, counting(73));
  compute(parent);
  manager_.fork(parent.table, child.table);
  EXPECT_EQ(num_used(), 3);
  moves_.clear();
  compute(child, 73);
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_EQ(moves_[0].kind, PoolMoveKind::kCopy);
  EXPECT_NE(moves_[0].source, moves_[0].target);
  EXPECT_EQ(num_used(), 4);
  expect_whole(manager_, {&parent, &child});
  // What only one of them still reads.
  Owner ahead(3, counting(200));
  manager_.fork(parent.table, ahead.table);
  compute(ahead);
  EXPECT_EQ(parent.table.num_blocks_left_behind(), 2);
  EXPECT_EQ(ahead.table.num_blocks_left_behind(), 10);
  expect_whole(manager_, {&parent, &child, &ahead});
}

TEST_F(Window, SwapMovesWhatIsReadAndNothingElse) {
  Owner owner(1, counting(200));
  compute(owner);
  moves_.clear();
  std::vector<BlockSwap> outs, ins;
  const MovingTable moving{&owner.table, owner.content()};
  ASSERT_TRUE(manager_.swap_out({&moving, 1}, outs));
  append(manager_.take_window_moves());
  EXPECT_EQ(outs.size(), 13u);
  EXPECT_EQ(std::ranges::count(moves_, PoolMoveKind::kSwapOut, &PoolMove::kind), 3);
  EXPECT_EQ(num_used(), 0);
  expect_whole(manager_, {&owner});
  manager_.reset_prefix_cache();
  manager_.swap_in({&moving, 1}, ins);
  append(manager_.take_window_moves());
  EXPECT_EQ(ins.size(), 13u);
  EXPECT_EQ(std::ranges::count(moves_, PoolMoveKind::kSwapIn, &PoolMove::kind), 3);
  manager_.seal_full(owner.table, owner.content());
  expect_whole(manager_, {&owner});
  owner.tokens = counting(210);
  compute(owner);
  expect_whole(manager_, {&owner});
}

TEST_F(Window, APartThatIsStillOnTheDeviceIsNotMovedBack) {
  Owner owner(1, counting(64));
  compute(owner);
  std::vector<BlockSwap> outs, ins;
  const MovingTable moving{&owner.table, owner.content()};
  ASSERT_TRUE(manager_.swap_out({&moving, 1}, outs));
  manager_.take_window_moves();
  manager_.swap_in({&moving, 1}, ins);
  EXPECT_TRUE(ins.empty());
  EXPECT_TRUE(manager_.take_window_moves().empty());
  expect_whole(manager_, {&owner});
}

TEST_F(Window, WithoutRoomOnTheHostNothingIsSwappedOut) {
  std::vector<Owner> owners;
  for (std::uint64_t id = 1; id <= 4; ++id)
    owners.emplace_back(id, counting(48, 1000 * static_cast<int>(id)));
  std::vector<BlockSwap> outs;
  std::vector<MovingTable> moving;
  for (Owner& owner : owners) {
    compute(owner);
    moving.push_back({&owner.table, owner.content()});
  }
  // Two blocks of each are read: eight fit.
  EXPECT_TRUE(manager_.swap_out(std::span(moving).first(3), outs));
  Owner long_one(9, counting(90));
  compute(long_one);
  const std::vector<MovingTable> both = {moving[3], {&long_one.table, long_one.content()}};
  const std::size_t num_before = outs.size();
  EXPECT_FALSE(manager_.swap_out(both, outs));
  EXPECT_EQ(outs.size(), num_before);
  EXPECT_FALSE(long_one.table.is_swapped_out());
}

TEST_F(Window, WithoutAPrefixCacheWhatIsLeftBehindIsFreeAtOnce) {
  BlockManager manager({.block_size = kBlockSize,
                        .num_blocks = 32,
                        .enable_prefix_caching = false,
                        .window = kWindow,
                        .num_window_blocks = 4});
  Owner owner(1, counting(160));
  for (std::int32_t end = kBlockSize; end <= owner.size(); end += kBlockSize) {
    manager.grow(owner.table, end, copies_);
    manager.open_window(owner.table, end);
    manager.commit(owner.table, owner.content(), end);
    EXPECT_EQ(manager.figures().cached_window_blocks, 0);
  }
  EXPECT_EQ(manager.figures().used_window_blocks, 2);
}

TEST(WindowPlaces, AreEnoughForAsManySequencesAsMayRun) {
  EXPECT_EQ(num_places_for_sequence(1024, 16), 67);
  EXPECT_EQ(num_places_for_sequence(1, 16), 3);
  EXPECT_EQ(num_places_for_step(512, 16), 32);
  EXPECT_EQ(most_sequences_with_windows(1024, 16, 67 * 4 + 32, 10'000, 512), 4);
  EXPECT_EQ(most_sequences_with_windows(1024, 16, 67 * 4 + 31, 10'000, 512), 3);
  EXPECT_EQ(most_sequences_with_windows(1024, 16, 20, 10'000, 512), 0);
  EXPECT_GT(most_sequences_with_windows(1024, 16, 100, 100, 512), 1'000'000);
}

}  // namespace
}  // namespace octavo::block
