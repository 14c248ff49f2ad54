// What the Compare workspace asks of the chats: questions come from them, and answers go to them.
#pragma once

#include <functional>

#include "app/chat/chat.h"
#include "engine/base/ids.h"

namespace octavo::app {

// UI thread.
class ComparedChats {
 public:
  // nullptr when there is none, and for those in the trash.
  virtual const Chat* chat(ChatId chat_id) const = 0;
  // The one that is shown in the Chat workspace.
  virtual ChatId active_chat() const = 0;
  // What `change` does is drawn, counted and saved. REQUIRES: the chat is there
  virtual void edit(ChatId chat_id, const std::function<void(Chat&)>& change) = 0;
  // Shows a new chat in the Chat workspace.
  virtual ChatId begin() = 0;
  // Shows this one there.
  virtual void show(ChatId chat_id) = 0;
  // Generation goes on at the end of this answer, which was stopped.
  virtual void continue_answer(ChatId chat_id, MessageId message_id) = 0;

 protected:
  ~ComparedChats() = default;
};

}  // namespace octavo::app
