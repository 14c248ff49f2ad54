#include "ui/views/memory/slot_map.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/base/format.h"
#include "engine/base/text.h"
#include "ui/memory_actions.h"
#include "ui/views/memory/state_strip.h"
#include "ui/views/memory/window_part_strip.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kHeading = 26, kHostHeading = 28, kLegendRow = 22;  // design pixels
constexpr float kCellHeader = 22, kBand = 4, kCellPadding = 5, kCellSpace = 8, kSlotSpace = 4;
constexpr float kGoodSlotWidth = 86, kGoodSlotHeight = 26;  // a word of nine letters has room
constexpr float kLeastSlotHeight = 17;
constexpr float kChip = 15, kLeastWord = 10.5f;

// ---- where everything stands

struct Layout {
  int columns = 1, slot_columns = 1, slot_rows = 1;
  ImVec2 cell = {};  // without the space to the next one
  float space = 0;

  ImVec2 low(ImVec2 origin, int index) const {
    return {origin.x + static_cast<float>(index % columns) * (cell.x + space),
            origin.y + static_cast<float>(index / columns) * (cell.y + space)};
  }
  float height(int count) const {
    const int rows = (count + columns - 1) / columns;
    return static_cast<float>(rows) * (cell.y + space);
  }
};

ImVec2 slot_extent(const Frame& frame, const Layout& layout) {
  const float padding = frame.px(kCellPadding), space = frame.px(kSlotSpace);
  const auto columns = static_cast<float>(layout.slot_columns), rows = static_cast<float>(layout.slot_rows);
  return {std::floor((layout.cell.x - 2 * padding - (columns - 1) * space) / columns),
          std::floor((layout.cell.y - frame.px(kCellHeader) - padding - (rows - 1) * space) / rows)};
}

// Of all ways to put the blocks of both pools into rows, and the slots into a block, the one that leaves most
// room for a word. `room` is without headings.
Layout layout_of(const Frame& frame, int num_device, int num_host, int block_size, ImVec2 room) {
  Layout best;
  float best_score = -1;
  const float space = frame.px(kCellSpace);
  for (int columns = 1; columns <= std::max(1, num_device); ++columns) {
    const int rows = (num_device + columns - 1) / columns + (num_host + columns - 1) / columns;
    for (int slot_columns = 1; slot_columns <= block_size; ++slot_columns) {
      Layout layout{.columns = columns,
                    .slot_columns = slot_columns,
                    .slot_rows = (block_size + slot_columns - 1) / slot_columns,
                    .space = space};
      layout.cell = {std::floor((room.x + space) / static_cast<float>(columns) - space),
                     std::floor(room.y / static_cast<float>(std::max(1, rows)) - space)};
      const ImVec2 slot = slot_extent(frame, layout);
      const float score = std::min(slot.x / frame.px(kGoodSlotWidth), slot.y / frame.px(kGoodSlotHeight));
      if (score <= best_score) continue;
      best_score = score;
      best = layout;
    }
  }
  // Where not all of it has room, it scrolls.
  const auto rows = static_cast<float>(best.slot_rows);
  best.cell.y =
      std::max(best.cell.y, frame.px(kCellHeader) + frame.px(kCellPadding) +
                                rows * frame.px(kLeastSlotHeight) + (rows - 1) * frame.px(kSlotSpace));
  return best;
}

// ---- colours

ImU32 colour_of(const Frame& frame, const MemoryWorkspaceState& state, std::uint16_t sequence) {
  return sequence < state.sequences.size() ? frame.theme.owner(state.sequences[sequence].colour_index)
                                           : frame.theme.muted;
}

ImU32 colour_of(const Frame& frame, const MemoryWorkspaceState& state, const ShownCell& cell) {
  return cell.owners.empty() ? frame.theme.cached : colour_of(frame, state, cell.owners.front());
}

