#include "ui/views.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/text.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"
#include "ui/shortcuts.h"
#include "ui/state.h"
#include "ui/views/banner_view.h"
#include "ui/views/chat_memory_view.h"
#include "ui/views/keys_view.h"
#include "ui/views/memory/tiny_pool_view.h"
#include "ui/views/welcome_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kNarrowestWithColumn = 860;  // of the Chat workspace with its right column
constexpr float kNarrowestWithSidebar = 620;
// Less than this, in design pixels, shows nothing as a whole: a larger zoom waits for a larger window.
constexpr float kLeastWidth = 480, kLeastHeight = 320;
constexpr float kRail = 54;  // in place of the sidebar
constexpr float kTreeColumn = 420;
constexpr float kNarrowestBeside = 420;  // of the chat; else the tree or the settings stand in its place

// Typed in this frame. A space presses the control that has the focus, and begins no text.
std::string typed_text() {
  const ImGuiIO& io = ImGui::GetIO();
  std::string text;
  if (io.KeyCtrl || io.KeyAlt || io.KeySuper) return text;
  for (const ImWchar character : io.InputQueueCharacters) {
    const bool begins_with_space = character == ' ' && text.empty();
    if (character >= ' ' && character != 0x7f && !begins_with_space)
      append_utf8(text, static_cast<char32_t>(character));
  }
  return text;
}

}  // namespace

Views::Views() : fonts_(Fonts::load()), theme_(make_theme(ThemeName::kDark, 0)) {}

void Views::use_theme(const UiState& state, float content_scale) {
  const ImVec2 window = ImGui::GetMainViewport()->Size;
  const float fitting = std::min(window.x / kLeastWidth, window.y / kLeastHeight);
  const float wanted_scale =
      static_cast<float>(std::clamp(state.settings.ui_scale, kLeastUiScale, kMostUiScale)) * content_scale;
  // In steps, so that a window that is drawn larger does not make its fonts anew at every pixel.
  const float scale = std::min(wanted_scale, std::max(0.5f, std::floor(fitting * 20.0f) / 20.0f));
  const Theme wanted = make_theme(resolved(state.settings.theme, state.desktop.system_theme), scale);
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
  draw_main(frame, state);
  draw_dialogs(frame, state, theme_.scale / content_scale);
  ImGui::End();
  ImGui::PopFont();
}

void Views::draw_main(const Frame& frame, const UiState& state) {
  // Recordings and simulated experiments need no model.
  const bool is_offline =
      state.workspace == Workspace::kMemory && (state.memory_workspace.source != MemorySource::kLive ||
                                                state.memory_workspace.page == MemoryPage::kPaper);
  const bool has_model = state.model.phase == ModelPhase::kReady;
  if (!has_model && state.chats.empty()) {
    draw_banner_view(frame, state, ImGui::GetContentRegionAvail().x);
    if (is_offline) return memory_.draw(frame, state, ImGui::GetContentRegionAvail());
    return draw_welcome_view(frame, state);
  }
  if (!draw_left(frame, state)) return;
  ImVec2 extent = ImGui::GetContentRegionAvail();
  extent.y -= draw_banner_view(frame, state, extent.x);
  if (has_model || is_offline) return draw_workspace(frame, state, extent);
  if (state.workspace != Workspace::kChat) return draw_welcome_view(frame, state);
  extent.y -= draw_no_model_strip(frame, state, extent.x);
  draw_workspace(frame, state, extent);
}

// The sidebar, or the way to it. False when it takes the whole window.
bool Views::draw_left(const Frame& frame, const UiState& state) {
  const bool narrow = ImGui::GetMainViewport()->Size.x < frame.px(kNarrowestWithSidebar);
  const bool wanted = state.settings.sidebar_shown;
  const bool asked = std::exchange(sidebar_wanted_, wanted) != wanted;
  const bool moved_on = std::exchange(chosen_chat_, state.active_chat) != state.active_chat;
  if (asked) sidebar_covers_ = !sidebar_covers_;
  if (!narrow || moved_on) sidebar_covers_ = false;
  if (narrow ? !sidebar_covers_ : !wanted) {
    draw_rail(frame, state);
  } else {
    sidebar_.draw(frame, state);
  }
  ImGui::SameLine();
  if (!sidebar_covers_) return true;
  const ImVec2 rest = ImGui::GetContentRegionAvail();
  if (ImGui::InvisibleButton("leave_sidebar", {std::max(rest.x, 1.0f), std::max(rest.y, 1.0f)}))
    sidebar_covers_ = false;
  return false;
}

