#include "engine/block/block_manager.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/block/owner.h"

namespace octavo::block {
namespace {

TEST(BlockManager, TakesABlockOnlyWhenTheLastOneIsFull) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner owner(1, {});
  for (std::int32_t length = 1; length <= 12; ++length) {
    owner.tokens.push_back(length);
    owner.compute(manager);
    EXPECT_EQ(owner.table.num_blocks(), (length + 3) / 4);
    EXPECT_EQ(manager.figures().unfilled_slots, (4 - length % 4) % 4);
  }
  expect_whole(manager, {&owner});
}

TEST(BlockManager, TrimGivesBackWhatWasNotComputed) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner owner(1, counting(7));
  owner.compute(manager);
  std::vector<BlockCopy> copies;
  manager.grow(owner.table, 7 + 6, copies);
  EXPECT_EQ(owner.table.num_blocks(), 4);
  EXPECT_EQ(manager.figures().reserved_ahead_slots, 6);
  owner.tokens.push_back(7);
  manager.commit(owner.table, owner.content(), 8);
  manager.trim(owner.table);
  EXPECT_EQ(owner.table.num_blocks(), 2);
  EXPECT_EQ(owner.table.num_assigned_tokens(), 8);
  EXPECT_EQ(manager.figures().used_blocks, 2);
  EXPECT_EQ(manager.figures().free_blocks, 6) << "nothing of what was not computed is kept";
  EXPECT_EQ(manager.figures().reserved_ahead_slots, 0);
  expect_whole(manager, {&owner});
}

TEST(BlockManager, TrimLeavesAContiguousRunWhole) {
  BlockManager manager({.block_size = 4, .num_blocks = 8, .enable_prefix_caching = false, .largest_run = 8});
  Owner owner(1, counting(5));
  manager.reserve(owner.table, 8);
  std::vector<BlockCopy> copies;
  manager.grow(owner.table, 11, copies);
  manager.commit(owner.table, owner.content(), 5);
  manager.trim(owner.table);
  EXPECT_EQ(owner.table.num_blocks(), 8);
  EXPECT_EQ(owner.table.num_assigned_tokens(), 5);
  EXPECT_EQ(manager.figures().reserved_ahead_slots, 0);
  expect_whole(manager, {&owner});
}

TEST(BlockManager, ForkSharesBlocksUntilFirstWrite) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner parent(1, counting(6));
  Owner child(2, parent.tokens);
  parent.compute(manager);
  manager.fork(parent.table, child.table);
  EXPECT_TRUE(std::ranges::equal(parent.table.blocks(), child.table.blocks()));
  EXPECT_EQ(manager.figures().used_blocks, 2);
  EXPECT_EQ(manager.figures().logical_blocks, 4);

  const BlockId shared = parent.table.blocks()[1];
  parent.tokens.push_back(100);
  child.tokens.push_back(200);
  const auto copies = parent.compute(manager);
  ASSERT_EQ(copies.size(), 1u) << "the first writer copies";
  EXPECT_EQ(copies[0].source, shared);
  EXPECT_EQ(copies[0].target, parent.table.blocks()[1]);
  EXPECT_TRUE(child.compute(manager).empty()) << "the last owner writes in place";
  EXPECT_EQ(child.table.blocks()[1], shared);
  EXPECT_EQ(parent.table.blocks()[0], child.table.blocks()[0]) << "full blocks stay shared";
  EXPECT_EQ(manager.totals().cow_copies, 1);
  expect_whole(manager, {&parent, &child});
}

TEST(BlockManager, ForkAtABlockBorderCopiesNothing) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner parent(1, counting(8));
  Owner child(2, parent.tokens);
  parent.compute(manager);
  manager.fork(parent.table, child.table);
  parent.tokens.push_back(100);
  child.tokens.push_back(200);
  EXPECT_TRUE(parent.compute(manager).empty());
  EXPECT_TRUE(child.compute(manager).empty());
  EXPECT_EQ(manager.figures().used_blocks, 4);
}

TEST(BlockManager, CountsExactlyTheBlocksThatAGroupTakes) {
  for (std::int32_t num_prompt = 1; num_prompt <= 9; ++num_prompt) {
    for (std::size_t n = 1; n <= 5; ++n) {
      BlockManager manager({.block_size = 4, .num_blocks = 64});
      std::vector<Owner> owners;
      for (std::size_t i = 0; i < n; ++i) owners.emplace_back(i + 1, counting(num_prompt));
      owners[0].compute(manager);
      for (std::size_t i = 1; i < n; ++i) manager.fork(owners[0].table, owners[i].table);
      std::vector<Growth> growths;
      for (const Owner& owner : owners) growths.push_back({&owner.table, num_prompt + 1});
      const std::int32_t announced = manager.num_blocks_to_grow(growths);
      const std::int32_t available = manager.num_available();
      std::vector<BlockCopy> copies;
      for (Owner& owner : owners) manager.grow(owner.table, num_prompt + 1, copies);
      EXPECT_EQ(available - manager.num_available(), announced) << num_prompt << " tokens, n = " << n;
      EXPECT_EQ(copies.size(), num_prompt % 4 == 0 ? 0 : n - 1);
      std::set<BlockId> targets;
      for (const BlockCopy& copy : copies) EXPECT_TRUE(targets.insert(copy.target).second);
      for (const BlockCopy& copy : copies) EXPECT_FALSE(targets.contains(copy.source));
    }
  }
}

