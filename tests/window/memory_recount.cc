#include "tests/window/memory_recount.h"

#include <algorithm>
#include <sstream>

#include "engine/base/format.h"

namespace octavo::testing {
namespace {

bool is_swapped(const SequenceSnapshot& sequence) { return sequence.state == SequenceState::kSwapped; }

template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<int>(value));
  } else if constexpr (requires { value.value; }) {
    return std::to_string(value.value);
  } else {
    std::ostringstream text;
    text << value;
    return text.str();
  }
}

std::string text_of(const std::vector<BlockId>& blocks) {
  std::string text;
  for (const BlockId block : blocks) text += std::to_string(block.value) + " ";
  return text;
}

std::int32_t num_filled(const SequenceSnapshot& sequence, std::size_t index, std::int32_t block_size) {
  return std::clamp(sequence.num_computed_tokens - static_cast<std::int32_t>(index) * block_size, 0,
                    block_size);
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  return percent_text(whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole));
}

// The first block that the row behind its computed tokens reads: it sees `window` tokens with its own.
std::size_t first_block_in_window(const SequenceSnapshot& sequence, const KvTotals& totals) {
  std::int32_t first_token = sequence.num_computed_tokens;
  for (std::int32_t seen = 1; seen < totals.window && first_token > 0; ++seen) --first_token;
  return static_cast<std::size_t>(first_token / totals.block_size);
}

void recount_windows(Recount& truth) {
  const KvSnapshot& now = truth.now;
  truth.window_readers.resize(now.blocks.size());
  truth.host_windows.resize(static_cast<std::size_t>(now.totals.num_host_blocks));
  if (now.totals.num_window_blocks == 0) return;
  for (std::size_t s = 0; s < now.sequences.size(); ++s) {
    const auto& table = now.sequences[s].block_table;
    for (std::size_t i = first_block_in_window(now.sequences[s], now.totals); i < table.size(); ++i) {
      if (is_swapped(now.sequences[s])) {
        truth.host_windows[index_of(table[i])] = true;
      } else {
        truth.window_readers[index_of(table[i])].push_back(s);
      }
    }
  }
  for (std::size_t i = 0; i < now.blocks.size(); ++i) {
    if (now.blocks[i].window_place.value < 0) continue;
    ++(truth.window_readers[i].empty() ? truth.kept_windows : truth.used_windows);
  }
}

}  // namespace

Recount recount(const CoreEngine& engine) {
  Recount truth;
  truth.now = engine.core().scheduler().snapshot(SnapshotScope::kPool);
  truth.mark = engine.core().recorder()->next_event_mark();
  truth.counts = engine.counts();
  truth.prefix_hit_tokens = engine.core().totals().prefix_hit_tokens;
  const KvSnapshot& now = truth.now;
  const std::size_t num_blocks = now.blocks.size();
  truth.num_references.assign(num_blocks, 0);
  truth.owners.resize(num_blocks);
  truth.host_owners.resize(static_cast<std::size_t>(now.totals.num_host_blocks));
  std::vector<std::int32_t> filled(num_blocks, 0);
  truth.state_owners.resize(static_cast<std::size_t>(now.totals.num_states));
  truth.host_state_owners.resize(static_cast<std::size_t>(now.totals.num_host_states));
  for (std::size_t s = 0; s < now.sequences.size(); ++s) {
    if (now.sequences[s].state_slot.value < 0) continue;
    auto& owners = is_swapped(now.sequences[s]) ? truth.host_state_owners : truth.state_owners;
    owners[index_of(now.sequences[s].state_slot)].push_back(s);
  }
  for (std::size_t s = 0; s < now.sequences.size(); ++s) {
    const SequenceSnapshot& sequence = now.sequences[s];
    for (std::size_t i = 0; i < sequence.block_table.size(); ++i) {
      const std::size_t block = index_of(sequence.block_table[i]);
      if (is_swapped(sequence)) {
        truth.host_owners[block].push_back(s);
        continue;
      }
      ++truth.logical;
      ++truth.num_references[block];
      truth.owners[block].push_back(s);
      filled[block] = std::max(filled[block], num_filled(sequence, i, now.totals.block_size));
    }
  }
  for (std::size_t i = 0; i < num_blocks; ++i) {
    truth.num_references[i] += now.blocks[i].num_pins;
    if (truth.num_references[i] > 0) {
      ++truth.used;
      truth.filled_slots += filled[i];
      truth.reserved_slots += now.blocks[i].reserved;
    } else {
      ++(now.blocks[i].findable ? truth.cached : truth.free);
    }
  }
  for (const auto& owners : truth.host_owners) truth.host += owners.empty() ? 0 : 1;
  recount_windows(truth);
  return truth;
}

