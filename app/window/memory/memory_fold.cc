#include "app/window/memory/memory_fold.h"

#include <algorithm>
#include <utility>

namespace octavo::app {
namespace {

constexpr std::size_t kMostSequences = 4'096;

// The block's former contents are gone with this event.
bool ends_contents(BlockEventKind kind) {
  return kind == BlockEventKind::kAlloc || kind == BlockEventKind::kEvict || kind == BlockEventKind::kFree;
}

}  // namespace

void MemoryFold::learn_sequences(const KvSnapshot& snapshot, const ChatOfRequest& chat_of) {
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto chat = chat_of(sequence.request_id);
    if (chat) chats_.insert_or_assign(sequence.sequence_id, *chat);
  }
  while (chats_.size() > kMostSequences) chats_.erase(chats_.begin());
}

void MemoryFold::fold_trace(const Engine::Trace& trace) {
  if (trace.num_lost > 0) {
    // Which blocks idle chats still have cannot be known any more.
    std::erase_if(held_, [](const auto& entry) { return !entry.second.running; });
  }
  for (const BlockEvent& event : trace.block_events) {
    if (event.block < 0) continue;
    follow_block(event);
    late_events_.push_back(event);
  }
}

void MemoryFold::follow_block(const BlockEvent& event) {
  const BlockId block{event.block};
  const bool takes = event.kind == BlockEventKind::kAlloc || event.kind == BlockEventKind::kHit;
  for (auto& [chat_id, held] : held_) {
    // A running chat has let a block go before somebody else takes its place.
    const bool own = held.sequence_id.value == event.sequence && event.sequence != 0;
    const auto found = std::ranges::find(held.blocks, block, &HeldBlock::block_id);
    if (own && takes) {
      const std::int32_t filled = event.kind == BlockEventKind::kHit ? block_size_ : 0;
      if (found == held.blocks.end() && event.step > snapshot_step_) held.blocks.push_back({block, filled});
    } else if (found != held.blocks.end() && ends_contents(event.kind)) {
      held.blocks.erase(found);
    } else if (found != held.blocks.end() && event.kind == BlockEventKind::kFill) {
      found->filled = event.aux;
    }
  }
}

void MemoryFold::fold_snapshot(std::shared_ptr<const KvSnapshot> snapshot, ui::UiState& state) {
  snapshot_step_ = snapshot->step;
  block_size_ = snapshot->totals.block_size;
  fold_held(*snapshot);
  // Events are read after the snapshot: some may have taken from the chats what it still shows.
  std::erase_if(late_events_, [&](const BlockEvent& event) { return event.step <= snapshot_step_; });
  for (const BlockEvent& event : late_events_) follow_block(event);
  fold_chats(*snapshot, state);
  state.memory.snapshot = std::move(snapshot);
}

void MemoryFold::fold_held(const KvSnapshot& snapshot) {
  for (auto& [chat_id, held] : held_) {
    held.running = false;
    held.host_blocks.clear();
  }
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto chat = chats_.find(sequence.sequence_id);
    if (chat == chats_.end() || sequence.block_table.empty()) continue;
    if (sequence.state == SequenceState::kSwapped) {
      held_[chat->second].host_blocks = sequence.block_table;
    } else {
      Held& held = held_[chat->second] = {
          .sequence_id = sequence.sequence_id, .running = true, .blocks = {}, .host_blocks = {}};
      std::int32_t num_left = sequence.num_computed_tokens;
      for (const BlockId block : sequence.block_table) {
        held.blocks.push_back({block, std::clamp(num_left, 0, block_size_)});
        num_left -= block_size_;
      }
    }
  }
}

void MemoryFold::find_used_blocks(const KvSnapshot& snapshot) {
  is_used_.assign(static_cast<std::size_t>(snapshot.totals.num_blocks), false);
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kSwapped) continue;
    for (const BlockId block : sequence.block_table) is_used_[static_cast<std::size_t>(block.value)] = true;
  }
}

void MemoryFold::find_shared_blocks(std::size_t num_blocks) {
  num_holders_.assign(num_blocks, 0);
  for (const auto& [chat_id, held] : held_) {
    for (const HeldBlock& block : held.blocks) ++num_holders_[static_cast<std::size_t>(block.block_id.value)];
  }
  shared_.clear();
  for (const auto& [chat_id, held] : held_) {
    for (const HeldBlock& block : held.blocks) {
      if (is_shared(block.block_id)) shared_.emplace_back(block.block_id, chat_id);
    }
  }
  std::sort(shared_.begin(), shared_.end());
}

// Other chats with at least one of these blocks.
std::int32_t MemoryFold::num_sharing(ChatId chat_id, const std::vector<HeldBlock>& blocks) {
  sharing_.clear();
  for (const auto [block, filled] : blocks) {
    auto holder = std::lower_bound(shared_.begin(), shared_.end(), std::pair(block, ChatId{}));
    for (; holder != shared_.end() && holder->first == block; ++holder) {
      if (holder->second != chat_id) sharing_.push_back(holder->second);
    }
  }
  std::sort(sharing_.begin(), sharing_.end());
  return static_cast<std::int32_t>(std::unique(sharing_.begin(), sharing_.end()) - sharing_.begin());
}

// Runs many times a second while the cores compute: it works in memory that it already has.
void MemoryFold::fold_chats(const KvSnapshot& snapshot, ui::UiState& state) {
  find_used_blocks(snapshot);
  find_shared_blocks(is_used_.size());
  for (ui::ChatState& chat : state.chats) {
    ui::ChatMemory& memory = chat.memory;
    memory.blocks.clear();
    memory.host_blocks.clear();
    memory.num_shared = memory.num_sharing_chats = 0;
    const auto found = held_.find(chat.id);
    if (found == held_.end()) continue;
    const Held& held = found->second;
    memory.host_blocks = held.host_blocks;
    for (const auto [block_id, filled] : held.blocks) {
      const bool last = held.running && block_id == held.blocks.back().block_id;
      memory.blocks.push_back({.block_id = block_id,
                               .filled = filled,
                               .shared = is_shared(block_id),
                               .cached = !is_used_[static_cast<std::size_t>(block_id.value)],
                               .being_written = last && filled < block_size_});
      memory.num_shared += is_shared(block_id) ? 1 : 0;
    }
    if (memory.num_shared > 0) memory.num_sharing_chats = num_sharing(chat.id, held.blocks);
  }
}

}  // namespace octavo::app
