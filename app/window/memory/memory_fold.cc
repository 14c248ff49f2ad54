#include "app/window/memory/memory_fold.h"

#include <algorithm>
#include <iterator>

namespace octavo::app {
namespace {

constexpr std::size_t kMostNamedSequences = 4'096;
// Sequences without a table whose chat may still be told.
constexpr std::size_t kMostUnknown = 64;

}  // namespace

void MemoryFold::learn(SequenceId sequence, ChatId chat_id) {
  chats_.insert_or_assign(sequence.value, chat_id);
  while (chats_.size() > kMostNamedSequences) chats_.erase(chats_.begin());
}

void MemoryFold::fold(const metrics::Trace& trace) {
  if (trace.num_lost > 0) {
    // Which blocks idle chats still have cannot be known any more.
    held_.clear();
    holders_.clear();
  }
  for (const BlockEvent& event : trace.block_events) follow(event);
  if (!trace.block_events.empty()) forget_superseded();
}

void MemoryFold::follow(const BlockEvent& event) {
  if (event.block < 0) return;
  const BlockId block{event.block};
  switch (event.kind) {
    case BlockEventKind::kAlloc:
      forget_contents(block);
      append(event.sequence, block);
      break;
    case BlockEventKind::kHit:
    case BlockEventKind::kShare: append(event.sequence, block); break;
    case BlockEventKind::kCopyOnWrite: take_place(event.sequence, block, BlockId{event.aux}); break;
    case BlockEventKind::kUnref:
      if (const auto found = held_.find(event.sequence); found != held_.end()) --found->second.num_entries;
      break;
    case BlockEventKind::kEvict:
    case BlockEventKind::kFree: forget_contents(block); break;
    default: break;
  }
}

void MemoryFold::append(std::uint64_t sequence, BlockId block) {
  Held& held = held_[sequence];
  if (held.num_entries <= 0) {  // a new table: what it left before counts no more
    for (const BlockId left : held.blocks) std::erase(holders_[index_of(left)], sequence);
    held = {};
  }
  ++held.num_entries;
  held.blocks.push_back(block);
  if (index_of(block) >= holders_.size()) holders_.resize(index_of(block) + 1);
  holders_[index_of(block)].push_back(sequence);
}

// The target was appended before; the source goes.
void MemoryFold::take_place(std::uint64_t sequence, BlockId source, BlockId target) {
  const auto found = held_.find(sequence);
  if (found == held_.end()) return;
  auto& blocks = found->second.blocks;
  const auto new_place = std::ranges::find(blocks, target);
  const auto old_place = std::ranges::find(blocks, source);
  if (new_place == blocks.end() || old_place == blocks.end()) return;
  *old_place = target;
  blocks.erase(new_place);
  std::erase(holders_[index_of(source)], sequence);
}

void MemoryFold::forget_contents(BlockId block) {
  if (index_of(block) >= holders_.size()) return;
  for (const std::uint64_t sequence : holders_[index_of(block)]) {
    if (const auto found = held_.find(sequence); found != held_.end())
      std::erase(found->second.blocks, block);
  }
  holders_[index_of(block)].clear();
}

// A chat shows its newest sequence that has had blocks; what has no table and no chat is nobody's, unless it
// is so new that its chat is still to be told.
void MemoryFold::forget_superseded() {
  std::map<ChatId, std::uint64_t> newest;
  std::size_t num_unknown = 0;
  for (auto held = held_.rbegin(); held != held_.rend();) {
    const auto chat = chats_.find(held->first);
    const bool has_table = held->second.num_entries > 0;
    const bool is_newest = chat != chats_.end() && newest.emplace(chat->second, held->first).second;
    const bool may_be_told = chat == chats_.end() && (has_table || ++num_unknown <= kMostUnknown);
    if (has_table || is_newest || may_be_told) {
      ++held;
      continue;
    }
    for (const BlockId block : held->second.blocks) std::erase(holders_[index_of(block)], held->first);
    held = std::make_reverse_iterator(held_.erase(std::next(held).base()));
  }
}

void MemoryFold::find_shown(const ui::UiState& state) {
  listed_.clear();
  for (const ui::ChatState& chat : state.chats) listed_.push_back(chat.id);
  std::sort(listed_.begin(), listed_.end());
  shown_.clear();
  for (const auto& [sequence, held] : held_) {
    const auto chat = chats_.find(sequence);
    if (chat != chats_.end() && std::binary_search(listed_.begin(), listed_.end(), chat->second))
      shown_.insert_or_assign(chat->second, sequence);
  }
  num_chats_.assign(holders_.size(), 0);
  for (const auto& [chat, sequence] : shown_) {
    for (const BlockId block : held_.at(sequence).blocks) ++num_chats_[index_of(block)];
  }
  shared_.clear();
  for (const auto& [chat, sequence] : shown_) {
    for (const BlockId block : held_.at(sequence).blocks) {
      if (is_shared(block)) shared_.emplace_back(block, chat);
    }
  }
  std::sort(shared_.begin(), shared_.end());
}

bool MemoryFold::is_shared(BlockId block) const { return num_chats_[index_of(block)] > 1; }

// Other chats with at least one of these blocks.
std::int32_t MemoryFold::num_sharing(ChatId chat_id, const std::vector<BlockId>& blocks) {
  sharing_.clear();
  for (const BlockId block : blocks) {
    auto holder = std::lower_bound(shared_.begin(), shared_.end(), std::pair(block, ChatId{}));
    for (; holder != shared_.end() && holder->first == block; ++holder) {
      if (holder->second != chat_id) sharing_.push_back(holder->second);
    }
  }
  std::sort(sharing_.begin(), sharing_.end());
  return static_cast<std::int32_t>(std::unique(sharing_.begin(), sharing_.end()) - sharing_.begin());
}

// Runs many times a second while the cores compute: it works in memory that it already has.
void MemoryFold::show(const metrics::PoolMoment& newest, ui::UiState& state) {
  find_shown(state);
  for (ui::ChatState& chat : state.chats) {
    chat.memory.blocks.clear();
    chat.memory.host_blocks.clear();
    chat.memory.num_shared = chat.memory.num_sharing_chats = 0;
    if (const auto found = shown_.find(chat.id); found != shown_.end())
      show_chat(newest, found->second, chat);
  }
}

void MemoryFold::show_chat(const metrics::PoolMoment& newest, std::uint64_t sequence, ui::ChatState& chat) {
  ui::ChatMemory& memory = chat.memory;
  const Held& held = held_.at(sequence);
  const auto story = newest.story.sequences.find(sequence);
  if (story != newest.story.sequences.end() && story->second.state == SequenceState::kSwapped) {
    for (const auto& [index, host] : story->second.host_blocks) memory.host_blocks.push_back(host);
  }
  for (const BlockId id : held.blocks) {
    const metrics::KvState::Block block = newest.state.block(id);
    const bool is_last = held.num_entries > 0 && id == held.blocks.back();
    memory.blocks.push_back({.block_id = id,
                             .filled = block.num_filled,
                             .shared = is_shared(id),
                             .cached = block.state == BlockState::kCached,
                             .being_written = is_last && block.num_filled < newest.state.shape().block_size});
    memory.num_shared += is_shared(id) ? 1 : 0;
  }
  if (memory.num_shared > 0) memory.num_sharing_chats = num_sharing(chat.id, held.blocks);
}

}  // namespace octavo::app
