// The pre-tokenizers of a tokenizer.json (text_pipeline.h): a normalised text becomes the pieces that its
// model turns into tokens one by one. Immutable; any thread.
#pragma once

#include <deque>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/result.h"
#include "engine/tokenizer/split_pattern.h"
#include "engine/tokenizer/text_pipeline.h"
#include "engine/tokenizer/text_regex.h"

namespace octavo::tokenizer {

// Pieces of one text, and the texts that they are views of.
struct Pieces {
  struct Piece {
    std::string_view text;       // not empty
    bool starts_prompt = false;  // nothing of the prompt stands in front of it
  };
  std::vector<Piece> pieces;
  std::deque<std::string> texts;  // what steps wrote anew
};

class PipelineSplitter {
 public:
  static Result<PipelineSplitter> create(const std::vector<PreTokenizerStep>& steps);

  // `text` outlives the pieces. With ByteLevel among the steps pieces are bytes, not their spelling. Ends
  // early once a stop was requested; then nobody should use the pieces.
  Result<Pieces> split(std::string_view text, bool starts_prompt, const std::stop_token& stop) const;

  // Whether parts of a text may be in no piece.
  bool removes_text() const { return removes_text_; }
  bool makes_bytes() const { return makes_bytes_; }

 private:
  using CharacterTest = bool (*)(char32_t);
  struct SplitStep {
    std::variant<FindMatch, TextRegex, CharacterTest, std::string> pattern;
    SplitBehavior behavior;
    bool inverted;
  };
  using Step = std::variant<SplitStep, ByteLevel, Metaspace>;

  static Result<SplitStep> prepare(const Split& split);
  static Result<void> apply(const SplitStep& step, Pieces& pieces, const std::stop_token& stop);
  static void apply(const ByteLevel& step, bool is_last, Pieces& pieces);
  static void apply(const Metaspace& step, Pieces& pieces);

  std::vector<Step> steps_;
  bool removes_text_ = false;
  bool makes_bytes_ = false;
};

}  // namespace octavo::tokenizer
