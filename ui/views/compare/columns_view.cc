#include "ui/views/compare/columns_view.h"

#include <algorithm>
#include <cmath>

#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kGap = 12;
constexpr float kNarrowest = 264;

}  // namespace

void ColumnsView::draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  forget_others(state.comparison);
  switch (look.layout) {
    case CompareLayout::kGrid: return draw_grid(frame, state, look, extent);
    case CompareLayout::kSingle: return draw_single(frame, state, look, extent);
    default: return draw_row(frame, state, look, extent);
  }
}

void ColumnsView::forget_others(const ComparisonState& comparison) {
  std::erase_if(columns_,
                [&](const auto& entry) { return find_column(comparison, ColumnId{entry.first}) == nullptr; });
  std::erase_if(weights_,
                [&](const auto& entry) { return find_column(comparison, ColumnId{entry.first}) == nullptr; });
}

std::vector<float> ColumnsView::widths_of(const Frame& frame, const ComparisonState& comparison,
                                          float room) const {
  std::vector<float> widths;
  float sum = 0;
  for (const ComparedColumn& column : comparison.columns) {
    const auto found = weights_.find(column.id.value);
    widths.push_back(found == weights_.end() ? 1.0f : found->second);
    sum += widths.back();
  }
  const float least = frame.px(kNarrowest), gap = frame.px(kGap);
  const auto count = static_cast<float>(widths.size());
  if (count * (least + gap) - gap > room) {
    // As many as there is room for, each of them whole; the others are scrolled to.
    const float num_whole = std::max(1.0f, std::floor((room + gap) / (least + gap)));
    return std::vector<float>(widths.size(), std::floor((room + gap) / num_whole - gap));
  }
  room -= gap * (count - 1);
  for (float& width : widths) width = std::max(least, std::floor(room * width / sum));
  return widths;
}

void ColumnsView::draw_row(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  std::vector<float> widths = widths_of(frame, state.comparison, extent.x);
  float all = frame.px(kGap) * static_cast<float>(widths.size() - 1);
  for (const float width : widths) all += width;
  const bool scrolls = all > extent.x + 1;
  ImGui::BeginChild("columns", extent, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_HorizontalScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const float height = extent.y - (scrolls ? ImGui::GetStyle().ScrollbarSize + frame.px(2) : 0);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const ComparedColumn& column = state.comparison.columns[i];
    if (i > 0) {
      ImGui::SameLine();
      draw_border(frame, widths, state, i - 1, height);
      ImGui::SameLine();
    }
    const float left = ImGui::GetCursorScreenPos().x;
    columns_[column.id.value].draw(frame, state, column, look, {widths[i], height});
    const bool newly_selected = look.cursor_moved && look.selected == column.id;
    if (newly_selected && scrolls) ImGui::SetScrollFromPosX(left - ImGui::GetWindowPos().x, 0.3f);
  }
  ImGui::EndChild();
}

// Dragging gives one column what the other loses.
void ColumnsView::draw_border(const Frame& frame, std::vector<float>& widths, const UiState& state,
                              std::size_t index, float height) {
  ImGui::PushID(static_cast<int>(state.comparison.columns[index].id.value));
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("border", {frame.px(kGap), height});
  const bool held = ImGui::IsItemActive();
  if (held || ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeEW);
    const float x = std::floor(low.x + frame.px(kGap) * 0.5f);
    ImGui::GetWindowDrawList()->AddRectFilled({x - 1, low.y + frame.px(12)},
                                              {x + 1, low.y + height - frame.px(12)}, frame.theme.accent);
  }
  const float moved = held ? ImGui::GetIO().MouseDelta.x : 0;
  const float least = frame.px(kNarrowest);
  if (moved != 0 && widths[index] + moved >= least && widths[index + 1] - moved >= least) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      weights_[state.comparison.columns[i].id.value] = widths[i] + (i == index       ? moved
                                                                    : i == index + 1 ? -moved
                                                                                     : 0.0f);
  }
  ImGui::PopID();
}

void ColumnsView::draw_grid(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const std::size_t count = state.comparison.columns.size();
  const float space = frame.px(kGap);
  const auto most =
      static_cast<std::size_t>(std::max(1.0f, (extent.x + space) / (frame.px(kNarrowest) + space)));
  const auto square = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const std::size_t per_row = std::min(most, square);
  const std::size_t rows = (count + per_row - 1) / per_row;
  ImGui::BeginChild("grid", extent, ImGuiChildFlags_NavFlattened);
  const float width = std::floor((extent.x - frame.px(10) - space * static_cast<float>(per_row - 1)) /
                                 static_cast<float>(per_row));
  const float shared = (extent.y - space * static_cast<float>(rows - 1)) / static_cast<float>(rows);
  const float height = std::max(frame.px(280), std::floor(shared));
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  for (std::size_t i = 0; i < count; ++i) {
    const auto column = static_cast<float>(i % per_row), row = static_cast<float>(i / per_row);
    ImGui::SetCursorScreenPos({origin.x + column * (width + space), origin.y + row * (height + space)});
    const ComparedColumn& shown = state.comparison.columns[i];
    columns_[shown.id.value].draw(frame, state, shown, look, {width, height});
  }
  ImGui::EndChild();
}

void ColumnsView::draw_single(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent) {
  const auto& columns = state.comparison.columns;
  const std::size_t index = column_index(state.comparison, look.selected);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ButtonOptions previous{
      .icon = Icon::kChevronLeft, .enabled = index > 0, .help = "Previous column ([)"};
  if (button(frame, "previous_column", "", previous)) look.selected = columns[index - 1].id;
  beside(frame, 8);
  const ButtonOptions next{
      .icon = Icon::kChevronRight, .enabled = index + 1 < columns.size(), .help = "Next column (])"};
  if (button(frame, "next_column", "", next)) look.selected = columns[index + 1].id;
  const std::string position = std::to_string(index + 1) + " of " + std::to_string(columns.size());
  draw_text(frame, ImGui::GetWindowDrawList(), {low.x + frame.px(84), low.y + frame.px(7)}, small_text(frame),
            position);
  ImGui::SetCursorScreenPos({low.x, low.y + frame.px(40)});
  const ComparedColumn& shown = columns[index];
  const float width = std::min(extent.x, frame.px(960));
  columns_[shown.id.value].draw(frame, state, shown, look, {width, extent.y - frame.px(40)});
}

}  // namespace octavo::ui
