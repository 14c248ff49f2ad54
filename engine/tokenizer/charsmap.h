// Sentencepiece's normalisation rules: which bytes of a text become which others. They come as a trie in a
// double array (Aoe 1989; the layout is that of the Darts-clone library, which sentencepiece uses) and the
// texts that it points to. The array is untrusted: the library follows its numbers wherever they lead,
// so the walk here is our own, looks before each step, and gives what the library gives for every array
// that the library made.
//
// Layout: the trie's size in bytes (u32, little-endian), the trie (u32 units), and the replacements, each
// ended by a zero byte. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::tokenizer {

class Charsmap {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{4}
                                           << 20;  // the largest that sentencepiece has takes 0.3 MiB
  // The longest rules of Unicode's NFKC replace 18 bytes, and by 33. Longer ones would let a few bytes of a
  // file make a text long to read or large.
  static constexpr std::size_t kMaxRuleBytes = 128, kMaxReplacementBytes = 128;

  struct Match {
    std::size_t length;            // bytes of the text that are replaced, at least 1
    std::string_view replacement;  // valid UTF-8; lives as long as the Charsmap
  };

  // Without rules.
  Charsmap() = default;
  // Errors: kDamagedFile for sizes that contradict each other and replacements that are not UTF-8 or have
  // no end, kUnsupported for more than kMaxBytes.
  static Result<Charsmap> parse(std::string_view bytes);

  bool empty() const { return units_.empty(); }

  // The longest rule for the beginning of `text`. A rule that leads outside of the array or the
  // replacements, or is longer than the limits, is none.
  std::optional<Match> longest(std::string_view text) const;
  // The shortest one, likewise.
  std::optional<Match> shortest(std::string_view text) const;

 private:
  enum class Wanted { kShortest, kLongest };
  std::optional<Match> find(std::string_view text, Wanted wanted) const;
  std::optional<std::string_view> replacement_at(std::size_t unit) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace octavo::tokenizer
