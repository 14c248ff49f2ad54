// Sequences as tests of the block manager need them: tokens, a table, and steps in which they are computed at
// once.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/block/block_manager.h"

namespace octavo::block {

using Tokens = std::vector<TokenId>;

constexpr std::int32_t kBlockSize = 16;

inline Tokens counting(std::int32_t num_tokens, TokenId first = 0) {
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
  SequenceContent content() const {
    return {tokens, salt, retention, num_system_tokens, num_next_turn_tokens};
  }
  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }

  BlockTable table;
  Tokens tokens;
  std::string salt;
  RetentionClass retention = RetentionClass::kScratch;
  std::int32_t num_system_tokens = 0;
  std::int32_t num_next_turn_tokens = 0;
};

inline void expect_whole(const BlockManager& manager, std::initializer_list<const Owner*> owners) {
  std::vector<OwnedTable> tables;
  for (const Owner* owner : owners) tables.push_back({&owner->table, owner->content()});
  EXPECT_EQ(manager.broken_invariant(tables), std::nullopt);
}

}  // namespace octavo::block
