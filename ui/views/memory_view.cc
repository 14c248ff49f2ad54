#include "ui/views/memory_view.h"

#include <implot.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "ui/format.h"
#include "ui/views/event_lines.h"
#include "ui/widgets/cells.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr double kSpan = 60.0;  // seconds that the curves show
constexpr float kMargin = 16;
constexpr float kGap = 12;
constexpr float kHealthWidth = 164;
constexpr float kHealthHeight = 94;
constexpr float kTimelineHeight = 236;
constexpr float kWideLayout = 1040;
constexpr std::size_t kNumEvents = 200;

struct HealthCard {
  const char* id;
  std::string value;
  const char* label;
  std::string note;
  std::string_view help;
  const std::vector<Sample>* samples;  // nullptr: no curve
  double least_range;
  ImU32 colour;
};

void draw_health_card(const Frame& frame, const HealthCard& card, ImVec2 extent, double end_s) {
  begin_card(frame, card.id, extent, 0);
  const ImVec2 low = ImGui::GetWindowPos();
  const float side = frame.px(14), curve = frame.px(62);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle value{
      .face = FontFace::kSemiBold, .em = 22, .colour = frame.theme.text, .line_height = 1.3f};
  TextStyle label = tiny_text(frame), note = tiny_text(frame);
  note.colour = frame.theme.faint;
  draw_text(frame, list, {low.x + side, low.y + frame.px(10)}, value, card.value);
  draw_text(frame, list, {low.x + side, low.y + frame.px(43)}, label, card.label, extent.x - 2 * side);
  ImGui::SetCursorScreenPos({low.x + side, low.y + frame.px(61)});
  paragraph(frame, note, card.note, extent.x - 2 * side);
  const bool room = extent.x > text_width(frame, value, card.value) + 3 * side + curve;
  if (room && card.samples != nullptr) {
    draw_sparkline(frame, list, {low.x + extent.x - side - curve, low.y + frame.px(15)},
                   {low.x + extent.x - side, low.y + frame.px(39)}, *card.samples, end_s, kSpan,
                   card.least_range, card.colour);
  }
  if (ImGui::IsWindowHovered()) tooltip_now(frame, card.help);
  end_card();
}

ImU32 owner_colour(const Frame& frame, const MemoryState& memory, std::size_t block) {
  const std::uint16_t row = block < memory.block_owners.size() ? memory.block_owners[block] : kNoOwner;
  return row < memory.rows.size() ? frame.theme.owner(memory.rows[row].colour_index) : frame.theme.muted;
}

CellLook look_of(const Frame& frame, const MemoryState& memory, const KvSnapshot& snapshot,
                 std::size_t index) {
  const BlockSnapshot& block = snapshot.blocks[index];
  switch (block.state) {
    case BlockState::kFree: return {frame.theme.free};
    case BlockState::kCached: return {frame.theme.cached};
    case BlockState::kUsed: break;
  }
  const auto slots = static_cast<float>(std::max(1, snapshot.totals.block_size));
  return {owner_colour(frame, memory, index), static_cast<float>(block.filled) / slots, block.ref_count > 1};
}

const char* state_word(BlockState state) {
  switch (state) {
    case BlockState::kFree: return "free";
    case BlockState::kCached: return "cached, nobody uses it";
    case BlockState::kUsed: return "used";
  }
  return "";
}

std::string block_summary(const KvSnapshot& snapshot, int index) {
  const BlockSnapshot& block = snapshot.blocks[static_cast<std::size_t>(index)];
  std::string text = "Block " + with_thousands(index) + "\n" + state_word(block.state);
  if (block.state == BlockState::kFree) return text;
  text += "\nfilled " + std::to_string(block.filled) + " of " + std::to_string(snapshot.totals.block_size);
  if (block.state == BlockState::kUsed) text += "\n" + count_text(block.ref_count, "reference");
  return text;
}

// The largest pitch between 6 and 16 with which every block fits; the smallest when none does.
float fitting_pitch(const Frame& frame, std::size_t count, float width, float height) {
  for (float pitch = 16; pitch > 6; pitch -= 1) {
    const float pixels = frame.px(pitch);
    const auto columns = std::max(1.0f, std::floor(width / pixels));
    if (std::ceil(static_cast<float>(count) / columns) * pixels <= height) return pixels;
  }
  return frame.px(6);
}

