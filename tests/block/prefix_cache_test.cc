#include "engine/block/prefix_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace octavo::block {
namespace {

using Tokens = std::vector<TokenId>;

std::uint64_t constant_hash(std::uint64_t, std::span<const TokenId>) { return 42; }

TEST(PrefixCache, FindsABlockByParentTokensAndSalt) {
  PrefixCache cache(8, 2);
  const auto root = cache.insert(kNoNode, Tokens{1, 2}, "anna", BlockId{0});
  const auto child = cache.insert(root.node, Tokens{3, 4}, "anna", BlockId{1});
  EXPECT_TRUE(root.is_holder && child.is_holder);
  EXPECT_EQ(cache.find(kNoNode, Tokens{1, 2}, "anna"), root.node);
  EXPECT_EQ(cache.find(root.node, Tokens{3, 4}, "anna"), child.node);
  EXPECT_EQ(cache.parent_block(BlockId{1}), BlockId{0});
  EXPECT_EQ(cache.parent_block(BlockId{0}), kNoBlock);
  EXPECT_EQ(cache.find(kNoNode, Tokens{1, 2}, "ben"), std::nullopt);
  EXPECT_EQ(cache.find(kNoNode, Tokens{3, 4}, "anna"), std::nullopt) << "the parent belongs to the key";
  EXPECT_EQ(cache.find(root.node, Tokens{3, 5}, "anna"), std::nullopt);
}

TEST(PrefixCache, ComparesTokensWhenEveryHashCollides) {
  PrefixCache cache(16, 2, &constant_hash);
  std::vector<PrefixNodeId> roots;
  for (std::int32_t i = 0; i < 4; ++i) {
    roots.push_back(cache.insert(kNoNode, Tokens{i, i}, "", BlockId{i}).node);
  }
  for (std::int32_t i = 0; i < 4; ++i) {  // equal tokens behind different parents
    cache.insert(roots[static_cast<std::size_t>(i)], Tokens{9, 9}, "", BlockId{4 + i});
  }
  for (std::int32_t i = 0; i < 4; ++i) {
    const auto root = cache.find(kNoNode, Tokens{i, i}, "");
    ASSERT_TRUE(root.has_value());
    EXPECT_EQ(cache.holder(*root), BlockId{i});
    EXPECT_EQ(cache.holder(*cache.find(*root, Tokens{9, 9}, "")), BlockId{4 + i});
  }
  EXPECT_EQ(cache.find(kNoNode, Tokens{9, 9}, ""), std::nullopt);
  EXPECT_EQ(cache.find(kNoNode, Tokens{1, 1}, "salt"), std::nullopt);
  EXPECT_EQ(cache.broken_invariant(), std::nullopt);
}

TEST(PrefixCache, EvictsLeavesBeforeParentsAndTheLeastRecentlyUsedFirst) {
  PrefixCache cache(8, 1);
  // Two chains 0 - 1 - 2 and 3 - 4; released tail first, the second one last.
  const auto a0 = cache.insert(kNoNode, Tokens{0}, "", BlockId{0}).node;
  const auto a1 = cache.insert(a0, Tokens{1}, "", BlockId{1}).node;
  cache.insert(a1, Tokens{2}, "", BlockId{2});
  const auto b0 = cache.insert(kNoNode, Tokens{3}, "", BlockId{3}).node;
  cache.insert(b0, Tokens{4}, "", BlockId{4});
  for (const std::int32_t id : {2, 1, 0, 4, 3}) EXPECT_TRUE(cache.release(BlockId{id}).keeps_contents);
  for (const std::int32_t id : {2, 1, 0, 4, 3}) EXPECT_EQ(cache.evict(), BlockId{id});
  EXPECT_EQ(cache.evict(), std::nullopt);
}

TEST(PrefixCache, KeepsAnOldParentWhileAYoungerChildIsCached) {
  PrefixCache cache(4, 1);
  const auto root = cache.insert(kNoNode, Tokens{0}, "", BlockId{0}).node;
  cache.release(BlockId{0});
  cache.reuse(BlockId{0});
  cache.insert(root, Tokens{1}, "", BlockId{1});
  const auto other = cache.insert(kNoNode, Tokens{2}, "", BlockId{2}).node;
  cache.release(BlockId{2});
  cache.release(BlockId{0});  // before its child, as no sequence does
  cache.release(BlockId{1});
  EXPECT_EQ(cache.holder(other), BlockId{2});
  EXPECT_EQ(cache.evict(), BlockId{2}) << "released before the others";
  EXPECT_EQ(cache.evict(), BlockId{1}) << "a leaf";
  EXPECT_EQ(cache.evict(), BlockId{0});
}

TEST(PrefixCache, KeepsTheFirstOfTwoEqualBlocksFindable) {
  PrefixCache cache(4, 1);
  const auto first = cache.insert(kNoNode, Tokens{7}, "", BlockId{0});
  const auto second = cache.insert(kNoNode, Tokens{7}, "", BlockId{1});
  EXPECT_FALSE(second.is_holder);
  EXPECT_EQ(second.node, first.node);
  EXPECT_EQ(cache.holder(first.node), BlockId{0});
  EXPECT_FALSE(cache.release(BlockId{1}).keeps_contents) << "its content is held twice";
  EXPECT_TRUE(cache.release(BlockId{0}).keeps_contents);
}

TEST(PrefixCache, LetsADuplicateInUseSucceedTheHolder) {
  PrefixCache cache(6, 1);
  const auto node = cache.insert(kNoNode, Tokens{7}, "", BlockId{0}).node;
  cache.insert(kNoNode, Tokens{7}, "", BlockId{1});
  cache.insert(kNoNode, Tokens{7}, "", BlockId{2});
  const auto child = cache.insert(node, Tokens{8}, "", BlockId{3}).node;
  const auto released = cache.release(BlockId{0});
  EXPECT_FALSE(released.keeps_contents);
  EXPECT_EQ(released.successor, BlockId{1}) << "the oldest duplicate";
  EXPECT_EQ(cache.holder(node), BlockId{1});
  EXPECT_EQ(cache.find(node, Tokens{8}, ""), child) << "its children stay";
  EXPECT_EQ(cache.parent_block(BlockId{3}), BlockId{1});
  EXPECT_EQ(cache.evict(), std::nullopt);
  EXPECT_EQ(cache.broken_invariant(), std::nullopt);
}

TEST(PrefixCache, PutsAUsedBlockInTheCachedOnesPlace) {
  PrefixCache cache(4, 1);
  const auto node = cache.insert(kNoNode, Tokens{7}, "", BlockId{0}).node;
  cache.release(BlockId{0});
  const auto inserted = cache.insert(kNoNode, Tokens{7}, "", BlockId{1});
  EXPECT_TRUE(inserted.is_holder);
  EXPECT_EQ(inserted.displaced, std::vector{BlockId{0}});
  EXPECT_EQ(cache.holder(node), BlockId{1});
  EXPECT_EQ(cache.evict(), std::nullopt) << "the content is in use again";
  EXPECT_EQ(cache.broken_invariant(), std::nullopt);
}

TEST(PrefixCache, StopsAtWhatNoCallerMayDo) {
  PrefixCache cache(4, 2);
  EXPECT_DEATH(cache.insert(kNoNode, Tokens{1}, "", BlockId{0}), "1 tokens in a block of 2");
  const auto node = cache.insert(kNoNode, Tokens{1, 2}, "", BlockId{0}).node;
  EXPECT_DEATH(cache.insert(kNoNode, Tokens{1, 3}, "", BlockId{0}), "has contents");
  EXPECT_DEATH(cache.reuse(BlockId{0}), "waits for use");
  EXPECT_DEATH(cache.reuse(BlockId{1}), "waits for use");
  EXPECT_DEATH(cache.find(kNoNode, Tokens{1}, ""), "1 tokens in a block of 2");
  EXPECT_DEATH(cache.insert_partial(kNoNode, Tokens{}, "", BlockId{1}), "0 tokens of a block of 2");
  EXPECT_DEATH(cache.insert_partial(kNoNode, Tokens{1, 2}, "", BlockId{1}), "2 tokens of a block of 2");
  EXPECT_DEATH(cache.insert_partial(kNoNode, Tokens{1}, "", BlockId{0}), "has contents");
  cache.release(BlockId{0});
  EXPECT_DEATH(cache.raise_retention(node, RetentionClass::kChat), "is not in use");
  EXPECT_DEATH(cache.insert(node, Tokens{1, 3}, "", BlockId{1}), "is not in use");
}

}  // namespace
}  // namespace octavo::block
