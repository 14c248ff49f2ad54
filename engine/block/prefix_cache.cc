#include "engine/block/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"

namespace octavo::block {
namespace {

std::uint64_t hash_salt(std::string_view salt) {
  std::uint64_t hash = mix64(salt.size());
  for (const char c : salt) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
}

std::size_t num_equal_from_start(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

std::uint64_t hash_tokens(std::uint64_t parent_hash, std::span<const TokenId> token_ids) {
  std::uint64_t hash = parent_hash;
  for (const TokenId token_id : token_ids) hash = mix64(hash ^ static_cast<std::uint32_t>(token_id));
  return hash;
}

PrefixCache::PrefixCache(std::int32_t num_blocks, std::int32_t block_size, HashFunction hash)
    : block_size_(static_cast<std::size_t>(block_size)),
      hash_(hash),
      nodes_(static_cast<std::size_t>(num_blocks)),
      tokens_(nodes_.size() * block_size_),
      buckets_(std::bit_ceil(nodes_.size() + 1), kNoNode),
      node_of_block_(nodes_.size(), kNoNode),
      next_duplicate_(nodes_.size(), kNoBlock),
      evictions_(std::bit_ceil(nodes_.size() + 1)) {
  unused_nodes_.reserve(nodes_.size());
  for (std::int32_t id = num_blocks - 1; id >= 0; --id) unused_nodes_.push_back(PrefixNodeId{id});
}

// ---- asking

std::span<const TokenId> PrefixCache::tokens(PrefixNodeId node) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(node.value) * block_size_,
                                    static_cast<std::size_t>(at(node).num_tokens));
}

std::uint64_t PrefixCache::hash_after(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                      std::string_view salt) const {
  return hash_(parent == kNoNode ? hash_salt(salt) : at(parent).hash, token_ids);
}

std::optional<PrefixNodeId> PrefixCache::find(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                              std::string_view salt) const {
  OCTAVO_CHECK(token_ids.size() == block_size_, "%zu tokens in a block of %zu", token_ids.size(),
               block_size_);
  return find_hashed(hash_after(parent, token_ids, salt), parent, token_ids, salt);
}

std::optional<PrefixNodeId> PrefixCache::find_hashed(std::uint64_t hash, PrefixNodeId parent,
                                                     std::span<const TokenId> token_ids,
                                                     std::string_view salt) const {
  PrefixNodeId id = buckets_[hash & (buckets_.size() - 1)];
  for (; id != kNoNode; id = at(id).next_in_bucket) {
    const Node& node = at(id);
    if (node.hash != hash || node.parent != parent) continue;
    if (parent == kNoNode && node.salt != salt) continue;
    if (std::ranges::equal(tokens(id), token_ids)) return id;
  }
  return std::nullopt;
}

PrefixCache::Closest PrefixCache::closest(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                          std::string_view salt) const {
  Closest closest;
  for (PrefixNodeId id = first_child_of(parent); id != kNoNode; id = at(id).next_sibling) {
    const auto num_equal = num_equal_from_start(tokens(id), token_ids);
    if (parent == kNoNode && at(id).salt != salt) {
      closest.is_under_other_salt |= num_equal == block_size_;
      continue;
    }
    // Of two that are equally alike the shorter one: a partial node that
    // matches whole is always worth a copy.
    const auto length = static_cast<std::int32_t>(num_equal);
    const bool is_shorter =
        length > 0 && length == closest.num_equal && at(id).num_tokens < at(closest.node).num_tokens;
    if (length > closest.num_equal || is_shorter) {
      closest.node = id;
      closest.num_equal = length;
    }
  }
  return closest;
}

std::optional<Eviction> PrefixCache::eviction_of(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                                 std::string_view salt) const {
  const std::uint64_t hash = hash_after(parent, token_ids, salt);
  const RememberedEviction& remembered = evictions_[hash & (evictions_.size() - 1)];
  if (remembered.hash != hash || hash == 0) return std::nullopt;
  return remembered.eviction;
}

BlockId PrefixCache::parent_block(BlockId block) const {
  const PrefixNodeId node = node_of(block);
  if (node == kNoNode || at(node).parent == kNoNode) return kNoBlock;
  return at(at(node).parent).holder;
}

// ---- becoming findable

PrefixCache::Inserted PrefixCache::insert(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                          std::string_view salt, BlockId block, RetentionClass retention) {
  OCTAVO_CHECK(token_ids.size() == block_size_, "%zu tokens in a block of %zu", token_ids.size(),
               block_size_);
  OCTAVO_CHECK(parent == kNoNode || at(parent).in_use, "parent node %d is not in use", parent.value);
  OCTAVO_CHECK(node_of(block) == kNoNode, "block %d has contents", block.value);
  const std::uint64_t hash = hash_after(parent, token_ids, salt);
  const auto found = find_hashed(hash, parent, token_ids, salt);
  Inserted inserted{.node = found.value_or(kNoNode), .is_holder = true};
  if (!found) {
    displace_covered(parent, token_ids, salt, inserted.displaced);
    inserted.node = make_node(hash, parent, token_ids, salt, block);
  } else if (at(*found).in_use) {
    append_duplicate(*found, block);
    inserted.is_holder = false;
  } else {
    inserted.predecessor = displace_holder(*found, block);
    inserted.displaced.push_back(inserted.predecessor);
  }
  raise_retention(inserted.node, retention);
  return inserted;
}

PrefixCache::Inserted PrefixCache::insert_partial(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                                  std::string_view salt, BlockId block,
                                                  RetentionClass retention) {
  OCTAVO_CHECK(!token_ids.empty() && token_ids.size() < block_size_, "%zu tokens of a block of %zu",
               token_ids.size(), block_size_);
  OCTAVO_CHECK(node_of(block) == kNoNode, "block %d has contents", block.value);
  if (closest(parent, token_ids, salt).num_equal == static_cast<std::int32_t>(token_ids.size())) {
    return {.node = kNoNode, .is_holder = false};
  }
  Inserted inserted{.node = kNoNode, .is_holder = true};
  displace_covered(parent, token_ids, salt, inserted.displaced);
  inserted.node = make_node(hash_after(parent, token_ids, salt), parent, token_ids, salt, block);
  raise_retention(inserted.node, retention);
  return inserted;
}

PrefixNodeId PrefixCache::make_node(std::uint64_t hash, PrefixNodeId parent,
                                    std::span<const TokenId> token_ids, std::string_view salt,
                                    BlockId block) {
  OCTAVO_CHECK(!unused_nodes_.empty(), "more contents than %zu blocks", nodes_.size());
  const PrefixNodeId id = unused_nodes_.back();
  unused_nodes_.pop_back();
  Node& node = at(id);
  node.hash = hash;
  node.serial = ++num_made_;
  node.parent = parent;
  node.holder = block;
  node.in_use = true;
  node.num_tokens = static_cast<std::int32_t>(token_ids.size());
  std::ranges::copy(token_ids, tokens_.begin() + id.value * static_cast<std::ptrdiff_t>(block_size_));
  if (is_full(node)) node.next_in_bucket = std::exchange(bucket(hash), id);
  node.next_sibling = std::exchange(first_child_of(parent), id);
  if (node.next_sibling != kNoNode) at(node.next_sibling).previous_sibling = id;
  if (parent == kNoNode) {
    node.salt = salt;
  } else {
    ++at(parent).num_children;
  }
  node_entry(block) = id;
  return id;
}

BlockId PrefixCache::displace_holder(PrefixNodeId id, BlockId block) {
  const BlockId displaced = std::exchange(at(id).holder, block);
  note_used(id);
  node_entry(displaced) = kNoNode;
  node_entry(block) = id;
  return displaced;
}

// Partial nodes say nothing beside one that starts like them and goes on.
void PrefixCache::displace_covered(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                   std::string_view salt, std::vector<BlockId>& displaced) {
  for (PrefixNodeId id = first_child_of(parent), next; id != kNoNode; id = next) {
    const Node& node = at(id);
    next = node.next_sibling;
    if (is_full(node) || node.in_use || node.retention == RetentionClass::kPinned) continue;
    if (parent == kNoNode && node.salt != salt) continue;
    if (num_equal_from_start(tokens(id), token_ids) < static_cast<std::size_t>(node.num_tokens)) continue;
    evictable_.erase(key_of(id));
    displaced.push_back(forget(id));
  }
}

void PrefixCache::append_duplicate(PrefixNodeId id, BlockId block) {
  BlockId* link = &at(id).first_duplicate;
  while (*link != kNoBlock) link = &next_duplicate(*link);
  *link = block;
  node_entry(block) = id;
}

void PrefixCache::remove_duplicate(PrefixNodeId id, BlockId block) {
  BlockId* link = &at(id).first_duplicate;
  while (*link != block) link = &next_duplicate(*link);
  *link = std::exchange(next_duplicate(block), kNoBlock);
}

// ---- coming into use and out of it

PrefixCache::Released PrefixCache::release(BlockId block) {
  const PrefixNodeId id = node_of(block);
  if (id == kNoNode) return {.keeps_contents = false};
  Node& node = at(id);
  if (node.holder == block && node.first_duplicate == kNoBlock) {
    note_unused(id);
    return {.keeps_contents = true};
  }
  node_entry(block) = kNoNode;
  if (node.holder != block) {
    remove_duplicate(id, block);
    return {.keeps_contents = false};
  }
  node.holder = node.first_duplicate;
  remove_duplicate(id, node.holder);
  return {.keeps_contents = false, .successor = node.holder};
}

void PrefixCache::reuse(BlockId block) {
  const PrefixNodeId id = node_of(block);
  OCTAVO_CHECK(id != kNoNode && !at(id).in_use, "block %d holds nothing that waits for use", block.value);
  note_used(id);
}

void PrefixCache::note_used(PrefixNodeId id) {
  evictable_.erase(key_of(id));
  at(id).in_use = true;
  if (at(id).retention == RetentionClass::kPinned) --num_pinned_unused_;
}

void PrefixCache::note_unused(PrefixNodeId id) {
  at(id).in_use = false;
  at(id).last_used = ++release_counter_;
  if (at(id).retention == RetentionClass::kPinned) ++num_pinned_unused_;
  note_if_evictable(id);
}

void PrefixCache::note_if_evictable(PrefixNodeId id) {
  const Node& node = at(id);
  if (!node.in_use && node.num_children == 0 && node.retention != RetentionClass::kPinned) {
    evictable_.insert(key_of(id));
  }
}

// ---- being kept

bool PrefixCache::may_pin(PrefixNodeId id) const {
  const PrefixNodeId parent = at(id).parent;
  return num_pinned_ < max_num_pinned() &&
         (parent == kNoNode || at(parent).retention == RetentionClass::kPinned);
}

void PrefixCache::raise_retention(PrefixNodeId id, RetentionClass retention) {
  Node& node = at(id);
  OCTAVO_CHECK(node.in_use, "node %d is not in use", id.value);
  if (retention <= node.retention) return;
  if (retention == RetentionClass::kPinned) {
    if (!may_pin(id)) return raise_retention(id, RetentionClass::kSystemPrompt);
    ++num_pinned_;
  }
  node.retention = retention;
}

void PrefixCache::release_pins() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.holder == kNoBlock || node.retention != RetentionClass::kPinned) continue;
    node.retention = RetentionClass::kSystemPrompt;
    note_if_evictable(PrefixNodeId{static_cast<std::int32_t>(i)});
  }
  num_pinned_ = num_pinned_unused_ = 0;
}

