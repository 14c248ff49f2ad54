#include "engine/block/block_manager.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::block {

BlockManager::BlockManager(const BlockManagerOptions& options)
    : options_(options),
      pool_(options.num_blocks, options.block_size),
      host_pool_(options.num_host_blocks, options.block_size),
      prefix_cache_(options.num_blocks, options.block_size, options.hash),
      states_(options.num_states, options.num_host_states, prefix_cache_, events_),
      windows_(options.window, options.block_size, options.num_blocks, options.num_window_blocks,
               options.num_host_blocks, options.num_host_window_blocks, events_),
      moved_to_(static_cast<std::size_t>(std::max(options.num_blocks, options.num_host_blocks)), kNoBlock) {
  OCTAVO_CHECK(options.largest_run == 0 || !options.enable_prefix_caching,
               "contiguous runs of %d blocks cannot be shared", options.largest_run);
  OCTAVO_CHECK(!windows_.is_used() || (options.num_states == 0 && options.largest_run == 0),
               "a window of %d beside states or runs", options.window);
  if (options.largest_run > 0) buddies_.emplace(options.num_blocks, options.largest_run);
  totals_.block_size = options.block_size;
  totals_.num_blocks = options.num_blocks;
  totals_.num_host_blocks = options.num_host_blocks;
  totals_.bytes_per_block = options.bytes_per_block;
  totals_.num_states = options.num_states;
  totals_.num_host_states = options.num_host_states;
  totals_.bytes_per_state = options.bytes_per_state;
  if (!windows_.is_used()) return;
  totals_.window = options.window;
  totals_.num_window_blocks = options.num_window_blocks;
  totals_.num_host_window_blocks = options.num_host_window_blocks;
  totals_.bytes_per_window_block = options.bytes_per_window_block;
}

void BlockManager::begin_step(std::int64_t step) {
  step_ = step;
  pool_.begin_step(step);
  host_pool_.begin_step(step);
  states_.begin_step(step);
  events_.begin_step(step);
}

void BlockManager::end_step() {
  end_copies();
  states_.drop_unreachable();
  totals_.states = states_.totals();
  totals_.windows = windows_.totals();
  totals_.peak_used_blocks = std::max(totals_.peak_used_blocks, pool_.num_used());
  totals_.peak_logical_blocks = std::max(totals_.peak_logical_blocks, num_logical_blocks_);
  events_.record(BlockEventKind::kStepEnd, SequenceId{}, kNoBlock, pool_.num_used());
}

// ---- asking

std::span<const TokenId> BlockManager::tokens_of_block(const SequenceContent& content,
                                                       std::int32_t block_index,
                                                       std::int32_t max_tokens) const {
  const std::int32_t begin = block_index * options_.block_size;
  const std::int32_t size = std::clamp(max_tokens - begin, 0, options_.block_size);
  if (size == 0) return {};
  return content.token_ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
}

std::optional<PrefixNodeId> BlockManager::next_match(PrefixNodeId parent, std::int32_t block_index,
                                                     const SequenceContent& content,
                                                     std::int32_t max_tokens) const {
  const auto token_ids = tokens_of_block(content, block_index, max_tokens);
  if (static_cast<std::int32_t>(token_ids.size()) < options_.block_size) return std::nullopt;
  return prefix_cache_.find(parent, token_ids, content.salt);
}

BlockManager::PrefixMatch BlockManager::match(BlockTable& table, const SequenceContent& content,
                                              std::int32_t max_tokens) const {
  PrefixMatch match;
  const bool resumes = states_.is_used() && !table.is_swapped_out_;
  if (!options_.enable_prefix_caching || (resumes && !table.empty())) return match;
  if (resumes) {
    const BlockId state = find_checkpoint(table, content, max_tokens);
    max_tokens = state == kNoBlock ? 0 : states_.checkpoint_of(state)->place.position;
  } else if (windows_.is_used() && !table.is_swapped_out_) {
    max_tokens = most_tokens_with_window(table, content, max_tokens);
  } else {
    find_known(table, content, max_tokens);
  }
  const std::vector<BlockTable::KnownNode>& known = table.known_;
  const std::int32_t most = std::max(0, max_tokens / options_.block_size - table.num_sealed_blocks_);
  match.num_blocks = std::min(static_cast<std::int32_t>(known.size()), most);
  for (std::int32_t i = 0; i < match.num_blocks; ++i) {
    const BlockId holder = prefix_cache_.holder(known[static_cast<std::size_t>(i)].node);
    if (pool_.at(holder).ref_count > 0) ++match.num_used_blocks;
  }
  return match;
}

void BlockManager::find_known(BlockTable& table, const SequenceContent& content,
                              std::int32_t max_tokens) const {
  std::vector<BlockTable::KnownNode>& known = table.known_;
  if (table.num_sealed_blocks_ > 0) known.clear();
  // A chain is forgotten from its end: what is left of it is still how the content starts.
  const auto gone = std::ranges::find_if(
      known, [&](const auto& one) { return prefix_cache_.serial(one.node) != one.serial; });
  known.erase(gone, known.end());
  const auto next_known = [&] {
    const PrefixNodeId last = known.empty() ? table.last_sealed_ : known.back().node;
    return next_match(last, table.num_sealed_blocks_ + static_cast<std::int32_t>(known.size()), content,
                      max_tokens);
  };
  for (auto node = next_known(); node; node = next_known())
    known.push_back({*node, prefix_cache_.serial(*node)});
}

// As many of `max_tokens` as there are, or whole blocks of them: the most behind which the window in front is
// there.
std::int32_t BlockManager::most_tokens_with_window(BlockTable& table, const SequenceContent& content,
                                                   std::int32_t max_tokens) const {
  find_known(table, content, max_tokens);
  const std::int32_t num_own = table.num_sealed_blocks_;
  // What is known may be from a question that reached further.
  const std::int32_t num_found = std::min(num_own + static_cast<std::int32_t>(table.known_.size()),
                                          std::max(num_own, max_tokens / options_.block_size));
  const auto has_part = [&](std::int32_t index) {
    if (index < num_own) return index >= table.num_left_behind_;
    const auto known = static_cast<std::size_t>(index - num_own);
    return windows_.has_part(prefix_cache_.holder(table.known_[known].node));
  };
  std::int32_t most = num_own, num_in_a_row = 0;
  for (std::int32_t index = table.num_left_behind_; index < num_found; ++index) {
    num_in_a_row = has_part(index) ? num_in_a_row + 1 : 0;
    const std::int32_t end = index + 1;
    const std::int32_t num_read = end - windows_.first_block_read(end * options_.block_size);
    if (end > num_own && num_in_a_row >= num_read) most = end;
  }
  return most == num_found ? max_tokens : most * options_.block_size;
}

// Where an empty table may go on: the longest checkpoint whose blocks are all there.
BlockId BlockManager::find_checkpoint(BlockTable& table, const SequenceContent& content,
                                      std::int32_t max_tokens) const {
  find_known(table, content, max_tokens);
  return states_.find(
      [&](const CheckpointPlace& place) { return can_resume(table, content, max_tokens, place); });
}

