#include "ui/views/memory/card_parts.h"

#include <algorithm>
#include <ranges>

#include "ui/memory_actions.h"
#include "ui/views/event_lines.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr std::size_t kMostHistoryShown = 12;

}  // namespace

bool draw_card_heading(const Frame& frame, const std::string& heading, const char* button_id) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  heading_line(frame, heading);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(24), at.y - frame.px(3)});
  const ButtonOptions close{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Close (Esc)"};
  const bool closes = button(frame, button_id, "", close);
  ImGui::SetCursorScreenPos(below);
  return closes;
}

void draw_card_owners(const Frame& frame, const char* heading, std::span<const BlockOwner> owners,
                      std::string (*index_text)(std::int32_t index), float width) {
  gap(frame, 8);
  heading_line(frame, heading);
  if (owners.empty()) line(frame, small_text(frame), "none");
  for (const BlockOwner& owner : owners) {
    const ImVec2 dot = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddCircleFilled({dot.x + frame.px(4), dot.y + frame.px(10)}, frame.px(4),
                                                frame.theme.owner(owner.colour_index));
    ImGui::Dummy({frame.px(14), 1});
    ImGui::SameLine();
    line(frame, small_text(frame), owner.label + " · " + index_text(owner.index), width - frame.px(16));
  }
}

void draw_card_history(const Frame& frame, const MemoryWorkspaceState& state,
                       std::span<const BlockHistoryLine> history, float width) {
  TextStyle mono = mono_text(frame);
  mono.em = 12;
  for (const BlockHistoryLine& event :
       history.last(std::min(history.size(), kMostHistoryShown)) | std::views::reverse) {
    std::string text = time_text(state, event.time_us) + " " + std::string(event_word(event.kind));
    if (event.sequence != 0) text += " " + sequence_name(*state.timeline, event.sequence);
    ImGui::PushID(static_cast<int>(event.mark));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    if (ImGui::InvisibleButton("history", {width, frame.px(19)}))
      frame.actions.push(actions::SeekMark{event.mark + 1});
    mono.colour = ImGui::IsItemHovered() ? frame.theme.text : frame.theme.muted;
    draw_text(frame, ImGui::GetWindowDrawList(), at, mono, text, width);
    ImGui::PopID();
  }
}

}  // namespace octavo::ui
