#include "ui/views/tree_view.h"

#include <imgui.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/format.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kRowHeight = 46, kLaneWidth = 18, kLeft = 14, kDot = 4.5f;
constexpr std::int32_t kMostLanes = 9;

ImU32 role_colour(const Frame& frame, const TreeMessage& message) {
  if (!message.on_shown_path) return frame.theme.faint;
  return message.role == Role::kAssistant ? frame.theme.accent : frame.theme.text;
}

const char* speaker_of(Role role) {
  switch (role) {
    case Role::kUser: return "You";
    case Role::kAssistant: return "Answer";
    case Role::kTool: return "Tool";
    case Role::kSystem: break;
  }
  return "System";
}

}  // namespace

void TreeView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const BranchTree* tree = state.desktop.tree.get();
  const bool has_messages = tree != nullptr && !tree->messages.empty();
  const std::string note =
      has_messages
          ? count_text(static_cast<std::int64_t>(tree->messages.size()), "message") + " · " +
                (tree->num_branches == 1 ? "1 branch" : with_thousands(tree->num_branches) + " branches")
          : std::string();
  heading_line(frame, "Branches", note);
  const ImVec2 below = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(26), at.y - frame.px(3)});
  const ButtonOptions close{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 26, .help = "Close (Esc)"};
  if (button(frame, "close_tree", "", close)) frame.actions.push(actions::ShowTree{false});
  ImGui::SetCursorScreenPos(below);
  gap(frame, 10);
  if (!has_messages) {
    const ChatState* chat = active_chat(state);
    const bool loading = chat != nullptr && chat->loading;
    line(frame, small_text(frame), loading ? "Loading chat…" : "No messages yet.");
    return;
  }
  const float left = ImGui::GetCursorScreenPos().y - at.y;
  choose_selected(*tree);
  draw_rows(frame, *tree, {width, extent.y - left});
}

// The message that was chosen, wherever it stands by now; at first the end of the shown path.
void TreeView::choose_selected(const BranchTree& tree) {
  const auto& messages = tree.messages;
  if (shown_chat_ != tree.chat_id) {
    shown_chat_ = tree.chat_id;
    selected_id_ = {};
  }
  if (selected_ < messages.size() && messages[selected_].id == selected_id_ && selected_id_ != MessageId{})
    return;
  const auto same = std::find_if(messages.begin(), messages.end(),
                                 [this](const TreeMessage& message) { return message.id == selected_id_; });
  if (same != messages.end()) {
    selected_ = static_cast<std::size_t>(same - messages.begin());
    return;
  }
  selected_ = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].on_shown_path) selected_ = i;
  }
  selected_id_ = messages[selected_].id;
  scroll_to_selected_ = true;
}

void TreeView::take_keys(const Frame& frame, const BranchTree& tree) {
  // Dear ImGui has taken the focus to the window around this one when Escape arrives here.
  const bool was_focused = std::exchange(focused_, ImGui::IsWindowFocused());
  if ((was_focused || focused_) && ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    return frame.actions.push(actions::ShowTree{false});
  if (!focused_) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Tab, false)) return give_keyboard_to_window();
  const auto& messages = tree.messages;
  std::size_t next = selected_;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow) && next > 0) --next;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow) && next + 1 < messages.size()) ++next;
  if (ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) next = messages[next].parent;
  if (ImGui::IsKeyPressed(ImGuiKey_RightArrow) && messages[next].last_child != next) ++next;
  if (ImGui::IsKeyPressed(ImGuiKey_Home)) next = 0;
  if (ImGui::IsKeyPressed(ImGuiKey_End)) next = messages.size() - 1;
  if (next != selected_) {
    selected_ = next;
    selected_id_ = messages[next].id;
    scroll_to_selected_ = true;
  }
  if (ImGui::IsKeyPressed(ImGuiKey_Enter, false) || ImGui::IsKeyPressed(ImGuiKey_KeypadEnter, false))
    go_to(frame, tree, selected_);
}

void TreeView::draw_rows(const Frame& frame, const BranchTree& tree, ImVec2 extent) {
  const float row = frame.px(kRowHeight);
  const auto count = static_cast<float>(tree.messages.size());
  if (std::exchange(focus_, false)) {
    ImGui::ClearActiveID();  // a field of this window would go on taking keys
    ImGui::SetNextWindowFocus();
  }
  ImGui::SetNextWindowContentSize({0, row * count});
  ImGui::BeginChild("tree", extent, 0, ImGuiWindowFlags_NoNav);
  take_keys(frame, tree);
  if (scroll_to_selected_) {
    const float top = row * static_cast<float>(selected_), scroll = ImGui::GetScrollY();
    if (top < scroll || top + row > scroll + extent.y)
      ImGui::SetScrollY(std::max(0.0f, top - extent.y * 0.4f));
    scroll_to_selected_ = false;
  }
  first_lane_ = std::max(0, tree.messages[selected_].lane - kMostLanes / 2);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float inner = ImGui::GetContentRegionAvail().x, scroll = ImGui::GetScrollY();
  const auto first = static_cast<std::size_t>(std::max(0.0f, std::floor(scroll / row)));
  for (std::size_t i = first; i < tree.messages.size(); ++i) {
    const float y = row * static_cast<float>(i);
    if (y > scroll + extent.y) break;
    draw_row(frame, tree, i, {low.x, low.y + y}, inner);
  }
  ImGui::EndChild();
}

