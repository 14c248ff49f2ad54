// The tour's words: chapters, the sentence of this step, what it computed, and the way on. In the last
// chapter the visitor types here what is played.
#pragma once

#include <optional>

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

class TourView {
 public:
  void draw(const Frame& frame, const MemoryWorkspaceState& state, float width);

 private:
  float trial_height(const Frame& frame, const TourState& tour, float width) const;
  void draw_trial(const Frame& frame, const TourState& tour, float width);
  void draw_trial_fields(const Frame& frame, float width);

  std::optional<TourTrial> draft_;  // as it stands in the fields; none: what was played
};

}  // namespace octavo::ui
