// Vocabularies small enough to think about.
#pragma once

#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/tokenizer/byte_level.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

inline std::string spelling(std::uint8_t byte) {
  std::string text;
  append_utf8(text, byte_spelling(byte));
  return text;
}

// The 256 bytes, ids 0 to 255, and three special tokens: <s> 256 and </s> 257 (control), <tool> 258
// (user-defined).
inline Vocabulary byte_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.split_pattern = "gpt-2";
  for (int byte = 0; byte < 256; ++byte)
    vocabulary.tokens.push_back(spelling(static_cast<std::uint8_t>(byte)));
  vocabulary.kinds.assign(256, TokenKind::kNormal);
  for (const char* text : {"<s>", "</s>", "<tool>"}) vocabulary.tokens.emplace_back(text);
  vocabulary.kinds.insert(vocabulary.kinds.end(),
                          {TokenKind::kControl, TokenKind::kControl, TokenKind::kUserDefined});
  vocabulary.bos_token_id = 256;
  vocabulary.eos_token_id = 257;
  return vocabulary;
}

// Adds a token and the merge that makes it.
inline void add_merge(Vocabulary& vocabulary, const std::string& left, const std::string& right) {
  vocabulary.merges.push_back(left + " " + right);
  vocabulary.tokens.push_back(left + right);
  vocabulary.kinds.push_back(TokenKind::kNormal);
}

}  // namespace octavo::tokenizer
