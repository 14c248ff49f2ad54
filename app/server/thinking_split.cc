#include "app/server/thinking_split.h"

#include <algorithm>

namespace octavo::app {

SplitPieces ThinkingSplit::add(std::string_view text) {
  text_ += text;
  return give(/*is_final=*/false);
}

SplitPieces ThinkingSplit::end() {
  SplitPieces pieces = give(/*is_final=*/true);
  const bool is_blank = text_.find_first_not_of(" \t\r\n") == std::string::npos;
  if (is_blank && num_given_ == 0) pieces.answer = text_;  // the reader waits for a character
  return pieces;
}

SplitPieces ThinkingSplit::give(bool is_final) {
  SplitPieces pieces;
  for (const AnswerPart& part : reader_.read(text_, is_final)) {
    const std::size_t begin = std::max(part.begin, num_given_);
    if (begin >= part.end) continue;
    const bool thinks = part.kind == PartKind::kThinking;
    bool& has_any = thinks ? has_thought_ : has_answered_;
    std::string& piece = thinks ? pieces.thinking : pieces.answer;
    if (begin == part.begin && has_any) piece += "\n\n";
    piece.append(text_, begin, part.end - begin);
    has_any = true;
    num_given_ = part.end;
  }
  return pieces;
}

}  // namespace octavo::app
