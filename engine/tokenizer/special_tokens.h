// Finds the texts of special tokens (control and user-defined) in text: leftmost first, longest of those
// that start at the same place, as Hugging Face's added tokens are found. Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

// Whether a user-defined token is written to steer the model rather than as text: in angle or square
// brackets, as <start_of_turn>, <|user|>, [INST] and <unused7> are, but not runs of spaces or words. Input
// never becomes one.
bool is_marker(std::string_view text);

// A stretch of text, in bytes, whose token ids are settled. The ids belong to whoever made it.
struct SettledTokens {
  std::size_t begin = 0, end = 0;
  std::span<const TokenId> token_ids;
};

class SpecialTokens {
 public:
  // Longer texts are refused: the time to search grows with them.
  static constexpr std::size_t kMaxBytes = 512;

  // The tokens of a vocabulary for which `is_special` says yes.  REQUIRES: as many kinds as tokens
  static Result<SpecialTokens> collect(const Vocabulary& vocabulary,
                                       bool (*is_special)(TokenKind kind, std::string_view text));

  // `texts` and `token_ids` correspond; empty texts are left out, since they can be found nowhere. Of two
  // equal texts the higher id counts, as in the rest of the vocabulary.
  static Result<SpecialTokens> create(std::vector<std::string> texts, std::vector<TokenId> token_ids);

  // Bytes of the longest text that `text` starts with, 0: none.
  std::size_t longest_at_start(std::string_view text) const;

  // Appends what is found in text[begin, end), ascending.
  void find_all(std::string_view text, std::size_t begin, std::size_t end,
                std::vector<SettledTokens>& found) const;

 private:
  struct Range {
    std::size_t first = 0, last = 0;  // [first, last) of texts_
  };

  // Index of the longest text that `text` starts with, or -1.
  std::ptrdiff_t longest_match(std::string_view text) const;
  // Of `range`, whose texts agree in their first `depth` bytes, those that continue with `byte`.
  Range narrow(Range range, std::size_t depth, unsigned char byte) const;

  std::vector<std::string> texts_;  // ascending, distinct
  std::vector<TokenId> token_ids_;  // of texts_
  std::array<Range, 256> by_first_byte_ = {};
};

}  // namespace octavo::tokenizer
