// The block manager against the naive one, under random calls.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/block/block_manager.h"
#include "tests/block/naive_block_manager.h"
#include "tests/block/owner.h"
#include "tests/block/seed.h"

namespace octavo::block {
namespace {

std::uint64_t two_bit_hash(std::uint64_t parent_hash, std::span<const TokenId> token_ids) {
  return hash_tokens(parent_hash, token_ids) & 3;
}

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
        block_size_(below(2) == 0 ? 1 + below(4) : 5 + below(12)),
        num_blocks_(4 + below(28)),
        num_host_blocks_(below(num_blocks_)),
        manager_({.block_size = block_size_,
                  .num_blocks = num_blocks_,
                  .num_host_blocks = num_host_blocks_,
                  .enable_prefix_caching = fuzz_case.caches,
                  .hash = fuzz_case.hash}),
        naive_(num_blocks_, num_host_blocks_, block_size_, fuzz_case.caches) {
    manager_.begin_step(1);
  }

  const KvTotals& totals() const { return manager_.totals(); }

  void play(int num_calls) {
    for (int call = 0; call < num_calls && !::testing::Test::HasFatalFailure(); ++call) {
      play_one();
      compare();
    }
    end_step();
    for (auto& [id, owner] : owners_) manager_.release(owner.table), naive_.release(id);
    compare();
    EXPECT_EQ(manager_.figures().used_blocks, 0);
    manager_.release_pins(), naive_.release_pins();
    EXPECT_EQ(manager_.num_available(), num_blocks_);
  }