TEST(BlockManager, FindsPromptAndGeneratedBlocksOfAFinishedSequence) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner first(1, counting(10));
  first.compute(manager);
  const std::vector<BlockId> blocks(first.table.blocks().begin(), first.table.blocks().end());
  manager.release(first.table);
  EXPECT_EQ(manager.figures().cached_blocks, 2);
  EXPECT_EQ(manager.figures().free_blocks, 6) << "the partly filled block is free";

  Owner second(2, counting(13));
  const auto match = manager.match(second.table, second.content(), 12);
  EXPECT_EQ(match.num_blocks, 2);
  EXPECT_EQ(match.num_used_blocks, 0);
  EXPECT_EQ(manager.append_match(second.table, second.content(), 12).num_hit_cached, 8);
  EXPECT_EQ(second.table.blocks()[0], blocks[0]);
  EXPECT_EQ(second.table.blocks()[1], blocks[1]);
  expect_whole(manager, {&second});
}

TEST(BlockManager, FindsBlocksOfARunningSequenceOnceTheyAreComputed) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner first(1, counting(8));
  Owner second(2, counting(8));
  std::vector<BlockCopy> copies;
  manager.grow(first.table, 8, copies);
  EXPECT_EQ(manager.match(second.table, second.content(), 8).num_blocks, 0) << "slots alone are no contents";
  manager.commit(first.table, first.content(), 6);
  EXPECT_EQ(manager.match(second.table, second.content(), 8).num_blocks, 1);
  manager.commit(first.table, first.content(), 8);
  const auto match = manager.match(second.table, second.content(), 8);
  EXPECT_EQ(match.num_blocks, 2);
  EXPECT_EQ(match.num_used_blocks, 2);
  EXPECT_EQ(manager.append_match(second.table, second.content(), 7).num_hit_live, 4)
      << "as far as it was asked to look";
  expect_whole(manager, {&first, &second});
}

TEST(BlockManager, LookingUpChangesNothing) {
  BlockManager manager({.block_size = 2, .num_blocks = 3});
  Owner old(1, counting(2)), young(2, counting(2, 50));
  for (Owner* owner : {&old, &young}) owner->compute(manager);
  for (Owner* owner : {&old, &young}) manager.release(owner->table);
  Owner reader(3, counting(4));
  for (int i = 0; i < 5; ++i) manager.match(reader.table, reader.content(), 4);  // no touch of `old`
  Owner big(4, counting(4, 90));
  big.compute(manager);  // one free block, one eviction
  EXPECT_EQ(manager.match(reader.table, reader.content(), 4).num_blocks, 0) << "the oldest was evicted";
  EXPECT_EQ(manager.match(young.table, young.content(), 2).num_blocks, 1);
}

TEST(BlockManager, SaltsAreSeparate) {
  BlockManager manager({.block_size = 2, .num_blocks = 8});
  Owner first(1, counting(4));
  first.salt = "anna";
  first.compute(manager);
  Owner second(2, counting(4));
  EXPECT_EQ(manager.match(second.table, second.content(), 4).num_blocks, 0);
  second.salt = "anna";
  EXPECT_EQ(manager.match(second.table, second.content(), 4).num_blocks, 2);
}

TEST(BlockManager, FreeBlocksAreTakenBeforeCachedOnesAndTailsBeforeHeads) {
  BlockManager manager({.block_size = 2, .num_blocks = 4});
  Owner first(1, counting(6));
  first.compute(manager);
  const std::vector<BlockId> chain(first.table.blocks().begin(), first.table.blocks().end());
  manager.release(first.table);
  Owner second(2, counting(2, 100));
  second.compute(manager);
  EXPECT_EQ(manager.totals().evicted_cached_blocks, 0);
  for (const std::int32_t length : {4, 6, 8}) {
    second.tokens = counting(length, 100);
    second.compute(manager);
    EXPECT_EQ(second.table.blocks().back(), chain[static_cast<std::size_t>(4 - length / 2)]);
  }
  EXPECT_EQ(manager.totals().evicted_cached_blocks, 3);
}