void draw_key(const Frame& frame, const CellLook& look, const char* text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float side = frame.px(9), top = at.y + frame.px(5);
  draw_cell(frame.theme, ImGui::GetWindowDrawList(), {at.x, top}, {at.x + side, top + side}, look);
  ImGui::Dummy({side, side});
  beside(frame, 6);
  line(frame, tiny_text(frame), text);
}

void draw_no_snapshot(const Frame& frame) {
  gap(frame, 6);
  line(frame, small_text(frame), "Waiting for the engine's first report.");
}

}  // namespace

void MemoryView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  update_curves(state.memory);
  pointed_block_ = -1;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(kMargin), frame.px(kMargin)});
  ImGui::BeginChild("memory", extent, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  const float width = ImGui::GetContentRegionAvail().x;
  const float top = ImGui::GetCursorPosY();
  draw_health(frame, state, width);
  gap(frame, kGap);
  const float used = ImGui::GetCursorPosY() - top;
  const float rest = extent.y - 2 * frame.px(kMargin) - used - frame.px(kTimelineHeight + kGap);
  const bool wide = width >= frame.px(kWideLayout);
  const float height = std::max(rest, frame.px(340));
  if (wide) {
    const float pool = std::floor(width * 0.455f), events = frame.px(290);
    draw_pool(frame, state, {pool, height});
    beside(frame, kGap);
    draw_tables(frame, state, {width - pool - events - 2 * frame.px(kGap), height});
    beside(frame, kGap);
    draw_events(frame, state, {events, height});
  } else {
    draw_pool(frame, state, {width, height});
    gap(frame, kGap);
    const float half = std::floor((width - frame.px(kGap)) * 0.5f);
    draw_tables(frame, state, {half, frame.px(340)});
    beside(frame, kGap);
    draw_events(frame, state, {width - half - frame.px(kGap), frame.px(340)});
  }
  gap(frame, kGap);
  draw_timeline(frame, state, {width, frame.px(kTimelineHeight)});
  ImGui::EndChild();
  last_pointed_block_ = pointed_block_;
}

void MemoryView::update_curves(const MemoryState& memory) {
  const std::int64_t newest = memory.steps.empty() ? -1 : memory.steps.back().step;
  if (newest == last_step_) return;
  last_step_ = newest;
  curves_ = {};
  if (memory.steps.empty()) return;
  const auto seconds = [&](std::int64_t time_us) {
    return static_cast<double>(time_us - memory.time_origin_us) / 1e6;
  };
  curves_.end_s = seconds(memory.steps.back().begin_us);
  double preempted = 0;
  for (const StepRecord& step : memory.steps) {
    const double at = seconds(step.begin_us);
    preempted += step.num_preempted;
    if (at < curves_.end_s - kSpan) continue;
    const double slots = std::max(1.0, static_cast<double>(step.used_blocks) * memory.totals.block_size);
    const double used = std::max(1, step.used_blocks);
    curves_.used.push_back({at, static_cast<double>(step.used_blocks)});
    curves_.cached.push_back({at, static_cast<double>(step.cached_blocks)});
    curves_.free.push_back({at, static_cast<double>(step.free_blocks)});
    curves_.fragmentation.push_back({at, step.unfilled_slots / slots});
    curves_.sharing.push_back({at, step.used_blocks > 0 ? step.logical_blocks / used : 1.0});
    curves_.preempted.push_back({at, preempted});
  }
}

