#include "engine/block/block_manager.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::block {

BlockManager::BlockManager(const BlockManagerOptions& options)
    : options_(options),
      pool_(options.num_blocks, options.block_size),
      prefix_cache_(options.num_blocks, options.block_size, options.hash) {
  totals_.block_size = options.block_size;
  totals_.num_blocks = options.num_blocks;
  totals_.bytes_per_block = options.bytes_per_block;
}

// ---- asking ----

std::optional<PrefixNodeId> BlockManager::next_match(PrefixNodeId parent, std::int32_t block_index,
                                                     const SequenceContent& content,
                                                     std::int32_t max_tokens) const {
  const std::int32_t block_size = options_.block_size;
  if (max_tokens - block_index * block_size < block_size) return std::nullopt;
  const auto token_ids = content.token_ids.subspan(static_cast<std::size_t>(block_index * block_size),
                                                   static_cast<std::size_t>(block_size));
  return prefix_cache_.find(parent, token_ids, content.salt);
}

BlockManager::PrefixMatch BlockManager::match(const BlockTable& table, const SequenceContent& content,
                                              std::int32_t max_tokens) const {
  PrefixMatch match;
  if (!options_.enable_prefix_caching) return match;
  std::int32_t index = table.num_sealed_blocks_;
  auto node = next_match(table.last_sealed_, index, content, max_tokens);
  for (; node; node = next_match(*node, ++index, content, max_tokens)) {
    ++match.num_blocks;
    if (pool_.at(prefix_cache_.holder(*node)).ref_count > 0) ++match.num_used_blocks;
  }
  return match;
}

std::size_t BlockManager::write_index(const BlockTable& table) const {
  return static_cast<std::size_t>(table.num_computed_tokens_ / options_.block_size);
}

bool BlockManager::writes_shared_block(const BlockTable& table) const {
  const std::size_t index = write_index(table);
  return index < table.blocks_.size() && pool_.at(table.blocks_[index]).ref_count > 1;
}

std::int32_t BlockManager::num_blocks_to_grow(std::span<const Growth> growths) {
  std::int32_t num_blocks = 0;
  shared_scratch_.clear();
  for (const Growth& growth : growths) {
    num_blocks += blocks_for(growth.num_tokens, options_.block_size) - growth.table->num_blocks();
    if (writes_shared_block(*growth.table))
      shared_scratch_.push_back(growth.table->blocks_[write_index(*growth.table)]);
  }
  std::ranges::sort(shared_scratch_);
  for (auto first = shared_scratch_.begin(); first != shared_scratch_.end();) {
    const auto last =
        std::find_if(first, shared_scratch_.end(), [&](BlockId block) { return block != *first; });
    const auto num_writers = static_cast<std::int32_t>(last - first);
    const bool last_owner_writes = num_writers == pool_.at(*first).ref_count;
    num_blocks += last_owner_writes ? num_writers - 1 : num_writers;
    first = last;
  }
  return num_blocks;
}

// ---- blocks and entries ----

BlockId BlockManager::take_block(SequenceId owner) {
  if (pool_.num_free() == 0) {
    const auto evicted = prefix_cache_.evict();
    OCTAVO_CHECK(evicted.has_value(), "all %d blocks are in use", pool_.num_blocks());
    pool_.discard(*evicted);
    ++totals_.evicted_cached_blocks;
    events_.record(BlockEventKind::kEvict, owner, *evicted);
  }
  const BlockId block = pool_.take();
  events_.record(BlockEventKind::kAlloc, owner, block);
  return block;
}

void BlockManager::let_go(BlockId block, SequenceId owner) {
  const std::int32_t ref_count = pool_.unref(block);
  events_.record(BlockEventKind::kUnref, owner, block, ref_count);
  if (ref_count > 0) return;
  const PrefixCache::Released released = prefix_cache_.release(block);
  if (released.keeps_contents) return;
  pool_.discard(block);
  events_.record(BlockEventKind::kFree, owner, block);
  if (released.successor != kNoBlock) events_.record(BlockEventKind::kSeal, owner, released.successor);
}

void BlockManager::append(BlockTable& table, BlockId block) {
  table.blocks_.push_back(block);
  ++num_logical_blocks_;
  note_peaks();
}

