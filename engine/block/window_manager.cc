#include "engine/block/window_manager.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::block {
namespace {

// Taken from the back: in ascending order.
std::vector<BlockId> all_places(std::int32_t num_places) {
  std::vector<BlockId> places;
  for (std::int32_t id = num_places - 1; id >= 0; --id) places.push_back(BlockId{id});
  return places;
}

}  // namespace

WindowManager::WindowManager(std::int32_t window, std::int32_t block_size, std::int32_t num_blocks,
                             std::int32_t num_places, std::int32_t num_host_blocks,
                             std::int32_t num_host_places, BlockEventLog& events)
    : window_(window),
      block_size_(block_size),
      num_places_(window > 0 ? num_places : 0),
      num_host_places_(window > 0 ? num_host_places : 0),
      events_(events),
      parts_(static_cast<std::size_t>(window > 0 ? num_blocks : 0)),
      free_(all_places(num_places_)),
      host_places_(static_cast<std::size_t>(window > 0 ? num_host_blocks : 0), kNoBlock),
      free_host_(all_places(num_host_places_)) {}

std::int32_t WindowManager::first_block_read(std::int32_t num_tokens) const {
  return std::max(0, num_tokens - window_ + 1) / block_size_;
}

void WindowManager::read(BlockId block) {
  Part& part = part_of(block);
  if (part.num_readers++ == 0 && part.place != kNoBlock) unread_.erase(key_of(block));
}

void WindowManager::leave(BlockId block, std::optional<RetentionClass> retention) {
  Part& part = part_of(block);
  OCTAVO_CHECK(part.num_readers > 0, "nobody reads the window part of block %d", block.value);
  if (--part.num_readers > 0 || part.place == kNoBlock) return;
  if (!retention) return close(block, Closing::kUnfindable);
  part.retention = *retention;
  part.left_at = ++num_left_;
  unread_.insert(key_of(block));
  events_.record(BlockEventKind::kWindowKeep, SequenceId{}, block, static_cast<std::int32_t>(*retention));
}

BlockId WindowManager::open(BlockId block, SequenceId owner) {
  OCTAVO_CHECK(!has_part(block) && num_readers(block) > 0, "block %d has a window part, or nobody reads it",
               block.value);
  if (free_.empty()) {
    OCTAVO_CHECK(!unread_.empty(), "all %d places of window parts are in use", num_places_);
    const BlockId victim = std::get<BlockId>(*unread_.begin());
    unread_.erase(unread_.begin());
    close(victim, Closing::kEvicted, owner);
    ++totals_.num_evicted;
  }
  const BlockId place = part_of(block).place = free_.back();
  free_.pop_back();
  events_.record(BlockEventKind::kWindowOpen, owner, block, place.value);
  totals_.peak_used = std::max(totals_.peak_used, num_used());
  totals_.peak_held = std::max(totals_.peak_held, num_places_ - num_free());
  return place;
}

void WindowManager::close(BlockId block, Closing why, SequenceId by) {
  events_.record(BlockEventKind::kWindowClose, by, block, why == Closing::kEvicted ? 1 : 0);
  free_.push_back(part_of(block).place);
  part_of(block).place = kNoBlock;
}

void WindowManager::drop(BlockId block) {
  OCTAVO_CHECK(num_readers(block) == 0, "the window part of block %d is read", block.value);
  if (!has_part(block)) return;
  unread_.erase(key_of(block));
  close(block, Closing::kUnfindable);
}

BlockId WindowManager::open_host(BlockId host_block) {
  BlockId& place = host_places_[index_of(host_block)];
  OCTAVO_CHECK(place == kNoBlock && !free_host_.empty(), "host block %d has a window part, or none is free",
               host_block.value);
  place = free_host_.back();
  free_host_.pop_back();
  return place;
}

void WindowManager::drop_host(BlockId host_block) {
  BlockId& place = host_places_[index_of(host_block)];
  if (place == kNoBlock) return;
  free_host_.push_back(place);
  place = kNoBlock;
}

void WindowManager::describe(KvFigures& figures) const {
  figures.used_window_blocks = num_used();
  figures.cached_window_blocks = num_cached();
  figures.free_window_blocks = num_free();
  figures.host_used_window_blocks = num_host_places_ - num_free_host();
}

std::optional<std::string> WindowManager::broken_invariant(std::span<const std::int32_t> num_readers) const {
  std::vector<bool> is_taken(static_cast<std::size_t>(num_places_));
  for (const BlockId place : free_) {
    if (is_taken[index_of(place)]) return "a place of a window part is free twice";
    is_taken[index_of(place)] = true;
  }
  std::size_t num_unread = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const BlockId block{static_cast<std::int32_t>(i)};
    const std::string name = "the window part of block " + std::to_string(i);
    if (part.num_readers != num_readers[i]) {
      return name + " has " + std::to_string(part.num_readers) + " readers, and " +
             std::to_string(num_readers[i]) + " table entries and copies read it";
    }
    if (part.place == kNoBlock) continue;
    if (is_taken[index_of(part.place)]) return name + " lies where another one does, or nothing";
    is_taken[index_of(part.place)] = true;
    if (part.num_readers > 0) continue;
    if (!unread_.contains(key_of(block))) return name + " is read by nobody and cannot be given up";
    ++num_unread;
  }
  if (!std::ranges::all_of(is_taken, [](bool taken) { return taken; })) return "a place is lost";
  if (num_unread != unread_.size()) return "window parts can be given up that are read";
  return std::nullopt;
}

}  // namespace octavo::block
