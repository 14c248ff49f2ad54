// The Memory workspace: every block of the device pool, whose it is, and how that went. All figures are the
// engine's: KvSnapshot's for the moment, StepRecords for the curves.
//
// Keeps only which block is chosen and the samples of the curves.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/frame.h"
#include "ui/state.h"
#include "ui/widgets/sparkline.h"

namespace octavo::ui {

class MemoryView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

 private:
  struct Curves {
    std::vector<Sample> used, cached, free, fragmentation, sharing, preempted;
    double end_s = 0;
  };

  void update_curves(const MemoryState& memory);
  void draw_health(const Frame& frame, const UiState& state, float width);
  void draw_pool(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_cells(const Frame& frame, const UiState& state, const KvSnapshot& snapshot);
  void draw_tables(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_table_row(const Frame& frame, const UiState& state, std::size_t row, float width);
  void draw_block_card(const Frame& frame, const UiState& state);
  void draw_events(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_timeline(const Frame& frame, const UiState& state, ImVec2 extent);

  Curves curves_;
  std::int64_t last_step_ = -1;
  int chosen_block_ = -1;
  int pointed_block_ = -1;       // in this frame
  int last_pointed_block_ = -1;  // in the frame before, so that every part of the view can light it
};

}  // namespace octavo::ui