void BlockManager::pop_back(BlockTable& table) {
  let_go(table.blocks_.back(), table.owner_);
  table.blocks_.pop_back();
  --num_logical_blocks_;
}

void BlockManager::note_peaks() {
  totals_.peak_used_blocks = std::max(totals_.peak_used_blocks, pool_.num_used());
  totals_.peak_logical_blocks = std::max(totals_.peak_logical_blocks, num_logical_blocks_);
}

// ---- acting ----

std::int32_t BlockManager::append_match(BlockTable& table, const SequenceContent& content,
                                        std::int32_t max_tokens) {
  if (!options_.enable_prefix_caching) return 0;
  const std::int32_t num_computed_before = table.num_computed_tokens_;
  auto node = next_match(table.last_sealed_, table.num_sealed_blocks_, content, max_tokens);
  for (; node; node = next_match(table.last_sealed_, table.num_sealed_blocks_, content, max_tokens)) {
    const BlockId block = prefix_cache_.holder(*node);
    // Referenced before the partly filled block is let go: the two must not be confused by a block changing
    // hands.
    if (pool_.at(block).state == BlockState::kCached) prefix_cache_.reuse(block);
    events_.record(BlockEventKind::kHit, table.owner_, block, pool_.ref(block));
    if (table.num_blocks() > table.num_sealed_blocks_) pop_back(table);
    append(table, block);
    ++table.num_sealed_blocks_;
    table.last_sealed_ = *node;
    table.num_computed_tokens_ = table.num_assigned_tokens_ = table.num_sealed_blocks_ * options_.block_size;
  }
  return table.num_computed_tokens_ - num_computed_before;
}

void BlockManager::grow(BlockTable& table, std::int32_t num_tokens, std::vector<BlockCopy>& copies) {
  if (writes_shared_block(table)) copy_on_write(table, copies);
  if (num_tokens <= table.num_assigned_tokens_) return;
  const std::int32_t block_size = options_.block_size;
  const std::int32_t num_blocks = blocks_for(num_tokens, block_size);
  while (table.num_blocks() < num_blocks) append(table, take_block(table.owner_));
  for (std::int32_t i = table.num_assigned_tokens_ / block_size; i < num_blocks; ++i) {
    pool_.set_assigned(table.blocks_[static_cast<std::size_t>(i)],
                       std::min(block_size, num_tokens - i * block_size));
  }
  table.num_assigned_tokens_ = num_tokens;
}

void BlockManager::copy_on_write(BlockTable& table, std::vector<BlockCopy>& copies) {
  BlockId& entry = table.blocks_[write_index(table)];
  const BlockCopy copy{.source = entry, .target = take_block(table.owner_)};
  events_.record(BlockEventKind::kCopyOnWrite, table.owner_, copy.source, copy.target.value);
  pool_.set_assigned(copy.target, pool_.at(copy.source).num_assigned);
  pool_.set_filled(copy.target, pool_.at(copy.source).num_filled);
  let_go(copy.source, table.owner_);
  entry = copy.target;
  ++totals_.cow_copies;
  copies.push_back(copy);
  note_peaks();
}

void BlockManager::undo_copy(BlockTable& table, const BlockCopy& copy) {
  const std::size_t index = write_index(table);
  while (table.blocks_.size() > index + 1) pop_back(table);
  OCTAVO_CHECK(table.blocks_[index] == copy.target, "block %d is not the copy", table.blocks_[index].value);
  events_.record(BlockEventKind::kShare, table.owner_, copy.source, pool_.ref(copy.source));
  let_go(copy.target, table.owner_);
  table.blocks_[index] = copy.source;
  table.num_assigned_tokens_ = table.num_computed_tokens_;
  --totals_.cow_copies;
}