// Whose a shared block is its band says; its slots belong to all of them.
ImU32 slot_fill(const Frame& frame, ImU32 colour, SlotUse use) {
  switch (use) {
    case SlotUse::kComputed: return colour;
    case SlotUse::kReused: return mix(frame.theme.panel, colour, 0.34f);
    case SlotUse::kKept: return mix(frame.theme.panel, colour, 0.14f);
  }
  return colour;
}

// ---- one block

void draw_chip(const Frame& frame, ImDrawList* list, ImVec2 low, std::string_view tag, ImU32 colour) {
  const float side = frame.px(kChip);
  TextStyle style = tiny_text(frame);
  style.em = 10;
  style.face = FontFace::kSemiBold;
  style.colour = readable(frame.theme.text, colour);
  const float width = text_width(frame, style, tag);
  const float wide = std::max(side, width + frame.px(5));
  list->AddRectFilled(low, {low.x + wide, low.y + side}, colour, frame.px(4));
  draw_text(frame, list, {std::floor(low.x + (wide - width) * 0.5f), low.y}, style, tag);
}

float chip_width(const Frame& frame, std::string_view tag) {
  TextStyle style = tiny_text(frame);
  style.em = 10;
  style.face = FontFace::kSemiBold;
  return std::max(frame.px(kChip), text_width(frame, style, tag) + frame.px(5));
}

void draw_empty_slot(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high) {
  list->AddRect(low, high, mix(frame.theme.line, frame.theme.muted, 0.3f), frame.px(3), 1.0f);
}

void draw_slot(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, const ShownSlot& slot,
               ImU32 colour) {
  const bool is_cached = colour == frame.theme.cached;  // nobody's: it can be found again
  const ImU32 fill = is_cached ? mix(frame.theme.panel, colour, 0.7f) : slot_fill(frame, colour, slot.use);
  const float rounding = frame.px(3), mark = std::max(2.0f, frame.px(2));
  list->AddRectFilled(low, high, fill, rounding);
  if (slot.use == SlotUse::kComputed) list->AddRect(low, high, frame.theme.text, rounding, mark);
  if (slot.use == SlotUse::kReused) list->AddRectFilled({low.x, high.y - mark}, high, colour);
  TextStyle style = small_text(frame);
  style.line_height = 1.2f;
  const float height = high.y - low.y - frame.px(2);
  style.em = std::clamp(height / frame.theme.scale / style.line_height, kLeastWord, 16.0f);
  style.colour = readable(frame.theme.text, fill);
  const float room = high.x - low.x - frame.px(6);
  const float whole = text_width(frame, style, slot.word);  // smaller before shorter
  if (whole > room) style.em = std::max(kLeastWord, std::floor(style.em * room / whole * 2) / 2);
  const std::string word = elide(frame, style, slot.word, room);
  const float width = text_width(frame, style, word);
  if (width > room + 1) return;  // not even the ellipsis
  draw_text(frame, list,
            {std::floor((low.x + high.x - width) * 0.5f),
             std::floor((low.y + high.y - line_pixels(frame, style)) * 0.5f)},
            style, word);
}

// Its number, whose it is, and how many references it has; as much of it as has room.
void draw_header(const Frame& frame, const MemoryWorkspaceState& state, ImDrawList* list, ImVec2 low,
                 float width, int block, const ShownCell& cell) {
  TextStyle style = tiny_text(frame);
  const float end = low.x + width - frame.px(kCellPadding), y = low.y + frame.px(kBand);
  float x = low.x + frame.px(kCellPadding);
  const std::string id = std::to_string(block);
  draw_text(frame, list, {x, y}, style, id);
  x += text_width(frame, style, id) + frame.px(7);
  const std::string references = "×" + std::to_string(cell.ref_count);
  const float kept = cell.ref_count > 1 ? text_width(frame, style, references) + frame.px(4) : 0;
  for (const std::uint16_t owner : cell.owners) {
    if (owner >= state.sequences.size()) continue;
    const std::string tag = sequence_tag(state.sequences[owner].label);
    const float wide = chip_width(frame, tag);
    if (x + wide > end - kept) break;
    draw_chip(frame, list, {x, y + frame.px(1)}, tag, colour_of(frame, state, owner));
    x += wide + frame.px(3);
  }
  style.colour = frame.theme.text;
  if (kept > 0 && x + kept <= end + frame.px(4)) {
    draw_text(frame, list, {x + frame.px(3), y}, style, references);
    return;
  }
  style.colour = frame.theme.faint;
  const char* word = cell.state == BlockState::kCached ? "cached"
                     : cell.state == BlockState::kFree ? "free"
                                                       : "";
  if (*word != '\0' && text_width(frame, style, word) <= end - x) draw_text(frame, list, {x, y}, style, word);
}

