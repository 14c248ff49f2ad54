#include "ui/views/dialog.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>

#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

// Whether this dialog was in front when its frame began: of several, Escape closes only that one.
ImGuiID front_key() { return ImGui::GetID("is_in_front"); }

}  // namespace

bool begin_dialog(const Frame& frame, const DialogOptions& options, bool open) {
  if (open && !ImGui::IsPopupOpen(options.id)) ImGui::OpenPopup(options.id);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float height =
      options.height == 0 ? 0 : std::min(frame.px(options.height), viewport->Size.y - frame.px(32));
  ImGui::SetNextWindowPos(viewport->GetCenter(), ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(frame.px(options.width), viewport->Size.x - frame.px(32)), height});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(24), frame.px(20)});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.px(size::kRadiusCard));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0f);
  const ImGuiWindowFlags flags =
      ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize | ImGuiWindowFlags_NoMove |
      ImGuiWindowFlags_NoSavedSettings |
      (options.scrolls ? 0 : ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const bool shown = ImGui::BeginPopupModal(options.id, nullptr, flags);
  ImGui::PopStyleVar(3);
  if (!shown) return false;
  ImGui::GetStateStorage()->SetBool(front_key(), ImGui::GetTopMostPopupModal() == ImGui::GetCurrentWindow());
  TextStyle heading = heading_text(frame);
  heading.em = 18;
  line(frame, heading, options.title);
  gap(frame, 14);
  return true;
}

bool end_dialog(const Frame& frame, bool open) {
  const ImVec2 end = ImGui::GetCursorScreenPos(), low = ImGui::GetWindowPos();
  ImGui::SetCursorScreenPos({low.x + ImGui::GetWindowWidth() - frame.px(56), low.y + frame.px(17)});
  const ButtonOptions close{.kind = ButtonKind::kPlain, .icon = Icon::kClose, .help = "Close (Esc)"};
  // Asked for directly: a field that is edited takes a routed Escape for itself.
  const bool is_in_front = ImGui::GetStateStorage()->GetBool(front_key());
  const bool closed = button(frame, "close_dialog", "", close) ||
                      (is_in_front && ImGui::IsKeyPressed(ImGuiKey_Escape, false));
  ImGui::SetCursorScreenPos(end);
  ImGui::Dummy({0, 0});
  if (closed || !open) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return closed;
}

}  // namespace octavo::ui
