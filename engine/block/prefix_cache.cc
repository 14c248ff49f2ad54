#include "engine/block/prefix_cache.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"
#include "engine/base/hash.h"

namespace octavo::block {
namespace {

std::uint64_t hash_salt(std::string_view salt) {
  std::uint64_t hash = mix64(salt.size());
  for (const char c : salt) hash = mix64(hash ^ static_cast<unsigned char>(c));
  return hash;
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
      next_duplicate_(nodes_.size(), kNoBlock) {
  unused_nodes_.reserve(nodes_.size());
  for (std::int32_t id = num_blocks - 1; id >= 0; --id) unused_nodes_.push_back(PrefixNodeId{id});
}

std::span<TokenId> PrefixCache::tokens_of(PrefixNodeId node) {
  return std::span(tokens_).subspan(static_cast<std::size_t>(node.value) * block_size_, block_size_);
}

std::span<const TokenId> PrefixCache::tokens_of(PrefixNodeId node) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(node.value) * block_size_, block_size_);
}

std::uint64_t PrefixCache::hash_after(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                      std::string_view salt) const {
  OCTAVO_CHECK(token_ids.size() == block_size_, "%zu tokens in a block of %zu", token_ids.size(),
               block_size_);
  return hash_(parent == kNoNode ? hash_salt(salt) : at(parent).hash, token_ids);
}

std::optional<PrefixNodeId> PrefixCache::find(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                              std::string_view salt) const {
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
    if (std::ranges::equal(tokens_of(id), token_ids)) return id;
  }
  return std::nullopt;
}

PrefixCache::Inserted PrefixCache::insert(PrefixNodeId parent, std::span<const TokenId> token_ids,
                                          std::string_view salt, BlockId block) {
  OCTAVO_CHECK(parent == kNoNode || at(parent).in_use, "parent node %d is not in use", parent.value);
  OCTAVO_CHECK(node_of(block) == kNoNode, "block %d has contents", block.value);
  const std::uint64_t hash = hash_after(parent, token_ids, salt);
  const auto found = find_hashed(hash, parent, token_ids, salt);
  if (!found) return {.node = make_node(hash, parent, token_ids, salt, block), .is_holder = true};
  if (at(*found).in_use) {
    append_duplicate(*found, block);
    return {.node = *found, .is_holder = false};
  }
  return {.node = *found, .is_holder = true, .displaced = displace_holder(*found, block)};
}

PrefixNodeId PrefixCache::make_node(std::uint64_t hash, PrefixNodeId parent,
                                    std::span<const TokenId> token_ids, std::string_view salt,
                                    BlockId block) {
  OCTAVO_CHECK(!unused_nodes_.empty(), "more contents than %zu blocks", nodes_.size());
  const PrefixNodeId id = unused_nodes_.back();
  unused_nodes_.pop_back();
  Node& node = at(id);
  node.hash = hash;
  node.parent = parent;
  node.holder = block;
  node.in_use = true;
  node.next_in_bucket = std::exchange(bucket(hash), id);
  if (parent == kNoNode) {
    node.salt = salt;
  } else {
    ++at(parent).num_children;
  }
  std::ranges::copy(token_ids, tokens_of(id).begin());
  node_entry(block) = id;
  return id;
}

BlockId PrefixCache::displace_holder(PrefixNodeId id, BlockId block) {
  Node& node = at(id);
  const BlockId displaced = std::exchange(node.holder, block);
  evictable_.erase({node.last_used, id});
  node.in_use = true;
  node_entry(displaced) = kNoNode;
  node_entry(block) = id;
  return displaced;
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

PrefixCache::Released PrefixCache::release(BlockId block) {
  const PrefixNodeId id = node_of(block);
  if (id == kNoNode) return {.keeps_contents = false};
  Node& node = at(id);
  if (node.holder == block && node.first_duplicate == kNoBlock) {
    node.in_use = false;
    node.last_used = ++release_counter_;
    note_if_evictable(id);
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
  evictable_.erase({at(id).last_used, id});
  at(id).in_use = true;
}

std::optional<BlockId> PrefixCache::evict() {
  if (evictable_.empty()) return std::nullopt;
  const PrefixNodeId id = evictable_.begin()->second;
  evictable_.erase(evictable_.begin());
  const Node node = std::exchange(at(id), Node{});
  unlink_from_bucket(id, node);
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

void PrefixCache::note_if_evictable(PrefixNodeId id) {
  const Node& node = at(id);
  if (!node.in_use && node.num_children == 0) evictable_.emplace(node.last_used, id);
}

BlockId PrefixCache::parent_block(BlockId block) const {
  const PrefixNodeId node = node_of(block);
  if (node == kNoNode || at(node).parent == kNoNode) return kNoBlock;
  return at(at(node).parent).holder;
}

std::optional<std::string> PrefixCache::broken_invariant() const {
  std::vector<std::int32_t> num_children(nodes_.size());
  std::size_t num_evictable = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const PrefixNodeId id{static_cast<std::int32_t>(i)};
    const Node& node = nodes_[i];
    const std::string name = "prefix node " + std::to_string(i);
    if (node.holder == kNoBlock) continue;
    if (find(node.parent, tokens_of(id), node.salt) != id) return name + " is not found by its content";
    if (node_of(node.holder) != id) return name + ": its holder belongs elsewhere";
    if (!node.in_use && node.first_duplicate != kNoBlock) return name + " has a duplicate and is not in use";
    for (BlockId b = node.first_duplicate; b != kNoBlock;
         b = next_duplicate_[static_cast<std::size_t>(b.value)]) {
      if (node_of(b) != id) return name + ": a duplicate belongs elsewhere";
    }
    if (node.parent == kNoNode) continue;
    if (at(node.parent).holder == kNoBlock) return name + " is an orphan";
    if (node.in_use && !at(node.parent).in_use) return name + " is in use and its parent is not";
    ++num_children[static_cast<std::size_t>(node.parent.value)];
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const PrefixNodeId id{static_cast<std::int32_t>(i)};
    const std::string name = "prefix node " + std::to_string(i);
    if (nodes_[i].num_children != num_children[i]) return name + ": wrong count of children";
    const bool is_evictable = nodes_[i].holder != kNoBlock && !nodes_[i].in_use && num_children[i] == 0;
    if (is_evictable != evictable_.contains({nodes_[i].last_used, id}))
      return name + ": wrong place in the eviction order";
    num_evictable += is_evictable ? 1 : 0;
  }
  if (num_evictable != evictable_.size()) return "the eviction order names what does not exist";
  return std::nullopt;
}

}  // namespace octavo::block
