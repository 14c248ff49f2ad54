// An answer's block table as cells: what is shared is hatched, what was copied on write has a corner, and a
// block that is pointed at is ringed in every column that names it.
#pragma once

#include <string>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/model_state.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::ui {

// On screen, with its line of figures.
float kv_strip_height(const Frame& frame, const ColumnMemory& memory, float width);

// At the cursor, which moves below it. `owner` is the colour of blocks that are this column's alone; `prefix`
// begins the line of figures, such as "seat 2: ".
void draw_kv_strip(const Frame& frame, const ModelState& model, const ColumnMemory& memory, ImU32 owner,
                   const char* prefix, float width, CompareLook& look);

// Lines between the places of the pointed block, over everything.
void draw_shared_links(const Frame& frame, const CompareLook& look);

// "3 shared · 3 own · 1 copied on write"
std::string memory_words(const ColumnMemory& memory);

}  // namespace octavo::ui
