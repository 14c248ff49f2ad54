// Byte-pair merging of one piece of text: while any neighbours merge, the pair of the lowest rank does, the
// leftmost of equals first. A priority queue over a linked list makes that O(n log n) for n bytes, with
// constant stack, so that eight megabytes of one character take seconds, not days.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <vector>

#include "engine/base/ids.h"
#include "engine/tokenizer/merge_table.h"

namespace octavo::tokenizer {

// Keeps its buffers from piece to piece. One thread.
class PieceMerger {
 public:
  // Both outlive the merger.
  PieceMerger(const MergeTable& merges, const std::stop_token& stop) : merges_(merges), stop_(stop) {}

  // From then on pieces may stay unmerged, and nobody should use them.
  bool is_stopped() const { return stop_.stop_requested(); }

  // Adds a token to the piece.
  // REQUIRES: the piece holds fewer than 2^32 - 1 tokens
  void add(TokenId token_id) { symbols_.push_back({token_id}); }

  // Merges what was added, appends the result, and starts a new piece.
  void finish(std::vector<TokenId>& token_ids);

 private:
  struct Symbol {
    TokenId token_id;
    std::uint32_t previous = 0, next = 0;  // kNone at the ends
    std::uint32_t rank = 0;                // of the merge with `next`, or kNone
    TokenId merged = -1;                   // what that merge makes
  };

  void link();
  void look_up_merge(std::uint32_t position);
  void enqueue(std::uint32_t position);
  void merge_with_next(std::uint32_t position);

  // Merges between two looks at stop_: far less than a millisecond.
  static constexpr std::uint32_t kMergesPerLook = 1024;

  const MergeTable& merges_;
  const std::stop_token& stop_;
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;  // rank << 32 | position; stale when the symbol's rank has changed
};

}  // namespace octavo::tokenizer
