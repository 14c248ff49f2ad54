#include "app/window/memory/window_part_rows.h"

#include <algorithm>
#include <cstddef>

#include "app/window/memory/block_chain.h"

namespace octavo::app {
namespace {

// Sequences that name the block, and those of them whose window has not passed it.
void count_readers(BlockId block, const KvSnapshot& snapshot, ui::WindowCard& card) {
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kSwapped) continue;
    const auto& table = sequence.block_table;
    const auto place = std::find(table.begin(), table.end(), block);
    if (place == table.end()) continue;
    ++card.num_owners;
    if (place - table.begin() >= sequence.num_blocks_left_behind) ++card.num_readers;
  }
}

// The row behind the block reads the window in front of it: all of these parts have to be there.
void ask_to_resume(BlockId block, const KvSnapshot& snapshot, ui::WindowCard& card) {
  const KvTotals& totals = snapshot.totals;
  if (!snapshot.blocks[index_of(block)].findable) return;
  const std::vector<BlockId> chain = chain_from(block, snapshot);
  const auto num_blocks = static_cast<std::int32_t>(chain.size());
  const std::int32_t num_tokens =
      (num_blocks - 1) * totals.block_size + snapshot.blocks[index_of(block)].filled;
  const std::int32_t first_read = std::max(0, num_tokens - totals.window + 1) / totals.block_size;
  card.num_needed = num_blocks - first_read;
  card.num_missing = static_cast<std::int32_t>(std::count_if(
      chain.begin(), chain.begin() + card.num_needed,
      [&](BlockId before) { return snapshot.blocks[index_of(before)].window == WindowPart::kNone; }));
  card.resume = card.num_missing == 0 ? ui::WindowResume::kYes : ui::WindowResume::kMissing;
}

}  // namespace

std::vector<ui::ShownWindowPart> window_parts(const KvSnapshot& snapshot) {
  std::vector<ui::ShownWindowPart> parts(static_cast<std::size_t>(snapshot.totals.num_window_blocks));
  const auto part_of = [&](BlockId block) -> ui::ShownWindowPart* {
    if (block.value < 0 || index_of(block) >= snapshot.blocks.size()) return nullptr;
    const BlockId place = snapshot.blocks[index_of(block)].window_place;
    return place.value >= 0 && index_of(place) < parts.size() ? &parts[index_of(place)] : nullptr;
  };
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const BlockId block{static_cast<std::int32_t>(i)};
    if (ui::ShownWindowPart* const part = part_of(block)) part->block = block;
  }
  for (std::size_t i = 0; i < snapshot.sequences.size() && i < ui::kNobody; ++i) {
    const SequenceSnapshot& sequence = snapshot.sequences[i];
    if (sequence.state == SequenceState::kSwapped) continue;
    const auto first = static_cast<std::size_t>(sequence.num_blocks_left_behind);
    for (std::size_t k = first; k < sequence.block_table.size(); ++k) {
      ui::ShownWindowPart* const part = part_of(sequence.block_table[k]);
      if (part == nullptr) continue;
      if (part->num_readers++ == 0) part->reader = static_cast<std::uint16_t>(i);
    }
  }
  return parts;
}

ui::WindowCard window_card(BlockId block, const MemoryHistory& history,
                           const ui::MemoryWorkspaceState& state) {
  const KvSnapshot& snapshot = *state.snapshot;
  ui::WindowCard card;
  count_readers(block, snapshot, card);
  ask_to_resume(block, snapshot, card);
  const auto& stories = history.story().blocks;
  if (index_of(block) >= stories.size()) return card;
  const metrics::BlockStory& story = stories[index_of(block)];
  card.gone_us = story.window_gone_us;
  if (story.window_gone_for != 0) card.gone_for = ui::sequence_name(*state.timeline, story.window_gone_for);
  return card;
}

}  // namespace octavo::app
