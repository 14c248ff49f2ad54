#include "ui/views/memory/block_tables.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/state_strip.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kLabel = 128, kIndent = 14;
constexpr float kCellHeight = 16, kRowSpace = 8, kWithIds = 30, kPlain = 11;

struct Layout {
  float label, pitch, height, width;
  int columns;
  bool has_ids;
};

Layout layout_of(const Frame& frame, const MemoryWorkspaceState& state, float width) {
  Layout layout{.label = frame.px(kLabel),
                .pitch = 0,
                .height = frame.px(kCellHeight),
                .width = width,
                .columns = 1,
                .has_ids = false};
  std::size_t longest = 1;
  for (const TableLine& line : state.lines) longest = std::max(longest, line.blocks.size());
  const float room = std::max(frame.px(40), width - layout.label);
  layout.has_ids = static_cast<float>(longest) * frame.px(kWithIds) <= room * 2.0f;
  layout.pitch = frame.px(layout.has_ids ? kWithIds : kPlain);
  layout.columns = std::max(1, static_cast<int>(room / layout.pitch));
  return layout;
}

bool is_left_behind(const TableLine& line, std::size_t index) {
  return !line.is_heading && std::cmp_less(index, line.num_left_behind);
}

// Paler than what the window is over.
ImU32 left_behind_colour(const Theme& theme, ImU32 colour) { return mix(colour, theme.panel, 0.62f); }

// Diagonals the other way than those of shared cells, and an outline: it lies in the host pool.
void draw_swapped_cell(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, ImU32 colour) {
  list->AddRectFilled(low, high, with_alpha(colour, 0.16f), frame.px(2));
  for (float x = low.x - (high.y - low.y); x < high.x; x += frame.px(5)) {
    const float begin = std::max(low.x, x), end = std::min(high.x, x + high.y - low.y);
    if (end - begin < 1) continue;
    list->AddLine({begin, high.y - (begin - x)}, {end, high.y - (end - x)}, with_alpha(colour, 0.6f), 1.0f);
  }
  list->AddRect(low, high, colour, frame.px(2));
}

// Under the cells of a row that other rows begin with as well.
void draw_bracket(const Frame& frame, ImDrawList* list, float from, float to, float y) {
  const float tick = frame.px(3);
  list->AddLineV(from, y - tick, y, frame.theme.muted);
  list->AddLineH(from, to, y, frame.theme.muted);
  list->AddLineV(to, y - tick, y, frame.theme.muted);
}

void draw_cell_of(const Frame& frame, const MemoryWorkspaceState& state, const TableLine& line,
                  std::size_t index, ImVec2 low, ImVec2 high, const Layout& layout, Pointing& pointing) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const int block = line.blocks[index].value;
  const ImU32 colour = frame.theme.owner(line.colour_index);
  const bool is_pointed = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(low, high);
  if (line.state == SequenceState::kSwapped) {
    draw_swapped_cell(frame, list, low, high,
                      is_left_behind(line, index) ? left_behind_colour(frame.theme, colour) : colour);
    if (is_pointed)
      tooltip_now(frame, "Logical block " + std::to_string(index) + "\nswapped out to host block " +
                             with_thousands(block) +
                             (is_left_behind(line, index) ? "\nleft behind by its window" : ""));
    return;
  }
  if (block < 0 || static_cast<std::size_t>(block) >= state.snapshot->blocks.size()) return;
  CellLook look = look_of(frame, state, static_cast<std::size_t>(block), BlockColour::kOwner);
  look.colour = line.is_ghost                 ? mix(frame.theme.cached, colour, 0.3f)
                : line.is_heading             ? mix(colour, frame.theme.panel, 0.35f)
                : is_left_behind(line, index) ? left_behind_colour(frame.theme, colour)
                                              : colour;
  draw_cell(frame.theme, list, low, high, look);
  if (layout.has_ids) {
    TextStyle style = tiny_text(frame);
    style.em = 10;
    style.colour = readable(frame.theme.on_accent, look.colour);
    const std::string id = std::to_string(block);
    const float width = text_width(frame, style, id);
    const float x = std::max(low.x + 1, (low.x + high.x - width) * 0.5f);
    if (look.hatched || look.fill < 1.0f)  // it stands on a plain ground
      list->AddRectFilled({x - 1, low.y + 1}, {std::min(x + width + 1, high.x - 1), high.y - 1}, look.colour,
                          frame.px(2));
    draw_text(frame, list, {x, low.y + frame.px(0.5f)}, style, id, high.x - x);
  }
  if (state.blocks[static_cast<std::size_t>(block)].checkpoint >= 0)
    draw_checkpoint_flag(frame, list, low, high, look.colour);
  draw_window_mark(frame, list, low, high, state.snapshot->blocks[static_cast<std::size_t>(block)].window,
                   look.colour);
  const bool is_chosen = state.card && state.card->block.value == block;
  if (is_pointed) {
    pointing.block = block;
    tooltip_now(
        frame,
        (line.is_ghost ? "Left in the cache by " + line.label : "Logical block " + std::to_string(index)) +
            (is_left_behind(line, index) ? "\nleft behind by the window of " + line.label : "") + "\n" +
            block_summary(state, block));
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) frame.actions.push(actions::ChooseBlock{block});
  }
  if (is_chosen || is_pointed || is_lit(state, block)) draw_cell_ring(frame.theme, list, low, high);
}

