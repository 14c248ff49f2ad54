#include "ui/views/sidebar_view.h"

#include <algorithm>
#include <array>

#include "ui/format.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMargin = 12;
constexpr float kRowHeight = 58;
constexpr float kModelCardHeight = 86;
constexpr float kUndoHeight = 44;

std::string activity_text(const SessionState& session) {
  switch (session.activity) {
    case Activity::kWaiting:
      return session.num_ahead > 0 ? "waiting · " + std::to_string(session.num_ahead) + " ahead" : "waiting";
    case Activity::kGenerating:
      return session.tokens_per_second > 0
                 ? "generating · " + short_number(session.tokens_per_second) + " tok/s"
                 : "reading the prompt";
    case Activity::kFailed: return "failed";
    case Activity::kIdle: break;
  }
  const auto num_blocks = static_cast<std::int64_t>(session.memory.blocks.size());
  return num_blocks > 0 ? "idle · " + count_text(num_blocks, "block") + " cached" : "idle";
}

ImU32 activity_colour(const Theme& theme, const SessionState& session) {
  switch (session.activity) {
    case Activity::kIdle: return theme.faint;
    case Activity::kFailed: return theme.error;
    case Activity::kWaiting:
    case Activity::kGenerating: break;
  }
  return theme.owner(session.colour_index);
}

void draw_model_card(const Frame& frame, const UiState& state, float width) {
  const ModelState& model = state.model;
  begin_card(frame, "model", {width, frame.px(kModelCardHeight)}, 13);
  const float inner = ImGui::GetContentRegionAvail().x;
  const ImVec2 top = ImGui::GetCursorScreenPos();
  TextStyle name = small_text(frame);
  name.colour = frame.theme.text;
  name.em = 13.5f;
  const TextStyle tiny = tiny_text(frame);
  const float quantisation = text_width(frame, tiny, model.quantisation);
  line(frame, name, model.name, inner - quantisation - frame.px(8));
  tooltip(frame, model.details + "\n" + model.path);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text(frame, list, {top.x + inner - quantisation, top.y + frame.px(1)}, tiny, model.quantisation);
  gap(frame, 7);
  const StepRecord none{};
  const StepRecord& levels = state.memory.steps.empty() ? none : state.memory.steps.back();
  const auto fraction = [&](std::int32_t blocks) {
    return model.num_blocks > 0 ? static_cast<double>(blocks) / model.num_blocks : 0.0;
  };
  two_part_bar(frame, static_cast<float>(fraction(levels.used_blocks)),
               static_cast<float>(fraction(levels.cached_blocks)), inner, frame.px(8));
  gap(frame, 5);
  const ImVec2 bottom = ImGui::GetCursorScreenPos();
  line(frame, tiny,
       percent_text(fraction(levels.used_blocks)) + " used · " +
           percent_text(fraction(levels.cached_blocks)) + " cached");
  tooltip(frame, "Blocks of KV memory with a reference, and blocks whose contents can still be found again.");
  const std::string total = with_thousands(model.num_blocks);
  draw_text(frame, list, {bottom.x + inner - text_width(frame, tiny, total), bottom.y}, tiny, total);
  end_card();
}

void draw_undo(const Frame& frame, const std::string& title, float width) {
  begin_card(frame, "undo", {width, frame.px(kUndoHeight)}, 0);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({low.x + frame.px(12), low.y + frame.px(12)});
  line(frame, tiny_text(frame), "Deleted “" + title + "”", width - frame.px(110));
  ImGui::SetCursorScreenPos({low.x + width - frame.px(92), low.y + frame.px(8)});
  if (button(frame, "undo_delete", "Undo", {.height = 28})) frame.actions.push(actions::UndoDelete{});
  beside(frame, 2);
  const ButtonOptions dismiss{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Dismiss"};
  if (button(frame, "dismiss_undo", "", dismiss)) frame.actions.push(actions::DismissUndo{});
  end_card();
}

}  // namespace

void SidebarView::draw(const Frame& frame, const UiState& state) {
  const float outer = frame.px(size::kSidebar), margin = frame.px(kMargin);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, frame.theme.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("sidebar", {outer, 0}, ImGuiChildFlags_NavFlattened, ImGuiWindowFlags_NoScrollbar);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 low = ImGui::GetWindowPos();
  const float height = ImGui::GetWindowHeight(), width = outer - 2 * margin;
  ImGui::GetWindowDrawList()->AddLineV(low.x + outer - 1, low.y, low.y + height, frame.theme.line);

  ImGui::SetCursorScreenPos({low.x + margin, low.y + frame.px(16)});
  ImGui::BeginGroup();
  draw_top(frame, state, width);
  ImGui::EndGroup();
  const float list_top = ImGui::GetCursorScreenPos().y;
  const bool undo = state.deleted_title.has_value();
  const float bottom = frame.px(kModelCardHeight + 16 + (undo ? kUndoHeight + 8 : 0));
  draw_sessions(frame, state, width, low.y + height - bottom - list_top - frame.px(8));
  float y = low.y + height - bottom;
  if (undo) {
    ImGui::SetCursorScreenPos({low.x + margin, y});
    draw_undo(frame, *state.deleted_title, width);
    y += frame.px(kUndoHeight + 8);
  }
  ImGui::SetCursorScreenPos({low.x + margin, y});
  draw_model_card(frame, state, width);
  ImGui::EndChild();
}

