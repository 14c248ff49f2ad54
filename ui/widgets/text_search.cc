#include "ui/widgets/text_search.h"

#include <algorithm>
#include <functional>

#include "engine/base/text.h"
#include "ui/chat_state.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/parts_layout.h"

namespace octavo::ui {
namespace {

// A line break is found as a space.
char32_t searched_form(char32_t character) {
  return character == '\n' || character == '\t' ? U' ' : fold_case(character);
}

std::u32string folded(std::string_view text) {
  std::u32string result;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    result += searched_form(point.value);
    at += point.length;
  }
  return result;
}

}  // namespace

void TextSearch::read(Index& index, const MessageState& message) {
  index = {.text_size = message.text.size(),
           .parts = message.parts,
           .characters = {},
           .ranges = {},
           .matches = {},
           .searched = false};
  index.characters.reserve(message.text.size());
  index.ranges.reserve(message.text.size());
  for (const MessagePart& part : parts_of(message)) {
    const std::string_view text = std::string_view(message.text).substr(part.begin, part.end - part.begin);
    read_part(index, text, format_of(message), part.begin);
  }
}

void TextSearch::read_part(Index& index, std::string_view text, TextFormat format, std::uint32_t offset) {
  MarkdownDocument document;
  document.update(text, format);
  for (const MarkdownBlock& block : document.blocks()) {
    if (!block.continues) {
      index.characters += U'\n';  // nothing is found over the end of a block
      index.ranges.push_back({offset + block.source.begin, offset + block.source.begin});
    }
    for (std::uint32_t i = 0; i < block.num_spans; ++i) {
      const TextSpan& span = document.spans()[block.first_span + i];
      const TextRange range{offset + span.range.begin, offset + span.range.end};
      const std::string_view shown = document.shown(text, span);
      for (std::uint32_t at = 0; at < shown.size();) {
        const CodePoint point = decode_utf8(shown, at);
        const auto length = static_cast<std::uint32_t>(point.length);
        const std::uint32_t begin = range.begin + at;
        index.characters += searched_form(point.value);
        index.ranges.push_back(span.kind == SpanKind::kText ? TextRange{begin, begin + length} : range);
        at += length;
      }
    }
  }
}

void TextSearch::search(Index& index) const {
  index.matches.clear();
  index.searched = true;
  const std::boyer_moore_horspool_searcher searcher(query_.begin(), query_.end());
  auto from = index.characters.begin();
  while (true) {
    const auto found = std::search(from, index.characters.end(), searcher);
    if (found == index.characters.end()) return;
    const auto first = static_cast<std::size_t>(found - index.characters.begin());
    index.matches.push_back({index.ranges[first].begin, index.ranges[first + query_.size() - 1].end});
    from = found + static_cast<std::ptrdiff_t>(query_.size());
  }
}

const std::vector<TextMatch>& TextSearch::find(const std::vector<MessageState>& messages,
                                               std::string_view query) {
  std::u32string wanted = folded(query);
  bool changed = wanted != query_ || order_.size() != messages.size();
  if (wanted != query_) {
    query_ = std::move(wanted);
    for (auto& [id, index] : indices_) index.searched = false;
  }
  if (query_.empty()) {
    matches_.clear();
    return matches_;
  }
  order_.resize(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const MessageState& message = messages[i];
    Index& index = indices_[message.id];
    if (index.text_size != message.text.size() || index.parts != message.parts) read(index, message);
    if (!index.searched || order_[i] != message.id) changed = true;
    if (!index.searched) search(index);
    order_[i] = message.id;
  }
  if (!changed) return matches_;
  matches_.clear();
  for (const MessageId id : order_) {
    for (const TextRange range : indices_[id].matches) matches_.push_back({id, range});
  }
  return matches_;
}

std::span<const TextRange> TextSearch::matches_in(MessageId message_id) const {
  const auto index = indices_.find(message_id);
  if (query_.empty() || index == indices_.end()) return {};
  return index->second.matches;
}

void TextSearch::clear() {
  query_.clear();
  indices_.clear();
  order_.clear();
  matches_.clear();
}

}  // namespace octavo::ui
