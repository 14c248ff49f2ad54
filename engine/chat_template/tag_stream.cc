#include "engine/chat_template/tag_stream.h"

#include <algorithm>
#include <utility>

#include "engine/base/ascii.h"
#include "engine/chat_template/begun_mark.h"
#include "engine/chat_template/json_outline.h"
#include "engine/chat_template/json_scanner.h"

namespace octavo {
namespace {

constexpr std::string_view kTagBlanks = " \t\r\n";
constexpr std::size_t kMostBlanksBetween = 4096;
constexpr std::size_t kMostWordBytes = 4096;  // of a value that may still be a word

std::string quoted_without_quotes(std::string_view text) {
  const std::string quoted = quoted_json(text);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

TagStream::TagStream(CallTags tags, std::shared_ptr<const CallableTools> tools)
    : tags_(std::move(tags)), tools_(std::move(tools)) {}

TagStream::State TagStream::read(std::string_view text, bool is_final, std::vector<ToolCallPiece>& pieces) {
  while (true) {
    switch (step(text, pieces)) {
      case Step::kDone: break;
      case Step::kEnded: return State::kEnded;
      case Step::kWrong: end_telling(pieces); return State::kWrong;
      case Step::kWaits: return is_final ? end(text, pieces) : State::kGoesOn;
    }
  }
}

TagStream::Step TagStream::step(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  switch (place_) {
    case Place::kBegin: return begin_call(text);
    case Place::kName: return read_name(text);
    case Place::kNameEnd: return pass(text, ">", Place::kNextKey);
    case Place::kNextKey: return find_key(text, pieces);
    case Place::kKey: return read_key(text, pieces);
    case Place::kSaid: return read_what_is_said(text);
    case Place::kValueBegin: return pass(text, tags_.value_begin, Place::kValue);
    case Place::kValue: return read_value(text, pieces);
    case Place::kEnd: return follow_call(text);
  }
  return Step::kWrong;
}

TagStream::Step TagStream::begin_call(std::string_view text) {
  if (at_ == 0 && num_calls_ == 0 && !tags_.begin.empty()) {
    const Found begun = take(text, tags_.begin);
    if (begun != Found::kYes) return begun == Found::kMaybe ? Step::kWaits : Step::kWrong;
  }
  return pass(text, tags_.call_begin, Place::kName);
}

TagStream::Step TagStream::read_name(std::string_view text) {
  const bool has_end = !tags_.name_end.empty();
  const auto end = find(text, has_end ? std::string_view(tags_.name_end) : "<");
  if (!end) return Step::kWaits;
  name_ = text.substr(at_, *end - at_);
  if (!has_end) name_ = without_blanks(name_);
  if (!is_tool_name(name_)) return Step::kWrong;
  at_ = searched_ = *end + tags_.name_end.size();
  num_keys_ = 0;
  place_ = tags_.have_attributes ? Place::kNameEnd : Place::kNextKey;
  return Step::kDone;
}

TagStream::Step TagStream::find_key(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  const Found key = take(text, tags_.key_begin);
  if (key == Found::kYes) {
    if (num_keys_ == kMaxJsonMembers) return Step::kWrong;
    begin_telling(pieces);
    place_ = Place::kKey;
    return Step::kDone;
  }
  const std::string_view call_end = tags_.call_end.empty() ? tags_.end : tags_.call_end;
  const Found end = take(text, call_end);
  if (end == Found::kYes) {
    begin_telling(pieces);
    append_arguments(pieces, "}");
    end_telling(pieces);
    ++num_calls_;
    place_ = Place::kEnd;
    return tags_.call_end.empty() || tags_.end.empty() ? Step::kEnded : Step::kDone;
  }
  return key == Found::kMaybe || end == Found::kMaybe ? Step::kWaits : Step::kWrong;
}

TagStream::Step TagStream::read_key(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  const auto end = find(text, tags_.key_end);
  if (!end) return Step::kWaits;
  key_ = text.substr(at_, *end - at_);
  if (!tags_.value_begin.empty()) key_ = without_blanks(key_);
  said_.clear();
  at_ = searched_ = *end + tags_.key_end.size();
  append_arguments(pieces, (num_keys_++ > 0 ? ", " : "") + quoted_json(key_) + ": ");
  is_text_begun_ = false;
  place_ = tags_.have_attributes       ? Place::kSaid
           : tags_.value_begin.empty() ? Place::kValue
                                       : Place::kValueBegin;
  return Step::kDone;
}

TagStream::Step TagStream::read_what_is_said(std::string_view text) {
  const auto end = find(text, ">");
  if (!end) return Step::kWaits;
  said_ = without_blanks(text.substr(at_, *end - at_));
  at_ = searched_ = *end + 1;
  place_ = Place::kValue;
  return Step::kDone;
}

TagStream::Step TagStream::read_value(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  if (at_ == text.size()) return Step::kWaits;
  const auto end = find_value_end(text);
  const std::size_t begin = tags_.values_have_lines && text[at_] == '\n' ? at_ + 1 : at_;
  const std::string_view value = text.substr(begin, std::max(begin, value_end_) - begin);
  if (is_text_begun_ || (!end && is_surely_text(value))) {
    if (!std::exchange(is_text_begun_, true)) {
      append_arguments(pieces, "\"");
      value_told_ = 0;
    }
    append_arguments(pieces, quoted_without_quotes(value.substr(value_told_)));
    value_told_ = value.size();
  }
  if (!end) return Step::kWaits;
  if (is_text_begun_) {
    append_arguments(pieces, "\"");
  } else {
    const std::string json = json_of(value);
    if (!is_json_object("{\"\": " + json + "}")) return Step::kWrong;  // as deep as it stands
    append_arguments(pieces, json);
  }
  at_ = searched_ = *end;
  place_ = Place::kNextKey;
  return Step::kDone;
}

TagStream::Step TagStream::follow_call(std::string_view text) {
  const Found end = take(text, tags_.end);
  if (end == Found::kYes) return Step::kEnded;
  if (tags_.may_be_many) {
    const Found next = take(text, tags_.call_begin);
    if (next == Found::kYes) {
      place_ = Place::kName;
      return Step::kDone;
    }
    if (next == Found::kMaybe) return Step::kWaits;
  }
  return end == Found::kMaybe ? Step::kWaits : Step::kWrong;
}

TagStream::Step TagStream::pass(std::string_view text, std::string_view tag, Place next) {
  const Found found = take(text, tag);
  if (found == Found::kYes) place_ = next;
  return found == Found::kYes ? Step::kDone : found == Found::kMaybe ? Step::kWaits : Step::kWrong;
}

// Nothing more comes. A call that only lacks the tag behind it is one; any other ends as far as it came.
TagStream::State TagStream::end(std::string_view text, std::vector<ToolCallPiece>& pieces) {
  if (place_ == Place::kEnd) {
    at_ = text.size();
    return State::kEnded;
  }
  if (place_ == Place::kNextKey && tags_.call_end.empty() && at_ == text.size()) {
    begin_telling(pieces);
    append_arguments(pieces, "}");
    end_telling(pieces);
    return State::kEnded;
  }
  if (is_told_) at_ = text.size();
  end_telling(pieces);
  return State::kWrong;
}

TagStream::Found TagStream::take(std::string_view text, std::string_view tag) {
  at_ = searched_ = std::min(text.find_first_not_of(kTagBlanks, at_), text.size());
  const std::string_view rest = text.substr(at_);
  if (!rest.starts_with(tag)) return tag.starts_with(rest) ? Found::kMaybe : Found::kNo;
  at_ = searched_ = at_ + tag.size();
  return Found::kYes;
}

std::optional<std::size_t> TagStream::find(std::string_view text, std::string_view mark) {
  const std::size_t found = text.find(mark, searched_);
  if (found != std::string_view::npos) return found;
  searched_ = begun_mark(text, searched_, mark);
  return std::nullopt;
}

std::optional<std::size_t> TagStream::find_value_end(std::string_view text) {
  std::optional<std::size_t> tag;
  Found is_end = Found::kYes;
  while ((tag = find(text, tags_.value_end))) {
    if (tags_.values_speak_of_tags) is_end = is_followed_by_tag(text, *tag + tags_.value_end.size());
    searched_ = *tag;
    if (is_end != Found::kNo) break;
    ++searched_;
  }
  value_end_ = tag.value_or(searched_);
  if (tags_.values_have_lines && value_end_ > at_ && text[value_end_ - 1] == '\n') --value_end_;
  if (!tag || is_end != Found::kYes) return std::nullopt;
  return *tag + tags_.value_end.size();
}

TagStream::Found TagStream::is_followed_by_tag(std::string_view text, std::size_t at) const {
  const std::size_t next = std::min(text.find_first_not_of(kTagBlanks, at), text.size());
  if (next - at > kMostBlanksBetween) return Found::kNo;  // they are looked at again with each piece
  const std::string_view rest = text.substr(next);
  Found found = Found::kNo;
  for (const std::string* const tag : {&tags_.key_begin, &tags_.call_end}) {
    if (rest.starts_with(*tag)) return Found::kYes;
    if (tag->starts_with(rest)) found = Found::kMaybe;
  }
  return found;
}

void TagStream::begin_telling(std::vector<ToolCallPiece>& pieces) {
  if (std::exchange(is_told_, true)) return;
  has_told_ = true;
  pieces.push_back({ToolCallPiece::Kind::kCallBegun, name_});
  append_arguments(pieces, "{");
}

void TagStream::end_telling(std::vector<ToolCallPiece>& pieces) {
  if (std::exchange(is_told_, false)) pieces.push_back({ToolCallPiece::Kind::kCallEnded, {}});
}

bool TagStream::is_surely_text(std::string_view value) const {
  if (said_ == "string=\"true\"") return true;
  if (said_ == "string=\"false\"") return false;
  const std::uint8_t types = this->types();
  if (types == kNoValueType) return true;
  if ((types & kTextValue) == 0) return false;
  constexpr std::size_t kLongestWord = 4;  // null, None
  return (types & kNullValue) == 0 ||
         (value.size() < kMostWordBytes && without_blanks(value).size() > kLongestWord);
}

std::string TagStream::json_of(std::string_view value) const {
  if (said_ == "string=\"true\"") return quoted_json(value);
  if (said_ == "string=\"false\"" && is_json(value)) return std::string(without_blanks(value));
  return typed_json(value, types());
}

std::uint8_t TagStream::types() const {
  if (tools_ == nullptr) return kNoValueType;
  return tools_->types_of(name_, key_);
}

}  // namespace octavo
