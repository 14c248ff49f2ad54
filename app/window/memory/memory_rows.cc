#include "app/window/memory/memory_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "app/window/memory/sequence_names.h"

namespace octavo::app {
namespace {

bool is_resident(const SequenceSnapshot& sequence) {
  return sequence.state != SequenceState::kSwapped && !sequence.block_table.empty();
}

std::size_t common_start(const std::vector<BlockId>& a, const std::vector<BlockId>& b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t count = 0;
  while (count < most && a[count] == b[count]) ++count;
  return count;
}

// Without the number of the output: "Poems · sample 2" is of "Poems".
std::string request_label(const std::string& label) {
  const std::size_t dot = label.rfind(kBetweenNames);
  return dot == std::string::npos ? label : label.substr(0, dot);
}

std::string output_label(const std::string& label) {
  const std::size_t dot = label.rfind(kBetweenNames);
  return dot == std::string::npos ? label : label.substr(dot + kBetweenNames.size());
}

void number_groups(BlockOwners& owners) {
  std::vector<std::size_t> order(owners.groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return owners.groups[a].num_blocks > owners.groups[b].num_blocks;
  });
  std::vector<ui::SharingGroup> sorted;
  std::vector<std::uint16_t> place(owners.groups.size());
  for (const std::size_t index : order) {
    place[index] = static_cast<std::uint16_t>(std::min<std::size_t>(sorted.size(), ui::kNobody - 1));
    sorted.push_back(std::move(owners.groups[index]));
  }
  owners.groups = std::move(sorted);
  for (ui::ShownBlock& block : owners.blocks) {
    if (block.group != ui::kNobody) block.group = place[block.group];
  }
}

}  // namespace

std::vector<ui::ShownSequence> sequences_of(const KvSnapshot& snapshot, const SequenceNames& names) {
  std::vector<ui::ShownSequence> sequences;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto name = names.find(sequence.sequence_id.value);
    if (name != names.end()) {
      sequences.push_back(name->second);
    } else {
      const std::uint64_t id = sequence.sequence_id.value;
      sequences.push_back(
          {.label = "sequence " + std::to_string(id), .colour_index = static_cast<std::uint32_t>(id % 7)});
    }
  }
  return sequences;
}

BlockOwners owners_of(const KvSnapshot& snapshot, const std::vector<ui::ShownSequence>& sequences) {
  BlockOwners owners;
  owners.blocks.resize(snapshot.blocks.size());
  // Who names a block, as a list that grows sequence by sequence: lists are few, blocks many.
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint16_t> longer;  // (list, one more) -> list
  std::vector<std::vector<std::uint16_t>> lists;
  std::vector<std::uint16_t> list_of(snapshot.blocks.size(), ui::kNobody);
  for (std::size_t i = 0; i < snapshot.sequences.size() && i < ui::kNobody; ++i) {
    if (!is_resident(snapshot.sequences[i])) continue;
    const auto sequence = static_cast<std::uint16_t>(i);
    for (const BlockId block : snapshot.sequences[i].block_table) {
      const auto index = index_of(block);
      if (block.value < 0 || index >= list_of.size()) continue;
      const auto [entry, is_new] =
          longer.try_emplace({list_of[index], sequence}, static_cast<std::uint16_t>(lists.size()));
      if (is_new) {
        if (lists.size() >= ui::kNobody) return owners;
        lists.push_back(list_of[index] == ui::kNobody ? std::vector<std::uint16_t>{} : lists[list_of[index]]);
        lists.back().push_back(sequence);
      }
      list_of[index] = entry->second;
      if (owners.blocks[index].owner == ui::kNobody) owners.blocks[index].owner = sequence;
    }
  }
  std::vector<std::uint16_t> group_of(lists.size(), ui::kNobody);
  for (std::size_t i = 0; i < list_of.size(); ++i) {
    if (list_of[i] == ui::kNobody || lists[list_of[i]].size() < 2) continue;
    std::uint16_t& group = group_of[list_of[i]];
    if (group == ui::kNobody) {
      group = static_cast<std::uint16_t>(owners.groups.size());
      ui::SharingGroup made{.sequences = lists[list_of[i]]};
      for (const std::uint16_t sequence : made.sequences) {
        if (made.sequences.size() > 3 && sequence == made.sequences[2]) {
          made.label += " + " + std::to_string(made.sequences.size() - 2) + " more";
          break;
        }
        made.label += (made.label.empty() ? "" : " + ") + sequences[sequence].label;
      }
      owners.groups.push_back(std::move(made));
    }
    ++owners.groups[group].num_blocks;
    owners.blocks[i].group = group;
  }
  number_groups(owners);
  return owners;
}

