// Each invariant, broken on purpose: the checks that simulation and property tests rely on find it and say
// so.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/block/block_manager.h"
#include "engine/block/block_pool.h"
#include "engine/block/buddy_allocator.h"
#include "engine/block/prefix_cache.h"
#include "tests/block/owner.h"
#include "tests/support/opened.h"

// What is opened here, by the name of the member.
namespace octavo::opening {
struct Blocks {
  friend auto& opened(Blocks, block::BlockPool&);
};
struct FreeList {
  friend auto& opened(FreeList, block::BlockPool&);
};
struct NumUsed {
  friend auto& opened(NumUsed, block::BlockPool&);
};
struct NumAssignedSlots {
  friend auto& opened(NumAssignedSlots, block::BlockPool&);
};
struct NumFilledSlots {
  friend auto& opened(NumFilledSlots, block::BlockPool&);
};
struct FreeRuns {
  friend auto& opened(FreeRuns, block::BuddyAllocator&);
};
struct TakenLength {
  friend auto& opened(TakenLength, block::BuddyAllocator&);
};
struct NumFreeBlocks {
  friend auto& opened(NumFreeBlocks, block::BuddyAllocator&);
};
struct Nodes {
  friend auto& opened(Nodes, block::PrefixCache&);
};
struct NodeOfBlock {
  friend auto& opened(NodeOfBlock, block::PrefixCache&);
};
struct Evictable {
  friend auto& opened(Evictable, block::PrefixCache&);
};
struct NumPinned {
  friend auto& opened(NumPinned, block::PrefixCache&);
};
struct NumPinnedUnused {
  friend auto& opened(NumPinnedUnused, block::PrefixCache&);
};
struct Pool {
  friend auto& opened(Pool, block::BlockManager&);
};
struct HostPool {
  friend auto& opened(HostPool, block::BlockManager&);
};
struct Cache {
  friend auto& opened(Cache, block::BlockManager&);
};
struct Buddies {
  friend auto& opened(Buddies, block::BlockManager&);
};
struct NumLogical {
  friend auto& opened(NumLogical, block::BlockManager&);
};
struct NumComputed {
  friend auto& opened(NumComputed, block::BlockTable&);
};
struct NumAssigned {
  friend auto& opened(NumAssigned, block::BlockTable&);
};
struct NumSealed {
  friend auto& opened(NumSealed, block::BlockTable&);
};
struct LastSealed {
  friend auto& opened(LastSealed, block::BlockTable&);
};
struct Entries {
  friend auto& opened(Entries, block::BlockTable&);
};

template struct Opened<Blocks, block::BlockPool, &block::BlockPool::blocks_>;
template struct Opened<FreeList, block::BlockPool, &block::BlockPool::free_>;
template struct Opened<NumUsed, block::BlockPool, &block::BlockPool::num_used_>;
template struct Opened<NumAssignedSlots, block::BlockPool, &block::BlockPool::num_assigned_slots_>;
template struct Opened<NumFilledSlots, block::BlockPool, &block::BlockPool::num_filled_slots_>;
template struct Opened<FreeRuns, block::BuddyAllocator, &block::BuddyAllocator::free_>;
template struct Opened<TakenLength, block::BuddyAllocator, &block::BuddyAllocator::taken_length_>;
template struct Opened<NumFreeBlocks, block::BuddyAllocator, &block::BuddyAllocator::num_free_blocks_>;
template struct Opened<Nodes, block::PrefixCache, &block::PrefixCache::nodes_>;
template struct Opened<NodeOfBlock, block::PrefixCache, &block::PrefixCache::node_of_block_>;
template struct Opened<Evictable, block::PrefixCache, &block::PrefixCache::evictable_>;
template struct Opened<NumPinned, block::PrefixCache, &block::PrefixCache::num_pinned_>;
template struct Opened<NumPinnedUnused, block::PrefixCache, &block::PrefixCache::num_pinned_unused_>;
template struct Opened<Pool, block::BlockManager, &block::BlockManager::pool_>;
template struct Opened<HostPool, block::BlockManager, &block::BlockManager::host_pool_>;
template struct Opened<Cache, block::BlockManager, &block::BlockManager::prefix_cache_>;
template struct Opened<Buddies, block::BlockManager, &block::BlockManager::buddies_>;
template struct Opened<NumLogical, block::BlockManager, &block::BlockManager::num_logical_blocks_>;
template struct Opened<NumComputed, block::BlockTable, &block::BlockTable::num_computed_tokens_>;
template struct Opened<NumAssigned, block::BlockTable, &block::BlockTable::num_assigned_tokens_>;
template struct Opened<NumSealed, block::BlockTable, &block::BlockTable::num_sealed_blocks_>;
template struct Opened<LastSealed, block::BlockTable, &block::BlockTable::last_sealed_>;
template struct Opened<Entries, block::BlockTable, &block::BlockTable::blocks_>;
}  // namespace octavo::opening

