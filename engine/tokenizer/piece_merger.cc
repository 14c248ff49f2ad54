#include "engine/tokenizer/piece_merger.h"

#include <algorithm>
#include <functional>

namespace octavo::tokenizer {
namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

std::uint64_t queue_entry(std::uint32_t rank, std::uint32_t position) {
  return (static_cast<std::uint64_t>(rank) << 32) | position;
}

}  // namespace

void PieceMerger::finish(std::vector<TokenId>& token_ids) {
  if (symbols_.empty()) return;
  link();
  for (std::uint32_t num_merges = 0; !queue_.empty(); ++num_merges) {
    if (num_merges % kMergesPerLook == kMergesPerLook - 1 && is_stopped()) queue_.clear();
    if (queue_.empty()) break;
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    const std::uint64_t entry = queue_.back();
    queue_.pop_back();
    const auto position = static_cast<std::uint32_t>(entry);
    if (symbols_[position].rank == static_cast<std::uint32_t>(entry >> 32)) merge_with_next(position);
  }
  for (std::uint32_t i = 0; i != kNone; i = symbols_[i].next) token_ids.push_back(symbols_[i].token_id);
  symbols_.clear();
}

void PieceMerger::link() {
  const auto size = static_cast<std::uint32_t>(symbols_.size());
  for (std::uint32_t i = 0; i < size; ++i) {
    symbols_[i].previous = i == 0 ? kNone : i - 1;
    symbols_[i].next = i + 1 == size ? kNone : i + 1;
    look_up_merge(i);
    if (symbols_[i].rank != kNone) queue_.push_back(queue_entry(symbols_[i].rank, i));
  }
  std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void PieceMerger::look_up_merge(std::uint32_t position) {
  Symbol& symbol = symbols_[position];
  symbol.rank = kNone;
  if (symbol.next == kNone) return;
  if (const Merge* merge = merges_.find(symbol.token_id, symbols_[symbol.next].token_id)) {
    symbol.rank = merge->rank;
    symbol.merged = merge->token_id;
  }
}

void PieceMerger::enqueue(std::uint32_t position) {
  look_up_merge(position);
  if (symbols_[position].rank == kNone) return;
  queue_.push_back(queue_entry(symbols_[position].rank, position));
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

void PieceMerger::merge_with_next(std::uint32_t position) {
  Symbol& symbol = symbols_[position];
  Symbol& gone = symbols_[symbol.next];
  symbol.token_id = symbol.merged;
  symbol.next = gone.next;
  gone.rank = kNone;  // makes its entry in the queue stale
  if (symbol.next != kNone) symbols_[symbol.next].previous = position;
  enqueue(position);
  if (symbol.previous != kNone) enqueue(symbol.previous);
}

}  // namespace octavo::tokenizer
