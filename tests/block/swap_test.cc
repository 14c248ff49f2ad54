// Tables that move to the host pool and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/block/block_manager.h"
#include "tests/block/owner.h"

namespace octavo::block {
namespace {

std::vector<MovingTable> together(std::initializer_list<Owner*> owners) {
  std::vector<MovingTable> tables;
  for (Owner* owner : owners) tables.push_back({&owner->table, owner->content()});
  return tables;
}

std::vector<BlockId> blocks_of(const Owner& owner) {
  return {owner.table.blocks().begin(), owner.table.blocks().end()};
}

// A parent of ten tokens in blocks of four, and a child that wrote an eleventh of its own.
class Swap : public ::testing::Test {
 protected:
  void SetUp() override { make_family(manager_); }

  void make_family(BlockManager& manager) {
    manager.begin_step(1);
    parent_.compute(manager);
    manager.fork(parent_.table, child_.table);
    child_.tokens.push_back(77);
    child_.compute(manager);
    manager.end_step();
  }

  BlockManager manager_{{.block_size = 4, .num_blocks = 12, .num_host_blocks = 6}};
  Owner parent_{1, counting(10)}, child_{2, counting(10)};
  std::vector<BlockSwap> outs_, ins_;
};

TEST_F(Swap, OutCopiesASharedBlockOnceAndKeepsTheSharing) {
  EXPECT_EQ(manager_.num_distinct_blocks(together({&parent_, &child_})), 4);
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  EXPECT_EQ(outs_.size(), 4u) << "two shared blocks, two of their own";
  EXPECT_EQ(manager_.figures().used_blocks, 0);
  EXPECT_EQ(manager_.figures().logical_blocks, 0);
  EXPECT_EQ(manager_.figures().host_used_blocks, 4);
  EXPECT_EQ(manager_.num_free_host_blocks(), 2);
  EXPECT_TRUE(parent_.table.is_swapped_out());
  EXPECT_EQ(parent_.table.blocks()[1], child_.table.blocks()[1]);
  EXPECT_NE(parent_.table.blocks()[2], child_.table.blocks()[2]);
  EXPECT_EQ(manager_.totals().swapped_out_blocks, 4);
  expect_whole(manager_, {&parent_, &child_});
}

TEST_F(Swap, InCopiesOnlyWhatDidNotSurviveOnTheDevice) {
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  EXPECT_EQ(manager_.figures().cached_blocks, 2) << "the shared full blocks can still be found";
  const auto found = manager_.swap_in(together({&parent_, &child_}), ins_);
  EXPECT_EQ(found.num_hit_cached, 8);
  EXPECT_EQ(ins_.size(), 2u) << "the two partly filled ones";
  EXPECT_EQ(parent_.table.blocks()[0], child_.table.blocks()[0]);
  EXPECT_EQ(manager_.figures().used_blocks, 4);
  EXPECT_EQ(manager_.figures().logical_blocks, 6);
  EXPECT_EQ(manager_.figures().host_used_blocks, 0);
  EXPECT_EQ(manager_.totals().swapped_in_blocks, 2);
  expect_whole(manager_, {&parent_, &child_});
}

TEST_F(Swap, WhatIsFoundAgainIsKeptAsLongAsItsRequestAsks) {
  ASSERT_TRUE(manager_.swap_out(together({&parent_}), outs_));
  parent_.retention = RetentionClass::kChat;
  manager_.swap_in(together({&parent_}), ins_);
  const PrefixCache& cache = manager_.prefix_cache();
  EXPECT_EQ(cache.retention(cache.node_of(parent_.table.blocks()[0])), RetentionClass::kChat);
}

TEST_F(Swap, BlocksOfARunningSequenceAreHitsToo) {
  Owner other(3, counting(10));
  manager_.append_match(other.table, other.content(), 9);
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  const auto found = manager_.swap_in(together({&parent_, &child_}), ins_);
  EXPECT_EQ(found.num_hit_live, 8);
  EXPECT_EQ(found.num_hit_cached, 0);
  expect_whole(manager_, {&parent_, &child_, &other});
}

TEST_F(Swap, WhatWasEvictedComesBackOnceWithItsSharingAndIsFindableWhenItIsThere) {
  const std::vector<BlockId> before = blocks_of(parent_);
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  manager_.reset_prefix_cache();
  manager_.swap_in(together({&parent_, &child_}), ins_);
  EXPECT_EQ(ins_.size(), 4u);
  EXPECT_EQ(parent_.table.blocks()[0], child_.table.blocks()[0]);
  EXPECT_EQ(parent_.table.blocks()[1], child_.table.blocks()[1]);
  std::set<BlockId> targets;
  for (const BlockSwap& swap : ins_) EXPECT_TRUE(targets.insert(swap.device_block).second);
  Owner reader(3, counting(10));
  EXPECT_EQ(manager_.match(reader.table, reader.content(), 9).num_blocks, 0) << "the copy is still under way";
  for (Owner* owner : {&parent_, &child_}) manager_.seal_full(owner->table, owner->content());
  EXPECT_EQ(manager_.match(reader.table, reader.content(), 9).num_used_blocks, 2);
  expect_whole(manager_, {&parent_, &child_});
}

TEST_F(Swap, AFullHostPoolRefusesAndChangesNothing) {
  BlockManager manager({.block_size = 4, .num_blocks = 12, .num_host_blocks = 3});
  parent_ = Owner(1, counting(10));
  child_ = Owner(2, counting(10));
  make_family(manager);
  const auto before = blocks_of(child_);
  EXPECT_FALSE(manager.swap_out(together({&parent_, &child_}), outs_));
  EXPECT_TRUE(outs_.empty());
  EXPECT_EQ(blocks_of(child_), before);
  EXPECT_EQ(manager.figures().host_used_blocks, 0);
  EXPECT_TRUE(manager.swap_out(together({&parent_}), outs_)) << "three fit";
  manager.release(parent_.table);
  manager.release(child_.table);
}

TEST_F(Swap, OnlyComputedTokensMove) {
  Owner chunked(3, counting(16, 300));
  std::vector<BlockCopy> copies;
  manager_.grow(chunked.table, 16, copies);
  manager_.commit(chunked.table, chunked.content(), 5);
  ASSERT_TRUE(manager_.swap_out(together({&chunked}), outs_));
  EXPECT_EQ(outs_.size(), 2u);
  EXPECT_EQ(chunked.table.num_assigned_tokens(), 5);
  manager_.swap_in(together({&chunked}), ins_);
  manager_.grow(chunked.table, 16, copies);
  EXPECT_EQ(chunked.table.num_blocks(), 4);
  expect_whole(manager_, {&parent_, &child_, &chunked});
}

TEST_F(Swap, ATableWithoutAComputedTokenJustLosesItsBlocks) {
  Owner fresh(3, counting(5, 300));
  std::vector<BlockCopy> copies;
  manager_.grow(fresh.table, 5, copies);
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &fresh}), outs_));
  EXPECT_TRUE(fresh.table.empty());
  EXPECT_FALSE(fresh.table.is_swapped_out());
  expect_whole(manager_, {&parent_, &child_, &fresh});
}