void Views::draw_rail(const Frame& frame, const UiState& state) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme_.panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0.0f);
  ImGui::BeginChild("rail", {frame.px(kRail), 0}, ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const ImVec2 low = ImGui::GetWindowPos();
  ImGui::GetWindowDrawList()->AddLineV(low.x + frame.px(kRail) - 1, low.y, low.y + ImGui::GetWindowHeight(),
                                       theme_.line);
  constexpr float kSquare = 38, kMargin = 8;
  const auto place = [&](int index) {
    ImGui::SetCursorScreenPos(
        {low.x + frame.px(kMargin), low.y + frame.px(16 + static_cast<float>(index) * (kSquare + 8))});
  };
  place(0);
  const ButtonOptions show{.kind = ButtonKind::kPlain,
                           .icon = Icon::kSidebar,
                           .height = kSquare,
                           .help = "Show the sidebar (Ctrl+B)"};
  if (button(frame, "show_sidebar", "", show)) {
    SettingsState settings = state.settings;
    settings.sidebar_shown = true;
    if (state.settings.sidebar_shown) {
      sidebar_covers_ = true;  // it was only in want of room
    } else {
      frame.actions.push(actions::ChangeSettings{settings});
    }
  }
  place(1);
  const ButtonOptions new_chat{
      .kind = ButtonKind::kPlain, .icon = Icon::kPlus, .height = kSquare, .help = "New chat (Ctrl+N)"};
  if (button(frame, "new_chat", "", new_chat)) frame.actions.push(actions::NewChat{});
  if (state.server.phase != ServerPhase::kOff) {
    place(2);
    draw_server_mark(frame, state.server, kSquare);
  }
  ImGui::EndChild();
}

void Views::draw_dialogs(const Frame& frame, const UiState& state, float shown_zoom) {
  settings_.draw(frame, state, shown_zoom);
  server_.draw(frame, state);
  draw_keys_view(frame, state);
  presets_.draw(frame, state);
  model_picker_.draw(frame, state);
  if (!state.picker.open) {  // else in front of the models
    files_.draw(frame, state.files);
    catalogue_.draw(frame, state);
  }
  draw_tiny_pool_question(frame, state);
  palette_.draw(frame, state);
}

void Views::draw_workspace(const Frame& frame, const UiState& state, ImVec2 extent) {
  if (state.workspace != Workspace::kMemory) memory_.note_hidden();
  const bool comes_back = std::exchange(shown_workspace_, state.workspace) != state.workspace;
  if (comes_back && state.workspace == Workspace::kChat) composer_.focus();
  switch (state.workspace) {
    case Workspace::kChat: draw_chat(frame, state, extent); break;
    case Workspace::kCompare:  // scrolls as a whole where the window is too low for all of it
      ImGui::BeginChild("compare_workspace", extent, ImGuiChildFlags_NavFlattened);
      if (state.two_models.open) {
        two_models_.draw(frame, state, extent);
      } else {
        compare_.draw(frame, state, extent);
      }
      ImGui::EndChild();
      break;
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
    chat_.show_message(*chat, focus);
  }
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool tree = state.desktop.tree_open;
  if (tree && !tree_was_open_) tree_.focus();
  tree_was_open_ = tree;
  float column = frame.px(tree ? kTreeColumn : size::kChatPanel);
  if ((tree || state.sampling_open) && extent.x - column < frame.px(kNarrowestBeside)) column = extent.x;
  const bool with_column =
      extent.x - column >= frame.px(kNarrowestWithColumn) - column || state.sampling_open || tree;
  const float width = with_column ? extent.x - column : extent.x;
  if (width <= 0) return draw_right_column(frame, state, *chat, low, extent);
  const float composer = composer_.height(frame, *chat, width);
  chat_.draw(frame, state, *chat, {width, extent.y - composer});
  ImGui::SetCursorScreenPos({low.x, low.y + extent.y - composer});
  return_keyboard(state);
  if (composer_.draw(frame, state, *chat, width)) chat_.follow_end(chat->id);
  if (with_column) draw_right_column(frame, state, *chat, {low.x + width, low.y}, {column, extent.y});
}

// What was in front of the composer is gone: what is typed next belongs there again.
void Views::return_keyboard(const UiState& state) {
  const bool popup = ImGui::IsPopupOpen(nullptr, ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  const InFront now{.dialog = has_dialog(state) || state.palette_open || popup,
                    .search = state.search_open,
                    .find = chat_.keeps_escape(),
                    .editor = chat_.is_editing(),
                    .tree = state.desktop.tree_open,
                    .settings = state.sampling_open};
  const InFront before = std::exchange(in_front_, now);
  const bool is_gone = (before.dialog && !now.dialog) || (before.search && !now.search) ||
                       (before.find && !now.find) || (before.editor && !now.editor) ||
                       (before.tree && !now.tree) || (before.settings && !now.settings);
  const bool renamed = sidebar_.take_ended();
  const bool is_taken = now.dialog || now.tree || now.editor || now.find;
  if ((is_gone || renamed) && !is_taken) composer_.focus();
  if (is_taken || ImGui::IsAnyItemActive() || ImGui::GetIO().WantTextInput) return;
  composer_.type(typed_text());
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
    sampling_.draw(frame, chat, state.model);
  } else {
    draw_chat_memory_view(frame, state, chat);
  }
  ImGui::EndChild();
}

}  // namespace octavo::ui