namespace octavo::block {
namespace {

using namespace opening;  // NOLINT: names of this file

// The sentence ends like this.
void expect_found(const std::optional<std::string>& broken, const std::string& end) {
  ASSERT_TRUE(broken.has_value()) << "not found: " << end;
  EXPECT_TRUE(broken->ends_with(end)) << *broken << "\nexpected: ... " << end;
}

// ---- pool

struct BrokenPool {
  const char* sentence;
  std::function<void(BlockPool&)> break_it;
};

TEST(BrokenInvariant, OfThePoolIsFound) {
  const BrokenPool cases[] = {
      {"block 1 is twice in the free list",
       [](BlockPool& pool) { opened(FreeList{}, pool).push_back(BlockId{1}); }},
      {"block 1: free list and state disagree",
       [](BlockPool& pool) { opened(Blocks{}, pool)[1].state = BlockState::kCached; }},
      {"block 0: free list and state disagree",
       [](BlockPool& pool) { opened(Blocks{}, pool)[0].state = BlockState::kFree; }},
      {"block 0: reference count and state disagree",
       [](BlockPool& pool) { opened(Blocks{}, pool)[0].ref_count = 0; }},
      {"block 0: reference count and state disagree",
       [](BlockPool& pool) { opened(Blocks{}, pool)[0].num_pins = 2; }},
      {"block 0 holds more than its slots",
       [](BlockPool& pool) { opened(Blocks{}, pool)[0].num_filled = 3; }},
      {"block 0 holds more than its slots",
       [](BlockPool& pool) { opened(Blocks{}, pool)[0].num_assigned = 5; }},
      {"the count of used blocks is wrong", [](BlockPool& pool) { ++opened(NumUsed{}, pool); }},
      {"the count of assigned slots is wrong", [](BlockPool& pool) { ++opened(NumAssignedSlots{}, pool); }},
      {"the count of filled slots is wrong", [](BlockPool& pool) { ++opened(NumFilledSlots{}, pool); }},
  };
  for (const BrokenPool& broken : cases) {
    BlockPool pool(3, 4);
    const BlockId block = pool.take();
    pool.set_assigned(block, 2);
    ASSERT_EQ(pool.broken_invariant(), std::nullopt);
    broken.break_it(pool);
    expect_found(pool.broken_invariant(), broken.sentence);
  }
}

// ---- buddies

struct BrokenBuddies {
  const char* sentence;
  std::function<void(BuddyAllocator&)> break_it;
};

TEST(BrokenInvariant, OfTheBuddyAllocatorIsFound) {
  // Of eight blocks the first two are taken: free are 2..3 and 4..7.
  const BrokenBuddies cases[] = {
      {"the free run of 2 blocks at 8 reaches beyond the pool",
       [](BuddyAllocator& buddies) { opened(FreeRuns{}, buddies)[1].insert(8); }},
      {"the free run of 1 blocks at -1 reaches beyond the pool",
       [](BuddyAllocator& buddies) { opened(FreeRuns{}, buddies)[0].insert(-1); }},
      {"the free run of 2 blocks at 3 is not aligned",
       [](BuddyAllocator& buddies) { opened(FreeRuns{}, buddies)[1] = {3}; }},
      {"the free run of 2 blocks at 0 has a free buddy",
       [](BuddyAllocator& buddies) { opened(FreeRuns{}, buddies)[1].insert(0); }},
      {"a taken run reaches beyond the pool",
       [](BuddyAllocator& buddies) { opened(TakenLength{}, buddies)[7] = 2; }},
      {"block 4 is in 2 runs", [](BuddyAllocator& buddies) { opened(TakenLength{}, buddies)[4] = 1; }},
      {"block 0 is in 0 runs", [](BuddyAllocator& buddies) { opened(TakenLength{}, buddies)[0] = 0; }},
      {"the count of free blocks is wrong",
       [](BuddyAllocator& buddies) { ++opened(NumFreeBlocks{}, buddies); }},
  };
  for (const BrokenBuddies& broken : cases) {
    BuddyAllocator buddies(8, 8);
    ASSERT_TRUE(buddies.take(2));
    ASSERT_EQ(buddies.broken_invariant(), std::nullopt);
    broken.break_it(buddies);
    expect_found(buddies.broken_invariant(), broken.sentence);
  }
}

// ---- prefix cache

struct BrokenCache {
  const char* sentence;
  std::function<void(PrefixCache&)> break_it;
};

TEST(BrokenInvariant, OfThePrefixCacheIsFound) {
  // Node 0: tokens 1 2 in block 0. After it node 1: tokens 3 4 in block 1 and its duplicate 3; and node 2,
  // the start 5, in block 2. Node 3: a root in block 4 that nobody uses.
  const BrokenCache cases[] = {
      {"node 0 has a holder that belongs elsewhere",
       [](PrefixCache& cache) { opened(NodeOfBlock{}, cache)[0] = kNoNode; }},
      {"node 1 has a duplicate and is not in use",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[1].in_use = false; }},
      {"node 1 has a duplicate that belongs elsewhere",
       [](PrefixCache& cache) { opened(NodeOfBlock{}, cache)[3] = PrefixNodeId{0}; }},
      {"node 0 is not found by its content", [](PrefixCache& cache) { opened(Nodes{}, cache)[0].hash ^= 1; }},
      {"node 2 is partial and has a child",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[2].first_child = PrefixNodeId{3}; }},
      {"node 2 is partial and has a duplicate",
       [](PrefixCache& cache) {
         opened(Nodes{}, cache)[2].first_duplicate = BlockId{5};
         opened(NodeOfBlock{}, cache)[5] = PrefixNodeId{2};
       }},
      {"node 2 is not linked back by its sibling",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[1].previous_sibling = PrefixNodeId{0}; }},
      {"node 1 is not its parent's child",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[1].previous_sibling = kNoNode; }},
      {"node 1 is an orphan", [](PrefixCache& cache) { opened(Nodes{}, cache)[0].holder = kNoBlock; }},
      {"node 2 does not continue its parent's hash",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[2].hash ^= 1; }},
      {"node 1 is in use and its parent is not",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[0].in_use = false; }},
      {"node 1 is pinned and its parent is not",
       [](PrefixCache& cache) { opened(Nodes{}, cache)[1].retention = RetentionClass::kPinned; }},
      {"node 0 counts its children wrong",
       [](PrefixCache& cache) { ++opened(Nodes{}, cache)[0].num_children; }},
      {"node 3 has the wrong place in the eviction order",
       [](PrefixCache& cache) { opened(Evictable{}, cache).clear(); }},
      {"the eviction order names what does not exist",
       [](PrefixCache& cache) {
         opened(Evictable{}, cache).insert({RetentionClass::kChat, 0, PrefixNodeId{0}});
       }},
      {"pins are counted wrong", [](PrefixCache& cache) { ++opened(NumPinned{}, cache); }},
      {"pins are counted wrong", [](PrefixCache& cache) { ++opened(NumPinnedUnused{}, cache); }},
      {"more is pinned than may be",
       [](PrefixCache& cache) {
         for (const std::size_t node : {0u, 1u}) {
           opened(Nodes{}, cache)[node].retention = RetentionClass::kPinned;
           ++opened(NumPinned{}, cache);
         }
       }},
  };
  for (const BrokenCache& broken : cases) {
    PrefixCache cache(6, 2);
    const auto root = cache.insert(kNoNode, Tokens{1, 2}, "", BlockId{0}).node;
    cache.insert(root, Tokens{3, 4}, "", BlockId{1});
    cache.insert_partial(root, Tokens{5}, "", BlockId{2});
    cache.insert(root, Tokens{3, 4}, "", BlockId{3});
    cache.insert(kNoNode, Tokens{7, 8}, "", BlockId{4});
    cache.release(BlockId{4});
    ASSERT_EQ(cache.broken_invariant(), std::nullopt);
    broken.break_it(cache);
    expect_found(cache.broken_invariant(), broken.sentence);
  }
}

