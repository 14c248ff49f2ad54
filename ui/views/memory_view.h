// The Memory workspace: the pools at a moment and how they came there, the tour, the paper's evaluation.
// Keeps only how things are looked at; what is shown is UiState::memory_workspace.
#pragma once

#include "ui/frame.h"
#include "ui/memory_state.h"
#include "ui/views/memory/block_map.h"
#include "ui/views/memory/event_log.h"
#include "ui/views/memory/memory_toolbar.h"
#include "ui/views/memory/paper_view.h"
#include "ui/views/memory/requests_view.h"
#include "ui/views/memory/timeline_view.h"
#include "ui/views/memory/tour_view.h"

namespace octavo::ui {

class MemoryView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

  // Whether something that was drawn moves by itself: a flash that fades.
  bool wants_frame() const { return map_.wants_frame() && was_drawn_; }
  // Call when a frame begins without this view.
  void note_hidden() { was_drawn_ = false; }

  const BlockMap& map() const { return map_; }
  const TimelineView& timeline() const { return timeline_; }
  const RequestsView& requests() const { return requests_; }

 private:
  void press_keys(const Frame& frame, const UiState& state);
  void draw_map(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);
  void draw_pools(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent);
  void draw_tables(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);
  void draw_side(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);
  void point(const Frame& frame, const MemoryWorkspaceState& state, const Pointing& pointing);

  BlockMap map_;
  TimelineView timeline_;
  EventLog log_;
  MemoryToolbar bar_;
  TourView tour_;
  RequestsView requests_;
  PaperView paper_;
  bool shows_tree_ = false;
  bool shows_events_ = false;  // also while a block is chosen
  bool shows_all_figures_ = false;
  bool was_drawn_ = false;
};

}  // namespace octavo::ui