void TreeView::draw_row(const Frame& frame, const BranchTree& tree, std::size_t index, ImVec2 low,
                        float width) {
  const TreeMessage& message = tree.messages[index];
  const float row = frame.px(kRowHeight);
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushID(static_cast<int>(message.id.value));
  ImGui::SetCursorScreenPos(low);
  const bool clicked = ImGui::InvisibleButton("branch_message", {width, row});
  const bool hovered = ImGui::IsItemHovered();
  if (index == selected_ || hovered) {
    list->AddRectFilled(low, {low.x + width, low.y + row - 2},
                        with_alpha(frame.theme.raised, index == selected_ ? 1.0f : 0.6f),
                        frame.px(size::kRadiusControl));
  }
  draw_lines(frame, tree, index, low);
  const float x = lane_x(frame, message.lane), left = low.x + x + frame.px(16);
  const ImVec2 dot{low.x + x, low.y + std::floor(row * 0.5f)};
  if (message.role == Role::kAssistant) {
    list->AddCircleFilled(dot, frame.px(kDot), role_colour(frame, message));
  } else {
    list->AddCircleFilled(dot, frame.px(kDot), frame.theme.panel);
    list->AddCircle(dot, frame.px(kDot), role_colour(frame, message), 0, frame.theme.scale * 1.6f);
  }
  TextStyle text = small_text(frame);
  text.colour = message.on_shown_path ? frame.theme.text : frame.theme.muted;
  const float room = width - (left - low.x) - frame.px(8);
  draw_text(frame, list, {left, low.y + frame.px(5)}, text, message.excerpt, room);
  TextStyle note = tiny_text(frame);
  note.colour = message.on_shown_path ? frame.theme.muted : frame.theme.faint;
  const std::string second =
      std::string(speaker_of(message.role)) + (message.note.empty() ? "" : " · " + message.note);
  draw_text(frame, list, {left, low.y + frame.px(24)}, note, second, room);
  if (clicked) {
    selected_ = index;
    selected_id_ = message.id;
    go_to(frame, tree, index);
  }
  ImGui::PopID();
}

float TreeView::lane_x(const Frame& frame, std::int32_t lane) const {
  return frame.px(kLeft) +
         frame.px(kLaneWidth) * static_cast<float>(std::clamp(lane - first_lane_, 0, kMostLanes));
}

// From the parent, to the children, and those that pass by on their way to a later branch.
void TreeView::draw_lines(const Frame& frame, const BranchTree& tree, std::size_t index, ImVec2 low) const {
  const auto& messages = tree.messages;
  const TreeMessage& message = messages[index];
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float row = frame.px(kRowHeight), middle = low.y + std::floor(row * 0.5f), bottom = low.y + row;
  const float thickness = std::max(1.0f, frame.theme.scale * 1.4f);
  const ImU32 quiet = frame.theme.faint, shown = frame.theme.accent;
  const auto vertical = [&](float x, float from, float to, ImU32 colour) {
    list->AddLine({low.x + x, from}, {low.x + x, to}, colour, thickness);
  };
  const float x = lane_x(frame, message.lane);
  for (std::size_t a = message.branching_ancestor, below = index; a != below;
       below = a, a = messages[a].branching_ancestor) {
    if (messages[a].lane < first_lane_) break;
    const bool to_shown = messages[a].shown_child > index;
    if (messages[a].last_child > index)
      vertical(lane_x(frame, messages[a].lane), low.y, bottom, to_shown ? shown : quiet);
  }
  if (message.parent != index) {
    const float parent_x = lane_x(frame, messages[message.parent].lane);
    const ImU32 colour = message.on_shown_path ? shown : quiet;
    vertical(parent_x, low.y, middle, colour);
    list->AddLine({low.x + parent_x, middle}, {low.x + x, middle}, colour, thickness);
  }
  if (message.last_child != index) {
    vertical(x, middle, bottom, message.shown_child != index ? shown : quiet);
  }
}

void TreeView::go_to(const Frame& frame, const BranchTree& tree, std::size_t index) {
  frame.actions.push(actions::ShowMessage{tree.chat_id, tree.messages[index].id});
}

}  // namespace octavo::ui
