// A block of KV memory as a small cell. Owners differ in more than colour: shared cells are hatched,
// cells being filled are filled as far as they are.
#pragma once

#include <imgui.h>

#include "ui/theme.h"

namespace octavo::ui {

struct CellLook {
  ImU32 colour = 0;
  float fill = 1.0f;  // 0..1, from the left
  bool hatched = false;
};

void draw_cell(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high, const CellLook& look);

// A ring around a cell that is pointed at or chosen.
void draw_cell_ring(const Theme& theme, ImDrawList* list, ImVec2 low, ImVec2 high);

// Equal cells in rows that fill a width.
struct CellGrid {
  ImVec2 origin;
  float pitch = 0;  // from cell to cell; cells stand on whole pixels
  float space = 0;  // between cells
  int columns = 1;

  ImVec2 low(int index) const;
  ImVec2 high(int index) const;
  // The cell under a point, or -1.
  int at(ImVec2 point, int count) const;
  float height(int count) const;
};

// About `pitch` from cell to cell: as many in a row as fit, and stretched to fill it.
CellGrid make_cell_grid(ImVec2 origin, float width, float pitch, float space);

}  // namespace octavo::ui
