#include "engine/chat_template/answer_parts.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "engine/chat_template/begun_mark.h"

namespace octavo {
namespace {

constexpr std::string_view kThink = "<think>", kThought = "</think>";
struct ThinkingMarks {
  std::string_view opener, closer;
};
constexpr std::array<ThinkingMarks, 2> kThinkingMarks = {
    {{kThink, kThought}, {"<|channel>thought", "<channel|>"}}};
constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kMessageMark = "<|message|>";
constexpr std::string_view kRecipient = "to=", kSelf = "self";
// What ends a message behind a header.
constexpr std::array<std::string_view, 7> kMessageEnds = {"<|end|>", "<|return|>", "<|call|>", "<|eom|>",
                                                          "<|eot|>", kStart,       kChannel};
// A longer header is none.
constexpr std::size_t kLongestHeader = 512;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::size_t skip_blank(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Without blank space at its end.
std::size_t trimmed_end(std::string_view text, std::size_t begin, std::size_t end) {
  while (end > begin && is_blank(text[end - 1])) --end;
  return end;
}

bool stands_at(std::string_view text, std::size_t at, std::string_view mark) {
  return text.substr(at, mark.size()) == mark;
}

// Whether the text ends at `at` or within a mark that begins there.
bool may_stand_at(std::string_view text, std::size_t at, std::string_view mark) {
  const std::string_view rest = text.substr(at);
  return rest.size() < mark.size() && mark.starts_with(rest);
}

bool may_open_thinking(std::string_view text, std::size_t at) {
  return std::ranges::any_of(
      kThinkingMarks, [&](const ThinkingMarks& marks) { return may_stand_at(text, at, marks.opener); });
}

// The beginning of the line on which the first character behind blank space stands, so that it keeps its
// indentation.
std::size_t first_line_begin(std::string_view text, std::size_t blank, std::size_t at) {
  const std::size_t line = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return line == std::string_view::npos || line < blank ? at : line + 1;
}

// Whether a header without its first words stands there, one that a recipient begins.
enum class Found : std::uint8_t { kNo, kMaybe, kYes };
Found find_recipient(std::string_view text, std::size_t at) {
  if (may_stand_at(text, at, kRecipient)) return Found::kMaybe;
  if (!stands_at(text, at, kRecipient)) return Found::kNo;
  const std::size_t end = text.find_first_of("< \t\n\r", at);
  if (end == std::string_view::npos) return text.size() - at < kLongestHeader ? Found::kMaybe : Found::kNo;
  for (const std::string_view mark : {kMessageMark, kChannel}) {
    if (stands_at(text, end, mark)) return Found::kYes;
    if (may_stand_at(text, end, mark)) return Found::kMaybe;
  }
  return Found::kNo;
}

std::string_view recipient_of(std::string_view header) {
  const std::size_t recipient = header.rfind(kRecipient);
  if (recipient == std::string_view::npos) return {};
  header.remove_prefix(recipient + kRecipient.size());
  return header.substr(0, header.find_first_of(" \t\n\r"));
}

PartKind kind_of_header(std::string_view header) {
  const std::size_t channel = header.rfind(kChannel);
  if (channel == std::string_view::npos)
    return recipient_of(header) == kSelf ? PartKind::kThinking : PartKind::kAnswer;
  return header.substr(channel + kChannel.size()).starts_with("analysis") ? PartKind::kThinking
                                                                          : PartKind::kAnswer;
}

}  // namespace

const std::vector<AnswerPart>& AnswerReader::read(std::string_view text, bool is_final) {
  held_ = text.size();
  num_bytes_read_ += text.size() - std::min(at_, text.size());
  while (step(text)) {
  }
  result_ = parts_;
  const bool unfinished = state_ == State::kThinking || state_ == State::kAnswer || state_ == State::kMessage;
  if (unfinished) {
    AnswerPart& last = result_.back();
    last.end = std::max(last.begin, is_final ? text.size() : held_);
    if (last.kind == PartKind::kThinking) last.end = trimmed_end(text, last.begin, last.end);
  } else if (is_final && held_ < text.size() && state_ != State::kHeader) {
    result_.push_back({PartKind::kAnswer, held_, text.size()});
  }
  return result_;
}

// True when there is more to do.
bool AnswerReader::step(std::string_view text) {
  switch (state_) {
    case State::kBeginning: return begin(text);
    case State::kThinking: return think(text);
    case State::kBehindThinking: return go_on(text);
    case State::kAnswer: return answer(text);
    case State::kHeader: return read_header(text);
    case State::kMessage: return read_message(text);
    case State::kBehindMessage: return follow_message(text);
  }
  return false;
}

bool AnswerReader::open_thinking(std::string_view text, std::size_t first) {
  for (const ThinkingMarks& marks : kThinkingMarks) {
    if (!stands_at(text, first, marks.opener)) continue;
    open(PartKind::kThinking, first + marks.opener.size(), State::kThinking);
    closer_ = marks.closer;
    return true;
  }
  return false;
}

bool AnswerReader::begin(std::string_view text) {
  const std::size_t first = skip_blank(text, 0);
  if (first == text.size()) return false;
  if (open_thinking(text, first)) return true;
  const Found recipient = find_recipient(text, first);
  if (stands_at(text, first, kChannel) || stands_at(text, first, kStart) || recipient == Found::kYes) {
    at_ = first;
    state_ = State::kHeader;
    return true;
  }
  if (may_open_thinking(text, first) || may_stand_at(text, first, kChannel) ||
      may_stand_at(text, first, kStart) || recipient == Found::kMaybe) {
    held_ = first;
    return false;
  }
  if (beginning_ == AnswerBeginning::kThinking) {
    open(PartKind::kThinking, 0, State::kThinking);
  } else {
    open(PartKind::kAnswer, 0, State::kAnswer);
  }
  return true;
}

bool AnswerReader::think(std::string_view text) {
  AnswerPart& part = parts_.back();
  if (part.begin == at_) part.begin = at_ = skip_blank(text, at_);  // nothing of it was shown before
  std::size_t end = std::string_view::npos, length = 0;
  for (const ThinkingMarks& marks : kThinkingMarks) {
    if (!closer_.empty() && closer_ != marks.closer) continue;
    const std::size_t found = text.find(marks.closer, at_);
    if (found == std::string_view::npos) held_ = std::min(held_, begun_mark(text, at_, marks.closer));
    if (found < end) end = found, length = marks.closer.size();
  }
  if (end == std::string_view::npos) {
    at_ = std::max(at_, held_);
    return false;
  }
  held_ = text.size();
  close(text, end);
  at_ = end + length;
  state_ = State::kBehindThinking;
  return true;
}

bool AnswerReader::go_on(std::string_view text) {
  const std::size_t first = skip_blank(text, at_);
  if (first == text.size()) return false;
  if (open_thinking(text, first)) return true;
  if (may_open_thinking(text, first)) {
    held_ = first;
    return false;
  }
  open(PartKind::kAnswer, first_line_begin(text, at_, first), State::kAnswer);
  settled_ = true;
  return true;
}

// What began without a mark may turn out to have been thinking.
bool AnswerReader::answer(std::string_view text) {
  while (!settled_) {
    const std::size_t mark = text.find('<', at_);
    if (mark == std::string_view::npos) {
      at_ = text.size();
      return false;
    }
    if (may_stand_at(text, mark, kThink) || may_stand_at(text, mark, kThought)) {
      const bool line_begin = mark == 0 || text[mark - 1] == '\n';
      at_ = mark;
      if (line_begin) held_ = mark;
      return false;
    }
    if (stands_at(text, mark, kThink)) {
      settled_ = true;  // it talks about marks
    } else if (stands_at(text, mark, kThought) && (mark == 0 || text[mark - 1] == '\n')) {
      parts_.back().kind = PartKind::kThinking;
      parts_.back().begin = skip_blank(text, 0);
      close(text, mark);
      at_ = mark + kThought.size();
      state_ = State::kBehindThinking;
      return true;
    }
    at_ = mark + 1;
  }
  at_ = text.size();
  return false;
}

bool AnswerReader::read_header(std::string_view text) {
  const std::size_t end = text.substr(0, at_ + kLongestHeader).find(kMessageMark, at_);
  if (end != std::string_view::npos) {
    const PartKind kind = kind_of_header(text.substr(at_, end - at_));
    open(kind, end + kMessageMark.size(), State::kMessage);
    return true;
  }
  if (text.size() - at_ < kLongestHeader) {
    held_ = at_;
    return false;
  }
  open(PartKind::kAnswer, at_, State::kAnswer);
  settled_ = true;
  return true;
}

bool AnswerReader::read_message(std::string_view text) {
  AnswerPart& part = parts_.back();
  if (part.begin == at_) {
    const std::size_t first = skip_blank(text, at_);
    held_ = at_;
    if (first == text.size()) return false;
    part.begin = at_ = first_line_begin(text, at_, first);
    held_ = text.size();
  }
  for (std::size_t mark = text.find("<", at_); mark != std::string_view::npos;
       mark = text.find("<", mark + 1)) {
    for (const std::string_view end : kMessageEnds) {
      if (may_stand_at(text, mark, end)) {
        at_ = held_ = mark;
        return false;
      }
      if (!stands_at(text, mark, end)) continue;
      close(text, mark);
      const bool begins_next = end == kStart || end == kChannel;
      at_ = begins_next ? mark : mark + end.size();
      state_ = begins_next ? State::kHeader : State::kBehindMessage;
      return true;
    }
  }
  at_ = text.size();
  return false;
}

bool AnswerReader::follow_message(std::string_view text) {
  const std::size_t first = skip_blank(text, at_);
  if (first == text.size()) return false;
  for (const std::string_view mark : {kStart, kChannel}) {
    if (stands_at(text, first, mark)) {
      at_ = first;
      state_ = State::kHeader;
      return true;
    }
    if (may_stand_at(text, first, mark)) {
      held_ = first;
      return false;
    }
  }
  open(PartKind::kAnswer, first_line_begin(text, at_, first), State::kMessage);
  return true;
}

void AnswerReader::open(PartKind kind, std::size_t begin, State state) {
  parts_.push_back({kind, begin, begin, kind == PartKind::kThinking});
  at_ = begin;
  state_ = state;
}

void AnswerReader::close(std::string_view text, std::size_t end) {
  AnswerPart& part = parts_.back();
  part.end = std::max(part.begin, end);
  part.end = trimmed_end(text, part.begin, part.end);
  part.open = false;
}

std::vector<AnswerPart> answer_parts(std::string_view text, bool is_final, AnswerBeginning beginning) {
  AnswerReader reader(beginning);
  return reader.read(text, is_final);
}

bool is_in_messages(std::string_view answer) {
  const std::size_t first = skip_blank(answer, 0);
  return stands_at(answer, 0, kChannel) || find_recipient(answer, first) == Found::kYes;
}

bool begins_thinking(std::string_view end_of_prompt) {
  const std::string_view end = end_of_prompt.substr(0, trimmed_end(end_of_prompt, 0, end_of_prompt.size()));
  return std::ranges::any_of(kThinkingMarks,
                             [&](const ThinkingMarks& marks) { return end.ends_with(marks.opener); });
}

}  // namespace octavo