// ---- being forgotten

std::optional<BlockId> PrefixCache::evict(const Eviction& eviction) {
  if (evictable_.empty()) return std::nullopt;
  const PrefixNodeId id = std::get<PrefixNodeId>(*evictable_.begin());
  evictable_.erase(evictable_.begin());
  const std::uint64_t hash = at(id).hash;
  evictions_[hash & (evictions_.size() - 1)] = {hash, eviction};
  return forget(id);
}

// REQUIRES: not in use, no child, and not among the evictable any more.
BlockId PrefixCache::forget(PrefixNodeId id) {
  const Node node = std::exchange(at(id), Node{});
  if (is_full(node)) unlink_from_bucket(id, node);
  unlink_from_siblings(node);
  node_entry(node.holder) = kNoNode;
  unused_nodes_.push_back(id);
  if (node.parent != kNoNode) {
    --at(node.parent).num_children;
    note_if_evictable(node.parent);
  }
  return node.holder;
}

void PrefixCache::unlink_from_bucket(PrefixNodeId id, const Node& node) {
  PrefixNodeId* link = &bucket(node.hash);
  while (*link != id) link = &at(*link).next_in_bucket;
  *link = node.next_in_bucket;
}

void PrefixCache::unlink_from_siblings(const Node& node) {
  if (node.next_sibling != kNoNode) at(node.next_sibling).previous_sibling = node.previous_sibling;
  PrefixNodeId& link =
      node.previous_sibling == kNoNode ? first_child_of(node.parent) : at(node.previous_sibling).next_sibling;
  link = node.next_sibling;
}

