// Computed blocks found again by content. A node stands for one content: the tokens of a block after
// everything that precedes it, so a node is (parent node, tokens, and at the root the salt). Nodes form a
// forest; the block that holds a node's keys and values is its holder.
//
// A full node holds a whole block of tokens and can have children. A partial node holds the start of a block,
// where somebody's tokens ended; it is always a leaf, and it is only ever copied from.
//
// A 64-bit chained hash only chooses the candidates; parent identity, salt and every token are then compared.
// So no collision, by chance or by design, can ever share wrong memory (vLLM's and TensorRT-LLM's hashes had
// such: GHSA-rm76-4mrf-v9r8).
//
// Two sequences that compute the same content at the same time make duplicates: block tables are append-only,
// so the later block is not replaced but noted. When the holder loses its last reference while a duplicate is
// in use, the duplicate becomes the holder and the old block is forgotten. So a content takes no memory twice
// once one user left, and a node is in use whenever one of its descendants is: what is not in use can be
// evicted leaf by leaf, all of it that is not pinned.
//
// Eviction takes leaves before their parents (an orphan could never be found), of the leaves those of the
// lowest retention class, and of these the least recently used; a node's last use is the moment it was last
// released. After Kwon et al. 2023 (arXiv:2309.06180) with the leaf-first order and the retention classes of
// TensorRT-LLM. Engine thread; deterministic.
//
// Invariants (broken_invariant() recounts them):
//   1. No two full nodes have equal (parent, tokens, salt); no partial node is the start of a sibling, unless
//   it is being copied; a block belongs to at most one node.
//   2. The parent of a node in use is in use; duplicates exist only of nodes in use.
//   3. A node is evictable exactly when it is not in use, not pinned and has no child.
//   4. The parent of a pinned node is pinned; at most max_num_pinned nodes are.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"

namespace octavo::block {

using PrefixNodeId = Id<struct PrefixNodeTag, std::int32_t>;
// The parent of a first block; what a block without findable contents has.
inline constexpr PrefixNodeId kNoNode{-1};

// Chains a block's tokens to its parent's hash.
using HashFunction = std::uint64_t (*)(std::uint64_t parent_hash, std::span<const TokenId> token_ids);
std::uint64_t hash_tokens(std::uint64_t parent_hash, std::span<const TokenId> token_ids);

// The end of a cached content: for the account of later misses.
struct Eviction {
  std::int64_t step = 0;
  SequenceId by = {};  // who took the place; 0: a reset
};

class PrefixCache {
 public:
  // REQUIRES: block_size >= 1. Another `hash` changes speed only: tests pass weak ones.
  PrefixCache(std::int32_t num_blocks, std::int32_t block_size, HashFunction hash = &hash_tokens);

  // ---- asking

  // The full node of a block that follows `parent`. `salt` separates users; it counts where parent is
  // kNoNode. REQUIRES: token_ids.size() == block_size
  std::optional<PrefixNodeId> find(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                   std::string_view salt) const;

  // The node after `parent` that starts most like `token_ids` (at most a block of them), the
  // shortest of several. O(children).
  struct Closest {
    PrefixNodeId node = kNoNode;
    std::int32_t num_equal = 0;        // tokens from the start
    bool is_under_other_salt = false;  // all of `token_ids`, a whole block, stand under another salt
  };
  Closest closest(PrefixNodeId parent, std::span<const TokenId> token_ids, std::string_view salt) const;

  // Whether, when and by whom this content was evicted, as far as that is remembered: the newest evictions,
  // about as many as there are blocks. By hash alone: good enough to explain, never to share.
  std::optional<Eviction> eviction_of(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                      std::string_view salt) const;

  BlockId holder(PrefixNodeId node) const { return at(node).holder; }
  std::span<const TokenId> tokens(PrefixNodeId node) const;
  // Given to no other node of the cache, ever; 0: no node any more. What a node holds and follows never
  // changes.
  std::uint64_t serial(PrefixNodeId node) const { return at(node).serial; }
  RetentionClass retention(PrefixNodeId node) const { return at(node).retention; }
  std::int32_t num_children(PrefixNodeId node) const { return at(node).num_children; }
  // Whether the node stands directly after `parent`, and where that is kNoNode, under this salt.
  bool continues(PrefixNodeId node, PrefixNodeId parent, std::string_view salt) const {
    return at(node).parent == parent && (parent != kNoNode || at(node).salt == salt);
  }
  // kNoNode: nothing findable, or not registered yet.
  PrefixNodeId node_of(BlockId block) const { return node_of_block_[index_of(block)]; }
  bool is_holder(BlockId block) const { return node_of(block) != kNoNode && holder(node_of(block)) == block; }
  // Whether it holds findable contents that nobody uses.
  bool is_cached(BlockId block) const { return node_of(block) != kNoNode && !at(node_of(block)).in_use; }
  // The block before this one in its chain, kNoBlock at a root or for a block without a node.
  BlockId parent_block(BlockId block) const;

  // Nodes that nobody uses and that evict() does not take.
  std::int32_t num_pinned_unused() const { return num_pinned_unused_; }
  std::int32_t max_num_pinned() const { return static_cast<std::int32_t>(nodes_.size()) / 4; }

  // ---- acting

  // Makes a used block findable, or notes it as a duplicate when a block in use already holds its content.
  // Where only a cached block does, the used one takes its place. Blocks in `displaced` belong to no node any
  // more, were not in use, and are for the caller to discard: such holders, and partial nodes that are
  // the start of this one. REQUIRES: `parent` is kNoNode or in use; the block belongs to no node.
  struct Inserted {
    PrefixNodeId node;
    bool is_holder;
    BlockId predecessor = kNoBlock;  // the cached holder whose place it took; `displaced` names it, too
    std::vector<BlockId> displaced = {};
  };
  Inserted insert(PrefixNodeId parent, std::span<const TokenId> token_ids, std::string_view salt,
                  BlockId block, RetentionClass retention = RetentionClass::kScratch);