void BlockManager::commit(BlockTable& table, const SequenceContent& content, std::int32_t num_computed) {
  OCTAVO_CHECK(num_computed > table.num_computed_tokens_ && num_computed <= table.num_assigned_tokens_,
               "%d computed tokens after %d, %d assigned", num_computed, table.num_computed_tokens_,
               table.num_assigned_tokens_);
  const std::int32_t block_size = options_.block_size;
  for (std::size_t i = write_index(table); i < table.blocks_.size(); ++i) {
    const std::int32_t num_filled =
        std::min(block_size, num_computed - static_cast<std::int32_t>(i) * block_size);
    if (num_filled <= 0) break;
    pool_.set_filled(table.blocks_[i], num_filled);
    events_.record(BlockEventKind::kFill, table.owner_, table.blocks_[i], num_filled);
  }
  table.num_computed_tokens_ = num_computed;
  if (!options_.enable_prefix_caching) return;
  while ((table.num_sealed_blocks_ + 1) * block_size <= num_computed) seal_next(table, content);
}

void BlockManager::seal_next(BlockTable& table, const SequenceContent& content) {
  const auto index = static_cast<std::size_t>(table.num_sealed_blocks_);
  const auto block_size = static_cast<std::size_t>(options_.block_size);
  const BlockId block = table.blocks_[index];
  const PrefixCache::Inserted inserted = prefix_cache_.insert(
      table.last_sealed_, content.token_ids.subspan(index * block_size, block_size), content.salt, block);
  if (inserted.is_holder) events_.record(BlockEventKind::kSeal, table.owner_, block);
  if (inserted.displaced != kNoBlock) {
    pool_.discard(inserted.displaced);
    events_.record(BlockEventKind::kFree, table.owner_, inserted.displaced);
  }
  table.last_sealed_ = inserted.node;
  ++table.num_sealed_blocks_;
}

void BlockManager::fork(const BlockTable& parent, BlockTable& child) {
  OCTAVO_CHECK(parent.num_computed_tokens_ == parent.num_assigned_tokens_, "%d of %d tokens are computed",
               parent.num_computed_tokens_, parent.num_assigned_tokens_);
  events_.record(BlockEventKind::kFork, parent.owner_, kNoBlock,
                 static_cast<std::int32_t>(child.owner_.value));
  share_all(parent, child);
  note_peaks();
}

void BlockManager::hand_over(BlockTable& table, BlockTable& heir) {
  share_all(table, heir);
  release(table);
}

void BlockManager::share_all(const BlockTable& table, BlockTable& other) {
  OCTAVO_CHECK(other.empty(), "sequence %llu has %d blocks",
               static_cast<unsigned long long>(other.owner_.value), other.num_blocks());
  const SequenceId owner = other.owner_;
  other = table;
  other.owner_ = owner;
  num_logical_blocks_ += other.num_blocks();
  for (const BlockId block : other.blocks_) {
    events_.record(BlockEventKind::kShare, owner, block, pool_.ref(block));
  }
}

void BlockManager::release(BlockTable& table) {
  while (!table.empty()) pop_back(table);
  table = BlockTable(table.owner_);
}

void BlockManager::reset_prefix_cache() {
  while (const auto evicted = prefix_cache_.evict()) {
    pool_.discard(*evicted);
    ++totals_.evicted_cached_blocks;
    events_.record(BlockEventKind::kEvict, SequenceId{}, *evicted);
  }
}

// ---- figures ----

KvFigures BlockManager::figures() const {
  KvFigures figures;
  figures.used_blocks = pool_.num_used();
  figures.cached_blocks = pool_.num_cached();
  figures.free_blocks = pool_.num_free();
  figures.logical_blocks = num_logical_blocks_;
  figures.saved_bytes = (std::int64_t{num_logical_blocks_} - pool_.num_used()) * options_.bytes_per_block;
  figures.unfilled_slots = static_cast<std::int32_t>(pool_.num_unfilled_slots());
  if (pool_.num_used() == 0) return figures;
  const double num_used = pool_.num_used();
  figures.sharing_ratio = num_logical_blocks_ / num_used;
  figures.internal_fragmentation = figures.unfilled_slots / (num_used * options_.block_size);
  return figures;
}