void MemoryView::draw_health(const Frame& frame, const UiState& state, float width) {
  const MemoryState& memory = state.memory;
  const KvFigures figures = memory.snapshot ? memory.snapshot->figures : KvFigures{};
  const KvTotals& totals = memory.totals;
  const double blocks = std::max(1, totals.num_blocks);
  const Theme& theme = frame.theme;
  const std::array<HealthCard, 7> cards = {{
      {"used", percent_text(figures.used_blocks / blocks), "used", count_text(figures.used_blocks, "block"),
       "Used: blocks with at least one reference, of all blocks.", &curves_.used, 4, theme.accent},
      {"cached", percent_text(figures.cached_blocks / blocks), "cached", "evictable, not waste",
       "Cached: blocks nobody uses whose contents can still be found again, of all blocks. They give way "
       "when room is needed.",
       &curves_.cached, 4, theme.muted},
      {"free", percent_text(figures.free_blocks / blocks), "free", count_text(figures.free_blocks, "block"),
       "Free: blocks that hold nothing, of all blocks.", &curves_.free, 4, theme.faint},
      {"fragmentation", percent_text(figures.internal_fragmentation), "internal fragmentation",
       count_text(figures.unfilled_slots, "empty slot"),
       "Internal fragmentation: unfilled slots of used blocks, of all their slots; each block counts once.",
       &curves_.fragmentation, 0.02, theme.warning},
      {"external", "0 %", "external fragmentation", "one block size",
       "External fragmentation: free memory that cannot serve a request. It is 0 because all blocks have one "
       "size, so that every free "
       "block fits every request.",
       nullptr, 0, theme.line},
      {"sharing", short_number(figures.sharing_ratio) + " ×", "sharing",
       "saved " + bytes_text(figures.saved_bytes),
       "Sharing ratio: entries of all block tables, over used blocks. Saved: the difference times the bytes "
       "of a block.",
       &curves_.sharing, 0.1, theme.owner(2)},
      {"preempted", with_thousands(totals.preempted_recompute + totals.preempted_swap), "preempted",
       "since the start",
       "Preempted: how often a running request gave its blocks up for an earlier one, since the engine "
       "started.",
       &curves_.preempted, 1, theme.owner(4)},
  }};
  const float space = frame.px(kGap);
  const auto fit = static_cast<int>((width + space) / (frame.px(kHealthWidth) + space));
  const int columns = std::clamp(fit, 1, static_cast<int>(cards.size()));
  const float each = std::floor((width + space) / static_cast<float>(columns) - space);
  for (int i = 0; i < static_cast<int>(cards.size()); ++i) {
    if (i % columns != 0) {
      beside(frame, kGap);
    } else if (i > 0) {
      gap(frame, kGap);
    }
    draw_health_card(frame, cards[static_cast<std::size_t>(i)], {each, frame.px(kHealthHeight)},
                     curves_.end_s);
  }
}

void MemoryView::draw_pool(const Frame& frame, const UiState& state, ImVec2 extent) {
  begin_card(frame, "pool", extent);
  const ModelState& model = state.model;
  heading_line(frame, "Device pool",
               with_thousands(model.num_blocks) + " blocks of " + std::to_string(model.block_size) +
                   " tokens · " + bytes_text(model.bytes_per_block) + " each");
  gap(frame, 8);
  if (state.memory.snapshot) {
    draw_cells(frame, state, *state.memory.snapshot);
  } else {
    draw_no_snapshot(frame);
  }
  end_card();
}

void MemoryView::draw_cells(const Frame& frame, const UiState& state, const KvSnapshot& snapshot) {
  const ImVec2 room{ImGui::GetContentRegionAvail().x, ImGui::GetContentRegionAvail().y - frame.px(28)};
  const auto count = static_cast<int>(snapshot.blocks.size());
  const float pitch = fitting_pitch(frame, snapshot.blocks.size(), room.x, room.y);
  ImGui::BeginChild("cells", room, ImGuiChildFlags_None, ImGuiWindowFlags_NoNav);
  const CellGrid grid = make_cell_grid(ImGui::GetCursorScreenPos(), ImGui::GetContentRegionAvail().x, pitch,
                                       std::max(1.0f, pitch * 0.15f));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float window_top = ImGui::GetWindowPos().y;
  const auto first_row = std::max(0, static_cast<int>((window_top - grid.origin.y) / pitch));
  const auto num_rows = static_cast<int>(room.y / pitch) + 2;
  const int first = first_row * grid.columns, last = std::min(count, (first_row + num_rows) * grid.columns);
  for (int i = first; i < last; ++i) {
    draw_cell(frame.theme, list, grid.low(i), grid.high(i),
              look_of(frame, state.memory, snapshot, static_cast<std::size_t>(i)));
  }
  ImGui::InvisibleButton("map", {ImGui::GetContentRegionAvail().x, std::max(grid.height(count), 1.0f)});
  if (ImGui::IsItemHovered()) pointed_block_ = grid.at(ImGui::GetMousePos(), count);
  if (pointed_block_ >= 0) {
    tooltip_now(frame, block_summary(snapshot, pointed_block_));
    if (ImGui::IsItemClicked()) chosen_block_ = pointed_block_;
  }
  for (const int lit : {chosen_block_, last_pointed_block_}) {
    if (lit >= 0 && lit < count) draw_cell_ring(frame.theme, list, grid.low(lit), grid.high(lit));
  }
  ImGui::EndChild();
  gap(frame, 6);
  const ImU32 owner = frame.theme.owner(0);
  draw_key(frame, {owner}, "a chat's");
  beside(frame, 14);
  draw_key(frame, {owner, 1.0f, true}, "shared");
  beside(frame, 14);
  draw_key(frame, {owner, 0.5f}, "partly filled");
  beside(frame, 14);
  draw_key(frame, {frame.theme.cached}, "cached");
  beside(frame, 14);
  draw_key(frame, {frame.theme.free}, "free");
}

