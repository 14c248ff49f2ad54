#include "ui/views/memory/memory_parts.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/memory_state.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr double kOldestShownUs = 60e6;
constexpr double kYoungestShownUs = 50e3;

// 0: just now, 1: a minute ago or more; in between by the logarithm.
float age_of(std::int64_t last_us, std::int64_t now_us) {
  const double age = std::clamp(static_cast<double>(now_us - last_us), kYoungestShownUs, kOldestShownUs);
  return static_cast<float>(std::log(age / kYoungestShownUs) / std::log(kOldestShownUs / kYoungestShownUs));
}

float fill_of(const MemoryWorkspaceState& state, const BlockSnapshot& block) {
  return static_cast<float>(block.filled) / static_cast<float>(std::max(1, state.pool.block_size));
}

ImU32 colour_of_used(const Frame& frame, const MemoryWorkspaceState& state, std::size_t index,
                     BlockColour colour) {
  const BlockSnapshot& block = state.snapshot->blocks[index];
  const Theme& theme = frame.theme;
  switch (colour) {
    case BlockColour::kOwner: return owner_colour(frame, state, index);
    case BlockColour::kReferences:
      return mix(theme.accent, theme.owner(1),
                 std::min(1.0f, 0.3f * static_cast<float>(block.ref_count - 1)));
    case BlockColour::kState: return block.filled < state.pool.block_size ? theme.warning : theme.accent;
    case BlockColour::kAge: break;
    case BlockColour::kSharing: {
      const std::uint16_t group = index < state.blocks.size() ? state.blocks[index].group : kNobody;
      return group == kNobody ? mix(theme.muted, theme.panel, 0.35f) : theme.owner(group);
    }
  }
  return theme.accent;
}

}  // namespace

const char* colour_word(BlockColour colour) {
  switch (colour) {
    case BlockColour::kOwner: return "owner";
    case BlockColour::kReferences: return "references";
    case BlockColour::kState: return "state";
    case BlockColour::kAge: return "age";
    case BlockColour::kSharing: return "sharing";
  }
  return "";
}

const char* order_word(BlockOrder order) {
  switch (order) {
    case BlockOrder::kIndex: return "index";
    case BlockOrder::kSequence: return "sequence";
    case BlockOrder::kPrefixTree: return "prefix tree";
  }
  return "";
}

ImU32 owner_colour(const Frame& frame, const MemoryWorkspaceState& state, std::size_t block) {
  const std::uint16_t owner = block < state.blocks.size() ? state.blocks[block].owner : kNobody;
  return owner < state.sequences.size() ? frame.theme.owner(state.sequences[owner].colour_index)
                                        : frame.theme.muted;
}

CellLook look_of(const Frame& frame, const MemoryWorkspaceState& state, std::size_t index,
                 BlockColour colour) {
  const BlockSnapshot& block = state.snapshot->blocks[index];
  if (block.state == BlockState::kFree) return {frame.theme.free};
  if (colour == BlockColour::kAge && index < state.blocks.size()) {
    const float age = age_of(state.blocks[index].last_us, state.cursor.time_us);
    return {mix(frame.theme.accent, frame.theme.cached, age), fill_of(state, block), false};
  }
  if (block.state == BlockState::kCached) return {frame.theme.cached};
  return {colour_of_used(frame, state, index, colour), fill_of(state, block), block.ref_count > 1};
}

const char* state_word(BlockState state) {
  switch (state) {
    case BlockState::kFree: return "free";
    case BlockState::kCached: return "cached, not in use";
    case BlockState::kUsed: return "used";
  }
  return "";
}

const char* place_word(CheckpointReason reason) {
  switch (reason) {
    case CheckpointReason::kSystemPrompt: return "behind the system prompt";
    case CheckpointReason::kNextTurn: return "where the next turn parts";
    case CheckpointReason::kEnd: return "where a sequence ended";
    case CheckpointReason::kLong: return "on the way through a long text";
  }
  return "";
}

std::string block_summary(const MemoryWorkspaceState& state, int index) {
  const auto at = static_cast<std::size_t>(index);
  const BlockSnapshot& block = state.snapshot->blocks[at];
  std::string text = "Block " + with_thousands(index) + "\n" + state_word(block.state);
  if (block.state == BlockState::kFree) return text;
  text += "\nfilled " + std::to_string(block.filled) + " of " + std::to_string(state.pool.block_size);
  if (block.state == BlockState::kUsed) text += "\n" + count_text(block.ref_count, "reference");
  const std::uint16_t owner = at < state.blocks.size() ? state.blocks[at].owner : kNobody;
  if (owner < state.sequences.size()) text += "\n" + state.sequences[owner].label;
  return text;
}

bool is_lit(const MemoryWorkspaceState& state, int block) {
  const auto& lit = state.hover.blocks;
  return std::find(lit.begin(), lit.end(), BlockId{block}) != lit.end();
}

bool is_state_lit(const MemoryWorkspaceState& state, int state_slot) {
  const auto& lit = state.hover.states;
  return std::find(lit.begin(), lit.end(), BlockId{state_slot}) != lit.end();
}

std::string time_text(const MemoryWorkspaceState& state, std::int64_t time_us) {
  return seconds_text(time_us - state.timeline->origin_us);
}

float widest_chip(const Frame& frame, std::initializer_list<std::string_view> words) {
  float widest = 0;
  for (const std::string_view word : words)
    widest = std::max(widest, text_width(frame, tiny_text(frame), word));
  return std::ceil(widest) + frame.px(18);
}

void draw_hint(const Frame& frame, std::string_view text) {
  TextStyle style = small_text(frame);
  style.colour = frame.theme.faint;
  paragraph(frame, style, text, ImGui::GetContentRegionAvail().x);
}

}  // namespace octavo::ui
