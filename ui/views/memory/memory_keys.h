// The keyboard of the Memory workspace, listed with the other shortcuts.
#pragma once

#include <span>

#include "ui/frame.h"

namespace octavo::ui {

struct MemoryKey {
  const char* keys;
  const char* what;
};
std::span<const MemoryKey> memory_keys();

// What the view itself changes, not the state.
enum class MemoryKeyPress {
  kNone,
  kZoomIn,
  kZoomOut,
  kFit,
  kOccupied,
  kColour,
  kOrder,
  kLanes,
  kTables,
  kMoreFigures,
  kEvents,
  kWider,
  kNarrower
};

// Pushes the actions of what was pressed; returns what the view has to do. Nothing while text is edited.
MemoryKeyPress apply_memory_keys(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
