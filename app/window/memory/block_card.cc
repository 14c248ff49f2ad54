#include "app/window/memory/block_card.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "app/window/memory/window_part_rows.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostHistoryLines = 200;

bool takes_block(BlockEventKind kind) {
  return kind == BlockEventKind::kCopyOnWrite || kind == BlockEventKind::kCopyPartial;
}

bool names(const BlockEvent& event, std::int32_t block) {
  if (is_of_states(event.kind)) return false;
  return event.block == block || (takes_block(event.kind) && event.aux == block);
}

void add_owners(ui::BlockCard& card, const ui::MemoryWorkspaceState& state) {
  const auto& sequences = state.snapshot->sequences;
  for (std::size_t i = 0; i < sequences.size() && i < state.sequences.size(); ++i) {
    if (sequences[i].state == SequenceState::kSwapped) continue;
    const auto& table = sequences[i].block_table;
    const auto place = std::find(table.begin(), table.end(), card.block);
    if (place == table.end()) continue;
    card.owners.push_back({state.sequences[i].label, state.sequences[i].colour_index,
                           static_cast<std::int32_t>(place - table.begin())});
  }
}

void add_event(ui::BlockCard& card, const BlockEvent& event, std::uint64_t mark) {
  if (event.kind == BlockEventKind::kFill) {
    ++card.num_fills;
    return;
  }
  if (event.kind == BlockEventKind::kSwapOut || event.kind == BlockEventKind::kSwapIn) ++card.num_swaps;
  if (takes_block(event.kind) && event.block == card.block.value)
    card.copied_to.push_back(BlockId{event.aux});
  card.history.push_back({mark, event.time_us, event.kind, event.sequence, event.aux});
}

}  // namespace

ui::BlockCard block_card(BlockId block, const MemoryHistory& history, const ui::MemoryWorkspaceState& state,
                         std::string text) {
  const auto index = index_of(block);
  const auto& stories = history.story().blocks;
  const metrics::BlockStory story = index < stories.size() ? stories[index] : metrics::BlockStory{};
  ui::BlockCard card{.block = block,
                     .state = state.snapshot->blocks[index],
                     .copied_from = story.copied_from,
                     .num_hits = story.num_hits,
                     .born_us = story.born_us,
                     .last_us = story.last_us};
  if (card.state.state != BlockState::kFree) {
    if (story.index >= 0) card.first_position = story.index * state.pool.block_size;
    card.text = std::move(text);
  }
  if (state.pool.num_window_blocks > 0 && card.state.state != BlockState::kFree)
    card.window = window_card(block, history, state);
  add_owners(card, state);
  for (const auto& stretch : history.events_between(0, state.cursor.mark)) {
    std::uint64_t mark = stretch.first_mark;
    for (const BlockEvent& event : stretch.events) {
      if (names(event, block.value)) add_event(card, event, mark);
      ++mark;
    }
  }
  if (card.history.size() > kMostHistoryLines) {
    card.history.erase(card.history.begin(),
                       card.history.end() - static_cast<std::ptrdiff_t>(kMostHistoryLines));
  }
  const auto& watched = state.snapshot->watched;
  if (watched && watched->block == block) card.why = watched->why;
  return card;
}

}  // namespace octavo::app