// ---- manager

struct BrokenManager {
  const char* sentence;
  std::function<void(BlockManager&, Owner&, Owner&)> break_it;
};

// A parent of six tokens in blocks of four, and a child that shares them; one cached block.
TEST(BrokenInvariant, OfTheManagerIsFound) {
  const BrokenManager cases[] = {
      {"the count of used blocks is wrong",
       [](BlockManager& manager, Owner&, Owner&) { ++opened(NumUsed{}, opened(Pool{}, manager)); }},
      {"host pool: the count of used blocks is wrong",
       [](BlockManager& manager, Owner&, Owner&) { ++opened(NumUsed{}, opened(HostPool{}, manager)); }},
      {"pins are counted wrong",
       [](BlockManager& manager, Owner&, Owner&) { ++opened(NumPinned{}, opened(Cache{}, manager)); }},
      {"the count of logical blocks is wrong",
       [](BlockManager& manager, Owner&, Owner&) { ++opened(NumLogical{}, manager); }},
      {"block 0 has 3 references, of them 0 pins, and 2 table entries",
       [](BlockManager& manager, Owner&, Owner&) { opened(Pool{}, manager).ref(BlockId{0}); }},
      {"block 1 is written and has another owner",
       [](BlockManager&, Owner& parent, Owner&) { ++opened(NumAssigned{}, parent.table); }},
      {"block 1: its filled slots are not those of its owners",
       [](BlockManager& manager, Owner&, Owner&) { opened(Pool{}, manager).set_assigned(BlockId{1}, 3); }},
      {"host blocks without an owner are kept",
       [](BlockManager& manager, Owner&, Owner&) {
         BlockPool& host = opened(HostPool{}, manager);
         host.unref(host.take());
       }},
      {"host pool: block 0 has 1 references, of them 0 pins, and 0 table entries",
       [](BlockManager& manager, Owner&, Owner&) { opened(HostPool{}, manager).take(); }},
      {"the level of the host pool is wrong",
       [](BlockManager& manager, Owner&, Owner&) { ++manager.totals().host_used_blocks; }},
      {"block 2: pool and prefix cache disagree whether it is cached",
       [](BlockManager& manager, Owner&, Owner&) { opened(Pool{}, manager).discard(BlockId{2}); }},
      {"the table of sequence 1 computed more than it has slots for",
       [](BlockManager&, Owner& parent, Owner&) { opened(NumComputed{}, parent.table) = 9; }},
      {"the table of sequence 1 has the wrong length",
       [](BlockManager&, Owner& parent, Owner&) { opened(NumAssigned{}, parent.table) = 9; }},
      {"the table of sequence 1 has full blocks that are not sealed",
       [](BlockManager&, Owner& parent, Owner&) { opened(NumSealed{}, parent.table) = 0; }},
      {"the table of sequence 1 names a block that holds other tokens",
       [](BlockManager&, Owner& parent, Owner&) { parent.tokens[0] = 99; }},
      {"the table of sequence 1 names a block that holds other tokens",
       [](BlockManager&, Owner& parent, Owner&) { parent.salt = "anna"; }},
      {"the table of sequence 1 names a block that holds other tokens",
       [](BlockManager&, Owner& parent, Owner&) {
         std::swap(opened(Entries{}, parent.table)[0], opened(Entries{}, parent.table)[1]);
       }},
      {"the table of sequence 1 is chained to the wrong node",
       [](BlockManager&, Owner& parent, Owner&) { opened(LastSealed{}, parent.table) = kNoNode; }},
  };
  for (const BrokenManager& broken : cases) {
    BlockManager manager({.block_size = 4, .num_blocks = 8, .num_host_blocks = 4});
    Owner parent(1, counting(6)), child(2, counting(6)), cached(3, counting(4, 50));
    parent.compute(manager);
    manager.fork(parent.table, child.table);
    cached.compute(manager);
    manager.release(cached.table);
    const auto recount = [&] {
      const OwnedTable tables[] = {{&parent.table, parent.content()}, {&child.table, child.content()}};
      return manager.broken_invariant(tables);
    };
    ASSERT_EQ(recount(), std::nullopt);
    broken.break_it(manager, parent, child);
    expect_found(recount(), broken.sentence);
  }
}

TEST(BrokenInvariant, OfAReservationIsFound) {
  BlockManager manager({.block_size = 4, .num_blocks = 8, .enable_prefix_caching = false, .largest_run = 8});
  Owner owner(1, counting(10));
  manager.reserve(owner.table, 4);
  owner.compute(manager);
  const OwnedTable tables[] = {{&owner.table, owner.content()}};
  ASSERT_EQ(manager.broken_invariant(tables), std::nullopt);
  opened(NumAssigned{}, owner.table) = 17;
  expect_found(manager.broken_invariant(tables), "the table of sequence 1 has the wrong length");
  ++opened(NumFreeBlocks{}, *opened(Buddies{}, manager));
  expect_found(manager.broken_invariant(tables), "the count of free blocks is wrong");
}

}  // namespace
}  // namespace octavo::block
