// Makes what is drawn of the chats from the chats: the one place that writes state.chats, but for their
// memory, which MemoryFold writes, and state.library.trash.
//
// Only what has changed is made again; an answer that streams grows by what came. UI thread.
#pragma once

#include <map>
#include <vector>

#include "app/window/chat/answers.h"
#include "app/window/chat/chats.h"
#include "ui/state.h"

namespace octavo::app {

class ShownChats {
 public:
  // Takes what is not drawn yet of the chats. True when the list has changed.
  bool show(Chats& chats, const Answers& answers, ui::UiState& state);

 private:
  void arrange(const Chats& chats, std::vector<ui::ChatState>& shown);

  std::map<ChatId, ui::ChatMemory> put_away_;  // of chats in the trash
};

}  // namespace octavo::app