// The colours of all who share a block, side by side.
void draw_band(const Frame& frame, const MemoryWorkspaceState& state, ImDrawList* list, ImVec2 low,
               float width, const ShownCell& cell) {
  const float height = frame.px(kBand);
  const auto count = static_cast<float>(std::max<std::size_t>(1, cell.owners.size()));
  for (std::size_t i = 0; i < std::max<std::size_t>(1, cell.owners.size()); ++i) {
    const ImU32 colour = cell.owners.empty() ? frame.theme.cached : colour_of(frame, state, cell.owners[i]);
    const auto part = static_cast<float>(i);
    list->AddRectFilled({std::round(low.x + width * part / count), low.y},
                        {std::round(low.x + width * (part + 1) / count), low.y + height}, colour);
  }
}

// Of a window part, in the space below the slots: a line while somebody reads it, dashes while it is kept.
void draw_foot(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, WindowPart part) {
  if (part == WindowPart::kNone) return;
  const float thickness = std::max(2.0f, frame.px(2.5f)), y = std::floor(high.y - frame.px(1.5f) - thickness);
  const float from = low.x + frame.px(kCellPadding), to = high.x - frame.px(kCellPadding);
  const ImU32 colour = frame.theme.text;
  if (part == WindowPart::kUsed) return list->AddRectFilled({from, y}, {to, y + thickness}, colour);
  for (float x = from; x < to; x += frame.px(9))
    list->AddRectFilled({x, y}, {std::min(x + frame.px(4), to), y + thickness}, colour);
}

void draw_block(const Frame& frame, const MemoryWorkspaceState& state, const Layout& layout, ImVec2 low,
                int block, const ShownCell& cell, WindowPart part) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 high{low.x + layout.cell.x, low.y + layout.cell.y};
  const Theme& theme = frame.theme;
  const bool is_free = cell.state == BlockState::kFree;
  list->AddRectFilled(low, high, is_free ? theme.panel : mix(theme.panel, theme.free, 0.6f), frame.px(4));
  list->AddRect(low, high, theme.line, frame.px(4), 1.0f);
  if (!is_free) draw_band(frame, state, list, low, layout.cell.x, cell);
  draw_header(frame, state, list, low, layout.cell.x, block, cell);
  draw_foot(frame, list, low, high, part);
  const ImVec2 slot = slot_extent(frame, layout);
  const ImU32 colour = colour_of(frame, state, cell);
  for (int i = 0; i < state.pool.block_size; ++i) {
    const auto column = static_cast<float>(i % layout.slot_columns),
               row = static_cast<float>(i / layout.slot_columns);
    const ImVec2 from{low.x + frame.px(kCellPadding) + column * (slot.x + frame.px(kSlotSpace)),
                      low.y + frame.px(kCellHeader) + row * (slot.y + frame.px(kSlotSpace))};
    const ImVec2 to{from.x + slot.x, from.y + slot.y};
    if (static_cast<std::size_t>(i) < cell.slots.size()) {
      draw_slot(frame, list, from, to, cell.slots[static_cast<std::size_t>(i)], colour);
    } else {
      draw_empty_slot(frame, list, from, to);
    }
  }
}

// ---- copies