void MemoryView::draw_tables(const Frame& frame, const UiState& state, ImVec2 extent) {
  begin_card(frame, "tables", extent);
  heading_line(frame, "Block tables", "logical order, left to right");
  gap(frame, 6);
  const KvSnapshot* snapshot = state.memory.snapshot.get();
  if (snapshot == nullptr || snapshot->sequences.empty()) {
    TextStyle note = small_text(frame);
    note.colour = frame.theme.faint;
    paragraph(frame, note, "No sequence is running. A chat has a table here while its answer is generated.",
              ImGui::GetContentRegionAvail().x);
    end_card();
    return;
  }
  ImGui::BeginChild("rows", {0, 0}, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < snapshot->sequences.size(); ++i) draw_table_row(frame, state, i, width);
  gap(frame, 4);
  TextStyle note = tiny_text(frame);
  note.colour = frame.theme.faint;
  line(frame, note, "hatched: shared · partly filled: being written");
  ImGui::EndChild();
  end_card();
}

void MemoryView::draw_table_row(const Frame& frame, const UiState& state, std::size_t row, float width) {
  const KvSnapshot& snapshot = *state.memory.snapshot;
  const SequenceSnapshot& sequence = snapshot.sequences[row];
  const float label = std::min(frame.px(130), width * 0.35f);
  const float pitch = frame.px(11), height = frame.px(18);
  const int columns = std::max(1, static_cast<int>((width - label) / pitch));
  const auto count = static_cast<int>(sequence.block_table.size());
  const int num_lines = std::max(1, (count + columns - 1) / columns);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float row_height = static_cast<float>(num_lines) * (height + frame.px(3)) + frame.px(6);
  ImGui::Dummy({width, row_height});
  if (!ImGui::IsRectVisible(low, {low.x + width, low.y + row_height})) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.text;
  const std::string_view text =
      row < state.memory.rows.size() ? state.memory.rows[row].label : std::string_view();
  draw_text(frame, list, low, style, text, label - frame.px(10));
  for (int i = 0; i < count; ++i) {
    const int block = sequence.block_table[static_cast<std::size_t>(i)].value;
    const ImVec2 cell{low.x + label + static_cast<float>(i % columns) * pitch,
                      low.y + static_cast<float>(i / columns) * (height + frame.px(3))};
    const ImVec2 high{cell.x + pitch - frame.px(2), cell.y + height};
    if (block < 0 || block >= static_cast<int>(snapshot.blocks.size())) continue;
    CellLook look = look_of(frame, state.memory, snapshot, static_cast<std::size_t>(block));
    if (row < state.memory.rows.size()) look.colour = frame.theme.owner(state.memory.rows[row].colour_index);
    draw_cell(frame.theme, list, cell, high, look);
    const bool pointed = ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(cell, high);
    if (pointed) {
      pointed_block_ = block;
      tooltip_now(frame, "Logical block " + std::to_string(i) + "\n" + block_summary(snapshot, block));
      if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) chosen_block_ = block;
    }
    if (block == chosen_block_ || block == last_pointed_block_) draw_cell_ring(frame.theme, list, cell, high);
  }
}

void MemoryView::draw_block_card(const Frame& frame, const UiState& state) {
  const KvSnapshot* snapshot = state.memory.snapshot.get();
  if (snapshot == nullptr || chosen_block_ < 0 || chosen_block_ >= static_cast<int>(snapshot->blocks.size()))
    return;
  const BlockSnapshot& block = snapshot->blocks[static_cast<std::size_t>(chosen_block_)];
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  heading_line(frame, "Block " + with_thousands(chosen_block_));
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(24), at.y - frame.px(3)});
  const ButtonOptions close{.kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Close"};
  const bool closed = button(frame, "close_block", "", close);
  ImGui::SetCursorScreenPos(below);
  gap(frame, 4);
  const TextStyle mono = mono_text(frame);
  line(frame, mono, state_word(block.state));
  line(frame, mono, "references " + std::to_string(block.ref_count));
  line(frame, mono,
       "filled " + std::to_string(block.filled) + " of " + std::to_string(snapshot->totals.block_size));
  line(frame, mono,
       block.parent >= 0 ? "parent " + std::to_string(block.parent) : std::string("parent none"));
  gap(frame, 8);
  heading_line(frame, "Owners");
  int num_owners = 0;
  for (std::size_t i = 0; i < snapshot->sequences.size() && i < state.memory.rows.size(); ++i) {
    const auto& table = snapshot->sequences[i].block_table;
    const auto found = std::find(table.begin(), table.end(), BlockId{chosen_block_});
    if (found == table.end()) continue;
    ++num_owners;
    const ImVec2 dot = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddCircleFilled({dot.x + frame.px(4), dot.y + frame.px(10)}, frame.px(4),
                                                frame.theme.owner(state.memory.rows[i].colour_index));
    ImGui::Dummy({frame.px(14), 1});
    ImGui::SameLine();
    line(frame, small_text(frame),
         state.memory.rows[i].label + " · logical " + std::to_string(found - table.begin()),
         width - frame.px(16));
  }
  if (num_owners == 0) line(frame, small_text(frame), "none");
  gap(frame, 14);
  if (closed) chosen_block_ = -1;
}