bool BlockManager::can_resume(const BlockTable& table, const SequenceContent& content,
                              std::int32_t max_tokens, const CheckpointPlace& place) const {
  if (place.position > max_tokens) return false;
  const std::int32_t num_full = place.position / options_.block_size;
  const auto full =
      std::span(table.known_).first(std::min(table.known_.size(), static_cast<std::size_t>(num_full)));
  if (std::cmp_less(full.size(), num_full)) return false;
  const bool continues =
      full.empty() ? place.node == kNoNode && place.salt == content.salt : place.node == full.back().node;
  if (!continues) return false;
  const auto tail = tokens_of_block(content, num_full, place.position);
  if (!std::ranges::equal(tail, place.tail)) return false;
  if (tail.empty()) return true;
  // The tail is copied, beside what the table takes over and still needs.
  const auto closest = prefix_cache_.closest(place.node, tail, content.salt);
  if (std::cmp_less(closest.num_equal, tail.size())) return false;
  std::int32_t num_left = num_available() - (is_evictable(prefix_cache_.holder(closest.node)) ? 1 : 0);
  for (const BlockTable::KnownNode& known : full) {
    if (is_evictable(prefix_cache_.holder(known.node))) --num_left;
  }
  return num_left >= blocks_for(max_tokens + 1, options_.block_size) - num_full;
}

std::size_t BlockManager::write_index(const BlockTable& table) const {
  return static_cast<std::size_t>(table.num_computed_tokens_ / options_.block_size);
}

bool BlockManager::writes_shared_block(const BlockTable& table) const {
  const std::size_t index = write_index(table);
  return index < table.blocks_.size() && pool_of(table).at(table.blocks_[index]).ref_count > 1;
}

std::int32_t BlockManager::num_blocks_to_grow(std::span<const Growth> growths) {
  std::int32_t num_blocks = 0;
  shared_scratch_.clear();
  for (const Growth& growth : growths) {
    const BlockTable& table = *growth.table;
    num_blocks += std::max(0, blocks_for(growth.num_tokens, options_.block_size) - table.num_blocks());
    if (writes_shared_block(table)) shared_scratch_.push_back(table.blocks_[write_index(table)]);
  }
  if (shared_scratch_.empty()) return num_blocks;
  const BlockPool& pool = pool_of(*growths.front().table);
  std::ranges::sort(shared_scratch_);
  for (auto first = shared_scratch_.begin(); first != shared_scratch_.end();) {
    const auto last =
        std::find_if(first, shared_scratch_.end(), [&](BlockId block) { return block != *first; });
    const auto num_writers = static_cast<std::int32_t>(last - first);
    const bool last_owner_writes = num_writers == pool.at(*first).ref_count;
    num_blocks += last_owner_writes ? num_writers - 1 : num_writers;
    first = last;
  }
  return num_blocks;
}

std::int32_t BlockManager::num_distinct_blocks(std::span<const MovingTable> tables) {
  shared_scratch_.clear();
  for (const MovingTable& moving : tables) {
    const auto num_blocks = blocks_for(moving.table->num_computed_tokens_, options_.block_size);
    const auto begin = moving.table->blocks_.begin();
    shared_scratch_.insert(shared_scratch_.end(), begin, begin + num_blocks);
  }
  std::ranges::sort(shared_scratch_);
  const auto end = std::unique(shared_scratch_.begin(), shared_scratch_.end());
  return static_cast<std::int32_t>(end - shared_scratch_.begin());
}

// ---- blocks and entries

bool BlockManager::evict_one(SequenceId by) {
  const auto evicted = prefix_cache_.evict({.step = step_, .by = by});
  if (!evicted) return false;
  pool_.discard(*evicted);
  drop_window(*evicted);
  ++totals_.evicted_cached_blocks;
  events_.record(BlockEventKind::kEvict, by, *evicted);
  return true;
}

BlockId BlockManager::take_block(SequenceId owner) {
  if (pool_.num_free() == 0) {
    const bool evicted = evict_one(owner);
    OCTAVO_CHECK(evicted, "all %d blocks are in use", pool_.num_blocks());
  }
  const BlockId block = pool_.take();
  events_.record(BlockEventKind::kAlloc, owner, block);
  return block;
}

void BlockManager::drop_contents(BlockId block, SequenceId owner) {
  pool_.discard(block);
  drop_window(block);
  events_.record(BlockEventKind::kFree, owner, block);
}

void BlockManager::let_go(BlockId block, SequenceId owner) {
  note_reference_gone(block, owner, pool_.unref(block));
}

void BlockManager::note_reference_gone(BlockId block, SequenceId owner, std::int32_t ref_count) {
  events_.record(BlockEventKind::kUnref, owner, block, ref_count);
  if (ref_count > 0) return;
  const PrefixCache::Released released = prefix_cache_.release(block);
  if (released.keeps_contents) return;
  if (released.successor != kNoBlock)
    events_.record(BlockEventKind::kSeal, owner, released.successor, seal_instead_of(block.value));
  drop_contents(block, owner);
}

void BlockManager::note_inserted(const PrefixCache::Inserted& inserted, BlockId block, SequenceId owner) {
  if (inserted.is_holder) {
    const BlockId predecessor = inserted.predecessor;
    const std::int32_t place = predecessor == kNoBlock ? seal_after(prefix_cache_.parent_block(block).value)
                                                       : seal_instead_of(predecessor.value);
    events_.record(BlockEventKind::kSeal, owner, block, place);
  }
  for (const BlockId displaced : inserted.displaced) drop_contents(displaced, owner);
}

void BlockManager::append(BlockTable& table, BlockId block) {
  table.blocks_.push_back(block);
  ++num_logical_blocks_;
  if (windows_.is_used() && table.num_blocks() > table.num_left_behind_) windows_.read(block);
}

void BlockManager::pop_back(BlockTable& table) {
  const BlockId block = table.blocks_.back();
  if (table.num_blocks() > table.num_left_behind_) leave_window(block);
  let_go(block, table.owner_);
  table.blocks_.pop_back();
  --num_logical_blocks_;
}

// ---- window parts

void BlockManager::drop_window(BlockId block) {
  if (windows_.is_used()) windows_.drop(block);
}

// Where a sequence ends: kept as long as the block's other contents are worth it.
void BlockManager::leave_window(BlockId block) {
  if (!windows_.is_used()) return;
  const bool is_findable = prefix_cache_.is_holder(block);
  windows_.leave(block, is_findable ? std::optional(prefix_cache_.retention(prefix_cache_.node_of(block)))
                                    : std::nullopt);
}

// Where it goes on, only those are worth more than their place for now that end where others will part from
// it.
RetentionClass BlockManager::window_retention(const SequenceContent& content,
                                              std::int32_t block_index) const {
  const auto is_read_behind = [&](std::int32_t num_tokens) {
    return block_index >= windows_.first_block_read(num_tokens) &&
           block_index < blocks_for(num_tokens, options_.block_size);
  };
  if (is_read_behind(content.num_system_tokens))
    return std::max(content.retention, RetentionClass::kSystemPrompt);
  return is_read_behind(content.num_next_turn_tokens) ? content.retention : RetentionClass::kScratch;
}

