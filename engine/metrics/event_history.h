// The newest block events in segments, each with the state of the pools before its first event: so the state
// at any event that is still kept is a keyframe and at most a segment of events. The oldest segment goes as a
// whole when the others alone hold `capacity` events; an event's mark is the number of events before it.
//
// A keyframe costs as much as the pool has ever used, and comes once in as many events, so that an event
// costs the same however large the pool is. The writer keeps the state alone. The story of a keyframe
// (pool_story.h) is told by the first reader that comes past it: a reader that follows the newest event tells
// each event once, and where nobody followed, the story begins with the oldest keyframe that is kept.
//
// Thread: one writer; readers on any thread, which share segments with it. A reader holds the lock while it
// takes pointers, and copies outside: what was written to a segment is never written again. Stories have a
// lock of their own, which the writer does not take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/pool_story.h"

namespace octavo::metrics {

class EventHistory {
 public:
  // Event 0 happens to `start`. `segment_events` of 0: chosen from the pool.
  EventHistory(const KvState& start, std::size_t capacity, std::size_t segment_events);
  EventHistory(const PoolShape& shape, std::size_t capacity, std::size_t segment_events)
      : EventHistory(KvState(shape), capacity, segment_events) {}

  const PoolShape& shape() const { return shape_; }

  // The events of one step, or of what happened between two. They stay in one segment.
  void append(std::span<const BlockEvent> events);

  // The mark of the next event to come.
  std::uint64_t next_mark() const;
  // The oldest mark for which state_at() can answer.
  std::uint64_t oldest_mark() const;

  struct Copied {
    std::uint64_t num_lost = 0;  // gone before they were read
    std::uint64_t next_mark = 0;
  };
  // Appends to `out` every event from `mark` on that is still here.
  Copied copy_since(std::uint64_t mark, std::vector<BlockEvent>& out) const;

  // Events that are kept, as they lie in a segment.
  struct Stretch {
    std::uint64_t first_mark = 0;
    std::span<const BlockEvent> events;
    std::shared_ptr<const void> segment;  // keeps them
  };
  // What is kept of first_mark <= mark < end_mark, oldest first, without a copy.
  std::vector<Stretch> stretches(std::uint64_t first_mark, std::uint64_t end_mark) const;

  // The state before the event of this mark. An error when it is too old or not there yet, or when the events
  // before it contradict themselves.
  Result<KvState> state_at(std::uint64_t mark) const;
  // The same with the story: from where `moment` is when that is before the mark, else from a keyframe. After
  // an error it is where it came to. REQUIRES: what is in `moment` comes from this history
  Result<void> move_to(std::optional<PoolMoment>& moment, std::uint64_t mark) const;

 private:
  struct Segment {
    std::uint64_t first_mark = 0;
    KvState keyframe;
    std::vector<BlockEvent> events;  // never reallocated
    mutable std::shared_ptr<const PoolStory>
        story;  // of the keyframe; none: not told yet. Guarded by story_mutex_
  };
  // What a reader may look at without the lock.
  struct View {
    std::shared_ptr<const Segment> segment;  // shared: a reader may still copy what the writer has dropped
    std::span<const BlockEvent> events;
    std::uint64_t end_mark() const { return segment->first_mark + events.size(); }
  };
  std::vector<View> views() const;
  Result<void> check_kept(const std::vector<View>& kept, std::uint64_t mark) const;
  // The last segment that begins at or before the mark, which is kept.
  static std::size_t segment_of(const std::vector<View>& kept, std::uint64_t mark);
  void begin_near(std::optional<PoolMoment>& moment, const std::vector<View>& kept, std::uint64_t mark) const;
  void keep_story(const Segment& segment, const PoolStory& story) const;
  std::shared_ptr<Segment> make_segment(std::size_t num_events) const;
  void follow(std::span<const BlockEvent> events);

  const PoolShape shape_;
  const std::size_t capacity_;
  const std::size_t segment_events_;

  KvState newest_;                // writer only
  std::size_t room_ = 0;          // writer only: of the last segment
  std::uint64_t num_events_ = 0;  // writer only

  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<Segment>> segments_;  // guarded by mutex_
  std::optional<Error> contradiction_;             // guarded by mutex_
  std::uint64_t contradiction_mark_ = 0;           // guarded by mutex_

  mutable std::mutex story_mutex_;  // readers only
};

}  // namespace octavo::metrics
