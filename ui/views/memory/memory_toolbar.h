// The top of the Memory workspace: which page, what memory there is, a tiny pool, recording and export.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

struct UiState;  // state.h

class MemoryToolbar {
 public:
  void draw(const Frame& frame, const UiState& window, float width);

 private:
  void draw_files(const Frame& frame, const MemoryWorkspaceState& state);
  void draw_export_popup(const Frame& frame, const MemoryWorkspaceState& state);
};

// Weights, KV pool, working memory and what is left, of all memory.
void draw_memory_bar(const Frame& frame, const MemoryBar& bar, float width);

}  // namespace octavo::ui