void BlockManager::leave_behind(BlockTable& table, const SequenceContent& content, std::int32_t num_tokens) {
  if (!windows_.is_used()) return;
  const std::int32_t end = windows_.first_block_read(num_tokens);
  for (; table.num_left_behind_ < end; ++table.num_left_behind_) {
    if (table.num_left_behind_ >= table.num_blocks()) continue;
    const BlockId block = table.blocks_[static_cast<std::size_t>(table.num_left_behind_)];
    windows_.leave(block, prefix_cache_.is_holder(block)
                              ? std::optional(window_retention(content, table.num_left_behind_))
                              : std::nullopt);
    ++windows_.totals().num_left;
    events_.record(BlockEventKind::kLeaveWindow, table.owner_, block, windows_.num_readers(block));
  }
  if (end > table.num_blocks()) note_skipped(table);
}

void BlockManager::note_skipped(const BlockTable& table) {
  if (table.num_left_behind_ == 0) return;
  events_.record(BlockEventKind::kWindowSkip, table.owner_, kNoBlock, table.num_left_behind_);
}

void BlockManager::open_window(BlockTable& table, std::int32_t num_tokens) {
  if (!windows_.is_used()) return;
  const std::int32_t end = blocks_for(num_tokens, options_.block_size);
  table.window_places_.assign(static_cast<std::size_t>(end), kNoBlock);
  for (std::int32_t i = table.num_left_behind_; i < end; ++i) {
    const BlockId block = table.blocks_[static_cast<std::size_t>(i)];
    if (!windows_.has_part(block)) {
      OCTAVO_CHECK(i * options_.block_size >= table.num_computed_tokens_,
                   "the window part of block %d is gone", block.value);
      windows_.open(block, table.owner_);
    }
    table.window_places_[static_cast<std::size_t>(i)] = windows_.place_of(block);
  }
}

void BlockManager::copy_window(BlockId source, BlockId target, SequenceId owner) {
  if (!windows_.is_used()) return;
  OCTAVO_CHECK(windows_.has_part(source), "the window part of block %d is gone", source.value);
  window_moves_.push_back({.kind = PoolMoveKind::kCopy,
                           .source = windows_.place_of(source),
                           .target = windows_.open(target, owner)});
}

// Places in the host pool that swap_out() takes.
std::int32_t BlockManager::num_windows_to_move(std::span<const MovingTable> tables) {
  shared_scratch_.clear();
  for (const MovingTable& moving : tables) {
    const BlockTable& table = *moving.table;
    const auto begin = table.blocks_.begin();
    shared_scratch_.insert(shared_scratch_.end(), begin + table.num_left_behind_,
                           begin + blocks_for(table.num_computed_tokens_, options_.block_size));
  }
  std::ranges::sort(shared_scratch_);
  const auto end = std::unique(shared_scratch_.begin(), shared_scratch_.end());
  return static_cast<std::int32_t>(end - shared_scratch_.begin());
}

// Of the blocks that move_out() gave places.
void BlockManager::move_window_out(const BlockTable& table) {
  if (!windows_.is_used()) return;
  for (std::int32_t i = table.num_left_behind_; i < table.num_blocks(); ++i) {
    const BlockId block = table.blocks_[static_cast<std::size_t>(i)];
    const BlockId host_block = moved_to_[index_of(block)];
    if (windows_.host_place_of(host_block) != kNoBlock) continue;
    window_moves_.push_back({.kind = PoolMoveKind::kSwapOut,
                             .source = windows_.place_of(block),
                             .target = windows_.open_host(host_block)});
    events_.record(BlockEventKind::kWindowSwapOut, table.owner_, block, host_block.value);
    ++windows_.totals().num_swapped_out;
  }
}

// `device`: the tables' blocks there, which may have kept their window parts. All are read before any is
// opened, so that none is given up for another.
void BlockManager::move_windows_in(std::span<const MovingTable> tables,
                                   std::span<const std::vector<BlockId>> device) {
  if (!windows_.is_used()) return;
  const auto for_each_read = [&](const auto& visit) {
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const BlockTable& table = *tables[t].table;
      for (auto i = static_cast<std::size_t>(table.num_left_behind_); i < table.blocks_.size(); ++i)
        visit(table.owner_, device[t][i], table.blocks_[i]);
    }
  };
  for_each_read([&](SequenceId, BlockId block, BlockId) { windows_.read(block); });
  for_each_read([&](SequenceId owner, BlockId block, BlockId host_block) {
    if (windows_.has_part(block)) return;
    window_moves_.push_back({.kind = PoolMoveKind::kSwapIn,
                             .source = windows_.host_place_of(host_block),
                             .target = windows_.open(block, owner)});
    events_.record(BlockEventKind::kWindowSwapIn, owner, block, host_block.value);
    ++windows_.totals().num_swapped_in;
  });
}

// ---- found again

RetentionClass BlockManager::retention_of(const SequenceContent& content, std::int32_t block_index) const {
  const bool is_system = (block_index + 1) * options_.block_size <= content.num_system_tokens;
  return is_system ? std::max(content.retention, RetentionClass::kSystemPrompt) : content.retention;
}

BlockManager::AppendedMatch BlockManager::append_match(BlockTable& table, const SequenceContent& content,
                                                       std::int32_t max_tokens,
                                                       std::vector<BlockCopy>* copies) {
  AppendedMatch appended;
  if (!options_.enable_prefix_caching) {
    appended.miss.cause = MissCause::kNotRead;
    return appended;
  }
  if (states_.is_used()) return resume(table, content, max_tokens, *copies);
  if (windows_.is_used()) {
    const std::int32_t most = most_tokens_with_window(table, content, max_tokens);
    const std::int32_t num_found = table.num_sealed_blocks_ + static_cast<std::int32_t>(table.known_.size());
    const std::int32_t num_blocks = std::min(most / options_.block_size, num_found);
    table.known_.clear();
    leave_behind(table, content, std::max(table.num_computed_tokens_, num_blocks * options_.block_size));
    append_hits(table, content, most, appended);
    if (most < max_tokens) {
      appended.miss = {.cause = MissCause::kBehindWindow, .position = most};
      events_.record(BlockEventKind::kWindowMiss, table.owner_, kNoBlock,
                     std::min(num_found * options_.block_size, max_tokens) - most);
      return appended;
    }
  }
  table.known_.clear();
  append_hits(table, content, max_tokens, appended);
  append_partial(table, content, max_tokens, copies, appended);
  return appended;
}

