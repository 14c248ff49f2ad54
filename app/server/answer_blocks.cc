#include "app/server/answer_blocks.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace octavo::app {
namespace {

// No mark of thinking and no blank space behind it is more tokens.
constexpr std::size_t kMostTokensOfOpener = 16;

std::size_t end_without_blanks(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin && std::string_view(" \t\r\n").find(text[end - 1]) != std::string_view::npos) --end;
  return end;
}

}  // namespace

AnswerBlocks::AnswerBlocks(BlocksAreTold told, const tokenizer::Tokenizer* tokenizer, std::string begun,
                           std::optional<CallReading> calls)
    : told_(told), tokenizer_(tokenizer), begun_bytes_(begun.size()), text_(std::move(begun)) {
  if (!calls) return;
  if (told == BlocksAreTold::kAsTheyGrow) calls->told = CallsAreTold::kAsTheyCome;
  marked_.emplace(calls->format, tokenizer);
  calls_.emplace(*std::move(calls));
}

void AnswerBlocks::follow(std::span<const TokenId> prompt) {
  // Each byte of the beginning may be a token.
  const auto last = prompt.last(std::min(prompt.size(), begun_bytes_ + kMostTokensOfOpener));
  const std::string decoded = tokenizer_->decode(last, /*skip_special=*/false);
  std::string_view end = decoded;
  if (end.ends_with(text_)) end.remove_suffix(text_.size());
  if (begins_thinking(end)) reader_ = AnswerReader(AnswerBeginning::kThinking);
}

std::vector<AnswerStep> AnswerBlocks::add(const TokensGenerated& event) {
  text_ += marked_ ? marked_->add(event) : event.text;
  const std::vector<AnswerPart>& parts = reader_.read(text_, /*is_final=*/false);
  count(parts, static_cast<std::int32_t>(event.token_ids.size()));
  if (told_ == BlocksAreTold::kAtTheEnd) return {};
  return tell(parts, /*is_final=*/false);
}

std::vector<AnswerStep> AnswerBlocks::end() {
  return tell(reader_.read(text_, /*is_final=*/true), /*is_final=*/true);
}

bool AnswerBlocks::is_blank() const {
  return text_.find_first_not_of(" \t\r\n", begun_bytes_) == std::string::npos;
}

// Events come token by token or nearly so; what a mark is made of belongs to the thinking before or behind
// it.
void AnswerBlocks::count(const std::vector<AnswerPart>& parts, std::int32_t num_tokens) {
  num_undecided_tokens_ += num_tokens;
  if (parts.empty()) return;
  if (parts.back().kind == PartKind::kThinking) num_thinking_tokens_ += num_undecided_tokens_;
  num_undecided_tokens_ = 0;
}

std::vector<AnswerStep> AnswerBlocks::tell(const std::vector<AnswerPart>& parts, bool is_final) {
  std::vector<AnswerStep> steps;
  while (part_index_ < parts.size()) {
    const AnswerPart& part = parts[part_index_];
    const bool is_ended_thinking = part.kind == PartKind::kThinking && !part.open;
    const bool is_closed = is_final || part_index_ + 1 < parts.size() || is_ended_thinking;
    tell_part(part, is_closed, steps);
    if (!is_closed) break;
    ++part_index_;
    told_to_.reset();
    is_read_for_calls_ = false;
  }
  return steps;
}

void AnswerBlocks::tell_part(const AnswerPart& part, bool is_closed, std::vector<AnswerStep>& steps) {
  // What was read for calls stays so, even when it turns out to have been thinking.
  if (calls_ && (part.kind == PartKind::kAnswer || is_read_for_calls_))
    return tell_answer(part, is_closed, steps);
  const std::size_t begin = told_to_.value_or(std::max(part.begin, begun_bytes_));
  const std::size_t end = is_closed ? part.end : end_without_blanks(text_, begin, part.end);
  if (end > begin) {
    if (!told_to_) open_block({.kind = part.kind}, steps);
    grow_block(text_.substr(begin, end - begin), steps);
    told_to_ = end;
  }
  if (is_closed) close_block(steps);
}

void AnswerBlocks::tell_answer(const AnswerPart& part, bool is_closed, std::vector<AnswerStep>& steps) {
  const std::size_t begin = told_to_.value_or(std::max(part.begin, begun_bytes_));
  const std::size_t end = is_closed ? part.end : end_without_blanks(text_, begin, part.end);
  if (end > begin) {
    if (!is_read_for_calls_) tell_pieces(calls_->begin_part(text_, part.begin), steps);
    is_read_for_calls_ = true;
    tell_pieces(calls_->add(std::string_view(text_).substr(begin, end - begin)), steps);
    told_to_ = end;
  }
  if (!is_closed) return;
  tell_pieces(calls_->end_part(), steps);
  close_block(steps);
}

void AnswerBlocks::tell_pieces(std::vector<ToolCallPiece> pieces, std::vector<AnswerStep>& steps) {
  for (ToolCallPiece& piece : pieces) {
    switch (piece.kind) {
      case ToolCallPiece::Kind::kText:
        if (!is_block_open_) open_block({.kind = PartKind::kAnswer}, steps);
        grow_block(std::move(piece.text), steps);
        break;
      case ToolCallPiece::Kind::kCallBegun:
        close_block(steps);
        open_block({.kind = PartKind::kAnswer, .called = std::move(piece.text), .call_index = num_calls_++},
                   steps);
        break;
      case ToolCallPiece::Kind::kArguments: grow_block(std::move(piece.text), steps); break;
      case ToolCallPiece::Kind::kCallEnded: close_block(steps); break;
    }
  }
}

void AnswerBlocks::open_block(AnswerBlock block, std::vector<AnswerStep>& steps) {
  steps.push_back({AnswerStep::Kind::kOpened, blocks_.size()});
  blocks_.push_back(std::move(block));
  is_block_open_ = true;
}

void AnswerBlocks::grow_block(std::string text, std::vector<AnswerStep>& steps) {
  blocks_.back().text += text;
  steps.push_back({AnswerStep::Kind::kGrew, blocks_.size() - 1, std::move(text)});
}

void AnswerBlocks::close_block(std::vector<AnswerStep>& steps) {
  if (!std::exchange(is_block_open_, false)) return;
  steps.push_back({AnswerStep::Kind::kClosed, blocks_.size() - 1});
}

}  // namespace octavo::app
