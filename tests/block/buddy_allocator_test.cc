#include "engine/block/buddy_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/block/seed.h"

namespace octavo::block {
namespace {

std::vector<BlockRun> take_all(BuddyAllocator& buddies, std::int32_t num_blocks) {
  std::vector<BlockRun> runs;
  while (auto run = buddies.take(num_blocks)) runs.push_back(*run);
  return runs;
}

TEST(BuddyAllocator, CutsThePoolOfThePaperIntoSevenLargestChunksAndATail) {
  BuddyAllocator buddies(983, 128);
  EXPECT_EQ(buddies.num_free_blocks(), 983);
  const std::vector<BlockRun> largest = take_all(buddies, 128);
  ASSERT_EQ(largest.size(), 7u) << "15,728 slots / 2,048: the paper's 7.00 requests of Orca (Max)";
  for (std::int32_t i = 0; i < 7; ++i) {
    EXPECT_EQ(largest[static_cast<std::size_t>(i)], (BlockRun{BlockId{i * 128}, 128}));
  }
  EXPECT_EQ(buddies.num_free_blocks(), 87);
  for (const auto& [first, length] :
       {std::pair{896, 64}, std::pair{960, 16}, std::pair{976, 4}, std::pair{980, 2}, std::pair{982, 1}}) {
    EXPECT_EQ(buddies.largest_free_chunk(), length);
    EXPECT_EQ(buddies.take(length), (BlockRun{BlockId{first}, length}));
  }
  EXPECT_EQ(buddies.num_free_blocks(), 0);
  EXPECT_EQ(buddies.largest_free_chunk(), 0);
}

TEST(BuddyAllocator, RoundsUpToAPowerOfTwo) {
  BuddyAllocator buddies(64, 16);
  for (const auto& [asked, given] : {std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 4}, std::pair{9, 16}}) {
    EXPECT_EQ(buddies.take(asked)->num_blocks, given) << asked;
  }
  EXPECT_EQ(buddies.take(17), std::nullopt) << "longer than the largest chunk";
}

TEST(BuddyAllocator, SplitsTheShortestRunThatFitsAtItsLowestAddress) {
  BuddyAllocator buddies(32, 16);
  EXPECT_EQ(buddies.take(4), (BlockRun{BlockId{0}, 4}));
  EXPECT_EQ(buddies.take(1), (BlockRun{BlockId{4}, 1})) << "out of 4..7, not out of 16..31";
  EXPECT_EQ(buddies.take(2), (BlockRun{BlockId{6}, 2}));
  EXPECT_EQ(buddies.take(8), (BlockRun{BlockId{8}, 8}));
  EXPECT_EQ(buddies.take(2), (BlockRun{BlockId{16}, 2}));
}

TEST(BuddyAllocator, MergesBuddiesAndOnlyThem) {
  BuddyAllocator buddies(8, 8);
  const std::vector<BlockRun> runs = take_all(buddies, 2);
  ASSERT_EQ(runs.size(), 4u);
  buddies.give_back(runs[1]);
  buddies.give_back(runs[2]);
  EXPECT_EQ(buddies.num_free_blocks(), 4);
  EXPECT_EQ(buddies.largest_free_chunk(), 2) << "2..5 are neighbours but no buddies";
  buddies.give_back(runs[0]);
  EXPECT_EQ(buddies.largest_free_chunk(), 4);
  buddies.give_back(runs[3]);
  EXPECT_EQ(buddies.largest_free_chunk(), 8);
}

TEST(BuddyAllocator, FreeMemoryInPiecesServesNobodyLarger) {
  BuddyAllocator buddies(128, 128);
  const std::vector<BlockRun> runs = take_all(buddies, 16);
  for (std::size_t i = 0; i < runs.size(); i += 2) buddies.give_back(runs[i]);
  EXPECT_EQ(buddies.num_free_blocks(), 64);
  EXPECT_EQ(buddies.take(32), std::nullopt) << "external fragmentation";
}

TEST(BuddyAllocator, AsksForAGroupAtOnce) {
  BuddyAllocator buddies(12, 8);
  EXPECT_TRUE(buddies.can_take({}));
  EXPECT_TRUE(buddies.can_take(std::array{8, 4}));
  EXPECT_TRUE(buddies.can_take(std::array{4, 4, 4}));
  EXPECT_FALSE(buddies.can_take(std::array{4, 4, 4, 1}));
  EXPECT_FALSE(buddies.can_take(std::array{8, 8}));
  EXPECT_TRUE(buddies.can_take(std::array{3, 5})) << "4 and 8";
  EXPECT_FALSE(buddies.can_take(std::array{16}));
  EXPECT_EQ(buddies.num_free_blocks(), 12) << "asking takes nothing";
}

TEST(BuddyAllocator, StopsAtWhatNoCallerMayDo) {
  BuddyAllocator buddies(8, 8);
  const BlockRun run = *buddies.take(4);
  EXPECT_DEATH(buddies.take(0), "a run of 0 blocks");
  EXPECT_DEATH(buddies.give_back({run.first, 2}), "where 4 were taken");
  EXPECT_DEATH(buddies.give_back({BlockId{1}, 1}), "where 0 were taken");
  EXPECT_DEATH(buddies.give_back({BlockId{8}, 1}), "block 8 of 8");
  buddies.give_back(run);
  EXPECT_DEATH(buddies.give_back(run), "where 0 were taken");
  EXPECT_DEATH(BuddyAllocator(8, 6), "runs up to 6");
}

// Knows no orders and no splitting: a run may be where all its blocks are free, at a multiple of its length.
struct NaivePool {
  std::vector<bool> is_taken;