// A table that holds something goes on with its own state.
BlockManager::AppendedMatch BlockManager::resume(BlockTable& table, const SequenceContent& content,
                                                 std::int32_t max_tokens, std::vector<BlockCopy>& copies) {
  AppendedMatch appended;
  if (!table.empty()) return appended;
  const BlockId state = find_checkpoint(table, content, max_tokens);
  const std::int32_t position = state == kNoBlock ? 0 : states_.checkpoint_of(state)->place.position;
  const std::int32_t num_known = static_cast<std::int32_t>(table.known_.size()) * options_.block_size;
  table.known_.clear();
  append_hits(table, content, position, appended);
  const auto next = tokens_of_block(content, table.num_sealed_blocks_, max_tokens);
  const auto closest = prefix_cache_.closest(table.last_sealed_, next, content.salt);
  appended.miss = miss_after(table, content, next, closest);
  const std::int32_t num_beyond = std::max(num_known, appended.miss.position) - position;
  const bool lacks_checkpoint = position < max_tokens && num_beyond > 0;
  if (lacks_checkpoint) appended.miss = {.cause = MissCause::kNoCheckpoint, .position = position};
  if (state != kNoBlock) continue_from(state, table, content, next, copies, appended);
  if (lacks_checkpoint) events_.record(BlockEventKind::kStateMiss, table.owner_, kNoBlock, num_beyond);
  return appended;
}

void BlockManager::continue_from(BlockId state, BlockTable& table, const SequenceContent& content,
                                 std::span<const TokenId> next, std::vector<BlockCopy>& copies,
                                 AppendedMatch& appended) {
  const std::int32_t position = states_.checkpoint_of(state)->place.position;
  appended.num_copied_partial = position - table.num_sealed_blocks_ * options_.block_size;
  if (appended.num_copied_partial > 0) {
    const auto tail = next.first(static_cast<std::size_t>(appended.num_copied_partial));
    copy_start(table, content, prefix_cache_.closest(table.last_sealed_, tail, content.salt).node,
               appended.num_copied_partial, copies);
  }
  table.state_ = states_.resume(state, table.owner_);
  table.last_checkpoint_ = position;
}

// Full blocks.
void BlockManager::append_hits(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                               AppendedMatch& appended) {
  auto node = next_match(table.last_sealed_, table.num_sealed_blocks_, content, max_tokens);
  for (; node; node = next_match(table.last_sealed_, table.num_sealed_blocks_, content, max_tokens)) {
    const bool is_live = pool_.at(prefix_cache_.holder(*node)).ref_count > 0;
    const std::int32_t num_computed_before = table.num_computed_tokens_;
    append_hit(table, content, *node);
    (is_live ? appended.num_hit_live : appended.num_hit_cached) +=
        table.num_computed_tokens_ - num_computed_before;
  }
}

void BlockManager::append_hit(BlockTable& table, const SequenceContent& content, PrefixNodeId node) {
  const BlockId block = prefix_cache_.holder(node);
  // Referenced before the partly filled block is let go: the two must not be confused by a block changing
  // hands.
  if (pool_.at(block).state == BlockState::kCached) prefix_cache_.reuse(block);
  events_.record(BlockEventKind::kHit, table.owner_, block, pool_.ref(block));
  prefix_cache_.raise_retention(node, retention_of(content, table.num_sealed_blocks_));
  if (table.num_blocks() > table.num_sealed_blocks_) pop_back(table);
  append(table, block);
  ++table.num_sealed_blocks_;
  table.last_sealed_ = node;
  table.num_computed_tokens_ = table.num_assigned_tokens_ = table.num_sealed_blocks_ * options_.block_size;
}

// Full blocks end here: the start of one more, if worth a copy, and the reason why it is not the whole of it.
void BlockManager::append_partial(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                                  std::vector<BlockCopy>* copies, AppendedMatch& appended) {
  const bool holds_more = table.num_blocks() > table.num_sealed_blocks_;  // its own, partly filled
  const auto token_ids = tokens_of_block(content, table.num_sealed_blocks_, max_tokens);
  if (token_ids.empty() || holds_more) return;

  const auto closest = prefix_cache_.closest(table.last_sealed_, token_ids, content.salt);
  appended.miss = miss_after(table, content, token_ids, closest);
  if (copies == nullptr || closest.node == kNoNode) return;
  const auto num_there = static_cast<std::int32_t>(prefix_cache_.tokens(closest.node).size());
  const bool is_worth_it = closest.num_equal >= std::min(kLeastPartialMatch, num_there);
  const BlockId source = prefix_cache_.holder(closest.node);
  if (!is_worth_it || !can_copy_partial(table, source, max_tokens)) return;
  if (windows_.is_used() && !windows_.has_part(source)) {
    appended.miss.cause = MissCause::kBehindWindow;
    events_.record(BlockEventKind::kWindowMiss, table.owner_, kNoBlock, closest.num_equal);
    return;
  }
  copy_start(table, content, closest.node, closest.num_equal, *copies);
  appended.num_copied_partial = closest.num_equal;
}

// Why `token_ids`, which follow the sealed blocks and are at most a block of them, were not all found.
PrefixMiss BlockManager::miss_after(const BlockTable& table, const SequenceContent& content,
                                    std::span<const TokenId> token_ids,
                                    const PrefixCache::Closest& closest) const {
  const std::int32_t begin = table.num_sealed_blocks_ * options_.block_size;
  PrefixMiss miss{.cause = MissCause::kFirstUse, .position = begin + closest.num_equal};
  if (const auto remembered = remembered_miss(table, token_ids, content)) {
    miss.cause = remembered->cause;
    miss.evicted_step = remembered->evicted_step;
    miss.evicted_by = remembered->evicted_by;
  } else if (closest.num_equal == static_cast<std::int32_t>(token_ids.size())) {
    miss.cause = MissCause::kNone;
  } else if (closest.num_equal > 0) {
    miss.cause = MissCause::kDifferingToken;
  } else if (closest.is_under_other_salt) {
    miss.cause = MissCause::kOtherSalt;
  }
  return miss;
}

// The first slots of a node that follows the sealed blocks, as the table's own.
void BlockManager::copy_start(BlockTable& table, const SequenceContent& content, PrefixNodeId node,
                              std::int32_t num_tokens, std::vector<BlockCopy>& copies) {
  const BlockId source = prefix_cache_.holder(node);
  if (pool_.at(source).state == BlockState::kCached) prefix_cache_.reuse(source);
  events_.record(BlockEventKind::kPin, SequenceId{}, source, pool_.pin(source));
  if (windows_.is_used()) windows_.read(source);
  copy_sources_.push_back(source);
  const BlockId target = copy_block(source, table.owner_, BlockEventKind::kCopyPartial, copies);
  ++totals_.partial_copies;
  pool_.set_assigned(target, num_tokens);
  pool_.set_filled(target, num_tokens);
  events_.record(BlockEventKind::kFill, table.owner_, target, num_tokens);
  append(table, target);
  copy_window(source, target, table.owner_);
  table.num_computed_tokens_ = table.num_assigned_tokens_ =
      table.num_sealed_blocks_ * options_.block_size + num_tokens;
  leave_behind(table, content, table.num_computed_tokens_);
}