TEST(BlockManager, LetsTheLastBlockGoFirst) {
  BlockManager manager({.block_size = 2, .num_blocks = 4});
  Owner owner(1, counting(6));
  owner.compute(manager);
  const std::vector<BlockId> blocks(owner.table.blocks().begin(), owner.table.blocks().end());
  manager.events().take();
  manager.release(owner.table);
  const auto events = manager.events().take();
  ASSERT_EQ(events.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(events[i].block, blocks[2 - i].value);
}

TEST(BlockManager, ComputesNothingTwiceInMemoryOnceADuplicateIsReleased) {
  BlockManager manager({.block_size = 2, .num_blocks = 8});
  Owner first(1, counting(6)), second(2, counting(7));
  first.compute(manager);
  second.compute(manager);  // as of requests that were admitted in one step
  EXPECT_EQ(manager.figures().used_blocks, 7);
  manager.release(first.table);
  EXPECT_EQ(manager.figures().cached_blocks, 0) << "the second one's blocks took over";
  EXPECT_EQ(manager.figures().free_blocks, 4);
  Owner third(3, counting(6));
  EXPECT_EQ(manager.match(third.table, third.content(), 6).num_used_blocks, 3);
  expect_whole(manager, {&first, &second});
}

TEST(BlockManager, ASequenceThatDidNotReadTheCacheTakesThePlaceOfCachedCopies) {
  BlockManager manager({.block_size = 2, .num_blocks = 8});
  Owner first(1, counting(4)), second(2, counting(4));
  first.compute(manager);
  manager.release(first.table);
  second.compute(manager);
  EXPECT_EQ(manager.figures().used_blocks, 2);
  EXPECT_EQ(manager.figures().cached_blocks, 0);
  EXPECT_EQ(manager.match(first.table, first.content(), 4).num_used_blocks, 2);
  expect_whole(manager, {&second});
}

TEST(BlockManager, WithoutPrefixCacheNothingIsKept) {
  BlockManager manager({.block_size = 2, .num_blocks = 8, .enable_prefix_caching = false});
  Owner first(1, counting(4));
  first.compute(manager);
  BlockTable other(SequenceId{2});
  EXPECT_EQ(manager.match(other, first.content(), 4).num_blocks, 0);
  manager.release(first.table);
  EXPECT_EQ(manager.figures().free_blocks, 8);
  EXPECT_EQ(manager.append_match(first.table, first.content(), 4).num_tokens(), 0);
}

// Hashes are counted: what was found is looked up once, and what was evicted since is not believed.
std::int32_t num_hashed = 0;

TEST(BlockManager, AskingAgainHashesOnlyWhatIsNew) {
  BlockManager manager({.block_size = 2, .num_blocks = 8, .hash = [](std::uint64_t parent, auto token_ids) {
                          ++num_hashed;
                          return hash_tokens(parent, token_ids);
                        }});
  Owner first(1, counting(8)), waiting(2, counting(12)), newer(3, counting(12));
  first.compute(manager);
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_blocks, 4);
  num_hashed = 0;
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_blocks, 4);
  EXPECT_EQ(num_hashed, 1) << "of the block that nobody has";
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 5).num_blocks, 2) << "fewer are asked for";
  manager.append_match(newer.table, newer.content(), 11);
  newer.compute(manager);
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_blocks, 5) << "one more is there";
  manager.release(newer.table);
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_used_blocks, 4);
  manager.reset_prefix_cache();
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_blocks, 4);
  Owner other(4, counting(8, 70));  // in the places of what is forgotten
  manager.release(first.table);
  manager.reset_prefix_cache();
  other.compute(manager);
  EXPECT_EQ(manager.match(waiting.table, waiting.content(), 11).num_blocks, 0);
  expect_whole(manager, {&other});
}

TEST(BlockManager, ResetDropsWhatNobodyUses) {
  BlockManager manager({.block_size = 2, .num_blocks = 8});
  Owner first(1, counting(4)), second(2, counting(4, 70));
  first.compute(manager);
  second.compute(manager);
  manager.release(first.table);
  manager.reset_prefix_cache();
  EXPECT_EQ(manager.figures().cached_blocks, 0);
  EXPECT_EQ(manager.match(first.table, first.content(), 4).num_blocks, 0);
  BlockTable other(SequenceId{3});
  EXPECT_EQ(manager.match(other, second.content(), 4).num_blocks, 2);
  expect_whole(manager, {&first, &second});
}

