// The whole window: chooses what is shown, and lists every view.
//
// UI thread. Keeps what only matters for drawing (layouts, drafts, scroll positions); everything else is in
// UiState.
#pragma once

#include "ui/action_sink.h"
#include "ui/chat_state.h"
#include "ui/fonts.h"
#include "ui/theme.h"
#include "ui/views/chat_view.h"
#include "ui/views/command_palette.h"
#include "ui/views/compare/compare_view.h"
#include "ui/views/composer_view.h"
#include "ui/views/file_browser.h"
#include "ui/views/memory_view.h"
#include "ui/views/model_catalogue.h"
#include "ui/views/model_picker.h"
#include "ui/views/presets_view.h"
#include "ui/views/sampling_view.h"
#include "ui/views/server_view.h"
#include "ui/views/settings_view.h"
#include "ui/views/sidebar_view.h"
#include "ui/views/tree_view.h"
#include "ui/views/two_models/two_models_view.h"

namespace octavo::ui {

class Views {
 public:
  // REQUIRES: a Dear ImGui context; loads the fonts into its atlas.
  Views();

  // Draws one frame, between ImGui::NewFrame and ImGui::Render. `content_scale` is the monitor's.
  void draw(const UiState& state, ActionSink& actions, float content_scale);

  const Fonts& fonts() const { return fonts_; }
  const CompareView& compare() const { return compare_; }
  const TwoModelsView& two_models() const { return two_models_; }
  const MemoryView& memory() const { return memory_; }

  // Whether something that was drawn moves by itself, so that another frame is due.
  bool wants_frame() const { return memory_.wants_frame(); }

 private:
  // What has the keyboard instead of the composer.
  struct InFront {
    bool dialog = false;  // or a menu, or a question
    bool search = false;
    bool find = false;
    bool editor = false;
    bool tree = false;
    bool settings = false;  // of the chat
  };

  void use_theme(const UiState& state, float content_scale);
  void draw_main(const Frame& frame, const UiState& state);
  bool draw_left(const Frame& frame, const UiState& state);
  void draw_rail(const Frame& frame, const UiState& state);
  void draw_dialogs(const Frame& frame, const UiState& state, float shown_zoom);
  void return_keyboard(const UiState& state);
  void draw_workspace(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_chat(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_right_column(const Frame& frame, const UiState& state, const ChatState& chat, ImVec2 low,
                         ImVec2 extent);

  Fonts fonts_;
  Theme theme_;
  ChatId shown_chat_{};
  Workspace shown_workspace_{};  // in the frame before
  InFront in_front_;             // in the frame before
  // In a narrow window the sidebar covers the workspace while a person looks at it.
  bool sidebar_covers_ = false;
  bool sidebar_wanted_ = true;     // the setting, in the frame before
  ChatId chosen_chat_{};           // the active chat, in the frame before
  std::uint64_t shown_focus_ = 0;  // serial number of the newest message that was brought into sight
  CommandPalette palette_;
  SidebarView sidebar_;
  ChatView chat_;
  ComposerView composer_;
  SamplingView sampling_;
  PresetsView presets_;
  SettingsView settings_;
  ServerView server_;
  ModelPickerView model_picker_;
  ModelCatalogueView catalogue_;
  FileBrowserView files_;
  TreeView tree_;
  bool tree_was_open_ = false;
  CompareView compare_;
  TwoModelsView two_models_;
  MemoryView memory_;
};

}  // namespace octavo::ui