// ---- checks

std::optional<std::string> PrefixCache::broken_invariant() const {
  std::vector<std::int32_t> num_children(nodes_.size());
  std::size_t num_evictable = 0;
  std::int32_t num_pinned = 0, num_pinned_unused = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.holder == kNoBlock) continue;
    if (auto broken = broken_node(PrefixNodeId{static_cast<std::int32_t>(i)})) {
      return "prefix node " + std::to_string(i) + " " + *broken;
    }
    if (node.parent != kNoNode) ++num_children[static_cast<std::size_t>(node.parent.value)];
    if (node.retention == RetentionClass::kPinned) {
      ++num_pinned;
      if (!node.in_use) ++num_pinned_unused;
    }
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.num_children != num_children[i]) {
      return "prefix node " + std::to_string(i) + " counts its children wrong";
    }
    if (node.holder == kNoBlock) continue;
    const bool is_evictable =
        !node.in_use && num_children[i] == 0 && node.retention != RetentionClass::kPinned;
    if (is_evictable) ++num_evictable;
    const bool may_be_listed = is_evictable || !node.in_use;  // what is in use is not looked for
    if (may_be_listed &&
        is_evictable != evictable_.contains(key_of(PrefixNodeId{static_cast<std::int32_t>(i)}))) {
      return "prefix node " + std::to_string(i) + " has the wrong place in the eviction order";
    }
  }
  if (num_evictable != evictable_.size()) return "the eviction order names what does not exist";
  if (num_pinned != num_pinned_ || num_pinned_unused != num_pinned_unused_) return "pins are counted wrong";
  if (num_pinned > max_num_pinned()) return "more is pinned than may be";
  return std::nullopt;
}

