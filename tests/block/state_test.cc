// States of recurrent layers: who owns which, what is found again, what is given up.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/block/block_manager.h"
#include "tests/block/owner.h"

namespace octavo::block {
namespace {

// Two steps of a life: what is computed, and what is found by somebody else.
class State : public ::testing::Test {
 protected:
  void compute(Owner& owner, std::int32_t num_tokens) {
    manager_.grow(owner.table, num_tokens, copies_, &moves_);
    manager_.commit(owner.table, owner.content(), num_tokens);
  }
  void compute(Owner& owner) { compute(owner, owner.size()); }
  BlockManager::AppendedMatch find(Owner& owner) {
    return manager_.append_match(owner.table, owner.content(), owner.size() - 1, &copies_);
  }
  void end(Owner& owner) { manager_.release_findable(owner.table, owner.content()); }
  std::size_t num_moves(PoolMoveKind kind) const {
    return static_cast<std::size_t>(std::ranges::count(moves_, kind, &PoolMove::kind));
  }

  BlockManager manager_{{.block_size = kBlockSize,
                         .num_blocks = 32,
                         .num_host_blocks = 16,
                         .num_states = 3,
                         .num_host_states = 2}};
  std::vector<BlockCopy> copies_;
  std::vector<PoolMove> moves_;
};

TEST_F(State, IsClearedForWhoBeginsAndWrittenInPlaceFromThenOn) {
  Owner owner(1, counting(40));
  compute(owner, 20);
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_EQ(moves_[0].kind, PoolMoveKind::kClear);
  EXPECT_EQ(moves_[0].target, owner.table.state());
  const BlockId state = owner.table.state();
  compute(owner);
  EXPECT_EQ(owner.table.state(), state);
  EXPECT_EQ(moves_.size(), 1u);
  expect_whole(manager_, {&owner});
}

TEST_F(State, AnEndedSequenceLeavesOneThatIsResumedExactly) {
  Owner first(1, counting(40));
  compute(first);
  const BlockId state = first.table.state();
  end(first);
  EXPECT_EQ(manager_.figures().cached_states, 1);
  Owner next(2, counting(60));
  const auto found = find(next);
  EXPECT_EQ(found.num_hit_cached, 32);
  EXPECT_EQ(found.num_copied_partial, 8) << "the state is of 40 tokens, and of no fewer";
  EXPECT_EQ(next.table.state(), state);
  EXPECT_EQ(next.table.num_computed_tokens(), 40);
  expect_whole(manager_, {&next});
}

TEST_F(State, BlocksWithoutACheckpointAreNotFound) {
  Owner first(1, counting(40));
  compute(first);
  Owner second(2, counting(60));
  const auto found = find(second);
  EXPECT_EQ(found.num_tokens(), 0) << "the first still goes on from its state";
  EXPECT_EQ(found.miss.cause, MissCause::kNoCheckpoint);
  EXPECT_EQ(found.miss.position, 0);
  EXPECT_TRUE(second.table.empty());
}

TEST_F(State, OfALongerTextIsNoneOfAShorterOne) {
  Owner first(1, counting(48));
  compute(first);
  end(first);
  Owner shorter(2, counting(47));
  EXPECT_EQ(find(shorter).num_tokens(), 0);
  Owner other(3, counting(60));
  other.tokens[47] = 999;
  EXPECT_EQ(find(other).num_tokens(), 0) << "the checkpoint is behind token 48";
}

TEST_F(State, ACheckpointIsCopiedWhenItsOwnerGoesOn) {
  Owner owner(1, counting(64));
  compute(owner, 32);
  manager_.keep_state(owner.table, owner.content(), CheckpointReason::kSystemPrompt);
  const BlockId kept = owner.table.state();
  compute(owner);
  EXPECT_NE(owner.table.state(), kept);
  ASSERT_EQ(moves_.size(), 2u);
  EXPECT_EQ(moves_[1].kind, PoolMoveKind::kCopy);
  EXPECT_EQ(moves_[1].source, kept);
  EXPECT_EQ(moves_[1].target, owner.table.state());
  Owner second(2, counting(40));
  EXPECT_EQ(find(second).num_tokens(), 32);
  EXPECT_EQ(second.table.state(), kept);
  expect_whole(manager_, {&owner, &second});
}

TEST_F(State, TheLongestCheckpointIsTaken) {
  Owner owner(1, counting(96));
  for (const std::int32_t position : {32, 64}) {
    compute(owner, position);
    manager_.keep_state(owner.table, owner.content(), CheckpointReason::kLong);
  }
  compute(owner);
  Owner between(2, counting(70)), before(3, counting(60));
  EXPECT_EQ(find(between).num_tokens(), 64);
  EXPECT_EQ(find(before).num_tokens(), 32);
}

TEST_F(State, IsSharedByAForkUntilSomebodyWrites) {
  Owner parent(1, counting(20)), child(2, counting(20));
  compute(parent);
  manager_.fork(parent.table, child.table);
  EXPECT_EQ(child.table.state(), parent.table.state());
  EXPECT_EQ(manager_.figures().used_states, 1);
  parent.tokens.push_back(7);
  child.tokens.push_back(8);
  compute(parent);
  compute(child);
  EXPECT_NE(child.table.state(), parent.table.state());
  EXPECT_EQ(num_moves(PoolMoveKind::kCopy), 1u) << "the last owner writes in place";
  expect_whole(manager_, {&parent, &child});
}

TEST_F(State, WhoHasNoRoomForACopyGivesUpItsCheckpoint) {
  Owner a(1, counting(20)), b(2, counting(20, 100)), c(3, counting(64, 200));
  compute(a);
  compute(b);
  compute(c, 32);
  manager_.keep_state(c.table, c.content(), CheckpointReason::kLong);
  const BlockId state = c.table.state();
  compute(c);
  EXPECT_EQ(c.table.state(), state) << "all three states are in use";
  EXPECT_EQ(manager_.figures().checkpoints, 0);
  expect_whole(manager_, {&a, &b, &c});
}

TEST_F(State, WhatSavesLeastIsGivenUpFirstAndUseKeepsIt) {
  for (const auto& [first, num_tokens] :
       std::vector<std::pair<TokenId, std::int32_t>>{{1000, 24}, {2000, 60}, {3000, 40}}) {
    Owner owner(1, counting(num_tokens, first));
    compute(owner);
    end(owner);
  }
  EXPECT_EQ(manager_.figures().checkpoints, 3);
  Owner newcomer(9, counting(20));
  compute(newcomer);
  EXPECT_EQ(manager_.figures().checkpoints, 2);
  Owner of_24(2, counting(30, 1000)), of_60(3, counting(70, 2000)), of_40(4, counting(50, 3000));
  EXPECT_EQ(find(of_24).num_tokens(), 0);
  EXPECT_EQ(find(of_60).num_tokens(), 60);
  EXPECT_EQ(find(of_40).num_tokens(), 40);
}

TEST_F(State, OfFewTokensIsNotWorthItsPlace) {
  Owner owner(1, counting(kLeastSavedTokens - 1));
  compute(owner);
  end(owner);
  EXPECT_EQ(manager_.figures().checkpoints, 0);
  EXPECT_EQ(manager_.figures().free_states, 3);
}

TEST_F(State, WithoutItsBlocksIsForgotten) {
  Owner owner(1, counting(40));
  compute(owner);
  end(owner);
  Owner large(2, counting(31 * kBlockSize, 1000));
  compute(large);
  manager_.end_step();
  EXPECT_EQ(manager_.figures().checkpoints, 0);
  EXPECT_EQ(manager_.totals().states.num_evicted, 1);
  expect_whole(manager_, {&large});
}

TEST_F(State, AResetForgetsAll) {
  Owner owner(1, counting(40));
  compute(owner);
  end(owner);
  manager_.reset_prefix_cache();
  EXPECT_EQ(manager_.figures().free_states, 3);
  Owner again(2, counting(50));
  EXPECT_EQ(find(again).num_tokens(), 0);
}

TEST_F(State, OfAnotherSaltIsNotFound) {
  Owner owner(1, counting(12));
  owner.tokens = counting(20);
  owner.salt = "a";
  compute(owner);
  end(owner);
  Owner other(2, counting(30)), same(3, counting(30));
  same.salt = "a";
  EXPECT_EQ(find(other).num_tokens(), 0);
  EXPECT_EQ(find(same).num_tokens(), 20);
}

TEST_F(State, MovesToTheHostOnceForAllItsOwners) {
  Owner parent(1, counting(20)), child(2, counting(20));
  compute(parent);
  manager_.fork(parent.table, child.table);
  const BlockId state = parent.table.state();
  std::vector<BlockSwap> swaps;
  const std::vector<MovingTable> tables = {{&parent.table, parent.content()},
                                           {&child.table, child.content()}};
  moves_.clear();
  ASSERT_TRUE(manager_.swap_out(tables, swaps, &moves_));
  ASSERT_EQ(moves_.size(), 1u);
  EXPECT_EQ(moves_[0].kind, PoolMoveKind::kSwapOut);
  EXPECT_EQ(moves_[0].source, state);
  EXPECT_EQ(manager_.figures().used_states, 0);
  EXPECT_EQ(manager_.figures().host_used_states, 1);
  expect_whole(manager_, {&parent, &child});
  manager_.swap_in(tables, swaps, &moves_);
  ASSERT_EQ(moves_.size(), 2u);
  EXPECT_EQ(moves_[1].kind, PoolMoveKind::kSwapIn);
  EXPECT_EQ(moves_[1].source, moves_[0].target);
  EXPECT_EQ(parent.table.state(), child.table.state());
  EXPECT_EQ(manager_.figures().host_used_states, 0);
  expect_whole(manager_, {&parent, &child});
}

TEST_F(State, WithoutRoomOnTheHostNothingMoves) {
  Owner a(1, counting(20)), b(2, counting(20, 100)), c(3, counting(20, 200));
  std::vector<MovingTable> tables;
  for (Owner* owner : {&a, &b, &c}) {
    compute(*owner);
    tables.push_back({&owner->table, owner->content()});
  }
  std::vector<BlockSwap> swaps;
  EXPECT_FALSE(manager_.swap_out(tables, swaps, &moves_)) << "three states, room for two";
  EXPECT_TRUE(swaps.empty());
  expect_whole(manager_, {&a, &b, &c});
}

TEST_F(State, OfWhomIsShownWithItsPlace) {
  Owner owner(7, counting(40));
  compute(owner, 32);
  manager_.keep_state(owner.table, owner.content(), CheckpointReason::kNextTurn);
  compute(owner);
  const std::vector<OwnedTable> tables = {{&owner.table, owner.content()}};
  const auto states = manager_.state_snapshot(tables);
  ASSERT_EQ(states.size(), 3u);
  const StateSnapshot& running = states[static_cast<std::size_t>(owner.table.state().value)];
  EXPECT_EQ(running.first_owner, SequenceId{7});
  EXPECT_FALSE(running.is_checkpoint);
  const auto kept = std::ranges::find(states, true, &StateSnapshot::is_checkpoint);
  ASSERT_NE(kept, states.end());
  EXPECT_EQ(kept->position, 32);
  EXPECT_EQ(kept->reason, CheckpointReason::kNextTurn);
  EXPECT_EQ(kept->state, BlockState::kCached);
  EXPECT_EQ(kept->num_saved_tokens, 32);
  EXPECT_EQ(kept->last_block, owner.table.blocks()[1]);
}

}  // namespace
}  // namespace octavo::block
