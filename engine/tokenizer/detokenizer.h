// Tokens to text while they arrive: gives out whole characters only. Concatenated, the pieces and the final
// flush equal Tokenizer::decode of all ids. A value type, one for each output; engine thread.
#pragma once

#include <string>

#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  // The text that became certain with this token; bytes that cannot be UTF-8 become U+FFFD as soon as that is
  // known.
  std::string push(TokenId id);

  // What is still held back: U+FFFD for an unfinished character, else nothing.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  // fewer than four bytes: the start of a character
};

}  // namespace octavo::tokenizer
