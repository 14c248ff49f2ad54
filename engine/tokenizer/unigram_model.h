// The unigram model of sentencepiece (Kudo 2018, arXiv:1804.10959) as tokenizer.json has it: of all ways to
// cut a text into tokens the one with the highest sum of scores, found by Viterbi's algorithm from left to
// right. A character without a token counts ten less than the lowest score. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo::tokenizer {

class UnigramModel {
 public:
  // More bytes of all tokens, shared beginnings once, are refused: XLM-R's 250,000 take 1.2 million.
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 23;

  struct Token {
    std::string_view text;  // not empty
    TokenId token_id;
    double score;
  };

  struct Found {
    std::string_view text;  // a part of what was encoded
    TokenId token_id;       // -1: one unknown character
  };

  // Of tokens with equal texts the last counts. Nothing is kept of `tokens`.
  static Result<UnigramModel> create(std::span<const Token> tokens, double lowest_score);

  // REQUIRES: valid UTF-8. Once a stop was requested, nothing.
  std::vector<Found> encode(std::string_view text, const std::stop_token& stop) const;

 private:
  struct Slot {
    std::uint64_t edge = 0;   // node << 8 | byte, plus one; 0: empty
    std::uint32_t child = 0;  // node
  };
  struct Node {
    TokenId token_id = -1;
    double score = 0;
  };

  explicit UnigramModel(double unknown_score) : unknown_score_(unknown_score) {}
  std::size_t slot_of(std::uint64_t edge) const;
  // 0: there is none.
  std::uint32_t child_of(std::uint32_t node, char byte) const;
  std::uint32_t add_child(std::uint32_t node, char byte);

  double unknown_score_;
  std::vector<Node> nodes_{1};  // 0 is the root
  std::vector<Slot> slots_;     // open addressing, a power of two, at most half full
};

}  // namespace octavo::tokenizer