// Through all points; the head ends at the last one.
void draw_arrow(const Frame& frame, ImDrawList* list, std::vector<ImVec2> points, ImU32 colour) {
  const ImVec2 to = points.back(), before = points[points.size() - 2];
  const ImVec2 way{to.x - before.x, to.y - before.y};
  const float length = std::max(1.0f, std::sqrt(way.x * way.x + way.y * way.y));
  const ImVec2 along{way.x / length, way.y / length}, across{-along.y, along.x};
  const float head = frame.px(8), half = frame.px(5);
  const ImVec2 neck{to.x - along.x * head, to.y - along.y * head};
  const ImVec2 left{neck.x + across.x * half, neck.y + across.y * half};
  const ImVec2 right{neck.x - across.x * half, neck.y - across.y * half};
  const float thickness = std::max(2.0f, frame.px(2.5f)), halo = thickness + frame.px(2);
  points.back() = {to.x - along.x * head * 0.5f, to.y - along.y * head * 0.5f};
  const auto count = static_cast<int>(points.size());
  list->AddPolyline(points.data(), count, frame.theme.panel, halo);
  list->AddTriangle(left, to, right, frame.theme.panel, frame.px(2));
  list->AddPolyline(points.data(), count, colour, thickness);
  list->AddTriangleFilled(left, to, right, colour);
  list->AddCircleFilled(points.front(), frame.px(3.5f), colour);
}

ImU32 arrow_colour(const Frame& frame, CopyKind kind) {
  return kind == CopyKind::kCopy ? frame.theme.text : frame.theme.warning;
}

// From the border of one cell to the border of another, in the space between cells, where no word stands.
// `lane` keeps arrows of one step apart.
std::vector<ImVec2> route(const Layout& layout, ImVec2 from_origin, int from, ImVec2 to_origin, int to,
                          float lane) {
  const ImVec2 source = layout.low(from_origin, from), target = layout.low(to_origin, to);
  const float half = layout.space * 0.5f;
  const bool goes_down = target.y > source.y, is_same_row = target.y == source.y;
  // Within the first row below both, within another above.
  const bool leaves_below = goes_down || (is_same_row && from < layout.columns);
  const bool enters_above = goes_down || (is_same_row && !leaves_below);
  const ImVec2 start{source.x + layout.cell.x * 0.5f + lane,
                     leaves_below ? source.y + layout.cell.y : source.y};
  const ImVec2 end{target.x + layout.cell.x * 0.5f + lane,
                   enters_above ? target.y : target.y + layout.cell.y};
  const float start_y = start.y + (leaves_below ? half : -half) + lane * 0.5f;
  const float end_y = end.y + (enters_above ? -half : half) + lane * 0.5f;
  std::vector<ImVec2> points = {start, {start.x, start_y}};
  if (std::abs(start_y - end_y) > layout.space) {  // rows lie between: along a column
    const bool goes_right = target.x > source.x || (target.x == source.x && from % layout.columns == 0);
    const float x = goes_right ? source.x + layout.cell.x + half : source.x - half;
    points.push_back({x + lane * 0.5f, start_y});
    points.push_back({x + lane * 0.5f, end_y});
  }
  points.push_back({end.x, end_y});
  points.push_back(end);
  return points;
}

void draw_arrows(const Frame& frame, const SlotMap& slots, const Layout& layout, ImVec2 device, ImVec2 host) {
  const auto count_of = [&](bool of_host) {
    return static_cast<int>(of_host ? slots.host.size() : slots.device.size());
  };
  ImDrawList* list = ImGui::GetWindowDrawList();
  // The space around the outermost cells is beyond the child.
  const ImVec2 low = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  list->PushClipRect({low.x - layout.space, low.y - layout.space},
                     {low.x + size.x + layout.space, low.y + size.y + layout.space});
  int lane = 0;
  for (const BlockArrow& arrow : slots.arrows) {
    const bool from_host = arrow.kind == CopyKind::kSwapIn, to_host = arrow.kind == CopyKind::kSwapOut;
    if (arrow.from >= count_of(from_host) || arrow.to >= count_of(to_host)) continue;
    const float apart = frame.px(3) * static_cast<float>(lane++ % 3 - 1);
    draw_arrow(frame, list,
               route(layout, from_host ? host : device, arrow.from, to_host ? host : device, arrow.to, apart),
               arrow_colour(frame, arrow.kind));
  }
  list->PopClipRect();
}

