// Folds what happens to blocks into what a chat shows of it: the blocks that hold it. Knows which sequence
// belongs to which chat, and which blocks a chat has left behind in the cache.
//
// A sequence that has a table on the device is shown as that table. Of one that has none the blocks are shown
// that it had last, as far as they still hold what they held then.
//
// A value type without clock, thread or engine. UI thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/metrics/pool_story.h"
#include "engine/metrics/step_recorder.h"
#include "ui/state.h"

namespace octavo::app {

// Which chat a request belongs to; nullopt when it is none of this window's.
using ChatOfRequest = std::function<std::optional<ChatId>(RequestId)>;

class MemoryFold {
 public:
  // Before or after its events.
  void learn(SequenceId sequence, ChatId chat_id);

  // What happened to blocks, in order. Traces follow one another.
  void fold(const metrics::Trace& trace);

  // The blocks of every chat; `newest` is the state after all that was folded.
  void show(const metrics::PoolMoment& newest, ui::UiState& state);

 private:
  // The table of a sequence, or what is left of its last one.
  struct Held {
    std::vector<BlockId> blocks;   // logical order
    std::int32_t num_entries = 0;  // of its table
  };

  void follow(const BlockEvent& event);
  void append(std::uint64_t sequence, BlockId block);
  void take_place(std::uint64_t sequence, BlockId source, BlockId target);
  void forget_contents(BlockId block);
  void forget_superseded();
  void find_shown(const ui::UiState& state);
  void show_chat(const metrics::PoolMoment& newest, std::uint64_t sequence, ui::ChatState& chat);
  bool is_shared(BlockId block) const;
  std::int32_t num_sharing(ChatId chat_id, const std::vector<BlockId>& blocks);

  std::map<std::uint64_t, ChatId> chats_;  // of sequences
  std::map<std::uint64_t, Held> held_;     // by sequence; those of other requests as long as they run
  std::vector<std::vector<std::uint64_t>> holders_;  // sequences that hold a block, by block
  // Of show(), kept for their memory.
  std::vector<ChatId> listed_;                      // in order
  std::map<ChatId, std::uint64_t> shown_;           // the sequence that a chat shows: its newest with blocks
  std::vector<std::int32_t> num_chats_;             // that hold a block, by block
  std::vector<std::pair<BlockId, ChatId>> shared_;  // blocks of several chats, in order
  std::vector<ChatId> sharing_;
};

}  // namespace octavo::app
