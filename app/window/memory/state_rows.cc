#include "app/window/memory/state_rows.h"

#include <algorithm>
#include <cstddef>
#include <unordered_set>

#include "app/window/memory/block_chain.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostHistoryLines = 200;

void add_owner(ui::ShownState& shown, std::uint16_t index, const SequenceSnapshot& sequence,
               const ui::ShownSequence& name) {
  if (shown.owners.empty()) {
    shown.colour_index = name.colour_index;
    shown.has_colour = true;
    shown.position = sequence.num_computed_tokens;
    shown.blocks = sequence.block_table;
  }
  shown.owners.push_back(index);
}

// A checkpoint whose sequence is known by name has its colour, also after that has ended.
void name_keeper(ui::ShownState& shown, const StateSnapshot& state, std::uint64_t sequence,
                 const SequenceNames& names, const KvSnapshot& snapshot) {
  if (!state.is_checkpoint) return;
  shown.position = state.position;
  if (const auto name = names.find(sequence); name != names.end()) {
    shown.keeper = name->second.label;
    if (!shown.has_colour) shown.colour_index = name->second.colour_index;
    shown.has_colour = true;
  }
  if (!shown.owners.empty()) return;
  shown.blocks = chain_from(state.last_block, snapshot);
  std::ranges::reverse(shown.blocks);
}

// Not what became of the state of the host pool with the same number.
bool is_about(const BlockEvent& event, BlockId state) {
  if (!is_of_states(event.kind)) return false;
  const bool is_on_host = event.kind == BlockEventKind::kStateRelease && event.aux == 1;
  const bool is_copy_of_it = event.kind == BlockEventKind::kStateCopy && event.aux == state.value;
  return (event.block == state.value && !is_on_host) || is_copy_of_it;
}

}  // namespace

StateRows state_rows(const KvSnapshot& snapshot, const metrics::PoolStory& story,
                     const std::vector<ui::ShownSequence>& sequences, const SequenceNames& names,
                     std::int32_t num_host_states) {
  StateRows rows;
  rows.states.resize(snapshot.states.size());
  rows.host_states.resize(static_cast<std::size_t>(num_host_states));
  for (std::size_t i = 0; i < snapshot.sequences.size() && i < ui::kNobody; ++i) {
    const SequenceSnapshot& sequence = snapshot.sequences[i];
    const auto index = static_cast<std::uint16_t>(i);
    if (sequence.state_slot.value < 0) continue;
    const std::size_t slot = index_of(sequence.state_slot);
    if (sequence.state == SequenceState::kSwapped) {
      if (slot < rows.host_states.size()) rows.host_states[slot].owners.push_back(index);
    } else if (slot < rows.states.size()) {
      add_owner(rows.states[slot], index, sequence, sequences[i]);
    }
  }
  for (std::size_t i = 0; i < rows.states.size(); ++i) {
    const metrics::StateStory of = i < story.states.size() ? story.states[i] : metrics::StateStory{};
    rows.states[i].last_us = of.last_us;
    name_keeper(rows.states[i], snapshot.states[i], of.sequence, names, snapshot);
  }
  return rows;
}

void mark_checkpoints(const KvSnapshot& snapshot, std::vector<ui::ShownBlock>& blocks) {
  for (std::size_t i = 0; i < snapshot.states.size(); ++i) {
    const StateSnapshot& state = snapshot.states[i];
    if (!state.is_checkpoint || state.last_block.value < 0 || index_of(state.last_block) >= blocks.size())
      continue;
    blocks[index_of(state.last_block)].checkpoint = static_cast<std::int32_t>(i);
  }
}

std::vector<BlockId> states_of_blocks(const std::vector<BlockId>& blocks,
                                      const std::vector<ui::ShownState>& states) {
  std::unordered_set<std::int32_t> wanted;
  for (const BlockId block : blocks) wanted.insert(block.value);
  std::vector<BlockId> found;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool knows = std::ranges::any_of(states[i].blocks,
                                           [&](const BlockId block) { return wanted.contains(block.value); });
    if (knows) found.push_back(BlockId{static_cast<std::int32_t>(i)});
  }
  return found;
}

ui::StateCard state_card(BlockId of, const MemoryHistory& history, const ui::MemoryWorkspaceState& state) {
  const auto& stories = history.story().states;
  const metrics::StateStory story =
      index_of(of) < stories.size() ? stories[index_of(of)] : metrics::StateStory{};
  const ui::ShownState& shown = state.states[index_of(of)];
  ui::StateCard card{.state = of,
                     .now = state.snapshot->states[index_of(of)],
                     .bytes = state.pool.bytes_per_state,
                     .position = shown.position,
                     .keeper = shown.keeper,
                     .copied_from = story.copied_from,
                     .num_resumed = story.num_resumed,
                     .born_us = story.born_us,
                     .last_us = story.last_us};
  for (const std::uint16_t owner : shown.owners) {
    card.owners.push_back({state.sequences[owner].label, state.sequences[owner].colour_index,
                           state.snapshot->sequences[owner].num_computed_tokens});
  }
  for (const auto& stretch : history.events_between(0, state.cursor.mark)) {
    std::uint64_t mark = stretch.first_mark;
    for (const BlockEvent& event : stretch.events) {
      if (is_about(event, of))
        card.history.push_back({mark, event.time_us, event.kind, event.sequence, event.aux});
      ++mark;
    }
  }
  if (card.history.size() > kMostHistoryLines) {
    card.history.erase(card.history.begin(),
                       card.history.end() - static_cast<std::ptrdiff_t>(kMostHistoryLines));
  }
  return card;
}

}  // namespace octavo::app
