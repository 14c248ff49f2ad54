#include "app/server/answer_calls.h"

#include <algorithm>
#include <iterator>

namespace octavo::app {

TextWithCallMarks::TextWithCallMarks(ToolCallFormat format, const tokenizer::Tokenizer* tokenizer)
    : format_(format), tokenizer_(tokenizer), detokenizer_(*tokenizer) {}

bool TextWithCallMarks::is_mark(TokenId id) const {
  if (!tokenizer_->is_control(id)) return false;
  const auto marks = tool_call_marks(format_);
  return std::ranges::find(marks, tokenizer_->token_bytes(id)) != marks.end();
}

std::string TextWithCallMarks::add(const TokensGenerated& event) {
  for (const TokenId id : event.token_ids) {
    if (is_mark(id)) {
      marks_.emplace_back(num_decoded_, tokenizer_->token_bytes(id));
    } else {
      num_decoded_ += detokenizer_.push(id).size();
    }
  }
  std::string text;
  std::string_view rest = event.text;
  const std::size_t end = num_given_ + rest.size();
  for (; !marks_.empty() && marks_.front().first <= end; marks_.pop_front()) {
    const std::size_t length = marks_.front().first - std::min(marks_.front().first, num_given_);
    text += rest.substr(0, length);
    text += marks_.front().second;
    rest.remove_prefix(length);
    num_given_ += length;
  }
  num_given_ = end;
  return text.append(rest);
}

AnswerCalls::AnswerCalls(CallReading reading)
    : reading_(std::move(reading)), reader_(reading_.format, reading_.tools, reading_.told) {}

std::vector<ToolCallPiece> AnswerCalls::begin_part(std::string_view answer, std::size_t begin) {
  std::vector<ToolCallPiece> pieces = end_part();
  if (reading_.format != ToolCallFormat::kHarmony) return pieces;
  // The header is in no part: the reader is given it again.
  const std::string_view called = called_by_header(answer, begin);
  if (called.empty()) return pieces;
  std::vector<ToolCallPiece> more =
      add("<|channel|>commentary to=functions." + std::string(called) + "<|message|>");
  pieces.insert(pieces.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return pieces;
}

std::vector<ToolCallPiece> AnswerCalls::add(std::string_view text) { return told(reader_.add(text)); }

std::vector<ToolCallPiece> AnswerCalls::end_part() {
  std::vector<ToolCallPiece> pieces = reader_.end();
  reader_ = ToolCallReader(reading_.format, reading_.tools, reading_.told);
  return told(std::move(pieces));
}

std::vector<ToolCallPiece> AnswerCalls::told(std::vector<ToolCallPiece> pieces) {
  std::vector<ToolCallPiece> kept;
  for (ToolCallPiece& piece : pieces) {
    if (piece.kind == ToolCallPiece::Kind::kCallBegun) ++num_calls_;
    const bool is_left_out =
        piece.kind != ToolCallPiece::Kind::kText && reading_.only_first && num_calls_ > 1;
    if (!is_left_out) kept.push_back(std::move(piece));
  }
  return kept;
}

std::string call_id(std::string_view prefix, std::string_view hex, std::size_t choice, std::size_t index) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::size_t kHexDigits = 18;
  const auto digits_of = [&](std::size_t number, int num_digits) {
    std::string digits;
    for (int i = num_digits - 1; i >= 0; --i)
      digits += kDigits[(number >> (4u * static_cast<unsigned>(i))) & 15u];
    return digits;
  };
  std::string id(prefix);
  id += hex.substr(0, kHexDigits);
  id.append(kHexDigits - std::min(hex.size(), kHexDigits), '0');
  return id + digits_of(choice, 2) + digits_of(index, 4);
}

}  // namespace octavo::app
