// Which cached contents are given up first.
#include <gtest/gtest.h>

#include <vector>

#include "engine/block/block_manager.h"
#include "engine/block/prefix_cache.h"
#include "tests/block/owner.h"

namespace octavo::block {
namespace {

using enum RetentionClass;

// One-token blocks: the content of block i is token i.
class Retention : public ::testing::Test {
 protected:
  PrefixNodeId keep(std::int32_t id, RetentionClass retention, PrefixNodeId parent = kNoNode) {
    return cache_.insert(parent, Tokens{id}, "", BlockId{id}, retention).node;
  }
  void release(std::initializer_list<std::int32_t> ids) {
    for (const std::int32_t id : ids) EXPECT_TRUE(cache_.release(BlockId{id}).keeps_contents);
    EXPECT_EQ(cache_.broken_invariant(), std::nullopt);
  }
  void expect_evicted(std::initializer_list<std::int32_t> ids) {
    for (const std::int32_t id : ids) EXPECT_EQ(cache_.evict(), BlockId{id});
  }

  PrefixCache cache_{16, 1};  // at most four pins
};

TEST_F(Retention, TheLowestClassGoesFirstAndWithinItTheLeastRecentlyUsed) {
  keep(0, kSystemPrompt), keep(1, kScratch), keep(2, kChat), keep(3, kChat), keep(4, kScratch);
  release({0, 3, 2, 4, 1});
  expect_evicted({4, 1, 3, 2, 0});
  EXPECT_EQ(cache_.evict(), std::nullopt);
}

TEST_F(Retention, AParentStaysForAChildOfAHigherClass) {
  const auto root = keep(0, kScratch);
  keep(1, kSystemPrompt, root);
  keep(2, kChat);
  release({1, 0, 2});
  expect_evicted({2, 1, 0});
}

TEST_F(Retention, IsRaisedByWhoFindsTheContentAndNeverLowered) {
  const auto node = keep(0, kChat);
  cache_.raise_retention(node, kScratch);
  EXPECT_EQ(cache_.retention(node), kChat);
  cache_.raise_retention(node, kSystemPrompt);
  EXPECT_EQ(cache_.retention(node), kSystemPrompt);
}

TEST_F(Retention, WhatIsPinnedIsNotEvicted) {
  const auto root = keep(0, kPinned);
  keep(1, kPinned, root);
  keep(2, kSystemPrompt);
  release({1, 0, 2});
  EXPECT_EQ(cache_.num_pinned_unused(), 2);
  expect_evicted({2});
  EXPECT_EQ(cache_.evict(), std::nullopt);
  cache_.reuse(BlockId{0});
  EXPECT_EQ(cache_.num_pinned_unused(), 1);
  EXPECT_EQ(cache_.broken_invariant(), std::nullopt);
}

TEST_F(Retention, PinsStopAtAQuarterOfThePool) {
  std::vector<PrefixNodeId> nodes;
  for (std::int32_t id = 0; id < 6; ++id) nodes.push_back(keep(id, kPinned));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(cache_.retention(nodes[i]), i < 4 ? kPinned : kSystemPrompt);
}

TEST_F(Retention, OnlyWhatFollowsAPinCanBePinned) {
  const auto root = keep(0, kChat);
  EXPECT_EQ(cache_.retention(keep(1, kPinned, root)), kSystemPrompt);
  cache_.raise_retention(root, kPinned);
  EXPECT_EQ(cache_.retention(keep(2, kPinned, root)), kPinned);
}

TEST_F(Retention, ReleasedPinsAreWorthASystemPrompt) {
  const auto root = keep(0, kPinned);
  keep(1, kPinned, root);
  keep(2, kChat);
  keep(3, kPinned);
  release({1, 0, 2});
  cache_.release_pins();
  EXPECT_EQ(cache_.num_pinned_unused(), 0);
  EXPECT_EQ(cache_.retention(root), kSystemPrompt);
  EXPECT_EQ(cache_.broken_invariant(), std::nullopt);
  expect_evicted({2, 1, 0});
  EXPECT_EQ(cache_.retention(keep(4, kPinned)), kPinned) << "there is room for pins again";
}

TEST_F(Retention, ThePartialStartOfAPinnedBlockIsNotDisplaced) {
  PrefixCache cache(8, 4);
  cache.insert_partial(kNoNode, Tokens{1, 2}, "", BlockId{0}, kPinned);
  cache.release(BlockId{0});
  EXPECT_TRUE(cache.insert(kNoNode, Tokens{1, 2, 3, 4}, "", BlockId{1}).displaced.empty());
  EXPECT_TRUE(cache.is_holder(BlockId{0}));
}

TEST_F(Retention, AStartUnderAnotherSaltIsNotDisplaced) {
  PrefixCache cache(8, 4);
  cache.insert_partial(kNoNode, Tokens{1, 2}, "anna", BlockId{0});
  cache.release(BlockId{0});
  EXPECT_TRUE(cache.insert(kNoNode, Tokens{1, 2, 3, 4}, "", BlockId{1}).displaced.empty());
}

TEST_F(Retention, RemembersTheNewestEvictions) {
  keep(0, kScratch), keep(1, kScratch);
  release({0, 1});
  EXPECT_EQ(cache_.eviction_of(kNoNode, Tokens{0}, ""), std::nullopt) << "it is still there";
  EXPECT_EQ(cache_.evict({.step = 9, .by = SequenceId{5}}), BlockId{0});
  const auto eviction = cache_.eviction_of(kNoNode, Tokens{0}, "");
  ASSERT_TRUE(eviction.has_value());
  EXPECT_EQ(eviction->step, 9);
  EXPECT_EQ(eviction->by, SequenceId{5});
  EXPECT_EQ(cache_.eviction_of(kNoNode, Tokens{0}, "anna"), std::nullopt);
}

// ---- in the manager

TEST(BlockManagerRetention, BlocksOfSystemTokensAloneAreKeptAsASystemPrompt) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner owner(1, counting(14));
  owner.retention = kChat;
  owner.num_system_tokens = 9;
  owner.compute(manager);
  manager.release_findable(owner.table, owner.content());
  std::vector<RetentionClass> classes;
  for (const BlockSnapshot& block : manager.snapshot({})) {
    if (block.findable) classes.push_back(block.retention);
  }
  EXPECT_EQ(classes, (std::vector{kSystemPrompt, kSystemPrompt, kChat, kChat}));
}

TEST(BlockManagerRetention, AChatOutlivesScratchThatWasUsedLater) {
  BlockManager manager({.block_size = 4, .num_blocks = 4});
  Owner chat(1, counting(8)), scratch(2, counting(8, 100)), greedy(3, counting(8, 200));
  chat.retention = kChat;
  for (Owner* owner : {&chat, &scratch}) {
    owner->compute(manager);
    manager.release_findable(owner->table, owner->content());
  }
  greedy.compute(manager);
  EXPECT_EQ(manager.match(chat.table, chat.content(), 8).num_blocks, 2);
  EXPECT_EQ(manager.match(scratch.table, scratch.content(), 8).num_blocks, 0);
}

TEST(BlockManagerRetention, WhatIsPinnedIsNotAvailableUntilPinsAreReleased) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner owner(1, counting(16));
  owner.retention = kPinned;
  owner.compute(manager);
  manager.release_findable(owner.table, owner.content());
  EXPECT_EQ(manager.figures().cached_blocks, 4);
  EXPECT_EQ(manager.num_available(), 6) << "a quarter of the pool can be pinned";
  manager.release_pins();
  EXPECT_EQ(manager.num_available(), 8);
}

TEST(BlockManagerRetention, AResetForgetsPinsToo) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner owner(1, counting(8));
  owner.retention = kPinned;
  owner.compute(manager);
  manager.release_findable(owner.table, owner.content());
  manager.reset_prefix_cache();
  EXPECT_EQ(manager.figures().free_blocks, 8);
}

}  // namespace
}  // namespace octavo::block