void MemoryView::draw_events(const Frame& frame, const UiState& state, ImVec2 extent) {
  begin_card(frame, "events", extent);
  draw_block_card(frame, state);
  heading_line(frame, "Events");
  gap(frame, 4);
  ImGui::BeginChild("event_list", {0, 0}, ImGuiChildFlags_NavFlattened);
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  draw_event_lines(frame, state.memory, kNumEvents, ImGui::GetContentRegionAvail().x);
  if (at_end) ImGui::SetScrollHereY(1.0f);
  ImGui::EndChild();
  end_card();
}

namespace {

// Levels as stairs: they hold until the next step.
struct Stairs {
  std::vector<double> time, used, both, zero;
};

Stairs make_stairs(const std::vector<Sample>& used, const std::vector<Sample>& cached, double from_s,
                   double end_s) {
  Stairs stairs;
  const auto add = [&](double at, double used_blocks, double cached_blocks) {
    stairs.time.push_back(at);
    stairs.used.push_back(used_blocks);
    stairs.both.push_back(used_blocks + cached_blocks);
    stairs.zero.push_back(0);
  };
  const double least = kSpan / 2000.0;  // finer than a pixel
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!stairs.time.empty()) {
      if (used[i].time_s - stairs.time.back() < least && i + 1 < used.size()) continue;
      add(used[i].time_s, stairs.used.back(), stairs.both.back() - stairs.used.back());
    }
    add(std::max(used[i].time_s, from_s), used[i].value, cached[i].value);
  }
  if (!stairs.time.empty()) add(end_s, stairs.used.back(), stairs.both.back() - stairs.used.back());
  return stairs;
}

void push_plot_style(const Frame& frame) {
  const ImU32 clear = IM_COL32_BLACK_TRANS;
  ImPlot::PushStyleColor(ImPlotCol_FrameBg, clear);
  ImPlot::PushStyleColor(ImPlotCol_PlotBg, clear);
  ImPlot::PushStyleColor(ImPlotCol_PlotBorder, clear);
  ImPlot::PushStyleColor(ImPlotCol_AxisText, frame.theme.faint);
  ImPlot::PushStyleColor(ImPlotCol_AxisGrid, frame.theme.line);
  ImPlot::PushStyleColor(ImPlotCol_AxisTick, clear);
  ImPlot::PushStyleColor(ImPlotCol_AxisBgHovered, clear);
  ImPlot::PushStyleColor(ImPlotCol_AxisBgActive, clear);
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(0, frame.px(4)));
  ImPlot::PushStyleVar(ImPlotStyleVar_LabelPadding, ImVec2(frame.px(6), frame.px(4)));
}

void pop_plot_style() {
  ImPlot::PopStyleVar(2);
  ImPlot::PopStyleColor(8);
}

void shade(const char* id, const Stairs& stairs, const std::vector<double>& low,
           const std::vector<double>& high, ImU32 colour) {
  ImPlotSpec spec;
  spec.FillColor = ImGui::ColorConvertU32ToFloat4(colour);
  spec.LineColor = spec.FillColor;
  spec.LineWeight = 0;
  ImPlot::PlotShaded(id, stairs.time.data(), low.data(), high.data(), static_cast<int>(stairs.time.size()),
                     spec);
}

bool is_marked(BlockEventKind kind) {
  return kind == BlockEventKind::kHit || kind == BlockEventKind::kCopyOnWrite ||
         kind == BlockEventKind::kEvict || kind == BlockEventKind::kPreempt ||
         kind == BlockEventKind::kSwapOut || kind == BlockEventKind::kSwapIn;
}

