#include "engine/block/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/block/seed.h"

namespace octavo::block {
namespace {

TEST(BlockPool, HandsOutAFreshPoolInAscendingOrder) {
  BlockPool pool(3, 16);
  EXPECT_EQ(pool.take(), BlockId{0});
  EXPECT_EQ(pool.take(), BlockId{1});
  EXPECT_EQ(pool.take(), BlockId{2});
  EXPECT_EQ(pool.num_free(), 0);
}

TEST(BlockPool, ReusesTheBlockThatWasDiscardedLast) {
  BlockPool pool(4, 16);
  const BlockId first = pool.take();
  const BlockId second = pool.take();
  for (const BlockId block : {second, first}) {
    pool.unref(block);
    pool.discard(block);
  }
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.take(), second);
}

TEST(BlockPool, KeepsContentsUntilTheyAreDiscarded) {
  BlockPool pool(2, 16);
  const BlockId block = pool.take();
  pool.set_assigned(block, 16);
  pool.set_filled(block, 16);
  EXPECT_EQ(pool.unref(block), 0);
  EXPECT_EQ(pool.at(block).state, BlockState::kCached);
  EXPECT_EQ(pool.num_cached(), 1);
  EXPECT_EQ(pool.ref(block), 1);
  EXPECT_EQ(pool.at(block).num_filled, 16);
  pool.unref(block);
  pool.discard(block);
  EXPECT_EQ(pool.at(block).num_filled, 0);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, CountsSlotsAssignedAheadApartFromUnfilledOnes) {
  BlockPool pool(2, 16);
  const BlockId block = pool.take();
  EXPECT_EQ(pool.num_unfilled_slots(), 16);
  pool.set_assigned(block, 10);
  EXPECT_EQ(pool.num_unfilled_slots(), 6);
  pool.set_filled(block, 4);
  EXPECT_EQ(pool.num_unfilled_slots(), 6) << "slots of tokens that are not computed yet are no waste";
}

TEST(BlockPool, TakesBackWhatWasAssignedAndNotFilled) {
  BlockPool pool(2, 16);
  const BlockId block = pool.take();
  pool.set_assigned(block, 10);
  pool.set_filled(block, 4);
  pool.unassign_unfilled(block);
  EXPECT_EQ(pool.num_reserved_slots(), 0);
  EXPECT_EQ(pool.num_filled_slots(), 4);
  EXPECT_EQ(pool.num_unfilled_slots(), 12);
  pool.set_assigned(block, 5);
  EXPECT_EQ(pool.num_reserved_slots(), 1);
  EXPECT_EQ(pool.broken_invariant(), std::nullopt);
}

TEST(BlockPool, StopsAtWhatNoCallerMayDo) {
  BlockPool pool(1, 4);
  EXPECT_DEATH(pool.unassign_unfilled(BlockId{0}), "nobody uses block 0");
  EXPECT_DEATH(pool.unref(BlockId{0}), "has no reference");
  EXPECT_DEATH(pool.ref(BlockId{0}), "is free");
  EXPECT_DEATH(pool.ref(BlockId{1}), "block 1 of 1");
  EXPECT_DEATH(pool.ref(BlockId{-1}), "block -1 of 1");
  EXPECT_DEATH(pool.set_assigned(BlockId{0}, 1), "1 slots after 0");
  EXPECT_DEATH(pool.set_filled(BlockId{0}, 0), "0 slots after 0");
  const BlockId block = pool.take();
  EXPECT_DEATH(pool.take(), "no free block");
  EXPECT_DEATH(pool.take(block), "block 0 is not free");
  EXPECT_DEATH(pool.unpin(block), "block 0 is not pinned");
  EXPECT_DEATH(pool.discard(block), "is not cached");
  EXPECT_DEATH(pool.set_assigned(block, 5), "5 slots");
  EXPECT_DEATH(pool.set_filled(block, 1), "0 assigned");
  pool.set_assigned(block, 3);
  pool.set_filled(block, 2);
  EXPECT_DEATH(pool.set_assigned(block, 2), "2 slots after 3");
  EXPECT_DEATH(pool.set_filled(block, 1), "1 slots after 2");
  pool.pin(block);
  pool.unref(block);
  EXPECT_DEATH(pool.unref(block), "has no reference") << "what is left is a pin";
  EXPECT_DEATH(BlockPool(1, 0), "block size 0");
}

TEST(BlockPool, GivesOutACertainBlock) {
  BlockPool pool(4, 16);
  pool.take(BlockId{2});
  EXPECT_EQ(pool.at(BlockId{2}).ref_count, 1);
  for (const std::int32_t id : {0, 1, 3}) EXPECT_EQ(pool.take(), BlockId{id});
}

TEST(BlockPool, APinKeepsABlockThatNoTableNames) {
  BlockPool pool(1, 16);
  const BlockId block = pool.take();
  EXPECT_EQ(pool.pin(block), 2);
  EXPECT_EQ(pool.unref(block), 1);
  EXPECT_EQ(pool.at(block).state, BlockState::kUsed);
  EXPECT_EQ(pool.unpin(block), 0);
  EXPECT_EQ(pool.at(block).state, BlockState::kCached);
}

TEST(BlockPool, NotesTheStepOfTheLastChange) {
  BlockPool pool(2, 16);
  pool.begin_step(3);
  const BlockId block = pool.take();
  EXPECT_EQ(pool.at(block).last_step, 3);
  pool.begin_step(5);
  pool.set_assigned(block, 1);
  pool.set_filled(block, 1);
  EXPECT_EQ(pool.at(block).last_step, 5);
}

// Against sets and maps that know nothing of states or free lists.
TEST(BlockPool, AgreesWithANaiveModelUnderRandomCalls) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::int32_t>(random() % bound); };
  for (int round = 0; round < 50; ++round) {
    const std::int32_t num_blocks = 1 + below(12);
    BlockPool pool(num_blocks, 8);
    std::map<BlockId, std::int32_t> references;  // of what is not free
    std::map<BlockId, std::int32_t> assigned;
    for (int call = 0; call < 400; ++call) {
      const BlockId block{below(static_cast<std::size_t>(num_blocks))};
      const bool is_known = references.contains(block);
      switch (below(5)) {
        case 0:
          if (references.size() == static_cast<std::size_t>(num_blocks)) break;
          {
            const BlockId taken = pool.take();
            ASSERT_FALSE(references.contains(taken)) << "block " << taken.value << " was not free";
            references[taken] = 1;
            assigned[taken] = 0;
          }
          break;
        case 1:
          if (is_known) {
            ASSERT_EQ(pool.ref(block), ++references[block]);
          }
          break;
        case 2:
          if (is_known && references[block] > 0) {
            ASSERT_EQ(pool.unref(block), --references[block]);
            if (references[block] == 0) assigned[block] = 0;  // nobody is left who would fill them
          }
          break;
        case 3:
          if (is_known && references[block] == 0) {
            pool.discard(block);
            references.erase(block);
          }
          break;
        default:
          if (is_known && references[block] > 0) {
            assigned[block] += below(static_cast<std::size_t>(9 - assigned[block]));
            pool.set_assigned(block, assigned[block]);
          }
      }
      std::int32_t num_used = 0;
      std::int64_t num_unfilled = 0;
      for (const auto& [id, count] : references) {
        if (count == 0) continue;
        ++num_used;
        num_unfilled += 8 - assigned[id];
      }
      ASSERT_EQ(pool.num_used(), num_used);
      ASSERT_EQ(pool.num_cached(), static_cast<std::int32_t>(references.size()) - num_used);
      ASSERT_EQ(pool.num_free(), num_blocks - static_cast<std::int32_t>(references.size()));
      ASSERT_EQ(pool.num_unfilled_slots(), num_unfilled);
      ASSERT_EQ(pool.broken_invariant(), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace octavo::block