TEST_F(Swap, WhoEndsWhileSwappedOutFreesTheHostPool) {
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  manager_.release_findable(parent_.table, parent_.content());
  EXPECT_EQ(manager_.figures().host_used_blocks, 3) << "its own block";
  manager_.release(child_.table);
  EXPECT_EQ(manager_.figures().host_used_blocks, 0);
  EXPECT_EQ(manager_.totals().peak_host_used_blocks, 4);
  expect_whole(manager_, {&parent_, &child_});
}

TEST_F(Swap, CountsExactlyTheBlocksThatASwappedGroupTakes) {
  ASSERT_TRUE(manager_.swap_out(together({&parent_}), outs_));
  manager_.reset_prefix_cache();
  const Growth growth{&parent_.table, 13};
  const std::int32_t announced =
      manager_.num_distinct_blocks(together({&parent_})) + manager_.num_blocks_to_grow({&growth, 1});
  const std::int32_t available = manager_.num_available();
  manager_.swap_in(together({&parent_}), ins_);
  std::vector<BlockCopy> copies;
  manager_.grow(parent_.table, 13, copies);
  EXPECT_EQ(available - manager_.num_available(), announced - 2) << "two are shared with the child that runs";
}

TEST_F(Swap, SharedWritesOfASwappedGroupAreCountedByTheHostPool) {
  Owner twin(3, child_.tokens);
  manager_.fork(child_.table, twin.table);
  ASSERT_TRUE(manager_.swap_out(together({&child_, &twin}), outs_));
  const Growth growths[] = {{&child_.table, 12}, {&twin.table, 12}};
  EXPECT_EQ(manager_.num_blocks_to_grow(growths), 1) << "one copies, the last owner writes in place";
  manager_.swap_in(together({&child_, &twin}), ins_);
  EXPECT_EQ(manager_.num_blocks_to_grow(growths), 1);
}

TEST_F(Swap, TheEventsNameBothBlocks) {
  manager_.events().take();
  ASSERT_TRUE(manager_.swap_out(together({&parent_, &child_}), outs_));
  manager_.swap_in(together({&parent_, &child_}), ins_);
  int num_outs = 0, num_ins = 0, num_drops = 0;
  for (const BlockEvent& event : manager_.events().take()) {
    if (event.kind == BlockEventKind::kSwapOut) {
      EXPECT_EQ(outs_[static_cast<std::size_t>(num_outs)].device_block.value, event.block);
      EXPECT_EQ(outs_[static_cast<std::size_t>(num_outs++)].host_block.value, event.aux);
    }
    num_ins += event.kind == BlockEventKind::kSwapIn;
    num_drops += event.kind == BlockEventKind::kSwapDrop;
  }
  EXPECT_EQ(num_outs, 4);
  EXPECT_EQ(num_ins, 2);
  EXPECT_EQ(num_drops, 4) << "also those that were not needed";
}

TEST_F(Swap, WithoutAPrefixCacheEverythingIsCopied) {
  BlockManager manager(
      {.block_size = 4, .num_blocks = 12, .num_host_blocks = 6, .enable_prefix_caching = false});
  parent_ = Owner(1, counting(10));
  child_ = Owner(2, counting(10));
  make_family(manager);
  ASSERT_TRUE(manager.swap_out(together({&parent_, &child_}), outs_));
  EXPECT_EQ(manager.swap_in(together({&parent_, &child_}), ins_).num_tokens(), 0);
  EXPECT_EQ(ins_.size(), 4u);
  expect_whole(manager, {&parent_, &child_});
}

}  // namespace
}  // namespace octavo::block
