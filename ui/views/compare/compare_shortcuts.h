// The keys of the Compare workspace. They count while no text is edited and no card is open, but for those
// with Ctrl and Escape.
#pragma once

#include <span>

#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::ui {

struct CompareKey {
  const char* key;
  const char* help;
};
// For the list of all shortcuts.
std::span<const CompareKey> compare_keys();

void apply_compare_shortcuts(const Frame& frame, const UiState& state, CompareLook& look);

}  // namespace octavo::ui
