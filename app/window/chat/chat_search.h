// The search over all chats: titles at once, texts as the store finds them.
//
// Owns library.search and search_open of the state. UI thread. Chats, keeper and state must outlive it.
#pragma once

#include <cstdint>
#include <string>

#include "app/window/chat/chats.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

class ChatSearch {
 public:
  ChatSearch(const Chats& chats, const ChatKeeper& keeper, ui::UiState& state)
      : chats_(chats), keeper_(keeper), state_(state) {}

  void apply(const ui::actions::ShowSearch& a);
  void apply(const ui::actions::SearchChats& a) { search(a.query); }

  void take(const SearchProgress& report);

 private:
  void search(const std::string& query);

  const Chats& chats_;
  const ChatKeeper& keeper_;
  ui::UiState& state_;
  std::uint64_t newest_search_ = 0;
};

}  // namespace octavo::app
