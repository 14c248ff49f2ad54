#include "ui/views/memory/window_part_strip.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kPitch = 20, kLeastPitch = 6, kHeading = 30, kLegend = 24, kMostHeight = 60;
constexpr float kSpaceShare = 0.12f;  // of a cell's pitch

float height_with(const MemoryWorkspaceState& state, float pitch, float width) {
  const auto count = static_cast<float>(state.window_parts.size());
  return std::ceil(count / std::max(1.0f, std::floor(width / pitch))) * pitch;
}

// As large as all cells fit into the strip; the least scrolls.
float pitch_of(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  float pitch = frame.px(kPitch);
  while (pitch > frame.px(kLeastPitch) && height_with(state, pitch, width) > frame.px(kMostHeight))
    pitch -= 1;
  return std::min(pitch, width);
}

// Within the child that scrolls, if it must. A ring reaches beyond the last row.
float cells_height(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  return std::ceil(
             std::min(frame.px(kMostHeight), height_with(state, pitch_of(frame, state, width), width))) +
         frame.px(3);
}

CellLook kept_look(const Theme& theme, RetentionClass retention) {
  return {retention == RetentionClass::kScratch ? mix(theme.cached, theme.free, 0.55f) : theme.cached};
}

CellLook look_of_place(const Frame& frame, const MemoryWorkspaceState& state, const ShownWindowPart& part) {
  if (part.block.value < 0) return {frame.theme.free};
  const BlockSnapshot& block = state.snapshot->blocks[index_of(part.block)];
  if (block.window == WindowPart::kCached) return kept_look(frame.theme, block.window_retention);
  const ImU32 colour = part.reader < state.sequences.size()
                           ? frame.theme.owner(state.sequences[part.reader].colour_index)
                           : frame.theme.muted;
  return {colour, 1.0f, part.num_readers > 1};
}

std::string summary_of(const MemoryWorkspaceState& state, int place) {
  const ShownWindowPart& part = state.window_parts[static_cast<std::size_t>(place)];
  std::string text = "Window part " + with_thousands(place);
  if (part.block.value < 0) return text + "\nfree";
  const BlockSnapshot& block = state.snapshot->blocks[index_of(part.block)];
  text += "\nof block " + with_thousands(part.block.value);
  if (block.window == WindowPart::kCached) return text + "\n" + window_keeping(block.window_retention);
  text += "\nread by " + count_text(part.num_readers, "sequence");
  if (part.reader < state.sequences.size()) text += "\n" + state.sequences[part.reader].label;
  if (part.num_readers > 1) text += "\nand " + with_thousands(part.num_readers - 1) + " more";
  return text;
}

std::string heading_note(const Frame& frame, const MemoryWorkspaceState& state, float room) {
  const KvFigures& figures = state.snapshot->figures;
  const std::string used = with_thousands(figures.used_window_blocks) + " of " +
                           with_thousands(state.pool.num_window_blocks) + " read";
  const std::string kept = " · " + with_thousands(figures.cached_window_blocks) + " kept";
  const std::string each = " · " + bytes_text(state.pool.bytes_per_window_block) + " each";
  const std::string window = " · window of " + count_text(state.pool.window, "token");
  const std::string notes[] = {used + kept + each + window, used + kept + each, used + kept, used};
  return std::string(first_that_fits(frame, small_text(frame), notes, room));
}

void draw_part_legend(const Frame& frame, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const Theme& theme = frame.theme;
  const float right = at.x + width;
  draw_strip_key(frame, {theme.owner(0)}, "read", right);
  draw_strip_key(frame, {theme.owner(0), 1.0f, true}, "by several", right);
  draw_strip_key(frame, kept_look(theme, RetentionClass::kChat), "kept", right);
  draw_strip_key(frame, kept_look(theme, RetentionClass::kScratch), "goes first", right);
  draw_strip_key(frame, {theme.free}, "free", right);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, frame.px(kLegend - 4)});
  tooltip(frame,
          "Layers with a window read the last tokens only. What they need of a block is its window part.\n"
          "When a window has passed, the part is kept where a prompt may go on from: at the end of\n"
          "a system prompt and where the next turn parts. Any other goes first when a place is needed.\n"
          "In the map, a line at the foot of a block is a part that is read, dots are one that is kept.");
}

void draw_places(const Frame& frame, const MemoryWorkspaceState& state, float width, Pointing& pointing) {
  const auto count = static_cast<int>(state.window_parts.size());
  const float pitch = pitch_of(frame, state, width);
  const CellGrid grid = make_cell_grid(ImGui::GetCursorScreenPos(), width, pitch,
                                       std::max(1.0f, std::round(pitch * kSpaceShare)));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const int first_row = std::max(0, static_cast<int>((low.y - grid.origin.y) / grid.pitch));
  const int last_row = static_cast<int>((low.y + size.y - grid.origin.y) / grid.pitch);
  const int end = std::min(count, (last_row + 1) * grid.columns);
  for (int i = first_row * grid.columns; i < end; ++i) {
    draw_cell(frame.theme, list, grid.low(i), grid.high(i),
              look_of_place(frame, state, state.window_parts[static_cast<std::size_t>(i)]));
  }
  const bool was_clicked = ImGui::InvisibleButton("window_part_cells", {width, grid.height(count)});
  // A ring lies around its cell, and that of the first ones beyond the child.
  const float beyond = frame.px(3);
  const auto ring = [&](BlockId block) {
    if (block.value < 0 || index_of(block) >= state.snapshot->blocks.size()) return;
    const int place = state.snapshot->blocks[index_of(block)].window_place.value;
    if (place < 0 || place >= count) return;
    list->PushClipRect({low.x - beyond, low.y - beyond}, {low.x + size.x + beyond, low.y + size.y + beyond});
    draw_cell_ring(frame.theme, list, grid.low(place), grid.high(place));
    list->PopClipRect();
  };
  if (state.card) ring(state.card->block);
  for (const BlockId lit : state.hover.blocks) ring(lit);
  const int pointed = ImGui::IsItemHovered() ? grid.at(ImGui::GetMousePos(), count) : -1;
  if (pointed < 0) return;
  const BlockId block = state.window_parts[static_cast<std::size_t>(pointed)].block;
  tooltip_now(frame, summary_of(state, pointed));
  if (block.value < 0) return;
  ring(block);
  pointing.block = block.value;
  if (was_clicked) frame.actions.push(actions::ChooseBlock{block.value});
}

}  // namespace

float window_part_strip_height(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  if (state.window_parts.empty()) return 0;
  return frame.px(kHeading + kLegend) + cells_height(frame, state, width);
}

void draw_window_part_strip(const Frame& frame, const MemoryWorkspaceState& state, float width,
                            Pointing& pointing) {
  if (state.window_parts.empty()) return;
  const float height = window_part_strip_height(frame, state, width);
  const float title = text_width(frame, heading_text(frame), "Window parts") + frame.px(12);
  heading_line(frame, "Window parts", heading_note(frame, state, std::max(1.0f, width - title)));
  gap(frame, 4);
  ImGui::BeginChild("window_parts", {width, height - frame.px(kHeading + kLegend)},
                    ImGuiChildFlags_NavFlattened);
  draw_places(frame, state, ImGui::GetContentRegionAvail().x, pointing);
  ImGui::EndChild();
  draw_part_legend(frame, width);
}

}  // namespace octavo::ui
