#include "ui/widgets/cells.h"

#include <algorithm>
#include <cmath>

namespace octavo::ui {
namespace {

// Diagonals from top left to bottom right. Each line x - y = offset is cut to the cell.
void hatch(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high) {
  const float width = high.x - low.x, height = high.y - low.y;
  const float step = std::max(4.0f, width * 0.28f);
  const float thickness = std::max(1.1f, width * 0.065f);
  const ImU32 colour = with_alpha(theme.background, 0.6f);
  for (float offset = step * 0.5f - height; offset < width; offset += step) {
    const float begin = std::max(0.0f, offset), end = std::min(width, height + offset);
    if (end - begin < 1.0f) continue;
    list->AddLine({low.x + begin, low.y + begin - offset}, {low.x + end, low.y + end - offset}, colour,
                  thickness);
  }
}

}  // namespace

void draw_cell(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high, const CellLook& look) {
  const float rounding = std::min(theme.px(size::kRadiusCell), (high.x - low.x) * 0.25f);
  if (look.fill >= 1.0f) {
    list->AddRectFilled(low, high, look.colour, rounding);
  } else {
    list->AddRectFilled(low, high, theme.free, rounding);
    const float end = std::round(low.x + (high.x - low.x) * look.fill);
    if (end > low.x)
      list->AddRectFilled(low, {end, high.y}, look.colour, std::min(rounding, (end - low.x) * 0.5f));
  }
  if (look.hatched) hatch(theme, list, low, high);
}

void draw_cell_ring(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high) {
  list->AddRect({low.x - 2, low.y - 2}, {high.x + 2, high.y + 2}, theme.text, theme.px(3), 2.0f);
}

ImVec2 CellGrid::low(int index) const {
  return {std::round(origin.x + static_cast<float>(index % columns) * pitch),
          std::round(origin.y + static_cast<float>(index / columns) * pitch)};
}

ImVec2 CellGrid::high(int index) const {
  return {std::round(origin.x + static_cast<float>(index % columns + 1) * pitch) - space,
          std::round(origin.y + static_cast<float>(index / columns + 1) * pitch) - space};
}

int CellGrid::at(ImVec2 point, int count) const {
  const float x = point.x - origin.x, y = point.y - origin.y;
  if (x < 0 || y < 0 || x >= static_cast<float>(columns) * pitch) return -1;
  const int index = static_cast<int>(y / pitch) * columns + static_cast<int>(x / pitch);
  if (index >= count) return -1;
  const ImVec2 corner = high(index);
  return point.x <= corner.x && point.y <= corner.y ? index : -1;
}

float CellGrid::height(int count) const {
  return std::ceil(std::ceil(static_cast<float>(count) / static_cast<float>(columns)) * pitch);
}

CellGrid make_cell_grid(ImVec2 origin, float width, float pitch, float space) {
  CellGrid grid{.origin = {std::floor(origin.x), std::floor(origin.y)},
                .space = std::max(1.0f, std::round(space))};
  grid.columns = std::max(1, static_cast<int>((width + space) / pitch + 0.01f));
  grid.pitch = (width + grid.space) / static_cast<float>(grid.columns);
  return grid;
}

}  // namespace octavo::ui
