// What each token of a sentencepiece vocabulary is to the library, settled before the library sees any of
// it: nothing that a model file says reaches it unchecked.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

enum class PieceRole {
  kText,         // text becomes it by merging
  kUnused,       // merges pass through it, and it is taken apart again at the end
  kUserDefined,  // found in text before anything is merged, and never merged
  kByte,         // one byte of a character that the vocabulary does not have
  kNever,        // no text becomes it
};

struct Piece {
  std::string text;  // with U+2581 for spaces; of kByte the byte itself; nothing of kNever's counts
  PieceRole role = PieceRole::kNever;
};

struct CheckedPieces {
  std::vector<Piece> pieces;  // index = id
  std::vector<TokenId>
      byte_tokens;  // of the 256 bytes, or empty: characters that are missing become the unknown token
};

// The library's recursion over unused pieces, and the time for a merge, grow with the length of a piece.
inline constexpr std::size_t kMaxPieceBytes = 512;
// The library looks at 64 user-defined pieces at most that begin alike, and goes wrong with more.
inline constexpr std::size_t kMaxNestedPieces = 64;
inline constexpr std::size_t kMaxUserDefinedPieces = 65'536;

// Which token stands for characters that the vocabulary lacks, when the file does not name it: the first of
// that kind. It and others of the kind become control tokens.  REQUIRES: kinds are settled
// (prompt_tokenizer.h)
void settle_unknown(Vocabulary& vocabulary);

// kNever are: control tokens, user-defined markers (special_tokens.h), tokens without text or with text
// that is not UTF-8, and of equal texts all but the one with the highest id. Refused with a sentence:
// scores that are missing or not finite, byte tokens that name no byte or not all 256 of them, neither byte
// tokens nor an unknown one, pieces above the limits. REQUIRES: validate(vocabulary) succeeded; kinds and
// the unknown token are settled
Result<CheckedPieces> check_pieces(const Vocabulary& vocabulary);

}  // namespace octavo::tokenizer