// Only a whole block can have been evicted or stand elsewhere.
std::optional<PrefixMiss> BlockManager::remembered_miss(const BlockTable& table,
                                                        std::span<const TokenId> token_ids,
                                                        const SequenceContent& content) const {
  if (static_cast<std::int32_t>(token_ids.size()) < options_.block_size) return std::nullopt;
  const auto eviction = prefix_cache_.eviction_of(table.last_sealed_, token_ids, content.salt);
  if (!eviction) return std::nullopt;
  return PrefixMiss{
      .cause = MissCause::kEvicted, .evicted_step = eviction->step, .evicted_by = eviction->by.value};
}

bool BlockManager::is_evictable(BlockId block) const {
  return pool_.at(block).state == BlockState::kCached &&
         prefix_cache_.retention(prefix_cache_.node_of(block)) != RetentionClass::kPinned;
}

// While it is being copied a cached source cannot be evicted, which must not take the last block that the
// table is about to need.
bool BlockManager::can_copy_partial(const BlockTable& table, BlockId source, std::int32_t max_tokens) const {
  const std::int32_t num_needed = blocks_for(max_tokens + 1, options_.block_size) - table.num_blocks();
  return num_available() - (is_evictable(source) ? 1 : 0) >= num_needed;
}

// ---- growing

