// What a tokenizer.json says is done to a text before its model sees it, as data: normalizers change it, then
// pre-tokenizers cut it into pieces, each of which the model turns into tokens on its own. Names and meaning
// are those of Hugging Face's tokenizers, whose ids ours equal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace octavo::tokenizer {

// What a step looks for in a text.
struct TextPattern {
  enum class Kind : std::uint8_t {
    kExpression,   // a regular expression, as Oniguruma writes it: `source`
    kText,         // `source`, as it is
    kNumber,       // one character of \p{N}
    kSpace,        // one of \s
    kPunctuation,  // one of \p{P}, or a symbol of ASCII
  };
  Kind kind = Kind::kText;
  std::string source = {};
  bool operator==(const TextPattern&) const = default;
};

// ---- normalizers

enum class UnicodeForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };
struct Lowercase {};
struct StripAccents {};  // leaves out \p{M}
struct StripSpaces {
  bool left = true, right = true;
};
// In front of every text that holds anything.
struct Prepend {
  std::string text;
};
struct Replace {
  TextPattern pattern;
  std::string text;
};
// Sentencepiece's rules (charsmap.h), for each user-perceived character: the shortest rule that it begins
// with.
struct CharsmapRules {
  std::string bytes;
};
using NormalizerStep =
    std::variant<UnicodeForm, Lowercase, StripAccents, StripSpaces, Prepend, Replace, CharsmapRules>;

// ---- pre-tokenizers

// What becomes of the matches by which a text is split.
enum class SplitBehavior : std::uint8_t {
  kRemoved,
  kIsolated,            // pieces of their own
  kMergedWithPrevious,  // of several in a row the first
  kMergedWithNext,      // of several in a row the last
  kContiguous,          // several in a row are one piece
};

struct Split {
  TextPattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool inverted = false;  // what lies between matches counts as matched
};
// From then on each byte is written as one character (byte_level.h).
struct ByteLevel {
  bool add_prefix_space = false;
  bool splits = true;  // by GPT-2's expression
};
struct Metaspace {
  enum class Prefix : std::uint8_t { kAlways, kFirst, kNever };
  std::string spelled_space;        // one character, in place of a space
  Prefix prefix = Prefix::kAlways;  // kFirst: only at the start of a prompt
  bool splits = true;               // in front of each
};
using PreTokenizerStep = std::variant<Split, ByteLevel, Metaspace>;

struct TextPipeline {
  std::vector<NormalizerStep> normalizers = {};
  std::vector<PreTokenizerStep> pre_tokenizers = {};  // at most one of them ByteLevel
  // How tokens are read: as bytes (byte_level.h), or with these texts replaced, one after the other.
  bool decodes_bytes = false;
  std::vector<std::pair<std::string, std::string>> decoded_texts = {};
  // Of the model.
  bool byte_fallback = false;   // a character without a token becomes the tokens of its bytes, if they exist
  bool fuses_unknown = false;   // several unknown characters in a row are one unknown token
  bool ignores_merges = false;  // a piece that is a token is that token, whatever its merges would make
};

}  // namespace octavo::tokenizer