// Dashed lines with a word for rare events, as many as have room beside each other.
void draw_marks(const Frame& frame, const MemoryState& memory, double from_s) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 low = ImPlot::GetPlotPos();
  const float bottom = low.y + ImPlot::GetPlotSize().y;
  float free_from = -FLT_MAX;
  for (const EventLine& event : memory.events) {
    const double at = static_cast<double>(event.time_us - memory.time_origin_us) / 1e6;
    if (!is_marked(event.kind) || at < from_s) continue;
    const float x = std::floor(ImPlot::PlotToPixels(at, 0).x);
    TextStyle style = tiny_text(frame);
    style.em = 11.5f;
    style.colour = event_colour(frame.theme, event.kind);
    const std::string_view word = event_word(event.kind);
    if (x < free_from) continue;
    for (float y = low.y; y < bottom; y += frame.px(7)) {
      list->AddLineV(x, y, std::min(y + frame.px(3), bottom), with_alpha(style.colour, 0.7f));
    }
    draw_text(frame, list, {x + frame.px(5), low.y + frame.px(2)}, style, word);
    free_from = x + text_width(frame, style, word) + frame.px(14);
  }
}

void draw_cursor(const Frame& frame, const Stairs& stairs, std::int32_t num_blocks) {
  if (!ImPlot::IsPlotHovered()) return;
  const double at = ImPlot::GetPlotMousePos().x;
  const auto after = std::upper_bound(stairs.time.begin(), stairs.time.end(), at);
  if (after == stairs.time.begin()) return;
  const auto index = static_cast<std::size_t>(after - stairs.time.begin()) - 1;
  const float x = std::floor(ImGui::GetMousePos().x);
  const ImVec2 low = ImPlot::GetPlotPos();
  ImPlot::GetPlotDrawList()->AddLineV(x, low.y, low.y + ImPlot::GetPlotSize().y, frame.theme.text,
                                      frame.px(1.5f));
  const auto used = static_cast<std::int64_t>(stairs.used[index]);
  const auto both = static_cast<std::int64_t>(stairs.both[index]);
  tooltip_now(frame, seconds_text(static_cast<std::int64_t>(at * 1e6)) + "\nused " + with_thousands(used) +
                         "\ncached " + with_thousands(both - used) + "\nfree " +
                         with_thousands(num_blocks - both));
}

}  // namespace

void MemoryView::draw_timeline(const Frame& frame, const UiState& state, ImVec2 extent) {
  begin_card(frame, "timeline", extent);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  heading_line(frame, "Timeline", "the last minute of steps");
  const std::string_view key = "used · cached · free";
  draw_text(frame, ImGui::GetWindowDrawList(),
            {at.x + width - text_width(frame, tiny_text(frame), key), at.y + frame.px(1)}, tiny_text(frame),
            key);
  const double end = std::max(curves_.end_s, 1.0), from = std::max(0.0, end - kSpan);
  const Stairs stairs = make_stairs(curves_.used, curves_.cached, from, end);
  const Face face = frame.face(FontFace::kRegular, 11);
  ImGui::PushFont(face.font, face.size);
  push_plot_style(frame);
  constexpr ImPlotFlags kFlags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText |
                                 ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect | ImPlotFlags_NoFrame;
  if (ImPlot::BeginPlot("timeline_plot", ImGui::GetContentRegionAvail(), kFlags)) {
    ImPlot::SetupAxis(ImAxis_X1, nullptr,
                      ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks | ImPlotAxisFlags_Lock);
    ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoDecorations | ImPlotAxisFlags_Lock);
    ImPlot::SetupAxisFormat(ImAxis_X1, "%g s");
    const double blocks = std::max(1, state.memory.totals.num_blocks);
    ImPlot::SetupAxesLimits(from, end, 0, blocks, ImPlotCond_Always);
    ImPlot::SetupFinish();
    if (!stairs.time.empty()) {
      const Theme& theme = frame.theme;
      shade("cached", stairs, stairs.used, stairs.both, theme.cached);
      shade("used", stairs, stairs.zero, stairs.used, mix(theme.accent, theme.panel, 0.25f));
      draw_marks(frame, state.memory, from);
      draw_cursor(frame, stairs, state.memory.totals.num_blocks);
    }
    ImPlot::EndPlot();
  }
  pop_plot_style();
  ImGui::PopFont();
  end_card();
}

}  // namespace octavo::ui