void BlockManager::grow(BlockTable& table, std::int32_t num_tokens, std::vector<BlockCopy>& copies,
                        std::vector<PoolMove>* moves) {
  if (states_.is_used()) table.state_ = states_.make_writable(table.state_, table.owner_, *moves);
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

BlockId BlockManager::copy_block(BlockId source, SequenceId owner, BlockEventKind kind,
                                 std::vector<BlockCopy>& copies) {
  const BlockId target = take_block(owner);
  events_.record(kind, owner, source, target.value);
  copies.push_back({.source = source, .target = target});
  ++totals_.cow_copies;
  return target;
}

void BlockManager::copy_on_write(BlockTable& table, std::vector<BlockCopy>& copies) {
  BlockId& entry = table.blocks_[write_index(table)];
  const BlockId source = entry;
  entry = copy_block(source, table.owner_, BlockEventKind::kCopyOnWrite, copies);
  pool_.set_assigned(entry, pool_.at(source).num_assigned);
  pool_.set_filled(entry, pool_.at(source).num_filled);
  if (windows_.is_used()) windows_.read(entry);
  copy_window(source, entry, table.owner_);
  leave_window(source);
  let_go(source, table.owner_);
}

void BlockManager::end_copies() {
  for (const BlockId source : copy_sources_) {
    leave_window(source);
    note_reference_gone(source, SequenceId{}, pool_.unpin(source));
  }
  copy_sources_.clear();
}

void BlockManager::reserve(BlockTable& table, std::int32_t num_blocks) {
  OCTAVO_CHECK(table.empty(), "sequence %llu has %d blocks",
               static_cast<unsigned long long>(table.owner_.value), table.num_blocks());
  const auto run = buddies_->take(num_blocks);
  OCTAVO_CHECK(run.has_value(), "no run of %d blocks", num_blocks);
  for (std::int32_t i = 0; i < run->num_blocks; ++i) {
    const BlockId block{run->first.value + i};
    pool_.take(block);
    events_.record(BlockEventKind::kAlloc, table.owner_, block);
    append(table, block);
  }
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
  seal_full(table, content);
  leave_behind(table, content, num_computed);
}

void BlockManager::keep_state(BlockTable& table, const SequenceContent& content, CheckpointReason reason) {
  const std::int32_t num_saved = num_tokens_since_checkpoint(table);
  if (!states_.is_used() || !options_.enable_prefix_caching || num_saved < kLeastSavedTokens) return;
  const std::int32_t position = table.num_computed_tokens_;
  const auto tail = tokens_of_block(content, table.num_sealed_blocks_, position);
  CheckpointPlace place{.node = table.last_sealed_, .tail = {tail.begin(), tail.end()}, .position = position};
  if (place.node == kNoNode) {
    place.salt = content.salt;
  } else {
    place.serial = prefix_cache_.serial(place.node);
  }
  const bool is_system = reason == CheckpointReason::kSystemPrompt;
  states_.keep(table.state_, table.owner_,
               {.place = std::move(place),
                .reason = reason,
                .retention = is_system ? std::max(content.retention, RetentionClass::kSystemPrompt)
                                       : content.retention,
                .num_saved_tokens = num_saved});
  table.last_checkpoint_ = position;
  totals_.states = states_.totals();
}

void BlockManager::trim(BlockTable& table) {
  const bool keeps_run = buddies_.has_value();
  const std::int32_t num_blocks = blocks_for(table.num_computed_tokens_, options_.block_size);
  while (!keeps_run && table.num_blocks() > num_blocks) pop_back(table);
  for (std::size_t i = write_index(table); i < table.blocks_.size(); ++i) {
    pool_.unassign_unfilled(table.blocks_[i]);
  }
  table.num_assigned_tokens_ = table.num_computed_tokens_;
}

void BlockManager::seal_full(BlockTable& table, const SequenceContent& content) {
  if (!options_.enable_prefix_caching) return;
  while ((table.num_sealed_blocks_ + 1) * options_.block_size <= table.num_computed_tokens_) {
    seal_next(table, content);
  }
}

void BlockManager::seal_next(BlockTable& table, const SequenceContent& content) {
  const std::int32_t index = table.num_sealed_blocks_;
  const BlockId block = table.blocks_[static_cast<std::size_t>(index)];
  // A block that came back from the host is named by several tables: the first of them seals it.
  PrefixNodeId node = prefix_cache_.node_of(block);
  if (node == kNoNode) {
    const auto inserted =
        prefix_cache_.insert(table.last_sealed_, tokens_of_block(content, index, table.num_computed_tokens_),
                             content.salt, block, retention_of(content, index));
    note_inserted(inserted, block, table.owner_);
    node = inserted.node;
  }
  table.last_sealed_ = node;
  ++table.num_sealed_blocks_;
}

// ---- sharing

void BlockManager::fork(const BlockTable& parent, BlockTable& child) {
  OCTAVO_CHECK(parent.num_computed_tokens_ == parent.num_assigned_tokens_, "%d of %d tokens are computed",
               parent.num_computed_tokens_, parent.num_assigned_tokens_);
  events_.record(BlockEventKind::kFork, parent.owner_, kNoBlock,
                 static_cast<std::int32_t>(child.owner_.value));
  share_first(parent, child, parent.num_blocks());
  child.num_computed_tokens_ = child.num_assigned_tokens_ = parent.num_computed_tokens_;
  child.num_sealed_blocks_ = parent.num_sealed_blocks_;
  child.last_sealed_ = parent.last_sealed_;
  child.state_ = states_.share(parent.state_, child.owner_);
  child.last_checkpoint_ = parent.last_checkpoint_;
}

void BlockManager::share_start(const BlockTable& source, BlockTable& child, std::int32_t num_blocks) {
  OCTAVO_CHECK(num_blocks * options_.block_size <= source.num_computed_tokens_,
               "%d blocks of %d computed tokens", num_blocks, source.num_computed_tokens_);
  const bool is_exact = !states_.is_used() && !windows_.is_used();
  OCTAVO_CHECK(is_exact || num_blocks * options_.block_size == source.num_computed_tokens_,
               "state or window of %d tokens is not that of %d blocks", source.num_computed_tokens_,
               num_blocks);
  share_first(source, child, num_blocks);
  child.num_computed_tokens_ = child.num_assigned_tokens_ = num_blocks * options_.block_size;
  child.state_ = states_.share(source.state_, child.owner_);
  child.last_checkpoint_ = source.last_checkpoint_;
  if (!options_.enable_prefix_caching) return;
  child.num_sealed_blocks_ = std::min(num_blocks, source.num_sealed_blocks_);
  if (child.num_sealed_blocks_ == 0) return;
  child.last_sealed_ =
      prefix_cache_.node_of(child.blocks_[static_cast<std::size_t>(child.num_sealed_blocks_ - 1)]);
}

void BlockManager::share_first(const BlockTable& table, BlockTable& other, std::int32_t num_blocks) {
  OCTAVO_CHECK(other.empty() && !table.is_swapped_out_, "sequence %llu has %d blocks",
               static_cast<unsigned long long>(other.owner_.value), other.num_blocks());
  other.known_.clear();
  other.num_left_behind_ = table.num_left_behind_;
  note_skipped(other);
  for (const BlockId block : std::span(table.blocks_).first(static_cast<std::size_t>(num_blocks))) {
    append(other, block);
    events_.record(BlockEventKind::kShare, other.owner_, block, pool_.ref(block));
  }
}

// ---- swapping

bool BlockManager::swap_out(std::span<const MovingTable> tables, std::vector<BlockSwap>& swaps,
                            std::vector<PoolMove>* moves) {
  if (num_distinct_blocks(tables) > host_pool_.num_free()) return false;
  if (windows_.is_used() && num_windows_to_move(tables) > windows_.num_free_host()) return false;
  if (states_.is_used() && !states_.swap_out(state_owners(tables), *moves)) return false;
  const std::size_t num_swaps_before = swaps.size();
  for (const MovingTable& moving : tables) {
    trim(*moving.table);
    move_out(*moving.table, swaps);
    move_window_out(*moving.table);
  }
  // The first table last: what all share is used latest, so it is evicted latest.
  for (std::size_t i = tables.size(); i-- > 0;) {
    BlockTable& table = *tables[i].table;
    std::vector<BlockId> host_blocks;
    for (const BlockId block : table.blocks_) {
      host_blocks.push_back(moved_to_[index_of(block)]);
    }
    while (!table.empty()) pop_back(table);
    table.blocks_ = std::move(host_blocks);
    table.is_swapped_out_ = !table.empty();
    table.num_sealed_blocks_ = 0;
    table.last_sealed_ = kNoNode;
    table.known_.clear();
  }
  for (std::size_t i = num_swaps_before; i < swaps.size(); ++i) {
    moved_to_[index_of(swaps[i].device_block)] = kNoBlock;
  }
  totals_.swapped_out_blocks += static_cast<std::int64_t>(swaps.size() - num_swaps_before);
  totals_.host_used_blocks = host_pool_.num_used();
  totals_.peak_host_used_blocks = std::max(totals_.peak_host_used_blocks, totals_.host_used_blocks);
  return true;
}

void BlockManager::move_out(const BlockTable& table, std::vector<BlockSwap>& swaps) {
  for (const BlockId block : table.blocks_) {
    BlockId& host_block = moved_to_[index_of(block)];
    if (host_block != kNoBlock) {
      host_pool_.ref(host_block);
      continue;
    }
    host_block = host_pool_.take();
    host_pool_.set_assigned(host_block, pool_.at(block).num_filled);
    host_pool_.set_filled(host_block, pool_.at(block).num_filled);
    events_.record(BlockEventKind::kSwapOut, table.owner_, block, host_block.value);
    swaps.push_back({.device_block = block, .host_block = host_block});
  }
}

// Of those that have computed anything; the others let theirs go, which they would have to clear anyway.
std::vector<StateOwner> BlockManager::state_owners(std::span<const MovingTable> tables) {
  std::vector<StateOwner> owners;
  for (const MovingTable& moving : tables) {
    BlockTable& table = *moving.table;
    if (table.num_computed_tokens_ > 0) {
      owners.push_back({&table.state_, table.owner_});
    } else {
      states_.let_go(std::exchange(table.state_, kNoBlock), table.owner_);
    }
  }
  return owners;
}

BlockManager::AppendedMatch BlockManager::swap_in(std::span<const MovingTable> tables,
                                                  std::vector<BlockSwap>& swaps,
                                                  std::vector<PoolMove>* moves) {
  const std::size_t num_swaps_before = swaps.size();
  AppendedMatch found_first;
  std::vector<std::vector<BlockId>> device_blocks(tables.size());
  // All that is found is referenced first, so that making room for the rest does not evict it.
  for (std::size_t i = 0; i < tables.size(); ++i) {
    note_skipped(*tables[i].table);
    const AppendedMatch found = find_on_device(*tables[i].table, tables[i].content, device_blocks[i]);
    if (i == 0) found_first = found;
  }
  for (std::size_t i = 0; i < tables.size(); ++i) move_in(*tables[i].table, device_blocks[i], swaps);
  move_windows_in(tables, device_blocks);
  for (std::size_t i = num_swaps_before; i < swaps.size(); ++i) {
    moved_to_[index_of(swaps[i].host_block)] = kNoBlock;
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    BlockTable& table = *tables[i].table;
    for (const BlockId host_block : table.blocks_) let_host_go(host_block);
    num_logical_blocks_ += static_cast<std::int32_t>(device_blocks[i].size());
    table.blocks_ = std::move(device_blocks[i]);
    table.is_swapped_out_ = false;
  }
  if (states_.is_used()) states_.swap_in(state_owners(tables), *moves);
  totals_.swapped_in_blocks += static_cast<std::int64_t>(swaps.size() - num_swaps_before);
  totals_.host_used_blocks = host_pool_.num_used();
  return found_first;
}

BlockManager::AppendedMatch BlockManager::find_on_device(BlockTable& table, const SequenceContent& content,
                                                         std::vector<BlockId>& device) {
  AppendedMatch found;
  if (!options_.enable_prefix_caching) return found;
  std::int32_t index = 0;
  auto node = next_match(kNoNode, index, content, table.num_computed_tokens_);
  for (; node; node = next_match(*node, ++index, content, table.num_computed_tokens_)) {
    const BlockId block = prefix_cache_.holder(*node);
    const bool is_live = pool_.at(block).ref_count > 0;
    if (!is_live) prefix_cache_.reuse(block);
    events_.record(BlockEventKind::kHit, table.owner_, block, pool_.ref(block));
    (is_live ? found.num_hit_live : found.num_hit_cached) += options_.block_size;
    prefix_cache_.raise_retention(*node, retention_of(content, index));
    device.push_back(block);
    table.last_sealed_ = *node;
  }
  table.num_sealed_blocks_ = index;
  return found;
}

void BlockManager::move_in(BlockTable& table, std::vector<BlockId>& device, std::vector<BlockSwap>& swaps) {
  for (std::size_t i = device.size(); i < table.blocks_.size(); ++i) {
    const BlockId host_block = table.blocks_[i];
    BlockId& block = moved_to_[index_of(host_block)];
    if (block != kNoBlock) {
      events_.record(BlockEventKind::kShare, table.owner_, block, pool_.ref(block));
    } else {
      block = take_block(table.owner_);
      const std::int32_t num_filled = host_pool_.at(host_block).num_filled;
      pool_.set_assigned(block, num_filled);
      pool_.set_filled(block, num_filled);
      events_.record(BlockEventKind::kSwapIn, table.owner_, block, host_block.value);
      events_.record(BlockEventKind::kFill, table.owner_, block, num_filled);
      swaps.push_back({.device_block = block, .host_block = host_block});
    }
    device.push_back(block);
  }
}

void BlockManager::let_host_go(BlockId host_block) {
  if (host_pool_.unref(host_block) > 0) return;
  host_pool_.discard(host_block);
  if (windows_.is_used()) windows_.drop_host(host_block);
  events_.record(BlockEventKind::kSwapDrop, SequenceId{}, kNoBlock, host_block.value);
}

void BlockManager::release_host(BlockTable& table) {
  for (const BlockId host_block : table.blocks_) let_host_go(host_block);
  totals_.host_used_blocks = host_pool_.num_used();
}

// ---- letting go

void BlockManager::release(BlockTable& table) {
  table.is_swapped_out_ ? states_.let_host_go(table.state_, table.owner_)
                        : states_.let_go(table.state_, table.owner_);
  if (table.is_swapped_out_) {
    release_host(table);
  } else if (buddies_ && !table.empty()) {
    const BlockRun run{.first = table.blocks_.front(), .num_blocks = table.num_blocks()};
    while (!table.empty()) pop_back(table);
    buddies_->give_back(run);
  } else {
    while (!table.empty()) pop_back(table);
  }
  table = BlockTable(table.owner_);
}

void BlockManager::release_findable(BlockTable& table, const SequenceContent& content) {
  if (!table.is_swapped_out_) keep_state(table, content, CheckpointReason::kEnd);
  const std::int32_t num_partial =
      table.num_computed_tokens_ - table.num_sealed_blocks_ * options_.block_size;
  const bool is_partial = num_partial > 0 && num_partial < options_.block_size;
  if (!options_.enable_prefix_caching || table.is_swapped_out_ || !is_partial) return release(table);
  trim(table);
  const BlockId block = table.blocks_.back();
  if (pool_.at(block).ref_count == 1) {
    const auto inserted = prefix_cache_.insert_partial(
        table.last_sealed_, tokens_of_block(content, table.num_sealed_blocks_, table.num_computed_tokens_),
        content.salt, block, retention_of(content, table.num_sealed_blocks_));
    note_inserted(inserted, block, table.owner_);
  }
  release(table);
}

void BlockManager::reset_prefix_cache() {
  prefix_cache_.release_pins();
  states_.reset();
  while (evict_one(SequenceId{})) {
  }
}

// ---- figures

KvFigures BlockManager::figures() const {
  KvFigures figures;
  figures.used_blocks = pool_.num_used();
  figures.cached_blocks = pool_.num_cached();
  figures.free_blocks = pool_.num_free();
  figures.logical_blocks = num_logical_blocks_;
  figures.saved_bytes = (std::int64_t{num_logical_blocks_} - pool_.num_used()) * options_.bytes_per_block;
  figures.unfilled_slots = static_cast<std::int32_t>(pool_.num_unfilled_slots());
  figures.reserved_ahead_slots = static_cast<std::int32_t>(pool_.num_reserved_slots());
  figures.filled_slots = static_cast<std::int32_t>(pool_.num_filled_slots());
  figures.host_used_blocks = host_pool_.num_used();
  states_.describe(figures);
  windows_.describe(figures);
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
    BlockSnapshot& shown = blocks[static_cast<std::size_t>(id)];
    shown.state = block.state;
    shown.ref_count = block.ref_count;
    shown.num_pins = block.num_pins;
    shown.filled = block.num_filled;
    shown.reserved = block.num_assigned - block.num_filled;
    shown.last_step = block.last_step;
    shown.parent = prefix_cache_.parent_block(BlockId{id}).value;
    shown.findable = prefix_cache_.is_holder(BlockId{id});
    if (shown.findable) shown.retention = prefix_cache_.retention(prefix_cache_.node_of(BlockId{id}));
    if (windows_.is_used() && windows_.has_part(BlockId{id})) {
      shown.window = windows_.num_readers(BlockId{id}) > 0 ? WindowPart::kUsed : WindowPart::kCached;
      shown.window_place = windows_.place_of(BlockId{id});
      if (shown.window == WindowPart::kCached) shown.window_retention = windows_.retention_of(BlockId{id});
    }
  }
  std::vector<bool> has_owner(blocks.size());
  for (const OwnedTable& owned : tables) {
    if (owned.table->is_swapped_out_) continue;
    for (const BlockId id : owned.table->blocks_) {
      const auto i = index_of(id);
      if (!has_owner[i] || owned.table->owner_ < blocks[i].first_owner)
        blocks[i].first_owner = owned.table->owner_;
      has_owner[i] = true;
    }
  }
  return blocks;
}

