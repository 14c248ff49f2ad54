// Text as sentencepiece's pieces spell it: spaces as U+2581, invalid bytes as U+FFFD, with the file's own
// rules applied. Gives what the library's Normalizer gives, without the position of every byte in the
// original, which takes eight bytes for each. Immutable; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/special_tokens.h"

namespace octavo::tokenizer {

class SentencePieceNormalizer {
 public:
  // What rules make of a text may be longer than the text; more than this is refused.
  static constexpr std::size_t kMaxNormalizedBytes = std::size_t{256} << 20;

  // `user_defined`: pieces that rules do not touch. `remove_extra_whitespaces`: spaces at both ends go, and
  // of several in a row all but one.
  SentencePieceNormalizer(Charsmap rules, SpecialTokens user_defined, bool remove_extra_whitespaces);

  // With `add_prefix` a text that holds anything starts with one more space.
  Result<std::string> normalize(std::string_view text, bool add_prefix) const;

 private:
  // What the beginning of a text becomes, and how many bytes it is long.
  struct Step {
    std::string_view becomes;
    std::size_t length;
  };
  Step next(std::string_view text) const;
  std::string_view without_leading_spaces(std::string_view text) const;

  Charsmap rules_;
  SpecialTokens user_defined_;
  bool remove_extra_whitespaces_;
};

}  // namespace octavo::tokenizer
