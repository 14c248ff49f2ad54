#include "engine/block/block_manager.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/block/naive_block_manager.h"
#include "tests/block/seed.h"

namespace octavo::block {
namespace {

using Tokens = std::vector<TokenId>;

std::uint64_t two_bit_hash(std::uint64_t parent_hash, std::span<const TokenId> token_ids) {
  return hash_tokens(parent_hash, token_ids) & 3;
}

Tokens counting(std::int32_t num_tokens, TokenId first = 0) {
  Tokens tokens(static_cast<std::size_t>(num_tokens));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A sequence whose tokens are computed at once.
struct Owner {
  Owner(std::uint64_t id, Tokens token_ids) : table(SequenceId{id}), tokens(std::move(token_ids)) {}

  std::vector<BlockCopy> compute(BlockManager& manager) {
    std::vector<BlockCopy> copies;
    manager.grow(table, size(), copies);
    manager.commit(table, content(), size());
    return copies;
  }
  SequenceContent content() const { return {tokens, salt}; }
  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }

  BlockTable table;
  Tokens tokens;
  std::string salt;
};

void expect_whole(const BlockManager& manager, std::initializer_list<const Owner*> owners) {
  std::vector<OwnedTable> tables;
  for (const Owner* owner : owners) tables.push_back({&owner->table, owner->content()});
  EXPECT_EQ(manager.broken_invariant(tables), std::nullopt);
}

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
  EXPECT_EQ(manager.append_match(second.table, second.content(), 12), 8);
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
  EXPECT_EQ(manager.append_match(second.table, second.content(), 7), 4) << "as far as it was asked to look";
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
  EXPECT_EQ(manager.match(BlockTable(SequenceId{2}), first.content(), 4).num_blocks, 0);
  manager.release(first.table);
  EXPECT_EQ(manager.figures().free_blocks, 8);
  EXPECT_EQ(manager.append_match(first.table, first.content(), 4), 0);
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
  EXPECT_EQ(manager.match(BlockTable(SequenceId{3}), second.content(), 4).num_blocks, 2);
  expect_whole(manager, {&first, &second});
}

TEST(BlockManager, UndoneCopyIsSharedAgain) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner parent(1, counting(6)), child(2, counting(6));
  parent.compute(manager);
  manager.fork(parent.table, child.table);
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::vector<BlockCopy> copies;
    manager.grow(parent.table, 9, copies);
    manager.grow(child.table, 7, copies);
    ASSERT_EQ(copies.size(), 1u);
    manager.undo_copy(parent.table, copies[0]);
    EXPECT_EQ(manager.totals().cow_copies, 0);
    EXPECT_EQ(parent.table.blocks()[1], child.table.blocks()[1]);
    expect_whole(manager, {&parent, &child});
  }
}

TEST(BlockManager, HandingOverKeepsEveryBlock) {
  BlockManager manager({.block_size = 4, .num_blocks = 8});
  Owner first(1, counting(6)), second(2, counting(6));
  first.compute(manager);
  const std::vector<BlockId> blocks(first.table.blocks().begin(), first.table.blocks().end());
  manager.hand_over(first.table, second.table);
  EXPECT_TRUE(first.table.empty());
  EXPECT_TRUE(std::ranges::equal(second.table.blocks(), blocks));
  EXPECT_EQ(second.table.owner(), SequenceId{2});
  EXPECT_EQ(second.table.num_computed_tokens(), 6);
  expect_whole(manager, {&second});
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
}

// ---- against the naive manager
// --------------------------------------------------------------------------------------

struct FuzzCase {
  const char* name;
  bool caches;
  HashFunction hash;
};

class BlockManagerFuzz : public ::testing::TestWithParam<FuzzCase> {};

// Random calls on both; then every count, every match and the whole sharing pattern must agree: the same
// tables name the same block there when, and only when, they do here.
class Duel {
 public:
  Duel(std::mt19937& random, const FuzzCase& fuzz_case)
      : random_(random),
        block_size_(1 + below(4)),
        num_blocks_(4 + below(20)),
        manager_({.block_size = block_size_,
                  .num_blocks = num_blocks_,
                  .enable_prefix_caching = fuzz_case.caches,
                  .hash = fuzz_case.hash}),
        naive_(num_blocks_, block_size_, fuzz_case.caches) {}

  void play(int num_calls) {
    for (int call = 0; call < num_calls && !::testing::Test::HasFatalFailure(); ++call) {
      play_one();
      compare();
    }
    for (auto& [id, owner] : owners_) manager_.release(owner.table), naive_.release(id);
    compare();
    EXPECT_EQ(manager_.figures().used_blocks, 0);
    EXPECT_EQ(manager_.num_available(), num_blocks_);
  }

