// Folds the engine's reports about memory into what a chat shows of it: the blocks that hold it. Knows which
// sequence belongs to which chat, and which blocks a chat left behind.
//
// A value type without clock, thread or engine. UI thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "ui/state.h"

namespace octavo::app {

// Which chat a request belongs to; nullopt when it is none of this window's.
using ChatOfRequest = std::function<std::optional<ChatId>(RequestId)>;

class MemoryFold {
 public:
  // Learns which sequence belongs to which chat. Call it before `fold_trace` of the same poll, so that its
  // events find their chats.
  void learn_sequences(const KvSnapshot& snapshot, const ChatOfRequest& chat_of);

  // What happened to blocks, in the order in which it happened.
  void fold_trace(const Engine::Trace& trace);

  // The blocks of every chat, from the tables of those that run and from what happened since to the blocks of
  // the others: the snapshot may be without blocks.
  void fold_snapshot(std::shared_ptr<const KvSnapshot> snapshot, ui::UiState& state);

  void forget_chat(ChatId chat_id) { held_.erase(chat_id); }
  // Everything of the engine before this one.
  void forget_engine() {
    chats_.clear();
    held_.clear();
    late_events_.clear();
    snapshot_step_ = -1;
  }

 private:
  struct HeldBlock {
    BlockId block_id;
    std::int32_t filled = 0;  // slots
  };
  // What a chat holds or has left in the cache.
  struct Held {
    SequenceId sequence_id{};
    bool running = false;
    std::vector<HeldBlock> blocks;     // logical order
    std::vector<BlockId> host_blocks;  // while swapped out
  };

  void follow_block(const BlockEvent& event);
  void fold_held(const KvSnapshot& snapshot);
  void fold_chats(const KvSnapshot& snapshot, ui::UiState& state);
  void find_used_blocks(const KvSnapshot& snapshot);
  void find_shared_blocks(std::size_t num_blocks);
  bool is_shared(BlockId block) const { return num_holders_[static_cast<std::size_t>(block.value)] > 1; }
  std::int32_t num_sharing(ChatId chat_id, const std::vector<HeldBlock>& blocks);

  std::map<SequenceId, ChatId> chats_;  // of sequences seen in snapshots
  std::map<ChatId, Held> held_;
  std::int64_t snapshot_step_ = -1;
  std::int32_t block_size_ = 0;          // of the newest snapshot
  std::vector<BlockEvent> late_events_;  // of steps after the newest snapshot
  // Of fold_chats, kept for their memory.
  std::vector<bool> is_used_;                       // by some sequence, by block
  std::vector<std::int32_t> num_holders_;           // chats that hold a block, by block
  std::vector<std::pair<BlockId, ChatId>> shared_;  // blocks of several chats, in order
  std::vector<ChatId> sharing_;
};

}  // namespace octavo::app
