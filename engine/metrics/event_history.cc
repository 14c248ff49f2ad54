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

EventHistory::EventHistory(const KvState& start, std::size_t capacity, std::size_t segment_events)
    : shape_(start.shape()),
      capacity_(capacity),
      segment_events_(segment_events > 0
                          ? segment_events
                          : std::min(capacity, std::max(kLeastSegmentEvents,
                                                        static_cast<std::size_t>(shape_.num_blocks)))),
      newest_(start) {
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
  auto segment = std::make_shared<Segment>(Segment{num_events_, newest_, {}, nullptr});
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

std::vector<EventHistory::Stretch> EventHistory::stretches(std::uint64_t first_mark,
                                                           std::uint64_t end_mark) const {
  std::vector<Stretch> found;
  for (const View& view : views()) {
    const std::uint64_t begin = std::max(first_mark, view.segment->first_mark);
    const std::uint64_t end = std::min(end_mark, view.end_mark());
    if (begin >= end) continue;
    found.push_back({begin,
                     view.events.subspan(static_cast<std::size_t>(begin - view.segment->first_mark),
                                         static_cast<std::size_t>(end - begin)),
                     view.segment});
  }
  return found;
}

Result<void> EventHistory::check_kept(const std::vector<View>& kept, std::uint64_t mark) const {
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
  std::lock_guard lock(mutex_);
  if (contradiction_ && mark > contradiction_mark_) return *contradiction_;
  return {};
}

std::size_t EventHistory::segment_of(const std::vector<View>& kept, std::uint64_t mark) {
  std::size_t at = kept.size() - 1;
  while (kept[at].segment->first_mark > mark) --at;
  return at;
}

Result<KvState> EventHistory::state_at(std::uint64_t mark) const {
  const std::vector<View> kept = views();
  OCTAVO_TRY_VOID(check_kept(kept, mark));
  const View& view = kept[segment_of(kept, mark)];
  KvState state = view.segment->keyframe;
  for (const BlockEvent& event :
       view.events.first(static_cast<std::size_t>(mark - view.segment->first_mark))) {
    OCTAVO_TRY_VOID(state.apply(event));
  }
  return state;
}

// Moves `moment` to the last keyframe at or before the mark whose story is known, unless it stands between
// that keyframe and the mark. The oldest keyframe's story is made up only when nobody knows one: a reader
// that followed knows more than the state tells.
void EventHistory::begin_near(std::optional<PoolMoment>& moment, const std::vector<View>& kept,
                              std::uint64_t mark) const {
  std::size_t at = segment_of(kept, mark);
  std::lock_guard lock(story_mutex_);
  while (at > 0 && kept[at].segment->story == nullptr) --at;
  const Segment& nearest = *kept[at].segment;
  if (moment && moment->mark <= mark && moment->mark >= nearest.first_mark) return;
  if (nearest.story == nullptr) nearest.story = std::make_shared<PoolStory>(story_of(nearest.keyframe));
  moment = PoolMoment{nearest.first_mark, nearest.keyframe, *nearest.story};
}

void EventHistory::keep_story(const Segment& segment, const PoolStory& story) const {
  std::lock_guard lock(story_mutex_);
  if (segment.story == nullptr) segment.story = std::make_shared<PoolStory>(story);
}

Result<void> EventHistory::move_to(std::optional<PoolMoment>& moment, std::uint64_t mark) const {
  const std::vector<View> kept = views();
  OCTAVO_TRY_VOID(check_kept(kept, mark));
  begin_near(moment, kept, mark);
  for (std::size_t at = segment_of(kept, moment->mark);
       at < kept.size() && kept[at].segment->first_mark <= mark; ++at) {
    const Segment& segment = *kept[at].segment;
    if (moment->mark == segment.first_mark) keep_story(segment, moment->story);
    const std::uint64_t end = std::min(mark, kept[at].end_mark());
    for (; moment->mark < end; ++moment->mark) {
      const BlockEvent& event = kept[at].events[static_cast<std::size_t>(moment->mark - segment.first_mark)];
      tell(moment->story, moment->state, event);
      OCTAVO_TRY_VOID(moment->state.apply(event));
    }
  }
  return {};
}

}  // namespace octavo::metrics
