// Files that a person dropped, named or attached: texts go with the next message, chats become chats of this
// window, and what belongs to another part of the window is handed on.
//
// Writes the banner of the state. UI thread. What the constructor takes must outlive it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/window/chat/chat_effects.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/drafts.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"

namespace octavo::app {

// Opens a model or a recording.
using OpenElsewhere = std::function<void(const ReadFile&)>;

class OpenedFiles {
 public:
  OpenedFiles(Chats& chats, Drafts& drafts, ChatEffects& effects, ui::UiState& state)
      : chats_(chats), drafts_(drafts), effects_(effects), state_(state) {}

  void apply(const ui::actions::AttachFile& a);
  void apply(const ui::actions::OpenFiles& a);

  // What the files turned out to be.
  void take(FilesRead read, const OpenElsewhere& open_elsewhere);

 private:
  // What became of several files.
  struct Outcomes {
    std::vector<std::string> attached;  // names
    std::vector<std::string> imported;  // sentences
    std::vector<std::string> problems;  // sentences without their full stops
  };

  void use(ChatId chat_id, ReadFile file, const OpenElsewhere& open_elsewhere, Outcomes& outcomes);
  void attach(ChatId chat_id, ReadFile file, Outcomes& outcomes);
  void tell(const Outcomes& outcomes);

  Chats& chats_;
  Drafts& drafts_;
  ChatEffects& effects_;
  ui::UiState& state_;
};

}  // namespace octavo::app