 private:
  std::int32_t below(std::int32_t bound) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(bound));
  }

  Owner& owner_at(int id) {
    const auto [found, is_new] = owners_.try_emplace(id, static_cast<std::uint64_t>(id), Tokens{});
    if (is_new) {
      found->second.salt = below(4) == 0 ? "salt" : "";
      found->second.retention = static_cast<RetentionClass>(below(4));
    }
    return found->second;
  }
  static NaiveBlockManager::Content naive_content(const Owner& owner) { return {owner.salt, owner.tokens}; }

  void play_one() {
    const int id = 1 + below(8);
    Owner& owner = owner_at(id);
    const int choice = below(19);
    if (choice == 0 || (choice == 2 && below(2) == 0)) return end(id, owner);
    if (choice == 1) return swap_in();
    if (owner.table.is_swapped_out()) return;
    switch (choice) {
      case 2:
        if (below(4) == 0) swap_out();
        break;
      case 3: end_step(); break;
      case 4:
        if (below(8) == 0) manager_.reset_prefix_cache(), naive_.reset();
        if (below(8) == 0) manager_.release_pins(), naive_.release_pins();
        break;
      case 5:
      case 6:
      case 7: begin(id, owner); break;
      case 8:
      case 9: fork(id, owner); break;
      case 10: share_start(id, owner); break;
      case 11: manager_.trim(owner.table), naive_.trim(id); break;
      default: extend(id, owner);
    }
  }

  void end_step() {
    manager_.end_step(), naive_.end_step();
    manager_.begin_step(++step_);
  }

  // What a copy of this step follows stays until the step has ended.
  void end(int id, Owner& owner) {
    end_step();
    if (below(2) == 0) {
      manager_.release(owner.table), naive_.release(id);
    } else {
      manager_.release_findable(owner.table, owner.content());
      naive_.release_findable(id, naive_content(owner), owner.retention);
    }
    owners_.erase(id), naive_.tables.erase(id), waiting_.erase(id);
  }

  // Few different tokens, so that prefixes are shared by chance.
  void begin(int id, Owner& owner) {
    if (!owner.table.empty()) return;
    if (!waiting_.contains(id)) {
      owner.tokens.clear();
      for (std::int32_t i = 1 + below(5 * block_size_); i > 0; --i)
        owner.tokens.push_back(below(8) == 0 ? 1 : 0);
    }
    const std::int32_t max_tokens = owner.size() - 1;
    const auto expected = naive_.match(id, naive_content(owner), max_tokens);
    const auto match = manager_.match(owner.table, owner.content(), max_tokens);
    ASSERT_EQ(match.num_blocks, static_cast<std::int32_t>(expected.size()));
    ASSERT_EQ(match.num_used_blocks,
              std::ranges::count_if(expected, [&](int block) { return naive_.is_used(block); }));
    waiting_.insert(id);
    if (below(2) == 0) return;  // it asks again, for the same
    waiting_.erase(id);
    append_match(id, owner, /*copies_partial=*/below(4) > 0);
  }

  void append_match(int id, Owner& owner, bool copies_partial) {
    std::vector<BlockCopy> copies;
    const auto found = manager_.append_match(owner.table, owner.content(), owner.size() - 1,
                                             copies_partial ? &copies : nullptr);
    const auto expected =
        naive_.append_match(id, naive_content(owner), owner.size() - 1, owner.retention, copies_partial);
    ASSERT_EQ(found.num_hit_live, expected.num_hit_live);
    ASSERT_EQ(found.num_hit_cached, expected.num_hit_cached);
    ASSERT_EQ(found.num_copied_partial, expected.num_copied_partial);
    ASSERT_EQ(copies.size(), found.num_copied_partial > 0 ? 1u : 0u);
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
    if (below(8) == 0) return;  // a step that the request gets slots in, but no rows
    const std::int32_t num_missing = num_tokens - owner.table.num_computed_tokens();
    const std::int32_t num_rows = below(2) == 0 ? num_missing : 1 + below(num_missing);
    const std::int32_t num_computed = owner.table.num_computed_tokens() + num_rows;
    manager_.commit(owner.table, owner.content(), num_computed);
    naive_.commit(id, naive_content(owner), num_computed, owner.retention);
  }

  void fork(int id, Owner& owner) {
    const int child_id = 1 + below(8);
    Owner& child = owner_at(child_id);
    if (child_id == id || !child.table.empty() || owner.table.empty()) return;
    if (owner.table.num_computed_tokens() != owner.table.num_assigned_tokens()) return;
    waiting_.erase(child_id);
    child.tokens.assign(owner.tokens.begin(), owner.tokens.begin() + owner.table.num_computed_tokens());
    child.salt = owner.salt;
    manager_.fork(owner.table, child.table), naive_.fork(id, child_id);
    if (below(2) == 0) return;
    for (std::int32_t i = below(3 * block_size_); i > 0; --i)
      child.tokens.push_back(below(2));  // known already
    append_match(child_id, child, /*copies_partial=*/false);
  }

  void share_start(int id, Owner& owner) {
    const int child_id = 1 + below(8);
    Owner& child = owner_at(child_id);
    const std::int32_t num_full = owner.table.num_computed_tokens() / block_size_;
    if (child_id == id || !child.table.empty() || num_full == 0) return;
    const std::int32_t num_blocks = 1 + below(num_full);
    waiting_.erase(child_id);
    child.tokens.assign(owner.tokens.begin(), owner.tokens.begin() + num_blocks * block_size_);
    child.tokens.push_back(below(2));
    child.salt = owner.salt;
    manager_.share_start(owner.table, child.table, num_blocks);
    naive_.share_start(id, child_id, num_blocks);
  }

  // Any tables together, as if they were a group.
  void swap_out() {
    end_step();
    std::vector<MovingTable> moving;
    std::vector<int> ids;
    for (auto& [id, owner] : owners_) {
      if (owner.table.empty() || owner.table.is_swapped_out() || below(2) == 0) continue;
      moving.push_back({&owner.table, owner.content()});
      ids.push_back(id);
    }
    const std::int32_t num_free = manager_.num_free_host_blocks();
    std::vector<BlockSwap> swaps;
    const bool fits = manager_.swap_out(moving, swaps);
    ASSERT_EQ(naive_.swap_out(ids), fits);
    ASSERT_EQ(std::ssize(swaps), num_free - manager_.num_free_host_blocks());
    if (fits && !ids.empty()) groups_.push_back(ids);
  }

  void swap_in() {
    if (groups_.empty()) return;
    const std::vector<int> ids = groups_.back();
    groups_.pop_back();
    std::vector<MovingTable> moving;
    std::vector<int> swapped;
    std::vector<NaiveBlockManager::Content> contents;
    for (const int id : ids) {  // some have ended, and others been born under their number
      const auto found = owners_.find(id);
      if (found == owners_.end() || !found->second.table.is_swapped_out()) continue;
      moving.push_back({&found->second.table, found->second.content()});
      swapped.push_back(id);
      contents.push_back(naive_content(found->second));
    }
    if (manager_.num_distinct_blocks(moving) > manager_.num_available()) {
      groups_.push_back(ids);
      return;
    }
    std::vector<BlockSwap> swaps;
    manager_.swap_in(moving, swaps);
    std::vector<RetentionClass> retentions;
    for (const MovingTable& one : moving) retentions.push_back(one.content.retention);
    ASSERT_EQ(std::ssize(swaps), naive_.swap_in(swapped, contents, retentions));
    for (std::size_t i = 0; i < moving.size(); ++i) {
      manager_.seal_full(*moving[i].table, moving[i].content);
      naive_.seal_full(swapped[i], contents[i], moving[i].content.retention);
    }
  }

  void compare() {
    std::vector<OwnedTable> tables;
    std::map<int, BlockId> real_of;  // of both pools
    std::set<BlockId> used, used_by_host;
    std::int32_t num_logical = 0;
    for (const auto& [id, owner] : owners_) {
      tables.push_back({&owner.table, owner.content()});
      const auto& expected = naive_.tables[id];
      ASSERT_EQ(owner.table.num_blocks(), std::ssize(expected.blocks));
      ASSERT_EQ(owner.table.num_computed_tokens(), expected.num_computed);
      ASSERT_EQ(owner.table.is_swapped_out(), expected.is_swapped_out);
      std::set<BlockId>& pool = expected.is_swapped_out ? used_by_host : used;
      if (!expected.is_swapped_out) num_logical += owner.table.num_blocks();
      for (std::size_t i = 0; i < expected.blocks.size(); ++i) {
        const BlockId block = owner.table.blocks()[i];
        const auto [real, is_new] = real_of.emplace(expected.blocks[i], block);
        ASSERT_EQ(real->second, block);
        ASSERT_EQ(pool.insert(block).second, is_new);
        if (expected.is_swapped_out) continue;
        ASSERT_EQ(manager_.pool().at(block).ref_count, naive_.num_references(expected.blocks[i]));
      }
    }
    ASSERT_EQ(manager_.broken_invariant(tables), std::nullopt);
    const KvFigures figures = manager_.figures();
    ASSERT_EQ(figures.used_blocks, naive_.num_used());
    ASSERT_EQ(figures.cached_blocks, naive_.num_cached());
    ASSERT_EQ(figures.free_blocks, naive_.num_free());
    ASSERT_EQ(figures.host_used_blocks, naive_.num_host_used());
    ASSERT_EQ(figures.logical_blocks, num_logical);
    ASSERT_EQ(manager_.num_available(), naive_.num_available());
    ASSERT_EQ(manager_.totals().evicted_cached_blocks, naive_.num_evicted());
    ASSERT_EQ(manager_.totals().cow_copies, naive_.num_copies());
  }

  std::mt19937& random_;
  const std::int32_t block_size_;
  const std::int32_t num_blocks_;
  const std::int32_t num_host_blocks_;
  BlockManager manager_;
  NaiveBlockManager naive_;
  std::map<int, Owner> owners_;
  std::set<int> waiting_;                 // that asked what is there for them, and have not taken it
  std::vector<std::vector<int>> groups_;  // that were swapped out together
  std::int64_t step_ = 1;
};