 private:
  std::int32_t below(std::int32_t bound) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(bound));
  }

  Owner& owner_at(int id) {
    const auto [found, is_new] = owners_.try_emplace(id, static_cast<std::uint64_t>(id), Tokens{});
    if (is_new) found->second.salt = below(4) == 0 ? "salt" : "";
    return found->second;
  }

  void play_one() {
    const int id = 1 + below(6);
    Owner& owner = owner_at(id);
    switch (below(10)) {
      case 0:
        manager_.release(owner.table), naive_.release(id);
        owners_.erase(id), naive_.tables.erase(id);
        break;
      case 1:
      case 2: begin(id, owner); break;
      case 3: fork(id, owner); break;
      case 4:
        if (below(8) == 0) manager_.reset_prefix_cache(), naive_.reset();
        break;
      default: extend(id, owner);
    }
  }

  // Few different tokens, so that prefixes are shared by chance.
  void begin(int id, Owner& owner) {
    if (!owner.table.empty()) return;
    owner.tokens.clear();
    for (std::int32_t i = 1 + below(5 * block_size_); i > 0; --i)
      owner.tokens.push_back(below(8) == 0 ? 1 : 0);
    const std::int32_t max_tokens = owner.size() - 1;
    const auto expected = naive_.match(id, owner.tokens, owner.salt, max_tokens);
    const auto match = manager_.match(owner.table, owner.content(), max_tokens);
    ASSERT_EQ(match.num_blocks, static_cast<std::int32_t>(expected.size()));
    ASSERT_EQ(match.num_used_blocks,
              std::ranges::count_if(expected, [&](int block) { return naive_.num_owners(block) > 0; }));
    manager_.append_match(owner.table, owner.content(), max_tokens);
    naive_.append_match(id, owner.tokens, owner.salt, max_tokens);
  }

  void extend(int id, Owner& owner) {
    Tokens tokens = owner.tokens;
    if (static_cast<std::int32_t>(tokens.size()) <= owner.table.num_computed_tokens()) {
      for (std::int32_t i = 1 + below(3); i > 0; --i) tokens.push_back(below(2));
    }
    const auto num_tokens = static_cast<std::int32_t>(tokens.size());
    const Growth growth{&owner.table, num_tokens};
    const std::int32_t announced = manager_.num_blocks_to_grow({&growth, 1});
    if (announced > manager_.num_available()) return;
    owner.tokens = tokens;
    std::vector<BlockCopy> copies;
    manager_.grow(owner.table, num_tokens, copies);
    ASSERT_EQ(naive_.grow(id, num_tokens), announced);
    if (!copies.empty() && below(3) == 0) {  // a step that failed, and again
      manager_.undo_copy(owner.table, copies.back());
      manager_.grow(owner.table, num_tokens, copies);
    }
    const std::int32_t num_missing = num_tokens - owner.table.num_computed_tokens();
    const std::int32_t num_computed = owner.table.num_computed_tokens() + 1 + below(num_missing);
    manager_.commit(owner.table, owner.content(), num_computed);
    naive_.commit(id, owner.tokens, owner.salt, num_computed);
  }

  void fork(int id, Owner& owner) {
    const int child_id = 1 + below(6);
    Owner& child = owner_at(child_id);
    if (child_id == id || !child.table.empty() || owner.table.empty()) return;
    if (owner.table.num_computed_tokens() != owner.table.num_assigned_tokens()) return;
    child.tokens.assign(owner.tokens.begin(), owner.tokens.begin() + owner.table.num_computed_tokens());
    child.salt = owner.salt;
    manager_.fork(owner.table, child.table);
    naive_.fork(id, child_id);
    if (below(2) == 0) return;
    for (std::int32_t i = below(3 * block_size_); i > 0; --i)
      child.tokens.push_back(below(2));  // known already
    manager_.append_match(child.table, child.content(), child.size() - 1);
    naive_.append_match(child_id, child.tokens, child.salt, child.size() - 1);
  }

  void compare() {
    std::vector<OwnedTable> tables;
    std::map<int, BlockId> real_of;
    std::set<BlockId> used;
    std::int32_t num_logical = 0;
    for (const auto& [id, owner] : owners_) {
      tables.push_back({&owner.table, owner.content()});
      const auto& expected = naive_.tables[id].blocks;
      ASSERT_EQ(owner.table.num_blocks(), static_cast<std::int32_t>(expected.size()));
      num_logical += owner.table.num_blocks();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const BlockId block = owner.table.blocks()[i];
        const auto [real, is_new] = real_of.emplace(expected[i], block);
        ASSERT_EQ(real->second, block);
        ASSERT_EQ(used.insert(block).second, is_new);
        ASSERT_EQ(manager_.pool().at(block).ref_count, naive_.num_owners(expected[i]));
      }
    }
    ASSERT_EQ(manager_.broken_invariant(tables), std::nullopt);
    const KvFigures figures = manager_.figures();
    ASSERT_EQ(figures.used_blocks, naive_.num_used());
    ASSERT_EQ(figures.cached_blocks, naive_.num_cached());
    ASSERT_EQ(figures.free_blocks, naive_.num_free());
    ASSERT_EQ(figures.logical_blocks, num_logical);
    ASSERT_EQ(manager_.totals().evicted_cached_blocks, naive_.num_evicted());
  }

  std::mt19937& random_;
  const std::int32_t block_size_;
  const std::int32_t num_blocks_;
  BlockManager manager_;
  NaiveBlockManager naive_;
  std::map<int, Owner> owners_;
};

TEST_P(BlockManagerFuzz, AgreesWithTheNaiveManager) {
  const unsigned first_seed = test_seed();
  for (unsigned round = 0; round < 60; ++round) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(first_seed + round));
    std::mt19937 random(first_seed + round);
    Duel(random, GetParam()).play(300);
    if (::testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, BlockManagerFuzz,
                         ::testing::Values(FuzzCase{"Cached", true, &hash_tokens},
                                           FuzzCase{"WeakHash", true, &two_bit_hash},
                                           FuzzCase{"Uncached", false, &hash_tokens}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octavo::block
