// An answer that grows, as pieces of what its model thinks and what it says (answer_parts.h): what protocols
// send apart. A piece once given stays; joined, the pieces of a kind are its text, with an empty line between
// stretches of it. With a reading of calls, what the model calls is told apart, too.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/server/answer_calls.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {

struct SplitPieces {
  std::string thinking, answer;
  std::vector<ToolCallPiece> calls;  // without kText
  bool empty() const { return thinking.empty() && answer.empty() && calls.empty(); }
};

class ThinkingSplit {
 public:
  explicit ThinkingSplit(AnswerBeginning beginning = AnswerBeginning::kUnknown,
                         const std::optional<CallReading>& calls = {})
      : reader_(beginning) {
    if (calls) calls_.emplace(*calls);
  }

  // `text` is new; what may be the beginning of a mark is held back until more comes.
  SplitPieces add(std::string_view text);
  // The rest, when nothing more comes.
  SplitPieces end();

 private:
  SplitPieces give(bool is_final);
  void give_answer(std::string_view text, SplitPieces& pieces);
  void give_read(std::vector<ToolCallPiece> read, SplitPieces& pieces);

  AnswerReader reader_;
  std::optional<AnswerCalls> calls_;
  std::string text_;
  std::size_t num_given_ = 0;  // bytes of the text before which everything was given, or is no text
  bool has_thought_ = false, has_answered_ = false;
  bool begins_stretch_ = false;  // of the answer: an empty line comes first
};

}  // namespace octavo::app