std::vector<StateSnapshot> BlockManager::state_snapshot(std::span<const OwnedTable> tables) const {
  std::vector<StateSnapshot> states(static_cast<std::size_t>(states_.pool().num_blocks()));
  for (std::int32_t id = 0; id < states_.pool().num_blocks(); ++id) {
    const Block& state = states_.pool().at(BlockId{id});
    StateSnapshot& shown = states[static_cast<std::size_t>(id)];
    shown.state = state.state;
    shown.ref_count = state.ref_count;
    shown.last_step = state.last_step;
    const auto& checkpoint = states_.checkpoint_of(BlockId{id});
    if (!checkpoint) continue;
    shown.is_checkpoint = true;
    shown.reason = checkpoint->reason;
    shown.position = checkpoint->place.position;
    shown.retention = checkpoint->retention;
    shown.num_saved_tokens = checkpoint->num_saved_tokens;
    if (checkpoint->place.node != kNoNode && states_.is_reachable(checkpoint->place))
      shown.last_block = prefix_cache_.holder(checkpoint->place.node);
  }
  for (const OwnedTable& owned : tables) {
    const BlockTable& table = *owned.table;
    if (table.is_swapped_out_ || table.state_ == kNoBlock) continue;
    StateSnapshot& shown = states[index_of(table.state_)];
    const bool is_first = shown.first_owner == SequenceId{} || table.owner_ < shown.first_owner;
    if (is_first) shown.first_owner = table.owner_;
  }
  return states;
}

// ---- checks

