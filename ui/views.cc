#include "ui/views.h"

#include <algorithm>
#include <cmath>

#include "ui/shortcuts.h"
#include "ui/state.h"
#include "ui/views/banner_view.h"
#include "ui/views/chat_memory_view.h"
#include "ui/views/settings_view.h"
#include "ui/views/welcome_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kNarrowestWithColumn = 860;  // of the Chat workspace with its right column
constexpr float kNarrowestWithSidebar = 620;
constexpr float kTreeColumn = 420;
constexpr float kNarrowestBesideTree = 420;  // of the chat; else the tree stands in its place

}  // namespace

Views::Views() : fonts_(Fonts::load()), theme_(make_theme(ThemeName::kDark, 0)) {}

void Views::use_theme(const UiState& state, float content_scale) {
  const float scale = static_cast<float>(std::clamp(state.settings.ui_scale, 0.75, 3.0)) * content_scale;
  const Theme wanted = make_theme(state.settings.theme, scale);
  if (wanted.scale == theme_.scale && wanted.background == theme_.background) return;
  theme_ = wanted;
  apply_theme(theme_);
}

void Views::draw(const UiState& state, ActionSink& actions, float content_scale) {
  use_theme(state, content_scale);
  const Frame frame{theme_, fonts_, actions};
  const Face face = frame.face(FontFace::kRegular, size::kText);
  ImGui::PushFont(face.font, face.size);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->Pos);
  ImGui::SetNextWindowSize(viewport->Size);
  constexpr ImGuiWindowFlags kFlags =
      ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
      ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse;
  ImGui::Begin("octavo", nullptr, kFlags);
  apply_shortcuts(frame, state, chat_.keeps_escape());
  const bool is_offline = state.workspace == Workspace::kMemory &&
                          state.memory_workspace.source != MemorySource::kLive;  // a recording needs no model
  if (state.model.phase != ModelPhase::kReady && is_offline) {
    memory_.draw(frame, state, ImGui::GetContentRegionAvail());
  } else if (state.model.phase != ModelPhase::kReady) {
    draw_welcome_view(frame, state);
  } else {
    const bool sidebar = state.settings.sidebar_shown && viewport->Size.x >= frame.px(kNarrowestWithSidebar);
    if (sidebar) {
      sidebar_.draw(frame, state);
      ImGui::SameLine();
    }
    draw_workspace(frame, state, ImGui::GetContentRegionAvail());
  }
  draw_banner_view(frame, state);
  draw_settings_view(frame, state);
  attach_.draw(frame, state);
  presets_.draw(frame, state);
  model_picker_.draw(frame, state);
  palette_.draw(frame, state);
  ImGui::End();
  ImGui::PopFont();
}

void Views::draw_workspace(const Frame& frame, const UiState& state, ImVec2 extent) {
  if (state.workspace != Workspace::kMemory) memory_.note_hidden();
  switch (state.workspace) {
    case Workspace::kChat: draw_chat(frame, state, extent); break;
    case Workspace::kCompare: compare_.draw(frame, state, extent); break;
    case Workspace::kMemory: memory_.draw(frame, state, extent); break;
  }
}

void Views::draw_chat(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ChatState* chat = active_chat(state);
  if (chat == nullptr) return;
  if (chat->id != shown_chat_) {
    shown_chat_ = chat->id;
    composer_.focus();
  }
  const MessageFocus& focus = state.library.focus;
  if (focus.chat_id == chat->id && focus.serial != shown_focus_ && !chat->loading) {
    shown_focus_ = focus.serial;
    chat_.show_message(focus.chat_id, focus.message_id);
  }
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool tree = state.desktop.tree_open;
  if (tree && !tree_was_open_) tree_.focus();
  tree_was_open_ = tree;
  float column = frame.px(tree ? kTreeColumn : size::kChatPanel);
  if (tree && extent.x - column < frame.px(kNarrowestBesideTree)) column = extent.x;
  const bool with_column =
      extent.x - column >= frame.px(kNarrowestWithColumn) - column || state.sampling_open || tree;
  const float width = with_column ? extent.x - column : extent.x;
  if (width <= 0) return draw_right_column(frame, state, *chat, low, extent);
  const float composer = composer_.height(frame, *chat, width);
  chat_.draw(frame, state, *chat, {width, extent.y - composer});
  ImGui::SetCursorScreenPos({low.x, low.y + extent.y - composer});
  if (composer_.draw(frame, state, *chat, width)) chat_.follow_end(chat->id);
  if (with_column) draw_right_column(frame, state, *chat, {low.x + width, low.y}, {column, extent.y});
}

void Views::draw_right_column(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                              ImVec2 extent) {
  ImGui::SetCursorScreenPos(low);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme_.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(16), frame.px(18)});
  ImGui::BeginChild("right_column", extent,
                    ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  ImGui::GetWindowDrawList()->AddLineV(low.x, low.y, low.y + extent.y, theme_.line);
  if (state.desktop.tree_open) {
    tree_.draw(frame, state, ImGui::GetContentRegionAvail());
  } else if (state.sampling_open) {
    sampling_.draw(frame, chat);
  } else {
    draw_chat_memory_view(frame, state, chat);
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
