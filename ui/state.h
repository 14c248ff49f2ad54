// Everything the window draws, as plain values. app/window/controller writes it between frames; views only
// read it. No pointer leads into the engine; the KV snapshot is shared because it is large and nobody changes
// it. A view that draws one area only includes that area's state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "ui/batch_state.h"
#include "ui/catalogue_state.h"
#include "ui/chat_state.h"
#include "ui/compare_state.h"
#include "ui/desktop_state.h"
#include "ui/file_state.h"
#include "ui/memory_state.h"
#include "ui/model_state.h"
#include "ui/server_state.h"
#include "ui/two_models_state.h"

namespace octavo::ui {

struct UiState {
  Workspace workspace = Workspace::kChat;
  ModelState model;
  std::vector<ChatState> chats;  // newest first; never empty once the model is ready
  ChatId active_chat;
  bool settings_open = false;
  bool palette_open = false;  // the command palette
  bool search_open = false;   // the field for searching all chats
  bool sampling_open = false;
  std::optional<std::string> deleted;  // what "Undo" brings back: "“title”", "2 messages"
  std::optional<Banner> banner;
  ChatLibraryState library;
  ComparisonState comparison;
  BatchState batch;
  TwoModelsState two_models;
  MemoryState memory;
  MemoryWorkspaceState memory_workspace;  // the Memory workspace
  DesktopState desktop;
  ModelPickerState picker;   // of models
  CatalogueState catalogue;  // of models that can be downloaded
  TinyPoolState tiny_pool;
  RemoteLoadState remote_load;  // of the present model, where it runs elsewhere
  FileBrowser files;
  SettingsState settings;
  ServerState server;
};

// nullptr when there is none.
inline const ChatState* find_chat(const UiState& state, ChatId id) {
  for (const ChatState& chat : state.chats) {
    if (chat.id == id) return &chat;
  }
  return nullptr;
}

inline const ChatState* active_chat(const UiState& state) { return find_chat(state, state.active_chat); }

// Whether a dialog has the keyboard. The command palette is none: it runs what can be asked for without it.
inline bool has_dialog(const UiState& state) {
  return state.settings_open || state.desktop.presets_open || state.desktop.keys_open || state.picker.open ||
         state.catalogue.open || state.files.open || state.tiny_pool.question != TinyPoolQuestion::kNone ||
         state.server.open;
}

// Whether another model than the present one answered last. A file that only moved is the same model.
inline bool has_other_model(const UiState& state, const ChatState& chat) {
  const auto file_name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  return !chat.model_path.empty() && file_name(chat.model_path) != file_name(state.model.path);
}

}  // namespace octavo::ui
