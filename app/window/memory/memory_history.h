// What happened to the pools, from whichever source: the engine, a recording, the tour. Gives the state at
// any mark that is kept, as a KvSnapshot, so that a view need not know whether it sees now or then.
//
// The pools themselves are engine/metrics' replay: a keyframe of the event history and the events after it.
// From the same events comes what KvState does not hold: whose tokens a block has, who was swapped out where.
//
// A value type without clock, thread or engine. UI thread; `recorder` may be read from any.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/result.h"
#include "engine/metrics/kv_figures.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/step_recorder.h"

namespace octavo::app {

// What is known of a block beside its KvState::Block.
struct BlockStory {
  std::uint64_t sequence = 0;  // whose tokens it holds; 0: not known
  std::int32_t index = -1;     // logical, in that sequence
  std::int32_t parent = -1;    // the block before it there
  std::int32_t copied_from = -1;
  std::int32_t num_hits = 0;
  std::int64_t born_us = -1;
  std::int64_t last_us = -1;
  std::int64_t last_step = 0;
};

struct SequenceStory {
  SequenceState state = SequenceState::kRunning;
  std::uint64_t parent = 0;                          // forked from; 0: none
  std::map<std::int32_t, BlockId> host_blocks = {};  // by logical index, while swapped out
};

struct PoolStory {
  std::vector<BlockStory> blocks;
  std::map<std::uint64_t, SequenceStory> sequences;   // that have blocks, or wait to have them again
  std::unordered_map<std::int32_t, BlockId> leaving;  // device block -> host block, during a swap out
  std::array<std::int64_t, 32> num_events_of = {};    // index = BlockEventKind
  std::int64_t num_hit_tokens = 0;
};

// What a sequence is, as a snapshot said it once.
struct SequenceFacts {
  RequestId request_id = {};
  std::int32_t output_index = 0;
  std::int32_t num_prompt_tokens = 0;
};

class MemoryHistory {
 public:
  MemoryHistory(const metrics::PoolShape& shape, std::int64_t bytes_per_block,
                const metrics::HistorySizes& sizes = {});

  // What a recorder has had since; traces follow one another. After a loss the history begins anew with
  // `state`, which is that before the trace's first event.
  void add(const metrics::Trace& trace, const std::optional<metrics::KvState>& state = {});
  // A state that has no history.
  void begin_with(const metrics::KvState& state);
  // Who the sequences are.
  void learn(const KvSnapshot& snapshot);
  void learn(std::uint64_t sequence, const SequenceFacts& facts);

  std::uint64_t oldest_mark() const;
  std::uint64_t newest_mark() const { return first_mark_ + events_.size(); }
  const BlockEvent& event(std::uint64_t mark) const { return events_[mark - first_mark_]; }
  // REQUIRES: oldest_mark() <= mark
  bool has_event(std::uint64_t mark) const { return mark >= first_mark_ && mark < newest_mark(); }

  struct Moment {
    std::shared_ptr<const KvSnapshot> snapshot;
    std::vector<metrics::KvState::HostBlock> host;
  };
  // The state before the event of this mark.
  Result<Moment> at(std::uint64_t mark);
  // Of the mark that was asked for last.
  const PoolStory& story() const { return shown().story; }

  const std::map<std::uint64_t, SequenceFacts>& facts() const { return facts_; }
  const metrics::StepRecorder& recorder() const { return *recorder_; }
  const metrics::PoolShape& shape() const { return shape_; }
  std::int64_t bytes_per_block() const { return bytes_per_block_; }

 private:
  struct Keyframe {
    std::uint64_t mark = 0;
    PoolStory story;
  };
  struct Replay {
    std::uint64_t mark = 0;
    metrics::KvState state;
    PoolStory story;
  };

  void append(const BlockEvent& event);
  Result<void> move_to(std::uint64_t mark);
  const Replay& shown() const { return replay_ ? *replay_ : *newest_; }
  KvSnapshot make_snapshot(const Replay& replay) const;
  void add_sequences(const Replay& replay, KvSnapshot& snapshot) const;

  const metrics::PoolShape shape_;
  const std::int64_t bytes_per_block_;
  const metrics::HistorySizes sizes_;
  std::unique_ptr<metrics::StepRecorder> recorder_;
  std::uint64_t recorder_first_mark_ = 0;  // our mark of the recorder's event 0
  std::uint64_t state_marks_ = 0;          // events that stand for no history
  std::uint64_t first_mark_ = 0;           // of events_.front()
  std::deque<BlockEvent> events_;
  std::deque<Keyframe> keyframes_;
  std::unique_ptr<Replay> newest_;
  std::unique_ptr<Replay> replay_;  // of a moment that was asked for; none: the newest
  std::map<std::uint64_t, SequenceFacts> facts_;
};

// Moves the story by one event; `state` is the pools before it.
void tell(PoolStory& story, const metrics::KvState& state, const BlockEvent& event);

}  // namespace octavo::app
