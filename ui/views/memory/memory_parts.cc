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
    case BlockColour::kWindow:
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
    case BlockColour::kWindow: return "window";
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
  if (colour == BlockColour::kWindow) {
    CellLook look = look_of_part(frame.theme, block.window);
    look.fill = fill_of(state, block);
    return look;
  }
  if (block.state == BlockState::kCached) return {frame.theme.cached};
  return {colour_of_used(frame, state, index, colour), fill_of(state, block), block.ref_count > 1};
}

CellLook look_of_part(const Theme& theme, WindowPart part) {
  switch (part) {
    case WindowPart::kUsed: return {theme.accent};
    case WindowPart::kCached: return {mix(theme.accent, theme.panel, 0.55f)};
    case WindowPart::kNone: break;
  }
  return {theme.cached};
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

const char* window_keeping(RetentionClass retention) {
  switch (retention) {
    case RetentionClass::kScratch: return "kept while there is room";
    case RetentionClass::kChat: return "kept for the next turn";
    case RetentionClass::kSystemPrompt: return "kept for whoever has the same system prompt";
    case RetentionClass::kPinned: return "kept, as its block is pinned";
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
  if (state.pool.num_window_blocks == 0) return text;
  switch (block.window) {
    case WindowPart::kUsed: return text + "\nwindow part in use";
    case WindowPart::kCached: return text + "\nwindow part " + window_keeping(block.window_retention);
    case WindowPart::kNone: break;
  }
  return text + "\nno window part: left behind";
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

void draw_window_mark(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, WindowPart part,
                      ImU32 ground) {
  if (part == WindowPart::kNone) return;
  const float width = high.x - low.x, inset = std::floor(width * 0.18f);
  const float thickness = std::max(2.0f, std::floor((high.y - low.y) * 0.13f));
  const float bottom = high.y - std::max(1.0f, std::floor((high.y - low.y) * 0.1f)), top = bottom - thickness;
  const float from = low.x + inset, to = high.x - inset;
  const ImU32 colour = readable(frame.theme.text, ground);
  if (part == WindowPart::kUsed) return list->AddRectFilled({from, top}, {to, bottom}, colour);
  const float dot = std::max(1.0f, std::min(thickness, std::floor((to - from) * 0.22f)));
  for (const float x : {from, (from + to - dot) * 0.5f, to - dot})
    list->AddRectFilled({std::round(x), top}, {std::round(x) + dot, bottom}, colour);
}

void draw_strip_key(const Frame& frame, const CellLook& look, const char* text, float right) {
  const float width = frame.px(15) + text_width(frame, tiny_text(frame), text);
  if (ImGui::GetCursorScreenPos().x + width > right) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = frame.px(9), top = at.y + frame.px(5);
  draw_cell(frame.theme, ImGui::GetWindowDrawList(), {at.x, top}, {at.x + side, top + side}, look);
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + frame.px(15), at.y}, tiny_text(frame), text);
  ImGui::SetCursorScreenPos({at.x + width + frame.px(12), at.y});
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