std::vector<ui::TableLine> table_lines(const KvSnapshot& snapshot,
                                       const std::vector<ui::ShownSequence>& sequences) {
  std::vector<ui::TableLine> lines;
  std::map<RequestId, std::vector<std::size_t>> outputs;
  std::vector<RequestId> order;
  for (std::size_t i = 0; i < snapshot.sequences.size() && i < sequences.size(); ++i) {
    const SequenceSnapshot& sequence = snapshot.sequences[i];
    // Sequences that nobody knows stand alone.
    const RequestId request =
        sequence.request_id.value != 0 ? sequence.request_id : RequestId{~sequence.sequence_id.value};
    auto& of_request = outputs[request];
    if (of_request.empty()) order.push_back(request);
    of_request.push_back(i);
  }
  const auto line_of = [&](std::size_t index) {
    const SequenceSnapshot& sequence = snapshot.sequences[index];
    return ui::TableLine{.label = sequences[index].label,
                         .colour_index = sequences[index].colour_index,
                         .state = sequence.state,
                         .chat_id = sequences[index].chat_id,
                         .sequence = sequence.sequence_id.value,
                         .blocks = sequence.block_table,
                         .num_left_behind = sequence.num_blocks_left_behind,
                         .state_slot = sequence.state_slot.value};
  };
  for (const RequestId request : order) {
    const auto& of_request = outputs[request];
    if (of_request.size() == 1) {
      lines.push_back(line_of(of_request.front()));
      continue;
    }
    ui::TableLine heading = line_of(of_request.front());
    heading.label = request_label(heading.label) + " · shared";
    heading.sequence = 0;
    heading.is_heading = true;
    for (const std::size_t index : of_request) {
      heading.blocks.resize(common_start(heading.blocks, snapshot.sequences[index].block_table));
    }
    lines.push_back(std::move(heading));
    for (const std::size_t index : of_request) {
      ui::TableLine line = line_of(index);
      line.label = output_label(line.label);
      line.is_indented = true;
      lines.push_back(std::move(line));
    }
  }
  for (ui::TableLine& line : lines) {
    for (const ui::TableLine& other : lines) {
      const bool is_same_place =
          (line.state == SequenceState::kSwapped) == (other.state == SequenceState::kSwapped);
      if (&line == &other || line.is_heading || other.is_heading || !is_same_place) continue;
      line.num_shared_prefix = std::max(line.num_shared_prefix,
                                        static_cast<std::int32_t>(common_start(line.blocks, other.blocks)));
    }
  }
  return lines;
}

void add_ghost_lines(const std::vector<ui::ChatState>& chats, std::vector<ui::TableLine>& lines) {
  const std::size_t num_running = lines.size();
  for (const ui::ChatState& chat : chats) {
    const auto end = lines.begin() + static_cast<std::ptrdiff_t>(num_running);
    const bool has_line =
        std::any_of(lines.begin(), end, [&](const ui::TableLine& line) { return line.chat_id == chat.id; });
    if (has_line || chat.memory.blocks.empty()) continue;
    ui::TableLine line{.label = chat.title, .colour_index = chat.colour_index, .chat_id = chat.id};
    line.is_ghost = true;
    for (const ui::ChatBlock& block : chat.memory.blocks) line.blocks.push_back(block.block_id);
    lines.push_back(std::move(line));
  }
}

}  // namespace octavo::app
