#include "ui/views/transcript.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "ui/chat_state.h"

namespace octavo::ui {

void Transcript::sync(const std::vector<MessageState>& messages, float top_margin, float gap,
                      const Guess& guess) {
  std::size_t same = 0;
  while (same < std::min(entries_.size(), messages.size()) && entries_[same].id == messages[same].id) ++same;
  const bool margins_same = top_margin == top_margin_ && gap == gap_;
  top_margin_ = top_margin;
  gap_ = gap;
  std::size_t first_changed = margins_same ? entries_.size() : 0;
  if (same < entries_.size() || same < messages.size()) {
    std::unordered_map<MessageId, Entry> old;
    for (std::size_t i = same; i < entries_.size(); ++i) old.emplace(entries_[i].id, std::move(entries_[i]));
    entries_.resize(same);
    entries_.reserve(messages.size());
    for (std::size_t i = same; i < messages.size(); ++i) {
      const auto known = old.find(messages[i].id);
      entries_.push_back(known == old.end() ? Entry{} : std::move(known->second));
      if (known != old.end()) continue;
      entries_.back().id = messages[i].id;
      entries_.back().height = guess(i);
    }
    first_changed = std::min(first_changed, same);
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].id = messages[i].id;
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].text_size != messages[i].text.size()) entries_[i].exact = false;
  }
  place_from(first_changed);
}

void Transcript::forget_heights() {
  for (Entry& entry : entries_) entry.exact = false;
}

void Transcript::place_from(std::size_t index) {
  double y = top_margin_;
  if (index > 0 && index <= entries_.size())
    y = entries_[index - 1].top + static_cast<double>(entries_[index - 1].height + gap_);
  for (std::size_t i = index; i < entries_.size(); ++i) {
    entries_[i].top = y;
    y += static_cast<double>(entries_[i].height + gap_);
  }
  height_ = entries_.empty() ? top_margin_
                             : entries_.back().top + static_cast<double>(entries_.back().height + gap_);
}

// True when the height changed.
bool Transcript::lay_out_entry(std::size_t index, const LayOut& lay_out) {
  Entry& entry = entries_[index];
  if (entry.layout == nullptr) entry.layout = std::make_unique<PartsLayout>();
  const float before = std::exchange(entry.height, lay_out(index, entry));
  entry.exact = true;
  return entry.height != before;
}

double Transcript::resolve(double scroll_now, float extent, const LayOut& lay_out) {
  // Each round can only bring more messages into view; a few are enough for any guess.
  constexpr int kMostRounds = 16;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::size_t first = index_at(scroll_now);
    const double bottom = scroll_now + static_cast<double>(extent);
    std::size_t last = first;
    while (last < entries_.size() && entries_[last].top < bottom) ++last;
    // What was already exact does not move; without such a message the first one's top does not.
    std::size_t fixed = first;
    while (fixed < last && !entries_[fixed].exact) ++fixed;
    if (fixed == last) fixed = first;
    const double before = fixed < entries_.size() ? entries_[fixed].top : 0;
    bool any_guess = false, any_moved = false;
    for (std::size_t i = first; i < last; ++i) {
      any_guess |= !entries_[i].exact;
      any_moved |= lay_out_entry(i, lay_out);
    }
    if (any_moved) place_from(first);
    if (fixed < entries_.size()) scroll_now += entries_[fixed].top - before;
    if (!any_guess) break;
  }
  return std::max(0.0, scroll_now);
}

void Transcript::resolve_end(float extent, float below, const LayOut& lay_out) {
  double filled = static_cast<double>(below);
  std::size_t i = entries_.size();
  while (i > 0 && filled < static_cast<double>(extent)) {
    --i;
    lay_out_entry(i, lay_out);
    filled += static_cast<double>(entries_[i].height + gap_);
  }
  place_from(i);
}

void Transcript::resolve_message(std::size_t index, const LayOut& lay_out) {
  if (lay_out_entry(index, lay_out)) place_from(index);
}

std::size_t Transcript::index_at(double y) const {
  const auto entry = std::lower_bound(entries_.begin(), entries_.end(), y, [](const Entry& e, double at) {
    return e.top + static_cast<double>(e.height) < at;
  });
  return static_cast<std::size_t>(entry - entries_.begin());
}

std::size_t Transcript::index_of(MessageId message_id) const {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.id == message_id; });
  return static_cast<std::size_t>(entry - entries_.begin());
}

std::optional<Transcript::Span> Transcript::selected() const {
  if (!selection || selection->anchor == selection->head) return std::nullopt;
  const std::size_t anchor = index_of(selection->anchor.message_id),
                    head = index_of(selection->head.message_id);
  if (anchor == entries_.size() || head == entries_.size()) return std::nullopt;
  Span span{anchor, head, selection->anchor.offset, selection->head.offset};
  if (std::pair(span.last, span.end) < std::pair(span.first, span.begin)) {
    std::swap(span.first, span.last);
    std::swap(span.begin, span.end);
  }
  return span;
}

TextRange Transcript::selected_in(const Span& span, std::size_t index, std::size_t text_size) const {
  if (index < span.first || index > span.last) return {};
  const auto size = static_cast<std::uint32_t>(text_size);
  return {index == span.first ? std::min(span.begin, size) : 0,
          index == span.last ? std::min(span.end, size) : size};
}

}  // namespace octavo::ui
