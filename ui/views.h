// The whole window: chooses what is shown, and lists every view.
//
// UI thread. Keeps what only matters for drawing (layouts, drafts, scroll positions); everything else is in
// UiState.
#pragma once

#include "ui/action_sink.h"
#include "ui/chat_state.h"
#include "ui/fonts.h"
#include "ui/theme.h"
#include "ui/views/attach_view.h"
#include "ui/views/chat_view.h"
#include "ui/views/command_palette.h"
#include "ui/views/compare/compare_view.h"
#include "ui/views/composer_view.h"
#include "ui/views/memory_view.h"
#include "ui/views/model_picker.h"
#include "ui/views/presets_view.h"
#include "ui/views/sampling_view.h"
#include "ui/views/sidebar_view.h"
#include "ui/views/tree_view.h"

namespace octavo::ui {

class Views {
 public:
  // REQUIRES: a Dear ImGui context; loads the fonts into its atlas.
  Views();

  // Draws one frame, between ImGui::NewFrame and ImGui::Render. `content_scale` is the monitor's.
  void draw(const UiState& state, ActionSink& actions, float content_scale);

  const Fonts& fonts() const { return fonts_; }
  const CompareView& compare() const { return compare_; }

  // Whether something that was drawn moves by itself, so that another frame is due.
  bool wants_frame() const { return memory_.wants_frame(); }

 private:
  void use_theme(const UiState& state, float content_scale);
  void draw_workspace(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_chat(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_right_column(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                         ImVec2 extent);

  Fonts fonts_;
  Theme theme_;
  ChatId shown_chat_{};
  std::uint64_t shown_focus_ = 0;  // serial number of the newest message that was brought into sight
  CommandPalette palette_;
  SidebarView sidebar_;
  ChatView chat_;
  ComposerView composer_;
  SamplingView sampling_;
  AttachView attach_;
  PresetsView presets_;
  ModelPickerView model_picker_;
  TreeView tree_;
  bool tree_was_open_ = false;
  CompareView compare_;
  MemoryView memory_;
};

}  // namespace octavo::ui