// ---- pointing

std::string words_text(const ShownCell& cell) {
  std::string text;
  for (const ShownSlot& slot : cell.slots) text += (text.empty() ? "“" : " ") + slot.word;
  return text.empty() ? text : "\n" + text + "”";
}

std::string owners_text(const MemoryWorkspaceState& state, const ShownCell& cell) {
  std::string text;
  for (const std::uint16_t owner : cell.owners) {
    if (owner < state.sequences.size()) text += "\n" + state.sequences[owner].label;
  }
  return text;
}

int cell_under(const Layout& layout, ImVec2 origin, int count) {
  const ImVec2 point = ImGui::GetMousePos();
  for (int i = 0; i < count; ++i) {
    const ImVec2 low = layout.low(origin, i);
    if (point.x >= low.x && point.y >= low.y && point.x < low.x + layout.cell.x &&
        point.y < low.y + layout.cell.y)
      return i;
  }
  return -1;
}

void point_at(const Frame& frame, const MemoryWorkspaceState& state, const Layout& layout, ImVec2 device,
              ImVec2 host, Pointing& pointing) {
  if (!ImGui::IsItemHovered()) return;
  const SlotMap& slots = *state.slots;
  const int block = cell_under(layout, device, static_cast<int>(slots.device.size()));
  if (block >= 0) {
    const ShownCell& cell = slots.device[static_cast<std::size_t>(block)];
    pointing.block = block;
    tooltip_now(frame, block_summary(state, block) +
                           (cell.owners.size() > 1 ? owners_text(state, cell) : "") + words_text(cell));
    if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) frame.actions.push(actions::ChooseBlock{block});
    return;
  }
  const int host_block = cell_under(layout, host, static_cast<int>(slots.host.size()));
  if (host_block < 0) return;
  const ShownCell& cell = slots.host[static_cast<std::size_t>(host_block)];
  tooltip_now(frame, "Host block " + std::to_string(host_block) +
                         (cell.state == BlockState::kFree ? "\nfree" : "\nswapped out") +
                         owners_text(state, cell) + words_text(cell));
}

void draw_rings(const Frame& frame, const MemoryWorkspaceState& state, const Layout& layout, ImVec2 origin,
                int pointed) {
  const auto ring = [&](int block) {
    if (block < 0 || static_cast<std::size_t>(block) >= state.slots->device.size()) return;
    const ImVec2 low = layout.low(origin, block);
    draw_cell_ring(frame.theme, ImGui::GetWindowDrawList(), low,
                   {low.x + layout.cell.x, low.y + layout.cell.y});
  };
  if (state.card) ring(state.card->block.value);
  for (const BlockId block : state.hover.blocks) ring(block.value);
  ring(pointed);
}

// ---- the legend

// Keys beside one another, in as many rows as they need. Measures where `list` is null.
class Legend {
 public:
  Legend(const Frame& frame, ImVec2 origin, float width, ImDrawList* list)
      : frame_(frame), origin_(origin), width_(width), list_(list) {}

  // `draw(low, high)`: of the sign.
  template <class Draw>
  void key(float sign_width, std::string_view text, Draw draw) {
    const TextStyle style = tiny_text(frame_);
    const float most = std::max(1.0f, width_ - sign_width - frame_.px(6));
    const float wide = sign_width + frame_.px(6) + std::min(text_width(frame_, style, text), most);
    if (x_ > 0 && x_ + wide > width_) {
      x_ = 0;
      ++row_;
    }
    const ImVec2 low{origin_.x + x_, origin_.y + static_cast<float>(row_) * frame_.px(kLegendRow)};
    if (list_ != nullptr) {
      draw(ImVec2{low.x, low.y + frame_.px(2)}, ImVec2{low.x + sign_width, low.y + frame_.px(2 + kChip)});
      draw_text(frame_, list_, {low.x + sign_width + frame_.px(6), low.y}, style, text, most);
    }
    x_ += wide + frame_.px(16);
  }
  float height() const { return static_cast<float>(row_ + 1) * frame_.px(kLegendRow); }