std::vector<BlockSnapshot> BlockManager::snapshot(std::span<const OwnedTable> tables) const {
  std::vector<BlockSnapshot> blocks(static_cast<std::size_t>(pool_.num_blocks()));
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    const Block& block = pool_.at(BlockId{id});
    blocks[static_cast<std::size_t>(id)] = {.state = block.state,
                                            .ref_count = block.ref_count,
                                            .filled = block.num_filled,
                                            .parent = prefix_cache_.parent_block(BlockId{id}).value};
  }
  std::vector<bool> has_owner(blocks.size());
  for (const OwnedTable& owned : tables) {
    for (const BlockId id : owned.table->blocks_) {
      const auto i = static_cast<std::size_t>(id.value);
      if (!has_owner[i] || owned.table->owner_ < blocks[i].first_owner)
        blocks[i].first_owner = owned.table->owner_;
      has_owner[i] = true;
    }
  }
  return blocks;
}

std::optional<std::string> BlockManager::broken_invariant(std::span<const OwnedTable> tables) const {
  if (auto broken = pool_.broken_invariant()) return broken;
  if (auto broken = prefix_cache_.broken_invariant()) return broken;
  std::vector<Block> recount(static_cast<std::size_t>(pool_.num_blocks()));
  std::vector<std::int32_t> num_writers(recount.size());
  std::int32_t num_logical_blocks = 0;
  for (const OwnedTable& owned : tables) {
    if (auto broken = broken_table(owned)) return broken;
    const BlockTable& table = *owned.table;
    num_logical_blocks += table.num_blocks();
    for (std::int32_t i = 0; i < table.num_blocks(); ++i) {
      const auto slots_until = [&](std::int32_t num_tokens) {
        return std::clamp(num_tokens - i * options_.block_size, 0, options_.block_size);
      };
      const auto id = static_cast<std::size_t>(table.blocks_[static_cast<std::size_t>(i)].value);
      ++recount[id].ref_count;
      recount[id].num_filled = std::max(recount[id].num_filled, slots_until(table.num_computed_tokens_));
      recount[id].num_assigned = std::max(recount[id].num_assigned, slots_until(table.num_assigned_tokens_));
      if (slots_until(table.num_assigned_tokens_) > slots_until(table.num_computed_tokens_))
        ++num_writers[id];
    }
  }
  if (num_logical_blocks != num_logical_blocks_) return "the count of logical blocks is wrong";
  for (std::size_t i = 0; i < recount.size(); ++i) {
    const BlockId id{static_cast<std::int32_t>(i)};
    const Block& block = pool_.at(id);
    const std::string name = "block " + std::to_string(i);
    if (block.ref_count != recount[i].ref_count) {
      return name + " has " + std::to_string(block.ref_count) + " references and " +
             std::to_string(recount[i].ref_count) + " table entries";
    }
    if (prefix_cache_.is_cached(id) != (block.state == BlockState::kCached)) {
      return name + ": pool and prefix cache disagree whether it is cached";
    }
    if (num_writers[i] > 1) return name + " has " + std::to_string(num_writers[i]) + " writers";
    if (block.ref_count == 0) continue;
    if (block.num_filled != recount[i].num_filled || block.num_assigned != recount[i].num_assigned) {
      return name + ": its filled slots are not those of its owners";
    }
  }
  return std::nullopt;
}

std::optional<std::string> BlockManager::broken_table(const OwnedTable& owned) const {
  const BlockTable& table = *owned.table;
  const std::string name = "the table of sequence " + std::to_string(table.owner_.value);
  const std::int32_t block_size = options_.block_size;
  if (table.num_computed_tokens_ > table.num_assigned_tokens_)
    return name + " computed more than it has slots for";
  if (table.num_blocks() != blocks_for(table.num_assigned_tokens_, block_size))
    return name + " has the wrong length";
  const std::int32_t num_full = options_.enable_prefix_caching ? table.num_computed_tokens_ / block_size : 0;
  if (table.num_sealed_blocks_ != num_full) return name + " has full blocks that are not sealed";
  PrefixNodeId node = kNoNode;
  for (std::int32_t i = 0; i < num_full; ++i) {
    const auto found = next_match(node, i, owned.content, table.num_computed_tokens_);
    if (!found || prefix_cache_.node_of(table.blocks_[static_cast<std::size_t>(i)]) != *found) {
      return name + " names a block that holds other tokens";
    }
    node = *found;
  }
  if (node != table.last_sealed_) return name + " is chained to the wrong node";
  return std::nullopt;
}

}  // namespace octavo::block
