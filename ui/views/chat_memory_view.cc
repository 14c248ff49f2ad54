#include "ui/views/chat_memory_view.h"

#include <algorithm>

#include "engine/base/format.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/event_lines.h"
#include "ui/views/memory/memory_parts.h"
#include "ui/widgets/cells.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kPitch = 26;
constexpr std::size_t kNumEvents = 12;

std::string counts_text(const ChatMemory& memory) {
  if (!memory.host_blocks.empty()) {
    return count_text(static_cast<std::int64_t>(memory.host_blocks.size()), "block") +
           " swapped out to host memory";
  }
  if (memory.blocks.empty()) return "No blocks yet. The first message allocates some.";
  std::string text = count_text(static_cast<std::int64_t>(memory.blocks.size()), "block");
  if (memory.num_shared > 0) {
    text += ", " + with_thousands(memory.num_shared) + " shared with " +
            count_text(memory.num_sharing_chats, "chat");
  }
  return text;
}

CellLook look_of(const Frame& frame, const UiState& state, const ChatState& chat, const ChatBlock& block) {
  const float fill =
      static_cast<float>(block.filled) / static_cast<float>(std::max(1, state.model.block_size));
  ImU32 colour = frame.theme.owner(chat.colour_index);
  if (block.cached) colour = mix(frame.theme.cached, colour, 0.35f);
  if (block.being_written) colour = frame.theme.accent;
  return {colour, fill, block.shared};
}

std::string block_text(const UiState& state, const ChatBlock& block) {
  return "Block " + with_thousands(block.block_id.value) + "\nfilled " + std::to_string(block.filled) +
         " of " + std::to_string(state.model.block_size) +
         (block.shared ? "\nshared with another chat" : "") +
         (block.cached ? "\ncached: reusable until the memory is needed" : "") +
         (block.being_written ? "\nbeing written" : "") + "\nClick to inspect it in Memory";
}

// Gives the block under the pointer, or -1.
int draw_blocks(const Frame& frame, const UiState& state, const ChatState& chat, float width) {
  const auto& blocks = chat.memory.blocks;
  // The pitch shrinks until a full context fits into the column.
  const float pitch = frame.px(blocks.size() <= 130 ? kPitch : blocks.size() <= 600 ? 14 : 8);
  const CellGrid grid =
      make_cell_grid(ImGui::GetCursorScreenPos(), width, pitch, std::max(1.0f, pitch * 0.12f));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto count = static_cast<int>(blocks.size());
  for (int i = 0; i < count; ++i) {
    draw_cell(frame.theme, list, grid.low(i), grid.high(i),
              look_of(frame, state, chat, blocks[static_cast<std::size_t>(i)]));
    if (is_lit(state.memory_workspace, blocks[static_cast<std::size_t>(i)].block_id.value))
      draw_cell_ring(frame.theme, list, grid.low(i), grid.high(i));
  }
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  const bool was_clicked = ImGui::InvisibleButton("chat_blocks", {width, grid.height(count)});
  ImGui::PopItemFlag();
  const int pointed = ImGui::IsItemHovered() ? grid.at(ImGui::GetMousePos(), count) : -1;
  if (pointed < 0) return -1;
  const ChatBlock& block = blocks[static_cast<std::size_t>(pointed)];
  draw_cell_ring(frame.theme, list, grid.low(pointed), grid.high(pointed));
  tooltip_now(frame, block_text(state, block));
  if (was_clicked) {
    frame.actions.push(actions::ShowWorkspace{Workspace::kMemory});
    frame.actions.push(actions::ChooseBlock{block.block_id.value});
  }
  return block.block_id.value;
}

void draw_key(const Frame& frame, const CellLook& look, const char* text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = frame.px(9);
  draw_cell(frame.theme, ImGui::GetWindowDrawList(), {at.x, at.y + frame.px(5)},
            {at.x + side, at.y + frame.px(5) + side}, look);
  ImGui::Dummy({side, side});
  beside(frame, 7);
  line(frame, tiny_text(frame), text);
}

void draw_legend(const Frame& frame, const ChatState& chat) {
  const ImU32 owner = frame.theme.owner(chat.colour_index);
  gap(frame, 4);
  draw_key(frame, {owner}, "this chat");
  beside(frame, 14);
  draw_key(frame, {owner, 1.0f, true}, "shared");
  draw_key(frame, {frame.theme.accent, 0.5f}, "being written");
  beside(frame, 14);
  draw_key(frame, {mix(frame.theme.cached, owner, 0.35f)}, "cached");
}

}  // namespace

void draw_chat_memory_view(const Frame& frame, const UiState& state, const ChatState& chat) {
  const float width = ImGui::GetContentRegionAvail().x;
  heading_line(frame, "This chat in memory");
  if (state.model.is_remote)
    return paragraph(frame, tiny_text(frame), "Its blocks are on the server, which does not show them.",
                     width);
  paragraph(frame, tiny_text(frame), counts_text(chat.memory), width);
  gap(frame, 10);
  int pointed = -1;
  if (!chat.memory.blocks.empty()) {
    pointed = draw_blocks(frame, state, chat, width);
    draw_legend(frame, chat);
    gap(frame, 20);
  } else {
    gap(frame, 12);
  }
  heading_line(frame, "Recent events");
  gap(frame, 4);
  draw_event_lines(frame, *state.memory.timeline, kNumEvents, width);
  // Its words light up in every chat that shares it.
  const int told = state.memory_workspace.hover.block ? state.memory_workspace.hover.block->value : -1;
  if (pointed != told) frame.actions.push(actions::HoverBlock{pointed});
}

}  // namespace octavo::ui