 private:
  const Frame& frame_;
  ImVec2 origin_;
  float width_;
  ImDrawList* list_;
  float x_ = 0;
  int row_ = 0;
};

float draw_legend(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 origin, float width,
                  ImDrawList* list) {
  Legend legend(frame, origin, width, list);
  const Theme& theme = frame.theme;
  for (std::size_t i = 0; i < state.sequences.size(); ++i) {
    const std::string tag = sequence_tag(state.sequences[i].label);
    const ImU32 colour = colour_of(frame, state, static_cast<std::uint16_t>(i));
    legend.key(chip_width(frame, tag), state.sequences[i].label,
               [&](ImVec2 low, ImVec2) { draw_chip(frame, list, low, tag, colour); });
  }
  const float side = frame.px(22);
  const ImU32 colour = state.sequences.empty() ? theme.owner(0) : colour_of(frame, state, std::uint16_t{0});
  const auto slot = [&](SlotUse use) {
    return [&frame, list, colour, use](ImVec2 low, ImVec2 high) {
      draw_slot(frame, list, low, high, {{}, use}, colour);
    };
  };
  legend.key(side, "computed in this step", slot(SlotUse::kComputed));
  legend.key(side, "reused", slot(SlotUse::kReused));
  legend.key(side, "not read", slot(SlotUse::kKept));
  legend.key(side, "empty slot", [&](ImVec2 low, ImVec2 high) { draw_empty_slot(frame, list, low, high); });
  if (state.pool.num_window_blocks > 0) {
    const auto foot = [&](WindowPart part) {
      return [&frame, list, part](ImVec2 low, ImVec2 high) {
        draw_foot(frame, list, {low.x - frame.px(kCellPadding), low.y},
                  {high.x + frame.px(kCellPadding), (low.y + high.y) * 0.5f + frame.px(3)}, part);
      };
    };
    legend.key(side, "window part read", foot(WindowPart::kUsed));
    legend.key(side, "kept", foot(WindowPart::kCached));
  }
  const auto has = [&](auto is_wanted) { return std::ranges::any_of(state.slots->arrows, is_wanted); };
  const auto arrow = [&](CopyKind kind) {
    return [&frame, list, kind](ImVec2 low, ImVec2 high) {
      const float y = (low.y + high.y) * 0.5f;
      draw_arrow(frame, list, {{low.x + frame.px(4), y}, {high.x, y}}, arrow_colour(frame, kind));
    };
  };
  if (has([](const BlockArrow& a) { return a.kind == CopyKind::kCopy; }))
    legend.key(frame.px(28), "copied", arrow(CopyKind::kCopy));
  if (has([](const BlockArrow& a) { return a.kind != CopyKind::kCopy; }))
    legend.key(frame.px(28), "swapped", arrow(CopyKind::kSwapOut));
  return legend.height();
}

// Over the arrows between the pools, which pass behind its words.
void draw_host_heading(const Frame& frame, const SlotMap& slots, ImVec2 at, float width) {
  const auto num_host = static_cast<int>(slots.host.size());
  const auto num_used = std::ranges::count(slots.host, BlockState::kUsed, &ShownCell::state);
  const TextStyle heading = heading_text(frame), note = small_text(frame);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const auto draw = [&](ImVec2 low, const TextStyle& style, const std::string& text, float room) {
    const float end = low.x + std::min(text_width(frame, style, text), room);
    list->AddRectFilled({low.x - frame.px(3), low.y}, {end + frame.px(3), low.y + frame.px(style.em * 1.3f)},
                        frame.theme.panel);
    draw_text(frame, list, low, style, text, room);
  };
  draw(at, heading, "Host pool", width);
  const float note_x = text_width(frame, heading, "Host pool") + frame.px(12);
  if (note_x >= width) return;
  draw({at.x + note_x, at.y + frame.px(1)}, note,
       count_text(num_host, "block") + " · " + with_thousands(num_used) + " swapped out", width - note_x);
}