struct BlockManager::Recount {
  Recount(const BlockPool& counted_pool)
      : pool(counted_pool),
        blocks(static_cast<std::size_t>(counted_pool.num_blocks())),
        num_writers(blocks.size()) {}

  void add(const BlockTable& table) {
    const std::int32_t block_size = pool.block_size();
    for (std::int32_t i = 0; i < table.num_blocks(); ++i) {
      const auto slots_until = [&](std::int32_t num_tokens) {
        return std::clamp(num_tokens - i * block_size, 0, block_size);
      };
      const std::int32_t num_filled = slots_until(table.num_computed_tokens());
      const std::int32_t num_assigned = slots_until(table.num_assigned_tokens());
      const auto id = static_cast<std::size_t>(table.blocks()[static_cast<std::size_t>(i)].value);
      ++blocks[id].ref_count;
      blocks[id].num_filled = std::max(blocks[id].num_filled, num_filled);
      blocks[id].num_assigned = std::max(blocks[id].num_assigned, num_assigned);
      if (num_assigned > num_filled) ++num_writers[id];
    }
  }

  std::optional<std::string> difference() const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Block& block = pool.at(BlockId{static_cast<std::int32_t>(i)});
      if (block.ref_count != blocks[i].ref_count + block.num_pins) {
        return "block " + std::to_string(i) + " has " + std::to_string(block.ref_count) +
               " references, of them " + std::to_string(block.num_pins) + " pins, and " +
               std::to_string(blocks[i].ref_count) + " table entries";
      }
      if (num_writers[i] > 1 || (num_writers[i] == 1 && blocks[i].ref_count > 1)) {
        return "block " + std::to_string(i) + " is written and has another owner";
      }
      if (blocks[i].ref_count == 0) continue;
      if (block.num_filled != blocks[i].num_filled || block.num_assigned != blocks[i].num_assigned) {
        return "block " + std::to_string(i) + ": its filled slots are not those of its owners";
      }
    }
    return std::nullopt;
  }

  const BlockPool& pool;
  std::vector<Block> blocks;
  std::vector<std::int32_t> num_writers;
};

std::optional<std::string> BlockManager::broken_invariant(std::span<const OwnedTable> tables) const {
  if (auto broken = pool_.broken_invariant()) return broken;
  if (auto broken = host_pool_.broken_invariant()) return "host pool: " + *broken;
  if (auto broken = prefix_cache_.broken_invariant()) return broken;
  if (buddies_) {
    if (auto broken = buddies_->broken_invariant()) return broken;
  }
  Recount device(pool_), host(host_pool_);
  std::vector<BlockId> states, host_states;
  std::int32_t num_logical_blocks = 0;
  for (const OwnedTable& owned : tables) {
    if (auto broken = broken_table(owned)) return broken;
    (owned.table->is_swapped_out_ ? host_states : states).push_back(owned.table->state_);
    if (owned.table->is_swapped_out_) {
      host.add(*owned.table);
    } else {
      device.add(*owned.table);
      num_logical_blocks += owned.table->num_blocks();
    }
  }
  if (auto broken = states_.broken_invariant(states, host_states)) return broken;
  if (num_logical_blocks != num_logical_blocks_) return "the count of logical blocks is wrong";
  if (auto broken = device.difference()) return broken;
  if (auto broken = broken_windows(tables)) return broken;
  if (auto broken = host.difference()) return "host pool: " + *broken;
  if (host_pool_.num_cached() > 0) return "host blocks without an owner are kept";
  if (host_pool_.num_used() != totals_.host_used_blocks) return "the level of the host pool is wrong";
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    if (prefix_cache_.is_cached(BlockId{id}) != (pool_.at(BlockId{id}).state == BlockState::kCached)) {
      return "block " + std::to_string(id) + ": pool and prefix cache disagree whether it is cached";
    }
  }
  return std::nullopt;
}

std::optional<std::string> BlockManager::broken_windows(std::span<const OwnedTable> tables) const {
  if (!windows_.is_used()) return std::nullopt;
  std::vector<std::int32_t> num_readers(static_cast<std::size_t>(pool_.num_blocks()));
  for (const BlockId source : copy_sources_) ++num_readers[static_cast<std::size_t>(source.value)];
  for (const OwnedTable& owned : tables) {
    const BlockTable& table = *owned.table;
    const std::string name = "the table of sequence " + std::to_string(table.owner_.value);
    if (table.num_left_behind_ != windows_.first_block_read(table.num_computed_tokens_))
      return name + " reads window parts that it should have left, or left those that it reads";
    for (std::int32_t i = table.num_left_behind_; i < table.num_blocks(); ++i) {
      const BlockId block = table.blocks_[static_cast<std::size_t>(i)];
      const bool is_computed = i * options_.block_size < table.num_computed_tokens_;
      const bool has_part =
          table.is_swapped_out_ ? windows_.host_place_of(block) != kNoBlock : windows_.has_part(block);
      if (is_computed && !has_part) return name + " reads a window part that is gone";
      if (!table.is_swapped_out_) ++num_readers[index_of(block)];
    }
  }
  return windows_.broken_invariant(num_readers);
}

std::optional<std::string> BlockManager::broken_table(const OwnedTable& owned) const {
  const BlockTable& table = *owned.table;
  const auto broken = [&](const char* what) {
    return "the table of sequence " + std::to_string(table.owner_.value) + what;
  };
  const std::int32_t block_size = options_.block_size;
  if (table.num_computed_tokens_ > table.num_assigned_tokens_) {
    return broken(" computed more than it has slots for");
  }
  const std::int32_t num_needed = blocks_for(table.num_assigned_tokens_, block_size);
  if (buddies_ ? table.num_blocks() < num_needed : table.num_blocks() != num_needed) {
    return broken(" has the wrong length");
  }
  const bool needs_state = states_.is_used() && table.num_computed_tokens_ > 0;
  const bool may_have_state = states_.is_used() && !table.empty();
  if (table.state_ == kNoBlock ? needs_state : !may_have_state) return broken(" has the wrong state");
  const bool is_sealed = options_.enable_prefix_caching && !table.is_swapped_out_;
  const std::int32_t num_full = is_sealed ? table.num_computed_tokens_ / block_size : 0;
  if (table.num_sealed_blocks_ != num_full) return broken(" has full blocks that are not sealed");
  PrefixNodeId node = kNoNode;
  for (std::int32_t i = 0; i < num_full; ++i) {
    const PrefixNodeId parent =
        std::exchange(node, prefix_cache_.node_of(table.blocks_[static_cast<std::size_t>(i)]));
    const auto token_ids = tokens_of_block(owned.content, i, table.num_computed_tokens_);
    if (node == kNoNode || !std::ranges::equal(prefix_cache_.tokens(node), token_ids) ||
        !prefix_cache_.continues(node, parent, owned.content.salt)) {
      return broken(" names a block that holds other tokens");
    }
  }
  if (node != table.last_sealed_) return broken(" is chained to the wrong node");
  return std::nullopt;
}

}  // namespace octavo::block