TEST_P(BlockManagerFuzz, AgreesWithTheNaiveManager) {
  const unsigned first_seed = test_seed();
  KvTotals met;
  for (unsigned round = 0; round < 200; ++round) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(first_seed + round));
    std::mt19937 random(first_seed + round);
    Duel duel(random, GetParam());
    duel.play(300);
    if (::testing::Test::HasFailure()) return;
    met.cow_copies += duel.totals().cow_copies;
    met.partial_copies += duel.totals().partial_copies;
    met.evicted_cached_blocks += duel.totals().evicted_cached_blocks;
    met.swapped_out_blocks += duel.totals().swapped_out_blocks;
    met.swapped_in_blocks += duel.totals().swapped_in_blocks;
  }
  // The calls must have met what they are here to try.
  EXPECT_GE(met.cow_copies, 100);
  EXPECT_GE(met.partial_copies, GetParam().caches ? 20 : 0);
  EXPECT_GE(met.evicted_cached_blocks, GetParam().caches ? 100 : 0);
  EXPECT_GE(met.swapped_out_blocks, 100);
  EXPECT_GE(met.swapped_in_blocks, 100);
  EXPECT_LT(met.swapped_in_blocks, met.swapped_out_blocks) << "some is found on the device, some has ended";
}

INSTANTIATE_TEST_SUITE_P(All, BlockManagerFuzz,
                         ::testing::Values(FuzzCase{"Cached", true, &hash_tokens},
                                           FuzzCase{"WeakHash", true, &two_bit_hash},
                                           FuzzCase{"Uncached", false, &hash_tokens}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace octavo::block
