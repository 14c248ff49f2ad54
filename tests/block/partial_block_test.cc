// Prefixes that end inside a block: what is found of it, what is kept, and why a hit ended.
#include <gtest/gtest.h>

#include <vector>

#include "engine/block/block_manager.h"
#include "tests/block/owner.h"

namespace octavo::block {
namespace {

// A manager with blocks of eight tokens, and what one request would find in it.
class PartialBlock : public ::testing::Test {
 protected:
  PartialBlock() { manager_.begin_step(1); }

  // Somebody computed these tokens and ended.
  void leave(Tokens tokens, bool findable = true) {
    Owner owner(next_id_++, std::move(tokens));
    owner.compute(manager_);
    if (findable) {
      manager_.release_findable(owner.table, owner.content());
    } else {
      manager_.release(owner.table);
    }
  }

  BlockManager::AppendedMatch find(Owner& owner) {
    copies_.clear();
    return manager_.append_match(owner.table, owner.content(), owner.size() - 1, &copies_);
  }

  static Tokens joined(Tokens first, const Tokens& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  BlockManager manager_{{.block_size = 8, .num_blocks = 8}};
  std::vector<BlockCopy> copies_;
  std::uint64_t next_id_ = 100;
};

TEST_F(PartialBlock, FourEqualTokensAreCopiedAndThreeAreNot) {
  leave(counting(8));
  for (const std::int32_t num_equal : {3, 4, 7}) {
    Owner owner(1, joined(counting(num_equal), counting(8, 500)));
    const auto found = find(owner);
    EXPECT_EQ(found.num_copied_partial, num_equal < 4 ? 0 : num_equal);
    EXPECT_EQ(copies_.size(), num_equal < 4 ? 0u : 1u);
    EXPECT_EQ(owner.table.num_computed_tokens(), found.num_copied_partial);
    if (num_equal >= 4) {
      EXPECT_EQ(copies_[0].target, owner.table.blocks()[0]);
      EXPECT_NE(copies_[0].source, copies_[0].target);
    }
    manager_.end_step();
    manager_.release(owner.table);
  }
  EXPECT_EQ(manager_.totals().partial_copies, 2);
}

TEST_F(PartialBlock, AllOfAShorterStartIsCopied) {
  leave(counting(10));  // a full block, and a start of two
  Owner owner(1, joined(counting(10), counting(5, 500)));
  const auto found = find(owner);
  EXPECT_EQ(found.num_hit_cached, 8);
  EXPECT_EQ(found.num_copied_partial, 2);
  manager_.end_step();
}

TEST_F(PartialBlock, TheNextTurnOfAChatResumesExactlyWhereItEnded) {
  for (std::int32_t length = 1; length <= 24; ++length) {
    leave(counting(length, 1000 * length));
    Owner next_turn(1, joined(counting(length, 1000 * length), counting(9, 500)));
    EXPECT_EQ(find(next_turn).num_tokens(), length);
    manager_.end_step();
    manager_.release(next_turn.table);
  }
}

TEST_F(PartialBlock, OnlyTheLastOwnerOfASharedPartialBlockLeavesIt) {
  Owner parent(1, counting(12)), child(2, counting(12));
  parent.compute(manager_);
  manager_.fork(parent.table, child.table);
  manager_.release_findable(parent.table, parent.content());
  EXPECT_EQ(manager_.figures().cached_blocks, 0);
  manager_.release_findable(child.table, child.content());
  EXPECT_EQ(manager_.figures().cached_blocks, 2);
}

TEST_F(PartialBlock, SlotsThatWereNeverComputedAreNotKept) {
  Owner owner(1, counting(30));
  std::vector<BlockCopy> copies;
  manager_.grow(owner.table, 30, copies);
  manager_.commit(owner.table, owner.content(), 10);
  manager_.release_findable(owner.table, owner.content());
  EXPECT_EQ(manager_.figures().cached_blocks, 2) << "eight tokens, and two";
  Owner again(2, counting(30));
  EXPECT_EQ(find(again).num_tokens(), 10);
  manager_.end_step();
}

TEST_F(PartialBlock, TheSourceIsPinnedUntilTheStepEnds) {
  leave(counting(8));
  Owner reader(1, joined(counting(6), counting(3, 500)));
  find(reader);
  const BlockId source = copies_.at(0).source;
  EXPECT_EQ(manager_.pool().at(source).num_pins, 1);
  EXPECT_EQ(manager_.pool().at(source).ref_count, 1);
  expect_whole(manager_, {&reader});
  Owner greedy(2, counting(8 * manager_.num_available(), 900));
  greedy.compute(manager_);
  EXPECT_EQ(manager_.prefix_cache().is_holder(source), true) << "taking all the rest did not evict it";
  manager_.end_step();
  EXPECT_EQ(manager_.pool().at(source).state, BlockState::kCached);
  EXPECT_EQ(manager_.num_available(), 1);
  expect_whole(manager_, {&reader, &greedy});
}

TEST_F(PartialBlock, ASourceInUseIsCopiedFromToo) {
  Owner running(1, counting(8)), reader(2, joined(counting(5), counting(6, 500)));
  running.compute(manager_);
  EXPECT_EQ(find(reader).num_copied_partial, 5);
  EXPECT_EQ(manager_.pool().at(copies_.at(0).source).ref_count, 2) << "its owner and the copy";
  manager_.end_step();
  EXPECT_EQ(manager_.pool().at(copies_.at(0).source).ref_count, 1);
  expect_whole(manager_, {&running, &reader});
}

TEST_F(PartialBlock, NothingIsCopiedIntoTheLastBlockThatTheRequestNeeds) {
  leave(counting(8));
  Owner big(1, counting(48, 900));  // six of eight blocks; one is cached, one is free
  big.compute(manager_);
  Owner reader(2, joined(counting(6), counting(10, 500)));  // needs two
  EXPECT_EQ(find(reader).num_copied_partial, 0) << "pinning the source would leave one block for two";
  Owner shorter(3, joined(counting(6), counting(2, 500)));  // needs one
  EXPECT_EQ(find(shorter).num_copied_partial, 6);
  manager_.end_step();
  expect_whole(manager_, {&big, &reader, &shorter});
}

TEST_F(PartialBlock, AStartThatIsCoveredIsDisplaced) {
  leave(counting(3));
  leave(counting(5));
  EXPECT_EQ(manager_.figures().cached_blocks, 1) << "five tokens say all that three did";
  leave(counting(4));
  EXPECT_EQ(manager_.figures().cached_blocks, 1) << "and what is shorter is not kept beside them";
  leave(joined(counting(4), counting(1, 500)));
  EXPECT_EQ(manager_.figures().cached_blocks, 2) << "what goes on otherwise is";
  leave(counting(8));
  EXPECT_EQ(manager_.figures().cached_blocks, 2) << "a full block covers too";
  expect_whole(manager_, {});
}

TEST_F(PartialBlock, AStartThatIsBeingCopiedIsNotDisplaced) {
  leave(counting(5));
  Owner reader(1, joined(counting(5), counting(3, 500)));
  find(reader);
  leave(counting(8));
  EXPECT_EQ(manager_.pool().at(copies_.at(0).source).num_pins, 1);
  expect_whole(manager_, {&reader});
  manager_.end_step();
  EXPECT_EQ(manager_.figures().cached_blocks, 2);
  expect_whole(manager_, {&reader});
}

TEST_F(PartialBlock, AStartThatMatchesWholeIsTakenRatherThanABlockThatStartsAlike) {
  leave(counting(2));
  Owner reader(1, joined(counting(2), counting(4, 500)));
  find(reader);
  leave(counting(8));  // does not displace what is being copied
  manager_.end_step();
  Owner other(2, joined(counting(2), counting(4, 600)));
  EXPECT_EQ(find(other).num_copied_partial, 2) << "two of eight would not be worth a copy";
  manager_.end_step();
}

TEST_F(PartialBlock, TheNewestOfEquallyGoodSourcesIsTaken) {
  leave(joined(counting(5), counting(3, 500)));
  leave(joined(counting(5), counting(3, 600)));
  Owner reader(1, joined(counting(5), counting(3, 700)));
  find(reader);
  const PrefixNodeId node = manager_.prefix_cache().node_of(copies_.at(0).source);
  EXPECT_EQ(manager_.prefix_cache().tokens(node)[5], 600);
  manager_.end_step();
}

TEST_F(PartialBlock, WithoutCopiesNothingIsCopied) {
  leave(counting(8));
  Owner reader(1, joined(counting(5), counting(3, 500)));
  EXPECT_EQ(manager_.append_match(reader.table, reader.content(), 7).num_tokens(), 0);
  EXPECT_TRUE(reader.table.empty());
}

TEST_F(PartialBlock, AWholeBlockReplacesTheStartThatATableHasAlready) {
  leave(counting(16));
  Owner reader(1, joined(counting(14), counting(9, 500)));
  std::vector<BlockCopy> copies;
  manager_.grow(reader.table, 3, copies);
  manager_.commit(reader.table, reader.content(), 3);
  const auto found = find(reader);
  EXPECT_EQ(found.num_hit_cached, 5) << "beyond its own three tokens";
  EXPECT_EQ(found.num_copied_partial, 6);
  EXPECT_EQ(reader.table.num_computed_tokens(), 14);
  manager_.end_step();
  expect_whole(manager_, {&reader});
}

TEST_F(PartialBlock, AStartThatATableHasAlreadyIsNotReplacedByAnotherStart) {
  leave(counting(16));
  Owner reader(1, joined(counting(14), counting(9, 500)));
  std::vector<BlockCopy> copies;
  manager_.grow(reader.table, 10, copies);
  manager_.commit(reader.table, reader.content(), 10);
  EXPECT_EQ(find(reader).num_tokens(), 0);
  EXPECT_EQ(reader.table.num_computed_tokens(), 10);
}

// ---- why a hit ended

class PrefixMisses : public PartialBlock {
 protected:
  PrefixMiss miss_of(Tokens tokens, std::string salt = "") {
    Owner owner(1, std::move(tokens));
    owner.salt = std::move(salt);
    const PrefixMiss miss = find(owner).miss;
    manager_.end_step();
    manager_.release(owner.table);
    return miss;
  }
};

TEST_F(PrefixMisses, NobodyHadItBefore) {
  const PrefixMiss miss = miss_of(counting(20));
  EXPECT_EQ(miss.cause, MissCause::kFirstUse);
  EXPECT_EQ(miss.position, 0);
}

TEST_F(PrefixMisses, EverythingThatMayBeFoundWasFound) {
  leave(counting(20));
  EXPECT_EQ(miss_of(counting(20)).cause, MissCause::kNone);
  EXPECT_EQ(miss_of(counting(17)).cause, MissCause::kNone) << "at a block border";
}

TEST_F(PrefixMisses, TheFirstDifferingTokenIsNamed) {
  leave(counting(24));
  const PrefixMiss miss = miss_of(joined(counting(13), counting(10, 500)));
  EXPECT_EQ(miss.cause, MissCause::kDifferingToken);
  EXPECT_EQ(miss.position, 13);
}

TEST_F(PrefixMisses, ABlockBehindTheCachedOnesIsAFirstUse) {
  leave(counting(16));
  const PrefixMiss miss = miss_of(counting(30));
  EXPECT_EQ(miss.cause, MissCause::kFirstUse);
  EXPECT_EQ(miss.position, 16);
}

TEST_F(PrefixMisses, AnotherSaltIsNamed) {
  leave(counting(16));
  EXPECT_EQ(miss_of(counting(16), "anna").cause, MissCause::kOtherSalt);
  EXPECT_EQ(miss_of(counting(16), "anna").position, 0);
}

TEST_F(PrefixMisses, AnEvictionIsNamedWithItsStepAndWhoTookThePlace) {
  leave(counting(16));
  manager_.begin_step(7);
  Owner greedy(42, counting(64, 900));
  greedy.compute(manager_);
  manager_.release(greedy.table);
  const PrefixMiss miss = miss_of(counting(16));
  EXPECT_EQ(miss.cause, MissCause::kEvicted);
  EXPECT_EQ(miss.position, 0);
  EXPECT_EQ(miss.evicted_step, 7);
  EXPECT_EQ(miss.evicted_by, 42u);
}

TEST_F(PrefixMisses, AResetIsAnEvictionByNobody) {
  leave(counting(16));
  manager_.reset_prefix_cache();
  const PrefixMiss miss = miss_of(counting(16));
  EXPECT_EQ(miss.cause, MissCause::kEvicted);
  EXPECT_EQ(miss.evicted_by, 0u);
}

TEST_F(PrefixMisses, WithoutACacheNothingIsRead) {
  BlockManager uncached({.block_size = 8, .num_blocks = 8, .enable_prefix_caching = false});
  Owner owner(1, counting(20));
  EXPECT_EQ(uncached.append_match(owner.table, owner.content(), 19).miss.cause, MissCause::kNotRead);
}

}  // namespace
}  // namespace octavo::block