void SidebarView::draw_top(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLabels = {"Chat", "Memory"};
  constexpr std::array kIds = {"chat", "memory"};
  const auto before = static_cast<std::size_t>(state.workspace);
  const std::size_t after = segments(frame, "workspace", kLabels, kIds, before, width);
  if (after != before) frame.actions.push(actions::ShowWorkspace{static_cast<Workspace>(after)});
  gap(frame, 12);
  const float square = 38;
  const ButtonOptions new_chat{.icon = Icon::kPlus,
                               .width = (width - frame.px(square + 8)) / frame.theme.scale,
                               .height = square,
                               .align_left = true,
                               .help = "A new chat (Ctrl+N)"};
  if (button(frame, "new_chat", "New chat", new_chat)) frame.actions.push(actions::NewSession{});
  beside(frame, 8);
  const ButtonOptions settings{.icon = Icon::kGear, .height = square, .help = "Settings (Ctrl+,)"};
  if (button(frame, "settings", "", settings)) frame.actions.push(actions::ShowSettings{true});
  gap(frame, 14);
  TextStyle label = tiny_text(frame);
  label.colour = frame.theme.faint;
  ImGui::Dummy({frame.px(10), 1});
  ImGui::SameLine();
  line(frame, label, "Chats");
  gap(frame, 6);
}

void SidebarView::draw_sessions(const Frame& frame, const UiState& state, float width, float height) {
  ImGui::SetCursorScreenPos({ImGui::GetWindowPos().x + frame.px(kMargin), ImGui::GetCursorScreenPos().y});
  ImGui::BeginChild("sessions", {width, std::max(height, frame.px(kRowHeight))},
                    ImGuiChildFlags_NavFlattened);
  const float inner = ImGui::GetContentRegionAvail().x;
  const float row = frame.px(kRowHeight + 2);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.sessions.size()), row);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const SessionState& session = state.sessions[static_cast<std::size_t>(i)];
      const float y = ImGui::GetCursorScreenPos().y;
      draw_session(frame, session, session.id == state.active_session, inner);
      ImGui::SetCursorScreenPos({ImGui::GetWindowPos().x, y + row});
    }
  }
  ImGui::Dummy({0, 0});
  ImGui::EndChild();
}

void SidebarView::draw_session(const Frame& frame, const SessionState& session, bool active, float width) {
  ImGui::PushID(static_cast<int>(session.id.value));
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 high{low.x + width, low.y + frame.px(kRowHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool hovered = ImGui::IsMouseHoveringRect(low, high) && ImGui::IsWindowHovered();
  if (active || hovered) {
    list->AddRectFilled(low, high, with_alpha(frame.theme.raised, active ? 1.0f : 0.6f), frame.px(10));
  }
  if (renaming_ == session.id) {
    draw_rename(frame, session, low, width);
    ImGui::PopID();
    return;
  }
  ImGui::SetNextItemAllowOverlap();
  if (ImGui::InvisibleButton("session", {width, high.y - low.y}, ImGuiButtonFlags_EnableNav)) {
    frame.actions.push(actions::SelectSession{session.id});
  }
  const bool show_buttons = hovered || active;
  const bool rename = ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  const bool rename_key = active && ImGui::Shortcut(ImGuiKey_F2, ImGuiInputFlags_RouteGlobal);
  if (rename || rename_key) {
    renaming_ = session.id;
    rename_text_ = session.title;
    focus_rename_ = true;
  }
  const float text_room = width - frame.px(20) - (show_buttons ? frame.px(62) : 0);
  draw_text(frame, list, {low.x + frame.px(10), low.y + frame.px(8)},
            {.em = 14.5f, .colour = frame.theme.text}, session.title, text_room);
  list->AddCircleFilled({low.x + frame.px(14), low.y + frame.px(40)}, frame.px(4),
                        activity_colour(frame.theme, session));
  draw_text(frame, list, {low.x + frame.px(25), low.y + frame.px(31)}, tiny_text(frame),
            activity_text(session), text_room - frame.px(15));
  if (show_buttons) draw_session_buttons(frame, session, high);
  ImGui::PopID();
}

void SidebarView::draw_session_buttons(const Frame& frame, const SessionState& session, ImVec2 row_high) {
  const float top = row_high.y - frame.px(kRowHeight + 26) * 0.5f;
  ImGui::SetCursorScreenPos({row_high.x - frame.px(60), top});
  const ButtonOptions rename{
      .kind = ButtonKind::kPlain, .icon = Icon::kEdit, .height = 26, .help = "Rename (F2)"};
  if (button(frame, "rename", "", rename)) {
    renaming_ = session.id;
    rename_text_ = session.title;
    focus_rename_ = true;
  }
  beside(frame, 2);
  const ButtonOptions remove{
      .kind = ButtonKind::kPlain, .icon = Icon::kTrash, .height = 26, .help = "Delete"};
  if (button(frame, "delete", "", remove)) frame.actions.push(actions::DeleteSession{session.id});
}

void SidebarView::draw_rename(const Frame& frame, const SessionState& session, ImVec2 low, float width) {
  ImGui::SetCursorScreenPos({low.x + frame.px(6), low.y + frame.px(12)});
  if (focus_rename_) ImGui::SetKeyboardFocusHere();
  const bool entered = text_field(frame, "##title", rename_text_, "Title", width - frame.px(12),
                                  ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  const bool cancelled = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape);
  const bool left = !focus_rename_ && ImGui::IsItemDeactivated() && !cancelled;
  focus_rename_ = false;
  if (entered || left) frame.actions.push(actions::RenameSession{session.id, rename_text_});
  if (entered || left || cancelled) renaming_ = {};
}

}  // namespace octavo::ui
