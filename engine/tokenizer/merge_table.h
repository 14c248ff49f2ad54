// The merges of BPE (Sennrich et al. 2016, arXiv:1508.07909): which two neighbouring tokens
// become one, and which pair goes first. Immutable; a million merges are looked up in constant time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

// Token text -> id.
using TokenIndex = std::unordered_map<std::string_view, TokenId>;

struct Merge {
  std::uint32_t rank;  // place in the list; the lowest goes first
  TokenId token_id;    // what the pair becomes
};

// No merge makes such a token.
constexpr bool is_special_kind(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUserDefined;
}

class MergeTable {
 public:
  // `merges` are "left right", best first. Both parts and their concatenation must be tokens. Of two merges
  // of the same pair the later counts, as in GPT-2's encoder. One that makes a token for which `may_make`
  // says no is left out.
  static Result<MergeTable> create(std::span<const std::string> merges, const TokenIndex& tokens,
                                   const std::function<bool(TokenId)>& may_make);

  // Merges by number, best first; likewise. REQUIRES: all of them tokens
  static MergeTable of_tokens(std::span<const MergedTokens> merges,
                              const std::function<bool(TokenId)>& may_make);

  // The merges of a vocabulary but those that would make a control or user-defined token. Of tokens with
  // equal texts the higher id counts, and one that text can become before one that it cannot. REQUIRES: as
  // many kinds as tokens
  static Result<MergeTable> of_vocabulary(const Vocabulary& vocabulary);

  // nullptr when the two do not merge.
  const Merge* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    TokenId left = -1, right = -1;  // -1: empty
    Merge merge = {};
  };

  explicit MergeTable(std::size_t num_merges);
  std::size_t slot_of(TokenId left, TokenId right) const;  // where the pair is, or would be

  std::vector<Slot> slots_;  // open addressing, a power of two, at most half full
};

}  // namespace octavo::tokenizer