TEST(BlockManager, FiguresFollowTheirDefinitions) {
  BlockManager manager({.block_size = 4, .num_blocks = 10, .bytes_per_block = 1000});
  EXPECT_EQ(manager.figures().sharing_ratio, 1.0);
  Owner first(1, counting(6)), second(2, counting(6)), cached(3, counting(4, 60));
  cached.compute(manager);
  manager.release(cached.table);
  first.compute(manager);
  manager.fork(first.table, second.table);
  const KvFigures figures = manager.figures();
  EXPECT_EQ(figures.used_blocks, 2);
  EXPECT_EQ(figures.cached_blocks, 1);
  EXPECT_EQ(figures.free_blocks, 7);
  EXPECT_EQ(figures.logical_blocks, 4);
  EXPECT_DOUBLE_EQ(figures.sharing_ratio, 2.0);
  EXPECT_EQ(figures.saved_bytes, 2000);
  EXPECT_EQ(figures.unfilled_slots, 2);
  EXPECT_DOUBLE_EQ(figures.internal_fragmentation, 0.25);
  EXPECT_EQ(manager.totals().peak_logical_blocks, 0) << "peaks are noted when a step ends";
  manager.end_step();
  EXPECT_EQ(manager.totals().peak_used_blocks, 2);
  EXPECT_EQ(manager.totals().peak_logical_blocks, 4);

  const OwnedTable tables[] = {{&second.table, second.content()}, {&first.table, first.content()}};
  const auto blocks = manager.snapshot(tables);
  ASSERT_EQ(blocks.size(), 10u);
  const auto& last = blocks[static_cast<std::size_t>(first.table.blocks()[1].value)];
  EXPECT_EQ(last.state, BlockState::kUsed);
  EXPECT_EQ(last.ref_count, 2);
  EXPECT_EQ(last.filled, 2);
  EXPECT_EQ(last.first_owner, SequenceId{1});
}

TEST(BlockManager, StopsAtWhatNoCallerMayDo) {
  BlockManager manager({.block_size = 4, .num_blocks = 2});
  Owner owner(1, counting(8)), other(2, counting(8, 40));
  std::vector<BlockCopy> copies;
  manager.grow(owner.table, 8, copies);
  EXPECT_DEATH(manager.grow(other.table, 1, copies), "all 2 blocks are in use");
  EXPECT_DEATH(manager.commit(owner.table, owner.content(), 9), "9 computed tokens");
  EXPECT_DEATH(manager.fork(owner.table, other.table), "0 of 8 tokens are computed");
  manager.commit(owner.table, owner.content(), 8);
  manager.fork(owner.table, other.table);
  EXPECT_DEATH(manager.fork(owner.table, other.table), "sequence 2 has 2 blocks");
  EXPECT_DEATH(manager.commit(owner.table, owner.content(), 8), "8 computed tokens after 8");
  BlockTable third(SequenceId{3});
  EXPECT_DEATH(manager.share_start(owner.table, third, 3), "3 blocks of 8 computed tokens");
  EXPECT_DEATH(BlockManager({.block_size = 4, .num_blocks = 8, .largest_run = 4}), "cannot be shared");
}

TEST(BlockManager, RunsAreReservedOnceAndOnlyWhereTheyFit) {
  BlockManager manager({.block_size = 4, .num_blocks = 8, .enable_prefix_caching = false, .largest_run = 8});
  Owner owner(1, counting(10)), other(2, counting(10));
  const std::int32_t twice[] = {4, 4}, thrice[] = {4, 4, 4};
  EXPECT_TRUE(manager.can_reserve(twice));
  EXPECT_FALSE(manager.could_ever_reserve(thrice));
  manager.reserve(owner.table, 3);
  EXPECT_EQ(owner.table.num_blocks(), 4);
  EXPECT_FALSE(manager.can_reserve(twice));
  EXPECT_DEATH(manager.reserve(owner.table, 4), "sequence 1 has 4 blocks");
  EXPECT_DEATH(manager.reserve(other.table, 8), "no run of 8 blocks");
  owner.compute(manager);
  EXPECT_EQ(owner.table.num_blocks(), 4) << "it grows in its run";
  manager.release(owner.table);
  EXPECT_EQ(manager.figures().free_blocks, 8);
  EXPECT_TRUE(manager.can_reserve(twice));
  manager.release(other.table);  // which has nothing
}

TEST(BlockManager, SharingAStartTakesFullBlocksOnly) {
  for (const bool caches : {true, false}) {
    BlockManager manager({.block_size = 4, .num_blocks = 8, .enable_prefix_caching = caches});
    Owner source(1, counting(11)), child(2, counting(9)), none(3, counting(2));
    source.compute(manager);
    manager.share_start(source.table, child.table, 2);
    EXPECT_EQ(child.table.num_computed_tokens(), 8);
    EXPECT_EQ(child.table.blocks()[1], source.table.blocks()[1]);
    EXPECT_TRUE(child.compute(manager).empty()) << "nothing that it writes is shared";
    manager.share_start(source.table, none.table, 0);
    EXPECT_TRUE(none.table.empty());
    expect_whole(manager, {&source, &child, &none});
  }
}

}  // namespace
}  // namespace octavo::block
