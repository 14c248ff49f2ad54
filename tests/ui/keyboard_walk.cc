#include "tests/ui/keyboard_walk.h"

#include <imgui_internal.h>

#include <algorithm>
#include <set>

#include "tests/ui/drawn_controls.h"

namespace octavo::testing {
namespace {

constexpr int kMostPresses = 600;
constexpr int kStays = 3;  // presses after which it goes no further

// What has no label is a plot: its page has keys for what the mouse does there.
bool takes_tab(const ImGuiTestItemInfo& item) {
  constexpr ImGuiItemFlags kNoTab = ImGuiItemFlags_NoNav | ImGuiItemFlags_NoTabStop | ImGuiItemFlags_Disabled;
  return (item.ItemFlags & kNoTab) == 0 && item.DebugLabel[0] != '\0';
}

}  // namespace

std::vector<std::string> unreached_controls(ImGuiTestContext* context) {
  std::set<ImGuiID> reached;
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  ImGuiID before = 0;
  int num_stays = 0;
  for (int i = 0; i < kMostPresses && num_stays < kStays; ++i) {
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(3);
    const ImGuiID here = imgui.NavId;
    num_stays = here == before ? num_stays + 1 : 0;
    if (here != before && !reached.insert(here).second) break;
    before = here;
  }
  std::vector<std::string> lines;
  for (const ImGuiTestItemInfo& item : drawn_controls(context)) {
    if (takes_tab(item) && !reached.contains(item.ID))
      lines.push_back("Tab passes " + control_name(item) + " by");
  }
  if (num_stays < kStays || lines.empty()) return lines;
  return {"Tab stays where it is after " + std::to_string(reached.size()) + " controls, and comes to " +
          std::to_string(lines.size()) + " others never: " + lines.front()};
}

}  // namespace octavo::testing
