#include "tests/ui/keyboard_walk.h"

#include <imgui_internal.h>

#include <algorithm>
#include <set>

#include "tests/ui/drawn_controls.h"

namespace octavo::testing {
namespace {

constexpr int kMostPresses = 600;

bool takes_tab(const ImGuiTestItemInfo& item) {
  constexpr ImGuiItemFlags kNoTab = ImGuiItemFlags_NoNav | ImGuiItemFlags_NoTabStop | ImGuiItemFlags_Disabled;
  return (item.ItemFlags & kNoTab) == 0;
}

}  // namespace

std::vector<std::string> unreached_controls(ImGuiTestContext* context) {
  std::vector<std::string> lines;
  std::set<ImGuiID> reached;
  const ImGuiContext& imgui = *ImGui::GetCurrentContext();
  ImGuiID before = 0;
  int num_stays = 0;
  for (int i = 0; i < kMostPresses; ++i) {
    context->KeyPress(ImGuiKey_Tab);
    context->Yield(3);
    const ImGuiID here = imgui.NavId;
    num_stays = here == before ? num_stays + 1 : 0;
    if (num_stays > 2) {
      lines.push_back("Tab stays where it is, after " + std::to_string(reached.size()) + " controls");
      break;
    }
    if (here != before && !reached.insert(here).second) break;
    before = here;
  }
  for (const ImGuiTestItemInfo& item : drawn_controls(context)) {
    if (takes_tab(item) && !reached.contains(item.ID))
      lines.push_back("Tab passes " + control_name(item) + " by");
  }
  return lines;
}

}  // namespace octavo::testing
