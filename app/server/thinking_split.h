// An answer that grows, as pieces of what its model thinks and what it says (answer_parts.h): what protocols
// send apart. A piece once given stays; joined, the pieces of a kind are its text, with an empty line between
// stretches of it.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/chat_template/answer_parts.h"

namespace octavo::app {

struct SplitPieces {
  std::string thinking, answer;
  bool empty() const { return thinking.empty() && answer.empty(); }
};

class ThinkingSplit {
 public:
  explicit ThinkingSplit(AnswerBeginning beginning = AnswerBeginning::kUnknown) : reader_(beginning) {}

  // `text` is new; what may be the beginning of a mark is held back until more comes.
  SplitPieces add(std::string_view text);
  // The rest, when nothing more comes.
  SplitPieces end();

 private:
  SplitPieces give(bool is_final);

  AnswerReader reader_;
  std::string text_;
  std::size_t num_given_ = 0;  // bytes of the text before which everything was given, or is no text
  bool has_thought_ = false, has_answered_ = false;
};

}  // namespace octavo::app
