// Full blocks found again by content. A node stands for one content: the tokens of a block after everything
// that precedes it, so a node is (parent node, tokens, and at the root the salt). Nodes form a forest; the
// block that holds a node's keys and values is its holder.
//
// A 64-bit chained hash only chooses the candidates; parent identity, salt and every token are then compared.
// So no collision, by chance or by design, can ever share wrong memory (vLLM's and TensorRT-LLM's hashes had
// such: GHSA-rm76-4mrf-v9r8).
//
// Two sequences that compute the same content at the same time make duplicates: block tables are append-only,
// so the later block is not replaced but noted. When the holder loses its last reference while a duplicate is
// in use, the duplicate becomes the holder and the old block is forgotten. So a content takes no memory twice
// once one user left, and a node is in use whenever one of its descendants is: what is not in use can be
// evicted leaf by leaf, all of it.
//
// Eviction takes leaves before their parents (an orphan could never be found), the least recently used leaf
// first; a node's last use is the moment it was last released. After Kwon et al. 2023 (arXiv:2309.06180) with
// the leaf-first order of TensorRT-LLM and ExLlamaV3. Engine thread; deterministic.
//
// Invariants (broken_invariant() recounts them):
//   1. No two nodes have equal (parent, tokens, salt); a block belongs to at most one node.
//   2. The parent of a node in use is in use; duplicates exist only of nodes in use.
//   3. A node is evictable exactly when it is not in use and has no child.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/block/block.h"

namespace octavo::block {

using PrefixNodeId = Id<struct PrefixNodeTag, std::int32_t>;
// The parent of a first block; what a block without findable contents has.
inline constexpr PrefixNodeId kNoNode{-1};

// Chains a block's tokens to its parent's hash.
using HashFunction = std::uint64_t (*)(std::uint64_t parent_hash, std::span<const TokenId> token_ids);
std::uint64_t hash_tokens(std::uint64_t parent_hash, std::span<const TokenId> token_ids);

class PrefixCache {
 public:
  // REQUIRES: block_size >= 1. Another `hash` changes speed only: tests pass weak ones.
  PrefixCache(std::int32_t num_blocks, std::int32_t block_size, HashFunction hash = &hash_tokens);

  // The content of a block that follows `parent`. `salt` separates users; it counts where parent is kNoNode.
  // REQUIRES: token_ids.size() == block_size
  std::optional<PrefixNodeId> find(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                   std::string_view salt) const;

  // Makes a used block findable, or notes it as a duplicate when a block in use already holds its content.
  // Where only a cached block does, the used one takes its place, and the caller discards the other.
  // REQUIRES: `parent` is kNoNode or in use; the block belongs to no node.
  struct Inserted {
    PrefixNodeId node;
    bool is_holder;
    BlockId displaced = kNoBlock;
  };
  Inserted insert(PrefixNodeId parent, std::span<const TokenId> token_ids, std::string_view salt,
                  BlockId block);

  // The block's last reference went.
  struct Released {
    bool keeps_contents;           // it stays findable; else it belongs to no node any more
    BlockId successor = kNoBlock;  // the duplicate that became the holder in its place
  };
  Released release(BlockId block);

  // A holder that was released is used again.
  void reuse(BlockId block);

  // Forgets the least recently used leaf and returns its block; nullopt when everything is in use.
  std::optional<BlockId> evict();

  BlockId holder(PrefixNodeId node) const { return at(node).holder; }
  // kNoNode: nothing findable, or not registered yet.
  PrefixNodeId node_of(BlockId block) const { return node_of_block_[static_cast<std::size_t>(block.value)]; }
  // Whether it holds findable contents that nobody uses.
  bool is_cached(BlockId block) const { return node_of(block) != kNoNode && !at(node_of(block)).in_use; }
  // The block before this one in its chain, kNoBlock at a root or for a block without a node.
  BlockId parent_block(BlockId block) const;

  std::optional<std::string> broken_invariant() const;

 private:
  struct Node {
    std::uint64_t hash = 0;
    std::uint64_t last_used = 0;  // the release counter when it was last released
    PrefixNodeId parent = kNoNode;
    PrefixNodeId next_in_bucket = kNoNode;
    BlockId holder = kNoBlock;           // kNoBlock: the node is unused memory
    BlockId first_duplicate = kNoBlock;  // oldest first, linked by next_duplicate_
    std::int32_t num_children = 0;
    bool in_use = false;  // the holder is referenced
    std::string salt;     // of root nodes
  };

  Node& at(PrefixNodeId node) { return nodes_[static_cast<std::size_t>(node.value)]; }
  const Node& at(PrefixNodeId node) const { return nodes_[static_cast<std::size_t>(node.value)]; }
  PrefixNodeId& node_entry(BlockId block) { return node_of_block_[static_cast<std::size_t>(block.value)]; }
  BlockId& next_duplicate(BlockId block) { return next_duplicate_[static_cast<std::size_t>(block.value)]; }
  std::span<TokenId> tokens_of(PrefixNodeId node);
  std::span<const TokenId> tokens_of(PrefixNodeId node) const;
  PrefixNodeId& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  std::uint64_t hash_after(PrefixNodeId parent, std::span<const TokenId> token_ids,
                           std::string_view salt) const;
  std::optional<PrefixNodeId> find_hashed(std::uint64_t hash, PrefixNodeId parent,
                                          std::span<const TokenId> token_ids, std::string_view salt) const;
  PrefixNodeId make_node(std::uint64_t hash, PrefixNodeId parent, std::span<const TokenId> token_ids,
                         std::string_view salt, BlockId block);
  BlockId displace_holder(PrefixNodeId node, BlockId block);
  void append_duplicate(PrefixNodeId node, BlockId block);
  void remove_duplicate(PrefixNodeId node, BlockId block);
  void unlink_from_bucket(PrefixNodeId id, const Node& node);
  void note_if_evictable(PrefixNodeId node);

  const std::size_t block_size_;
  const HashFunction hash_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;             // block_size per node
  std::vector<PrefixNodeId> unused_nodes_;  // taken from the back
  std::vector<PrefixNodeId> buckets_;       // power of two; heads of chains
  std::vector<PrefixNodeId> node_of_block_;
  std::vector<BlockId> next_duplicate_;
  std::set<std::pair<std::uint64_t, PrefixNodeId>> evictable_;  // (last_used, node): the first goes first
  std::uint64_t release_counter_ = 0;
};

}  // namespace octavo::block