  bool is_free(std::int32_t first, std::int32_t length) const {
    for (std::int32_t i = first; i < first + length; ++i) {
      if (i >= static_cast<std::int32_t>(is_taken.size()) || is_taken[static_cast<std::size_t>(i)])
        return false;
    }
    return true;
  }
  std::int32_t longest_free(std::int32_t largest_chunk) const {
    for (std::int32_t length = largest_chunk; length > 0; length /= 2) {
      for (std::int32_t first = 0; first < static_cast<std::int32_t>(is_taken.size()); first += length) {
        if (is_free(first, length)) return length;
      }
    }
    return 0;
  }
  void mark(BlockRun run, bool taken) {
    for (std::int32_t i = 0; i < run.num_blocks; ++i)
      is_taken[static_cast<std::size_t>(run.first.value + i)] = taken;
  }
};

TEST(BuddyAllocator, FindsARunWheneverAlignedFreeBlocksExistUnderRandomCalls) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](std::size_t bound) { return static_cast<std::int32_t>(random() % bound); };
  for (int round = 0; round < 40; ++round) {
    const std::int32_t largest_chunk = 1 << below(6);
    BuddyAllocator buddies(below(120), largest_chunk);
    NaivePool naive{std::vector<bool>(static_cast<std::size_t>(buddies.num_blocks()))};
    std::vector<BlockRun> taken;
    for (int call = 0; call < 200; ++call) {
      if (below(5) < 3) {
        const std::int32_t size = 1 + below(static_cast<std::size_t>(largest_chunk));
        const bool fits = naive.longest_free(largest_chunk) >= size;
        EXPECT_EQ(buddies.can_take(std::array{size}), fits);
        const auto run = buddies.take(size);
        ASSERT_EQ(run.has_value(), fits) << size;
        if (!run) continue;
        EXPECT_GE(run->num_blocks, size);
        EXPECT_LT(run->num_blocks, 2 * size);
        ASSERT_TRUE(naive.is_free(run->first.value, run->num_blocks));
        naive.mark(*run, true);
        taken.push_back(*run);
      } else if (!taken.empty()) {
        std::swap(taken[static_cast<std::size_t>(below(taken.size()))], taken.back());
        buddies.give_back(taken.back());
        naive.mark(taken.back(), false);
        taken.pop_back();
      }
      EXPECT_EQ(buddies.largest_free_chunk(), naive.longest_free(largest_chunk));
      EXPECT_EQ(buddies.num_free_blocks(), std::ranges::count(naive.is_taken, false));
      ASSERT_EQ(buddies.broken_invariant(), std::nullopt);
    }
  }
}

TEST(BuddyAllocator, KeepsWhatItPromisesAGroupInWhateverOrderItIsTaken) {
  const unsigned seed = test_seed();
  SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
  std::mt19937 random(seed);
  int num_promised = 0;
  for (int round = 0; round < 500; ++round) {
    BuddyAllocator buddies(static_cast<std::int32_t>(random() % 100), 16);
    for (int i = 0; i < 6; ++i) buddies.take(1 + static_cast<std::int32_t>(random() % 16));
    std::vector<std::int32_t> sizes(1 + random() % 5);
    for (std::int32_t& size : sizes) size = 1 + static_cast<std::int32_t>(random() % 16);
    const bool promised = buddies.can_take(sizes);
    num_promised += promised ? 1 : 0;
    std::ranges::shuffle(sizes, random);
    EXPECT_EQ(buddies.can_take(sizes), promised) << "the order makes no difference";
    EXPECT_EQ(std::ranges::all_of(sizes, [&](std::int32_t size) { return buddies.take(size).has_value(); }),
              promised);
  }
  EXPECT_GT(num_promised, 20);  // about 70
  EXPECT_LT(num_promised, 450);
}

}  // namespace
}  // namespace octavo::block
