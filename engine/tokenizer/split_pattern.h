// How byte-level BPE cuts text into pieces before it merges: the regular expressions of the published
// tokenizers (split_scanners.h). Some cut by several expressions in turn: each cuts the pieces of the one
// before into its matches and what lies between them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "engine/base/result.h"
#include "engine/tokenizer/split_scanners.h"

namespace octavo::tokenizer {

enum class SplitPattern {
  kGpt2,
  kSmolLm,  // every \p{N} alone, then kGpt2
  kLlama3,
  kQwen2,   // kLlama3 with \p{N} in place of \p{N}{1,3}
  kQwen35,  // kQwen2 with marks in words
  kGpt4o,
  kTekken,
  kDeepSeekLlm,
  kDeepSeekCoder,
  kDeepSeek3,
  kFalcon,
};

struct SplitRule {
  SplitPattern pattern;
  bool whole_words;  // a piece that is a token is that token, whatever its merges would make (ignore_merges)
};

// The first match of one of the expressions in a text, by hand.
using FindMatch = std::optional<Match> (*)(std::string_view text);

// By the expression as tokenizer.json writes it; nullptr: none of those that are scanned by hand.
FindMatch find_known_pattern(std::string_view expression);

// By the name in tokenizer.ggml.pre; an empty name and "default" mean kGpt2. An unknown name is an error that
// lists the known ones.
Result<SplitRule> find_split_rule(std::string_view name);

// The pieces of one text, one after another: none is empty, together they are the text. Linear in the text.
class PieceCutter {
 public:
  static constexpr std::size_t kMaxStages = 6;

  PieceCutter(SplitPattern pattern, std::string_view text);

  // Empty: there are no more.
  std::string_view next() { return next_of(num_stages_ - 1); }

 private:
  struct Stage {
    std::string_view rest;  // of the piece of the stage before
    // Of a match that was found behind a gap, and stands at the start of `rest` now
    std::size_t match_length = 0;
  };

  std::string_view next_of(std::size_t stage);

  SplitPattern pattern_;
  std::size_t num_stages_;
  std::array<Stage, kMaxStages> stages_;
};

}  // namespace octavo::tokenizer
