// What happened to the pools, from whichever source: the engine, a recording, the tour. Gives the state at
// any mark that is kept, as a KvSnapshot, so that a view need not know whether it sees now or then.
//
// It only reads: events, keyframes and their replay are the recorder's (engine/metrics), and of the live
// engine it is the engine's own recorder, which may be ahead of what the window has read. What this adds is
// who the sequences are.
//
// A value type without clock, thread or engine. UI thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/pool_story.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::app {

// What a sequence is, as a snapshot said it once.
struct SequenceFacts {
  RequestId request_id = {};
  std::int32_t output_index = 0;
  std::int32_t num_prompt_tokens = 0;
};

class MemoryHistory {
 public:
  // Of a block, of a state of recurrent layers and of a window part, for figures only.
  struct Sizes {
    std::int64_t bytes_per_block = 0, bytes_per_state = 0, bytes_per_window_block = 0;
  };
  MemoryHistory(std::shared_ptr<const metrics::StepRecorder> recorder, const Sizes& sizes);

  // The recorder was read up to this mark, which is the newest moment from now on.
  void follow_to(std::uint64_t mark);
  // Who the sequences are.
  void learn(const KvSnapshot& snapshot);
  void learn(std::uint64_t sequence, const SequenceFacts& facts);

  std::uint64_t oldest_mark() const { return std::min(recorder_->oldest_event_mark(), newest_mark_); }
  std::uint64_t newest_mark() const { return newest_mark_; }
  // nullopt: not kept, or not there yet.
  std::optional<BlockEvent> event(std::uint64_t mark) const;
  // Those that are kept, as they lie.
  std::vector<metrics::EventHistory::Stretch> events_between(std::uint64_t first_mark,
                                                             std::uint64_t end_mark) const {
    return recorder_->events_between(first_mark, std::min(end_mark, newest_mark_));
  }

  struct Moment {
    std::shared_ptr<const KvSnapshot> snapshot;
    std::vector<metrics::KvState::HostBlock> host;
  };
  // The state before the event of this mark.
  Result<Moment> at(std::uint64_t mark);
  // Of the newest mark; nullptr when it cannot be told.
  const metrics::PoolMoment* newest() const { return newest_ ? &*newest_ : nullptr; }
  // Of the mark that was asked for last.
  const metrics::PoolStory& story() const;

  const std::map<std::uint64_t, SequenceFacts>& facts() const { return facts_; }
  const std::shared_ptr<const metrics::StepRecorder>& recorder() const { return recorder_; }

 private:
  KvSnapshot make_snapshot(const metrics::PoolMoment& moment) const;
  void add_sequences(const metrics::PoolMoment& moment, KvSnapshot& snapshot) const;
  static void add_states(const metrics::PoolMoment& moment, KvSnapshot& snapshot);

  std::shared_ptr<const metrics::StepRecorder> recorder_;
  Sizes sizes_;
  std::uint64_t newest_mark_ = 0;
  std::optional<metrics::PoolMoment> newest_;  // goes on with every event, so that no story is lost
  std::optional<metrics::PoolMoment> past_;    // that was asked for; none: the newest
  std::map<std::uint64_t, SequenceFacts> facts_;
};

}  // namespace octavo::app