void draw_pools(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing) {
  ImGui::BeginChild("slots", extent, ImGuiChildFlags_NavFlattened);
  const SlotMap& slots = *state.slots;
  const auto num_device = static_cast<int>(slots.device.size()),
             num_host = static_cast<int>(slots.host.size());
  const float between = num_host > 0 ? frame.px(kHostHeading) : 0;
  ImVec2 room{extent.x, extent.y - between};
  Layout layout = layout_of(frame, num_device, num_host, state.pool.block_size, room);
  const auto needed = [&] { return layout.height(num_device) + between + layout.height(num_host); };
  if (needed() > extent.y + layout.space) {  // beside the bar that scrolls
    room.x -= ImGui::GetStyle().ScrollbarSize;
    layout = layout_of(frame, num_device, num_host, state.pool.block_size, room);
  }
  const ImVec2 device = ImGui::GetCursorScreenPos();
  const ImVec2 host{device.x, device.y + layout.height(num_device) + between};
  ImGui::InvisibleButton("slot_cells", {room.x, std::max(1.0f, needed() - layout.space)});
  for (int i = 0; i < num_device; ++i) {
    const auto block = static_cast<std::size_t>(i);
    draw_block(frame, state, layout, layout.low(device, i), i, slots.device[block],
               state.snapshot->blocks[block].window);
  }
  for (int i = 0; i < num_host; ++i) {
    const auto block = static_cast<std::size_t>(i);
    draw_block(frame, state, layout, layout.low(host, i), i, slots.host[block],
               state.host[block].has_window ? WindowPart::kUsed : WindowPart::kNone);
  }
  draw_arrows(frame, slots, layout, device, host);
  if (num_host > 0) draw_host_heading(frame, slots, {device.x, host.y - between + frame.px(2)}, room.x);
  point_at(frame, state, layout, device, host, pointing);
  draw_rings(frame, state, layout, device, pointing.block);
  ImGui::EndChild();
}

}  // namespace

std::string sequence_tag(std::string_view label) {
  if (label.empty()) return {};
  std::string tag(label.substr(0, decode_utf8(label, 0).length));
  const std::size_t digits = label.find_last_not_of("0123456789");
  if (digits != std::string_view::npos && digits + 1 < label.size()) tag += label.substr(digits + 1);
  return tag;
}

void draw_slot_map(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing) {
  begin_card(frame, "pool", extent);
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 top = ImGui::GetCursorScreenPos();
  const std::string blocks = count_text(state.pool.num_blocks, "block");
  const std::string words = blocks + " of " + count_text(state.pool.block_size, "word");
  const std::string notes[] = {words + " · " + bytes_text(state.pool.bytes_per_block) + " each", words,
                               blocks};
  const TextStyle heading = heading_text(frame), note = small_text(frame);
  const float note_x = text_width(frame, heading, "Device pool") + frame.px(12);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, top, heading, "Device pool", width);
  const float rest = std::max(1.0f, width - note_x);
  draw_text(frame, list, {top.x + note_x, top.y + frame.px(1)}, note,
            first_that_fits(frame, note, notes, rest), rest);
  const float legend = draw_legend(frame, state, top, width, nullptr);
  const float strips =
      state_strip_height(frame, state, width) + window_part_strip_height(frame, state, width);
  const float height = ImGui::GetContentRegionAvail().y - frame.px(kHeading) - legend - frame.px(8) - strips;
  ImGui::SetCursorScreenPos({top.x, top.y + frame.px(kHeading)});
  draw_pools(frame, state, {width, std::max(frame.px(80), height)}, pointing);
  const ImVec2 keys{top.x, top.y + frame.px(kHeading) + std::max(frame.px(80), height) + frame.px(8)};
  draw_legend(frame, state, keys, width, list);
  ImGui::SetCursorScreenPos(keys);
  ImGui::Dummy({width, legend});
  draw_state_strip(frame, state, width, pointing);
  draw_window_part_strip(frame, state, width, pointing);
  end_card();
}

}  // namespace octavo::ui
