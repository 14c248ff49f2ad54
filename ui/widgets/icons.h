// Small line icons, drawn rather than loaded, so that they scale with everything else.
#pragma once

#include <imgui.h>

namespace octavo::ui {

enum class Icon {
  kPlus,
  kClose,
  kCopy,
  kCopyText,
  kEdit,
  kTrash,
  kRegenerate,
  kGear,
  kSidebar,
  kStop,
  kChevronLeft,
  kChevronRight,
  kArrowDown,
  kSliders,
  kCheck,
  kColumns,
  kMaximise,
  kChevronDown,
  kSearch,
  kPin,
  kFolder,
  kMore,
  kPaperclip,
  kBranches
};

// Inside a square of `extent` pixels around `centre`.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 centre, float extent, ImU32 colour);

}  // namespace octavo::ui
