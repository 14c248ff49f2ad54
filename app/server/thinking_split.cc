#include "app/server/thinking_split.h"

#include <algorithm>
#include <utility>

namespace octavo::app {

SplitPieces ThinkingSplit::add(std::string_view text) {
  text_ += text;
  return give(/*is_final=*/false);
}

SplitPieces ThinkingSplit::end() {
  SplitPieces pieces = give(/*is_final=*/true);
  if (calls_) give_read(calls_->end_part(), pieces);
  const bool is_blank = text_.find_first_not_of(" \t\r\n") == std::string::npos;
  if (is_blank && num_given_ == 0) pieces.answer = text_;  // the reader waits for a character
  return pieces;
}

SplitPieces ThinkingSplit::give(bool is_final) {
  SplitPieces pieces;
  for (const AnswerPart& part : reader_.read(text_, is_final)) {
    const std::size_t begin = std::max(part.begin, num_given_);
    if (begin >= part.end) continue;
    std::string_view text = std::string_view(text_).substr(begin, part.end - begin);
    // It may belong to a mark that follows.
    if (calls_ && !is_final) text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (text.empty()) continue;
    const bool is_new = begin == part.begin;
    num_given_ = begin + text.size();
    if (part.kind == PartKind::kThinking) {
      if (is_new && has_thought_) pieces.thinking += "\n\n";
      pieces.thinking += text;
      has_thought_ = true;
    } else if (calls_) {
      if (is_new) give_read(calls_->begin_part(text_, part.begin), pieces);
      begins_stretch_ = begins_stretch_ || is_new;
      give_read(calls_->add(text), pieces);
    } else {
      begins_stretch_ = is_new;
      give_answer(text, pieces);
    }
  }
  return pieces;
}

void ThinkingSplit::give_answer(std::string_view text, SplitPieces& pieces) {
  if (std::exchange(begins_stretch_, false) && has_answered_) pieces.answer += "\n\n";
  pieces.answer += text;
  has_answered_ = true;
}

void ThinkingSplit::give_read(std::vector<ToolCallPiece> read, SplitPieces& pieces) {
  for (ToolCallPiece& piece : read) {
    if (piece.kind == ToolCallPiece::Kind::kText) {
      give_answer(piece.text, pieces);
    } else {
      if (piece.kind == ToolCallPiece::Kind::kCallEnded) begins_stretch_ = true;
      pieces.calls.push_back(std::move(piece));
    }
  }
}

}  // namespace octavo::app
