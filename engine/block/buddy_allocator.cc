#include "engine/block/buddy_allocator.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"

namespace octavo::block {
namespace {

std::int32_t length_of(std::size_t order) { return static_cast<std::int32_t>(std::uint32_t{1} << order); }

// The lowest order whose runs hold `num_blocks`.
std::size_t order_of(std::int32_t num_blocks) {
  return static_cast<std::size_t>(std::bit_width(static_cast<std::uint32_t>(num_blocks) - 1));
}

}  // namespace

BuddyAllocator::BuddyAllocator(std::int32_t num_blocks, std::int32_t largest_chunk_blocks) {
  OCTAVO_CHECK(num_blocks >= 0 && largest_chunk_blocks >= 1, "%d blocks, runs up to %d", num_blocks,
               largest_chunk_blocks);
  OCTAVO_CHECK(std::has_single_bit(static_cast<std::uint32_t>(largest_chunk_blocks)), "runs up to %d",
               largest_chunk_blocks);
  free_.resize(order_of(largest_chunk_blocks) + 1);
  taken_length_.resize(static_cast<std::size_t>(num_blocks));
  num_free_blocks_ = num_blocks;
  std::int32_t first = 0;
  for (std::size_t order = free_.size(); order-- > 0;) {
    for (; num_blocks - first >= length_of(order); first += length_of(order)) free_[order].insert(first);
  }
}

std::optional<BlockRun> BuddyAllocator::take(std::int32_t num_blocks) {
  OCTAVO_CHECK(num_blocks >= 1, "a run of %d blocks", num_blocks);
  const std::size_t wanted = order_of(num_blocks);
  std::size_t order = wanted;
  while (order < free_.size() && free_[order].empty()) ++order;
  if (order >= free_.size()) return std::nullopt;
  const std::int32_t first = *free_[order].begin();
  free_[order].erase(free_[order].begin());
  while (order > wanted) {
    --order;
    free_[order].insert(first + length_of(order));
  }
  const BlockRun run{BlockId{first}, length_of(wanted)};
  taken_length_[static_cast<std::size_t>(first)] = run.num_blocks;
  num_free_blocks_ -= run.num_blocks;
  return run;
}

void BuddyAllocator::give_back(BlockRun run) {
  std::int32_t first = run.first.value;
  OCTAVO_CHECK(first >= 0 && first < num_blocks(), "block %d of %d", first, num_blocks());
  std::int32_t& taken_length = taken_length_[static_cast<std::size_t>(first)];
  OCTAVO_CHECK(run.num_blocks >= 1 && taken_length == run.num_blocks,
               "a run of %d blocks at %d, where %d were taken", run.num_blocks, first, taken_length);
  taken_length = 0;
  num_free_blocks_ += run.num_blocks;
  std::size_t order = order_of(run.num_blocks);
  while (order + 1 < free_.size() && free_[order].erase(first ^ length_of(order)) == 1) {
    first &= ~length_of(order);
    ++order;
  }
  free_[order].insert(first);
}

// take() on the numbers of runs alone: which of equally long ones is split makes no difference to later
// sizes.
bool BuddyAllocator::can_take(std::span<const std::int32_t> sizes) const {
  std::vector<std::size_t> num_free_runs;
  for (const auto& runs : free_) num_free_runs.push_back(runs.size());
  for (const std::int32_t size : sizes) {
    OCTAVO_CHECK(size >= 1, "a run of %d blocks", size);
    const std::size_t wanted = order_of(size);
    std::size_t order = wanted;
    while (order < num_free_runs.size() && num_free_runs[order] == 0) ++order;
    if (order >= num_free_runs.size()) return false;
    --num_free_runs[order];
    while (order > wanted) ++num_free_runs[--order];
  }
  return true;
}

std::int32_t BuddyAllocator::largest_free_chunk() const {
  for (std::size_t order = free_.size(); order-- > 0;) {
    if (!free_[order].empty()) return length_of(order);
  }
  return 0;
}

std::optional<std::string> BuddyAllocator::broken_invariant() const {
  std::vector<std::int32_t> num_runs_with(taken_length_.size());
  const auto count = [&](std::int32_t first, std::int32_t length) {
    for (std::int32_t block = first; block < std::min(first + length, num_blocks()); ++block) {
      ++num_runs_with[static_cast<std::size_t>(block)];
    }
  };
  std::int32_t num_free = 0;
  for (std::size_t order = 0; order < free_.size(); ++order) {
    for (const std::int32_t first : free_[order]) {
      if (auto broken = broken_free_run(first, order)) return broken;
      num_free += length_of(order);
      count(first, length_of(order));
    }
  }
  for (std::int32_t first = 0; first < num_blocks(); ++first) {
    const std::int32_t length = taken_length_[static_cast<std::size_t>(first)];
    if (first + length > num_blocks()) return "a taken run reaches beyond the pool";
    count(first, length);
  }
  for (std::size_t i = 0; i < num_runs_with.size(); ++i) {
    if (num_runs_with[i] != 1) {
      return "block " + std::to_string(i) + " is in " + std::to_string(num_runs_with[i]) + " runs";
    }
  }
  if (num_free != num_free_blocks_) return "the count of free blocks is wrong";
  return std::nullopt;
}

std::optional<std::string> BuddyAllocator::broken_free_run(std::int32_t first, std::size_t order) const {
  const std::int32_t length = length_of(order);
  const std::string name =
      "the free run of " + std::to_string(length) + " blocks at " + std::to_string(first);
  if (first < 0 || first + length > num_blocks()) return name + " reaches beyond the pool";
  if (first % length != 0) return name + " is not aligned";
  if (order + 1 < free_.size() && free_[order].contains(first ^ length)) return name + " has a free buddy";
  return std::nullopt;
}

}  // namespace octavo::block