  // Makes the start of a block findable for copying; the block is used and will be released next. kNoNode
  // when a sibling already starts with these tokens. REQUIRES: 1 <= token_ids.size() < block_size, and the
  // rest as insert().
  Inserted insert_partial(PrefixNodeId parent, std::span<const TokenId> token_ids, std::string_view salt,
                          BlockId block, RetentionClass retention = RetentionClass::kScratch);

  // The block's last reference went.
  struct Released {
    bool keeps_contents;           // it stays findable; else it belongs to no node any more
    BlockId successor = kNoBlock;  // the duplicate that became the holder in its place
  };
  Released release(BlockId block);

  // A holder that was released is used again.
  void reuse(BlockId block);

  // The node is kept at least as long as this class says. Pinning stops at max_num_pinned().
  // REQUIRES: in use; for kPinned: its parent is pinned or kNoNode, else nothing is done.
  void raise_retention(PrefixNodeId node, RetentionClass retention);

  // Forgets the next leaf in eviction order and returns its block; nullopt when everything is in use or
  // pinned.
  std::optional<BlockId> evict(const Eviction& eviction = {});

  // Every pinned node is of class kSystemPrompt from now on.
  void release_pins();

  std::optional<std::string> broken_invariant() const;

 private:
  struct Node {
    std::uint64_t hash = 0;
    std::uint64_t serial = 0;
    std::uint64_t last_used = 0;  // the release counter when it was last released
    PrefixNodeId parent = kNoNode;
    PrefixNodeId next_in_bucket = kNoNode;  // of full nodes
    PrefixNodeId first_child = kNoNode;
    PrefixNodeId next_sibling = kNoNode, previous_sibling = kNoNode;
    BlockId holder = kNoBlock;           // kNoBlock: the node is unused memory
    BlockId first_duplicate = kNoBlock;  // oldest first, linked by next_duplicate_
    std::int32_t num_tokens = 0;
    std::int32_t num_children = 0;
    bool in_use = false;  // the holder is referenced
    RetentionClass retention = RetentionClass::kScratch;
    std::string salt;  // of root nodes
  };
  // First of these goes first.
  using EvictionKey = std::tuple<RetentionClass, std::uint64_t, PrefixNodeId>;
  struct RememberedEviction {
    std::uint64_t hash = 0;  // 0: none
    Eviction eviction;
  };

  Node& at(PrefixNodeId node) { return nodes_[static_cast<std::size_t>(node.value)]; }
  const Node& at(PrefixNodeId node) const { return nodes_[static_cast<std::size_t>(node.value)]; }
  PrefixNodeId& node_entry(BlockId block) { return node_of_block_[index_of(block)]; }
  BlockId& next_duplicate(BlockId block) { return next_duplicate_[index_of(block)]; }
  PrefixNodeId& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  PrefixNodeId& first_child_of(PrefixNodeId parent) {
    return parent == kNoNode ? first_root_ : at(parent).first_child;
  }
  PrefixNodeId first_child_of(PrefixNodeId parent) const {
    return parent == kNoNode ? first_root_ : at(parent).first_child;
  }
  bool is_full(const Node& node) const { return node.num_tokens == static_cast<std::int32_t>(block_size_); }
  EvictionKey key_of(PrefixNodeId node) const { return {at(node).retention, at(node).last_used, node}; }

  std::uint64_t hash_after(PrefixNodeId parent, std::span<const TokenId> token_ids,
                           std::string_view salt) const;
  std::optional<PrefixNodeId> find_hashed(std::uint64_t hash, PrefixNodeId parent,
                                          std::span<const TokenId> token_ids, std::string_view salt) const;
  PrefixNodeId make_node(std::uint64_t hash, PrefixNodeId parent, std::span<const TokenId> token_ids,
                         std::string_view salt, BlockId block);
  BlockId displace_holder(PrefixNodeId node, BlockId block);
  void displace_covered(PrefixNodeId parent, std::span<const TokenId> token_ids, std::string_view salt,
                        std::vector<BlockId>& displaced);
  BlockId forget(PrefixNodeId node);
  void append_duplicate(PrefixNodeId node, BlockId block);
  void remove_duplicate(PrefixNodeId node, BlockId block);
  void unlink_from_bucket(PrefixNodeId id, const Node& node);
  void unlink_from_siblings(const Node& node);
  void note_unused(PrefixNodeId node);
  void note_used(PrefixNodeId node);
  void note_if_evictable(PrefixNodeId node);
  bool may_pin(PrefixNodeId node) const;
  std::optional<std::string> broken_node(PrefixNodeId id) const;

  const std::size_t block_size_;
  const HashFunction hash_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;             // block_size per node
  std::vector<PrefixNodeId> unused_nodes_;  // taken from the back
  std::vector<PrefixNodeId> buckets_;       // power of two; heads of chains
  PrefixNodeId first_root_ = kNoNode;
  std::vector<PrefixNodeId> node_of_block_;
  std::vector<BlockId> next_duplicate_;
  std::set<EvictionKey> evictable_;
  std::vector<RememberedEviction> evictions_;  // power of two; by hash, the newer one stays
  std::uint64_t release_counter_ = 0;
  std::uint64_t num_made_ = 0;  // nodes, ever
  std::int32_t num_pinned_ = 0;
  std::int32_t num_pinned_unused_ = 0;
};

}  // namespace octavo::block