std::optional<std::string> PrefixCache::broken_node(PrefixNodeId id) const {
  const Node& node = at(id);
  if (node_of(node.holder) != id) return "has a holder that belongs elsewhere";
  if (!node.in_use && node.first_duplicate != kNoBlock) return "has a duplicate and is not in use";
  for (BlockId b = node.first_duplicate; b != kNoBlock; b = next_duplicate_[index_of(b)]) {
    if (node_of(b) != id) return "has a duplicate that belongs elsewhere";
  }
  if (is_full(node)) {
    if (find_hashed(node.hash, node.parent, tokens(id), node.salt) != id)
      return "is not found by its content";
  } else {
    if (node.first_child != kNoNode) return "is partial and has a child";
    if (node.first_duplicate != kNoBlock) return "is partial and has a duplicate";
  }
  if (node.next_sibling != kNoNode && at(node.next_sibling).previous_sibling != id) {
    return "is not linked back by its sibling";
  }
  if (node.previous_sibling == kNoNode && first_child_of(node.parent) != id)
    return "is not its parent's child";
  if (node.parent == kNoNode) return std::nullopt;
  const Node& parent = at(node.parent);
  if (parent.holder == kNoBlock) return "is an orphan";
  if (node.hash != hash_(parent.hash, tokens(id))) return "does not continue its parent's hash";
  if (node.in_use && !parent.in_use) return "is in use and its parent is not";
  if (node.retention == RetentionClass::kPinned && parent.retention != RetentionClass::kPinned) {
    return "is pinned and its parent is not";
  }
  return std::nullopt;
}

}  // namespace octavo::block