template <class A, class B>
void Differences::expect(const std::string& what, const A& shown, const B& truth) {
  if (text_.size() > 2'000 || shown == truth) return;
  text_ += what + ": shown " + text_of(shown) + ", is " + text_of(truth) + "\n";
}

void Differences::compare_workspace(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  expect("mark of the moment", shown.cursor.mark, truth.mark);
  compare_blocks(truth, shown);
  compare_host(truth, shown);
  compare_lines(truth, shown);
  compare_tree(truth, shown, Parents::kCompared);
  compare_states(truth, shown, Corners::kCompared);
  compare_windows(truth, shown);
  compare_health(truth, shown);
}

void Differences::compare_past(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  compare_blocks(truth, shown);
  compare_host(truth, shown);
  compare_tree(truth, shown, Parents::kNotKnown);
  compare_states(truth, shown, Corners::kNotKnown);
  compare_windows(truth, shown);
}

void Differences::compare_windows(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  const KvTotals& totals = truth.now.totals;
  expect("places of window parts", shown.window_parts.size(),
         static_cast<std::size_t>(totals.num_window_blocks));
  if (totals.num_window_blocks == 0 || shown.snapshot->blocks.size() != truth.now.blocks.size()) return;
  std::vector<std::int32_t> lies_in(shown.window_parts.size(), -1);
  for (std::size_t i = 0; i < truth.now.blocks.size(); ++i) {
    const std::string part = "window part of block " + std::to_string(i);
    const BlockSnapshot& one = shown.snapshot->blocks[i];
    const BlockSnapshot& is = truth.now.blocks[i];
    const bool is_there = is.window_place.value >= 0, is_read = !truth.window_readers[i].empty();
    expect(part + " place", one.window_place, is.window_place);
    expect(part, one.window,
           !is_there ? WindowPart::kNone
           : is_read ? WindowPart::kUsed
                     : WindowPart::kCached);
    if (is_there && !is_read) expect(part + " is kept as", one.window_retention, is.window_retention);
    if (!is_there) continue;
    lies_in[index_of(is.window_place)] = static_cast<std::int32_t>(i);
    const ui::ShownWindowPart& cell = shown.window_parts[index_of(is.window_place)];
    expect(part + " readers", cell.num_readers, static_cast<std::int32_t>(truth.window_readers[i].size()));
    std::uint64_t reader = 0, shown_reader = 0;
    if (is_read) reader = truth.now.sequences[truth.window_readers[i].front()].sequence_id.value;
    if (cell.reader != ui::kNobody) shown_reader = shown.snapshot->sequences[cell.reader].sequence_id.value;
    expect(part + " reader", shown_reader, reader);
  }
  for (std::size_t place = 0; place < lies_in.size(); ++place)
    expect("window place " + std::to_string(place), shown.window_parts[place].block.value, lies_in[place]);
  for (std::size_t i = 0; i < std::min(shown.host.size(), truth.host_windows.size()); ++i)
    expect("host block " + std::to_string(i) + " has a window part", shown.host[i].has_window,
           bool{truth.host_windows[i]});
  for (const SequenceSnapshot& sequence : truth.now.sequences) {
    for (const ui::TableLine& line : shown.lines) {
      if (line.sequence != sequence.sequence_id.value) continue;
      expect("row of sequence " + std::to_string(line.sequence) + " left behind", line.num_left_behind,
             static_cast<std::int32_t>(first_block_in_window(sequence, totals)));
    }
  }
}

// Events do not say where contents are that were evicted and came back: so neither do the corners of the
// past.
void Differences::compare_states(const Recount& truth, const ui::MemoryWorkspaceState& shown,
                                 Corners corners) {
  const auto sequences_of = [&](const std::vector<std::uint16_t>& owners) {
    std::string text;
    for (const std::uint16_t owner : owners)
      text += std::to_string(shown.snapshot->sequences[owner].sequence_id.value) + " ";
    return text;
  };
  const auto sequences_in = [&](const std::vector<std::size_t>& owners) {
    std::string text;
    for (const std::size_t owner : owners)
      text += std::to_string(truth.now.sequences[owner].sequence_id.value) + " ";
    return text;
  };
  expect("states", shown.states.size(), truth.state_owners.size());
  expect("host states", shown.host_states.size(), truth.host_state_owners.size());
  if (shown.states.size() != truth.state_owners.size() ||
      shown.host_states.size() != truth.host_state_owners.size())
    return;
  std::set<std::int32_t> corners_of;
  for (std::size_t i = 0; i < truth.state_owners.size(); ++i) {
    const std::string name = "state " + std::to_string(i);
    const StateSnapshot& one = shown.snapshot->states[i];
    const StateSnapshot& is = truth.now.states[i];
    const auto& owners = truth.state_owners[i];
    expect(name + " owners", sequences_of(shown.states[i].owners), sequences_in(owners));
    expect(name + " references", one.ref_count, static_cast<std::int32_t>(owners.size()));
    expect(name + " is", one.state,
           !owners.empty()    ? BlockState::kUsed
           : is.is_checkpoint ? BlockState::kCached
                              : BlockState::kFree);
    expect(name + " is a checkpoint", one.is_checkpoint, is.is_checkpoint);
    if (!owners.empty() && !is.is_checkpoint)
      expect(name + " knows", shown.states[i].position,
             truth.now.sequences[owners.front()].num_computed_tokens);
    if (!is.is_checkpoint) continue;
    expect(name + " place", one.position, is.position);
    expect(name + " knows", shown.states[i].position, is.position);
    expect(name + " reason", one.reason, is.reason);
    expect(name + " saves", one.num_saved_tokens, is.num_saved_tokens);
    expect(name + " is kept as", one.retention, is.retention);
    if (is.last_block.value >= 0) corners_of.insert(is.last_block.value);
  }
  for (std::size_t i = 0; i < truth.host_state_owners.size(); ++i)
    expect("host state " + std::to_string(i) + " owners", sequences_of(shown.host_states[i].owners),
           sequences_in(truth.host_state_owners[i]));
  for (std::size_t i = 0; i < shown.blocks.size() && corners == Corners::kCompared; ++i)
    expect("corner of block " + std::to_string(i), shown.blocks[i].checkpoint >= 0,
           corners_of.contains(static_cast<std::int32_t>(i)));
}

void Differences::compare_blocks(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  expect("blocks of the map", shown.snapshot->blocks.size(), truth.now.blocks.size());
  if (shown.snapshot->blocks.size() != truth.now.blocks.size()) return;
  for (std::size_t i = 0; i < truth.now.blocks.size(); ++i) {
    const std::string block = "block " + std::to_string(i);
    const BlockSnapshot& one = shown.snapshot->blocks[i];
    const BlockState state = truth.num_references[i] > 0    ? BlockState::kUsed
                             : truth.now.blocks[i].findable ? BlockState::kCached
                                                            : BlockState::kFree;
    expect(block + " state", one.state, state);
    expect(block + " references", one.ref_count, truth.num_references[i]);
    expect(block + " filled", one.filled, truth.now.blocks[i].filled);
    expect(block + " can be found", one.findable, truth.now.blocks[i].findable);
    std::uint64_t owner = 0, shown_owner = 0;
    if (!truth.owners[i].empty()) owner = truth.now.sequences[truth.owners[i].front()].sequence_id.value;
    if (shown.blocks[i].owner != ui::kNobody)
      shown_owner = shown.snapshot->sequences[shown.blocks[i].owner].sequence_id.value;
    expect(block + " owner", shown_owner, owner);
    const std::set<std::size_t> owners(truth.owners[i].begin(), truth.owners[i].end());
    const std::size_t num_sharing = shown.blocks[i].group == ui::kNobody
                                        ? std::min<std::size_t>(owners.size(), 1)
                                        : shown.groups[shown.blocks[i].group].sequences.size();
    expect(block + " sharing sequences", num_sharing, owners.size());
  }
  std::map<std::uint16_t, std::int32_t> in_group;
  for (const ui::ShownBlock& block : shown.blocks) ++in_group[block.group];
  for (std::size_t i = 0; i < shown.groups.size(); ++i)
    expect("blocks of group " + std::to_string(i), shown.groups[i].num_blocks,
           in_group[static_cast<std::uint16_t>(i)]);
}

void Differences::compare_host(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  expect("host blocks", shown.host.size(), truth.host_owners.size());
  for (std::size_t i = 0; i < std::min(shown.host.size(), truth.host_owners.size()); ++i) {
    const std::string block = "host block " + std::to_string(i);
    expect(block + " in use", shown.host[i].is_used, !truth.host_owners[i].empty());
    std::uint64_t owner = 0, shown_owner = 0;
    if (!truth.host_owners[i].empty())
      owner = truth.now.sequences[truth.host_owners[i].front()].sequence_id.value;
    if (shown.host[i].owner != ui::kNobody)
      shown_owner = shown.snapshot->sequences[shown.host[i].owner].sequence_id.value;
    expect(block + " owner", shown_owner, owner);
  }
}

void Differences::compare_lines(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  std::map<std::uint64_t, const ui::TableLine*> lines;
  for (const ui::TableLine& line : shown.lines) {
    if (line.sequence != 0) lines[line.sequence] = &line;
  }
  for (const ui::TableLine& line : shown.lines) {
    for (const BlockId block : line.is_ghost ? line.blocks : std::vector<BlockId>{})
      expect("ghost of block " + std::to_string(block.value),
             truth.num_references[index_of(block)] > 0 || truth.now.blocks[index_of(block)].findable, true);
  }
  expect("rows of the tables", lines.size(), truth.now.sequences.size());
  for (const SequenceSnapshot& sequence : truth.now.sequences) {
    const std::string row = "row of sequence " + std::to_string(sequence.sequence_id.value);
    const auto found = lines.find(sequence.sequence_id.value);
    expect(row + " is there", found != lines.end(), true);
    if (found == lines.end()) continue;
    expect(row, found->second->blocks, sequence.block_table);
    expect(row + " state", found->second->state, sequence.state);
    expect(row + " recurrent state", found->second->state_slot, sequence.state_slot.value);
    std::int32_t num_shared = 0;
    for (const SequenceSnapshot& other : truth.now.sequences) {
      if (&other == &sequence || is_swapped(other) != is_swapped(sequence)) continue;
      std::int32_t common = 0;
      for (const std::size_t most = std::min(other.block_table.size(), sequence.block_table.size());
           static_cast<std::size_t>(common) < most &&
           other.block_table[static_cast<std::size_t>(common)] ==
               sequence.block_table[static_cast<std::size_t>(common)];)
        ++common;
      num_shared = std::max(num_shared, common);
    }
    expect(row + " shared blocks", found->second->num_shared_prefix, num_shared);
  }
}

void Differences::compare_tree(const Recount& truth, const ui::MemoryWorkspaceState& shown, Parents parents) {
  std::vector<std::int32_t> seen(truth.now.blocks.size(), 0);
  for (const ui::PrefixRun& run : shown.tree) {
    std::int32_t most = 0;
    std::int32_t before = -1;
    if (run.parent >= 0) before = shown.tree[static_cast<std::size_t>(run.parent)].blocks.back().value;
    for (const BlockId block : run.blocks) {
      ++seen[index_of(block)];
      most = std::max(most, truth.num_references[index_of(block)]);
      const std::int32_t parent = truth.now.blocks[index_of(block)].parent;
      const bool has_parent = parent >= 0 && truth.now.blocks[static_cast<std::size_t>(parent)].findable;
      if (parents == Parents::kCompared)
        expect("block " + std::to_string(block.value) + " parent in the tree", before,
               has_parent ? parent : -1);
      before = block.value;
    }
    expect("references of a run", run.num_references, most);
    expect("run is in use", run.eviction_place<0, most> 0);
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    expect("block " + std::to_string(i) + " in the tree", seen[i], truth.now.blocks[i].findable ? 1 : 0);
}

void Differences::compare_health(const Recount& truth, const ui::MemoryWorkspaceState& shown) {
  const KvTotals& totals = truth.now.totals;
  const std::int64_t num_blocks = totals.num_blocks, block_size = totals.block_size;
  const std::int64_t used_slots = truth.used * block_size;
  const std::int64_t unfilled = used_slots - truth.filled_slots - truth.reserved_slots;
  const double sharing = truth.used == 0 ? 1.0 : static_cast<double>(truth.logical) / truth.used;
  std::int64_t num_runs = 0, num_running = 0;
  std::set<RequestId> swapped;
  for (const SequenceSnapshot& sequence : truth.now.sequences) {
    if (sequence.state == SequenceState::kRunning) ++num_running;
    if (is_swapped(sequence)) swapped.insert(sequence.request_id);
    if (is_swapped(sequence)) continue;
    for (std::size_t i = 0; i < sequence.block_table.size(); ++i) {
      const bool goes_on = i > 0 && sequence.block_table[i].value == sequence.block_table[i - 1].value + 1;
      num_runs += goes_on ? 0 : 1;
    }
  }
  std::int64_t longest_free = 0, free_run = 0;
  for (std::size_t i = 0; i < truth.now.blocks.size(); ++i) {
    const bool is_free = truth.num_references[i] == 0 && !truth.now.blocks[i].findable;
    free_run = is_free ? free_run + 1 : 0;
    longest_free = std::max(longest_free, free_run);
  }
  const std::int64_t longest = (shown.pool.max_model_len + block_size - 1) / block_size;
  const auto bytes = [&](std::int64_t count) { return bytes_text(count * totals.bytes_per_block); };
  struct Figure {
    std::string id, value, label, note;
  };
  std::vector<Figure> expected = {
      {"used", share_text(truth.used, num_blocks), "", count_text(truth.used, "block")},
      {"cached", share_text(truth.cached, num_blocks), "", ""},
      {"free", share_text(truth.free, num_blocks), "", count_text(truth.free, "block")},
      {"fragmentation", share_text(unfilled, used_slots), "", count_text(unfilled, "empty slot")},
      {"sharing", fixed_text(sharing, 2) + " ×", "", "saved " + bytes(truth.logical - truth.used)},
      {"swapped", with_thousands(truth.counts.swapped_out_blocks),
       "swapped out, " + with_thousands(truth.counts.swapped_in_blocks) + " back", ""},
      {"hits", share_text(truth.prefix_hit_tokens, truth.prefix_hit_tokens + truth.counts.prefilled_tokens),
       "", count_text(truth.prefix_hit_tokens, "token") + " reused"},
      {"effective", share_text(truth.filled_slots, used_slots), "",
       share_text(truth.filled_slots, num_blocks * block_size) + " of all slots"},
      {"reserved", with_thousands(truth.reserved_slots), "",
       share_text(truth.reserved_slots, num_blocks * block_size) + " of the pool"},
      {"external", "0 %", "", ""},
      {"scatter", fixed_text(truth.logical == 0 ? 0.0 : static_cast<double>(num_runs) / truth.logical, 2), "",
       "longest free run " + with_thousands(longest_free)},
      {"contiguous", bytes(num_running * longest), "", bytes(truth.logical) + " without sharing"}};
  if (totals.num_states > 0) {
    std::int64_t num_used = 0, num_held = 0, num_checkpoints = 0;
    for (std::size_t i = 0; i < truth.state_owners.size(); ++i) {
      const bool is_used = !truth.state_owners[i].empty(), is_kept = truth.now.states[i].is_checkpoint;
      num_used += is_used ? 1 : 0;
      num_held += is_used || is_kept ? 1 : 0;
      num_checkpoints += is_kept ? 1 : 0;
    }
    const std::vector<Figure> of_states = {
        {"states", with_thousands(num_used) + " of " + with_thousands(totals.num_states), "",
         bytes_text(num_held * totals.bytes_per_state) + " held"},
        {"checkpoints", with_thousands(num_checkpoints), "",
         "resumed " + count_text(totals.states.num_resumed, "time") + ", " +
             with_thousands(totals.states.num_evicted) + " evicted"}};
    expected.insert(expected.begin() + 6, of_states.begin(), of_states.end());
  }
  if (totals.num_window_blocks > 0) {
    std::int64_t num_left = 0, num_spared = 0;
    for (const SequenceSnapshot& sequence : truth.now.sequences) {
      if (!is_swapped(sequence))
        num_left += static_cast<std::int64_t>(first_block_in_window(sequence, totals));
    }
    for (std::size_t i = 0; i < truth.now.blocks.size(); ++i) {
      const bool is_held = truth.num_references[i] > 0 || truth.now.blocks[i].findable;
      num_spared += is_held && truth.now.blocks[i].window_place.value < 0 ? 1 : 0;
    }
    const std::int64_t num_places = totals.num_window_blocks;
    const std::vector<Figure> of_windows = {
        {"windows", share_text(truth.used_windows, num_places), "",
         share_text(truth.kept_windows, num_places) + " kept, " +
             share_text(num_places - truth.used_windows - truth.kept_windows, num_places) + " free"},
        {"left_behind", bytes_text(num_spared * totals.bytes_per_window_block), "",
         with_thousands(num_left) + " left behind"}};
    expected.insert(expected.begin() + 6, of_windows.begin(), of_windows.end());
  }
  expect("figures of the strip", shown.health.size(), expected.size());
  for (std::size_t i = 0; i < std::min(expected.size(), shown.health.size()); ++i) {
    const ui::HealthFigure& figure = shown.health[i];
    expect("figure", std::string(figure.id), expected[i].id);
    expect(expected[i].id, figure.value, expected[i].value);
    if (!expected[i].label.empty()) expect(expected[i].id + " label", figure.label, expected[i].label);
    if (!expected[i].note.empty()) expect(expected[i].id + " note", figure.note, expected[i].note);
    if (expected[i].id == "swapped") {
      const std::string tail = ", " + count_text(swapped.size(), "request") + " out";
      expect("swapped tells who is out", figure.note.ends_with(tail), !swapped.empty());
    }
  }
}

void Differences::compare_timeline(const Recount& truth, const ui::TimelineState& timeline) {
  ui::LevelPoint shown = ui::newest_levels(timeline);
  if (timeline.steps.empty() && timeline.levels.empty()) shown.free = truth.now.totals.num_blocks;
  expect("end of the timeline", timeline.newest_mark, truth.mark);
  expect("timeline used", shown.used, truth.used);
  expect("timeline cached", shown.cached, truth.cached);
  expect("timeline free", shown.free, truth.free);
  expect("timeline host", shown.host, truth.host);
  expect("timeline window parts read", shown.used_windows, truth.used_windows);
  expect("timeline window parts kept", shown.cached_windows, truth.kept_windows);
}

void Differences::compare_bar(const EngineDescription& description, const ui::MemoryBar& bar) {
  expect("bar weights", bar.weight_bytes, description.weight_bytes);
  expect("bar KV", bar.kv_bytes,
         description.num_blocks * description.bytes_per_block +
             description.num_window_blocks * description.bytes_per_window_block);
  expect("bar working", bar.working_bytes, description.working_bytes);
  expect("bar states", bar.state_bytes, description.num_states * description.bytes_per_state);
}

void Differences::compare_chats(const CoreEngine& engine, const Recount& truth,
                                const std::map<ChatId, std::vector<RequestId>>& requests,
                                std::map<ChatId, Left>& left, const ui::UiState& state) {
  // What each chat holds: its table, or what is still there of the last one.
  struct Holding {
    std::vector<BlockId> blocks, host;
    bool has_table = false;
  };
  std::map<ChatId, Holding> holdings;
  std::map<BlockId, std::set<ChatId>> holders;
  for (const auto& [chat, asked] : requests) {
    Holding& holding = holdings[chat];
    for (const SequenceSnapshot& sequence : truth.now.sequences) {
      if (std::ranges::find(asked, sequence.request_id) == asked.end()) continue;
      if (is_swapped(sequence)) {
        holding.host = sequence.block_table;
      } else if (!sequence.block_table.empty()) {
        holding.blocks = sequence.block_table;
        holding.has_table = true;
      }
    }
    const auto newest = std::ranges::find_if(asked.rbegin(), asked.rend(), [&](RequestId request) {
      return engine.last_table(request) != nullptr;
    });
    if (!holding.has_table && newest != asked.rend()) {
      const CoreEngine::LastTable& last = *engine.last_table(*newest);
      const auto block_size = static_cast<std::size_t>(truth.now.totals.block_size);
      const auto before = left.find(chat);
      const bool was_seen = before != left.end() && before->second.noted == last.noted;
      for (std::size_t i = 0; i < last.blocks.size(); ++i) {
        if (last.blocks[i] == block::kNoBlock) continue;
        if (was_seen &&
            std::ranges::find(before->second.blocks, last.blocks[i]) == before->second.blocks.end())
          continue;
        const std::vector<TokenId> held = engine.tokens_up_to(last.blocks[i], truth.now);
        const bool is_there = held.size() > i * block_size && held.size() <= last.token_ids.size() &&
                              std::equal(held.begin(), held.end(), last.token_ids.begin());
        if (is_there) holding.blocks.push_back(last.blocks[i]);
      }
    }
    left.erase(chat);
    if (!holding.has_table && newest != asked.rend())
      left[chat] = {engine.last_table(*newest)->noted, holding.blocks};
    if (ui::find_chat(state, chat) == nullptr) continue;  // deleted, and may come back
    for (const BlockId block : holding.blocks) holders[block].insert(chat);
  }
  for (const ui::ChatState& chat : state.chats) {
    const std::string name = "chat " + std::to_string(chat.id.value);
    const Holding& holding = holdings[chat.id];
    std::vector<BlockId> shown;
    std::int32_t num_shared = 0;
    std::set<ChatId> sharing;
    for (const ui::ChatBlock& block : chat.memory.blocks) shown.push_back(block.block_id);
    expect(name + " blocks", shown, holding.blocks);
    expect(name + " host blocks", chat.memory.host_blocks, holding.host);
    if (shown != holding.blocks) continue;
    for (const ui::ChatBlock& block : chat.memory.blocks) {
      const std::string cell = name + " block " + std::to_string(block.block_id.value);
      const std::size_t index = index_of(block.block_id);
      const bool is_shared = holders[block.block_id].size() > 1;
      num_shared += is_shared ? 1 : 0;
      sharing.insert(holders[block.block_id].begin(), holders[block.block_id].end());
      expect(cell + " is shared", block.shared, is_shared);
      expect(cell + " is cached", block.cached, truth.num_references[index] == 0);
      expect(cell + " filled", block.filled, truth.now.blocks[index].filled);
    }
    sharing.erase(chat.id);
    expect(name + " shared blocks", chat.memory.num_shared, num_shared);
    expect(name + " sharing chats", chat.memory.num_sharing_chats, static_cast<std::int32_t>(sharing.size()));
  }
}

// ---- columns

void ColumnsRecount::begin(std::vector<Column> columns, bool are_seats) {
  columns_ = std::move(columns);
  seen_.assign(columns_.size(), {});
  are_seats_ = are_seats;
  most_ = {};
}

void ColumnsRecount::look(const Recount& truth) {
  ui::ComparisonMemory all;
  std::map<BlockId, std::int32_t> uses;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto sequence = std::ranges::find_if(truth.now.sequences, [&](const SequenceSnapshot& one) {
      return one.request_id == columns_[i].request && one.output_index == columns_[i].output_index;
    });
    if (sequence == truth.now.sequences.end() || sequence->block_table.empty()) continue;
    const Seen before = std::exchange(seen_[i], {});
    Seen& seen = seen_[i];
    seen.was_seen = true;
    seen.is_swapped_out = is_swapped(*sequence);
    seen.blocks = sequence->block_table;
    for (std::size_t k = 0; k < seen.blocks.size(); ++k) {
      const std::size_t block = index_of(seen.blocks[k]);
      bool is_shared = !seen.is_swapped_out && truth.owners[block].size() > 1;
      const bool is_old = k < before.blocks.size() && before.blocks[k] == seen.blocks[k] &&
                          before.is_swapped_out == seen.is_swapped_out;
      is_shared |= !are_seats_ && is_old && before.is_shared[k];
      seen.is_shared.push_back(is_shared);
    }
    if (seen.is_swapped_out) continue;
    ++all.num_tables;
    all.num_logical_blocks += static_cast<std::int32_t>(seen.blocks.size());
    for (const BlockId block : seen.blocks) ++uses[block];
  }
  all.num_blocks = static_cast<std::int32_t>(uses.size());
  for (const auto& [block, count] : uses) all.num_shared_blocks += count > 1 ? 1 : 0;
  if (all.num_tables > 0 && all.num_tables >= most_.num_tables) most_ = all;
}

std::string ColumnsRecount::difference(const ui::ComparisonState& shown) const {
  std::ostringstream text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ui::ColumnMemory* memory = nullptr;
    if (are_seats_) {
      for (const ui::SeatMemory& seat : shown.seats) {
        if (seat.seat == columns_[i].output_index) memory = &seat.memory;
      }
    } else if (i < shown.columns.size()) {
      memory = &shown.columns[i].memory;
    }
    if (!seen_[i].was_seen) continue;
    if (memory == nullptr) {
      text << "column " << i << " has no memory\n";
      continue;
    }
    std::vector<BlockId> blocks;
    std::vector<bool> is_shared;
    for (const ui::ColumnBlock& block : memory->blocks) {
      blocks.push_back(block.block_id);
      is_shared.push_back(block.shared);
    }
    const auto num_shared = static_cast<std::int32_t>(std::ranges::count(seen_[i].is_shared, true));
    if (blocks != seen_[i].blocks)
      text << "column " << i << ": shown " << text_of(blocks) << ", is " << text_of(seen_[i].blocks) << "\n";
    if (is_shared != seen_[i].is_shared || memory->num_shared != num_shared ||
        memory->num_own != static_cast<std::int32_t>(blocks.size()) - num_shared)
      text << "column " << i << ": shown " << memory->num_shared << " shared and " << memory->num_own
           << " own, are " << num_shared << " shared of " << seen_[i].blocks.size() << "\n";
  }
  const ui::ComparisonMemory& all = shown.memory;
  if (most_.num_tables > 0 && (all.num_tables != most_.num_tables || all.num_blocks != most_.num_blocks ||
                               all.num_logical_blocks != most_.num_logical_blocks ||
                               all.num_shared_blocks != most_.num_shared_blocks))
    text << "comparison: shown " << all.num_tables << " tables of " << all.num_blocks << " blocks, are "
         << most_.num_tables << " of " << most_.num_blocks << "\n";
  return text.str();
}

}  // namespace octavo::testing