const char* state_note(const TableLine& line) {
  switch (line.state) {
    case SequenceState::kSwapped: return "swapped out";
    case SequenceState::kWaiting: return "waiting";
    case SequenceState::kRunning: return "";
  }
  return "";
}

float row_height(const Frame& frame, const TableLine& line, const Layout& layout) {
  const auto rows =
      std::max<std::size_t>(1, (line.blocks.size() + static_cast<std::size_t>(layout.columns) - 1) /
                                   static_cast<std::size_t>(layout.columns));
  return static_cast<float>(rows) * (layout.height + frame.px(5)) + frame.px(kRowSpace - 5);
}

void draw_row(const Frame& frame, const MemoryWorkspaceState& state, const TableLine& line,
              const Layout& layout, Pointing& pointing) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float indent = line.is_indented ? frame.px(kIndent) : 0;
  TextStyle style = small_text(frame);
  style.colour = line.is_heading || line.is_indented || line.is_ghost ? frame.theme.muted : frame.theme.text;
  draw_text(frame, list, {low.x + indent, low.y - frame.px(2)}, style, line.label,
            layout.label - indent - frame.px(line.state_slot >= 0 ? 24 : 10));
  draw_state_mark(frame, state, line,
                  {low.x + layout.label - frame.px(12), low.y + std::round(layout.height * 0.5f)}, pointing);
  if (line.blocks.empty()) {
    TextStyle note = tiny_text(frame);
    note.colour = frame.theme.faint;
    const char* word = line.is_heading ? "nothing shared" : state_note(line);
    draw_text(frame, list, {low.x + layout.label, low.y - frame.px(1)}, note, word);
  }
  const auto columns = static_cast<std::size_t>(layout.columns);
  for (std::size_t i = 0; i < line.blocks.size(); ++i) {
    const ImVec2 from{low.x + layout.label + static_cast<float>(i % columns) * layout.pitch,
                      low.y + static_cast<float>(i / columns) * (layout.height + frame.px(5))};
    draw_cell_of(frame, state, line, i, from, {from.x + layout.pitch - frame.px(2), from.y + layout.height},
                 layout, pointing);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(line.num_shared_prefix); i += columns) {
    const std::size_t end =
        std::min<std::size_t>(i + columns, static_cast<std::size_t>(line.num_shared_prefix));
    const float y =
        low.y + static_cast<float>(i / columns) * (layout.height + frame.px(5)) + layout.height + frame.px(3);
    draw_bracket(frame, list, low.x + layout.label,
                 low.x + layout.label + static_cast<float>(end - i) * layout.pitch - frame.px(2), y);
  }
}

}  // namespace

void draw_block_tables(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing) {
  if (state.snapshot == nullptr || state.lines.empty()) {
    draw_hint(frame, "No chat holds blocks. Each has a row here, running or left in the cache.");
    return;
  }
  ImGui::BeginChild("table_rows", {0, 0}, ImGuiChildFlags_NavFlattened);
  const Layout layout = layout_of(frame, state, ImGui::GetContentRegionAvail().x);
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowHeight();
  gap(frame, 4);
  for (const TableLine& line : state.lines) {
    const ImVec2 low = ImGui::GetCursorScreenPos();
    const float height = row_height(frame, line, layout);
    if (low.y + height >= top && low.y <= bottom) draw_row(frame, state, line, layout, pointing);
    ImGui::SetCursorScreenPos(low);
    ImGui::Dummy({layout.width, height});
  }
  gap(frame, 4);
  TextStyle note = tiny_text(frame);
  note.colour = frame.theme.faint;
  std::string key =
      "hatched: shared · bracket: prefix shared with another row · outlined: in host memory · "
      "faint: left in the cache by an idle chat";
  if (state.pool.num_states > 0) key += " · dot: its recurrent state · corner: a checkpoint stands there";
  if (state.pool.num_window_blocks > 0)
    key += " · paler: left behind by its window · line at the foot: window part read · dots: kept";
  paragraph(frame, note, key, layout.width);
  ImGui::EndChild();
}

}  // namespace octavo::ui
