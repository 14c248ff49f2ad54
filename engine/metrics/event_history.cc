#include "engine/metrics/event_history.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace octavo::metrics {
namespace {

// A replay of so many takes a quarter of a millisecond.
constexpr std::size_t kLeastSegmentEvents = std::size_t{1} << 13;

}  // namespace

EventHistory::EventHistory(const PoolShape& shape, std::size_t capacity, std::size_t segment_events)
    : capacity_(capacity),
      segment_events_(segment_events > 0
                          ? segment_events
                          : std::min(capacity, std::max(kLeastSegmentEvents,
                                                        static_cast<std::size_t>(shape.num_blocks)))),
      newest_(shape) {
  OCTAVO_CHECK(capacity > 0, "a history holds at least one event");
  segments_.push_back(make_segment(0));
}

// ---- the writer

void EventHistory::append(std::span<const BlockEvent> events) {
  if (events.empty()) return;
  std::shared_ptr<Segment> opened;
  if (events.size() > room_) {
    opened = make_segment(events.size());
    room_ = opened->events.capacity();
  }
  {
    std::lock_guard lock(mutex_);
    if (opened) segments_.push_back(std::move(opened));
    auto& last = segments_.back()->events;
    last.insert(last.end(), events.begin(), events.end());
    const std::uint64_t end_mark = num_events_ + events.size();
    while (segments_.size() > 1 && end_mark - segments_[1]->first_mark >= capacity_) segments_.pop_front();
  }
  room_ -= events.size();
  follow(events);
}

std::shared_ptr<EventHistory::Segment> EventHistory::make_segment(std::size_t num_events) const {
  auto segment = std::make_shared<Segment>(Segment{num_events_, newest_, {}});
  segment->events.reserve(num_events == 0 ? 0 : std::max(num_events, segment_events_));
  return segment;
}

void EventHistory::follow(std::span<const BlockEvent> events) {
  for (const BlockEvent& event : events) {
    const std::uint64_t mark = num_events_++;
    Result<void> applied = newest_.apply(event);
    if (applied.has_value()) continue;
    std::lock_guard lock(mutex_);
    if (contradiction_) continue;
    contradiction_ = std::move(applied).error();
    contradiction_mark_ = mark;
  }
}

// ---- readers

std::uint64_t EventHistory::next_mark() const {
  std::lock_guard lock(mutex_);
  return segments_.back()->first_mark + segments_.back()->events.size();
}

std::uint64_t EventHistory::oldest_mark() const {
  std::lock_guard lock(mutex_);
  return segments_.front()->first_mark;
}

std::vector<EventHistory::View> EventHistory::views() const {
  std::vector<View> views;
  std::lock_guard lock(mutex_);
  views.reserve(segments_.size());
  for (const auto& segment : segments_) views.push_back({segment, segment->events});
  return views;
}

EventHistory::Copied EventHistory::copy_since(std::uint64_t mark, std::vector<BlockEvent>& out) const {
  const std::vector<View> kept = views();
  const std::uint64_t oldest = kept.front().segment->first_mark;
  for (const View& view : kept) {
    if (view.end_mark() <= mark) continue;
    const std::uint64_t first = std::max(mark, view.segment->first_mark) - view.segment->first_mark;
    const auto wanted = view.events.subspan(static_cast<std::size_t>(first));
    out.insert(out.end(), wanted.begin(), wanted.end());
  }
  return {.num_lost = oldest > mark ? oldest - mark : 0, .next_mark = kept.back().end_mark()};
}

Result<KvState> EventHistory::state_at(std::uint64_t mark) const {
  const std::vector<View> kept = views();
  if (mark > kept.back().end_mark()) {
    return Error{ErrorCode::kNotFound, "event " + std::to_string(mark) +
                                           " does not exist yet; the history ends before event " +
                                           std::to_string(kept.back().end_mark())};
  }
  const std::uint64_t oldest = kept.front().segment->first_mark;
  if (mark < oldest) {
    return Error{ErrorCode::kNotFound, "event " + std::to_string(mark) +
                                           " is too old: the history starts at event " +
                                           std::to_string(oldest) + "; use --record to keep all of it"};
  }
  {
    std::lock_guard lock(mutex_);
    if (contradiction_ && mark > contradiction_mark_) return *contradiction_;
  }
  const auto view = std::find_if(kept.rbegin(), kept.rend(), [&](const View& candidate) {
    return candidate.segment->first_mark <= mark;
  });
  KvState state = view->segment->keyframe;
  for (const BlockEvent& event :
       view->events.first(static_cast<std::size_t>(mark - view->segment->first_mark))) {
    OCTAVO_TRY_VOID(state.apply(event));
  }
  return state;
}

}  // namespace octavo::metrics
