#include "ui/views/attach_view.h"

#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {

void AttachView::draw(const Frame& frame, const UiState& state) {
  const bool open = state.desktop.attach_open;
  const bool appearing = open && !was_open_;
  was_open_ = open;
  if (appearing) path_.clear();
  if (!begin_dialog(frame, {.id = "attach_panel", .title = "Attach a text file", .width = 520}, open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  paragraph(frame, small_text(frame),
            "The file is sent with your next message. You can also drop files on the window.", width);
  gap(frame, 12);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  const bool entered = text_field(frame, "##attach_path", path_, "Path, e.g. ~/notes.txt", width,
                                  ImGuiInputTextFlags_EnterReturnsTrue);
  gap(frame, 14);
  const bool has_path = path_.find_first_not_of(" \t") != std::string::npos;
  const ButtonOptions attach{.kind = ButtonKind::kPrimary, .width = 96, .enabled = has_path};
  const bool pressed = button(frame, "attach", "Attach", attach);
  if ((pressed || entered) && has_path) frame.actions.push(actions::AttachFile{state.active_chat, path_});
  if (end_dialog(frame, open)) frame.actions.push(actions::ShowAttach{false});
}

}  // namespace octavo::ui
