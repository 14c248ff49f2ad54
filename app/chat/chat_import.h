// Chats of other programs. One reading for every file that people have:
//
//   Octavo       a chat (chat_json.h), or a list of them
//   ChatGPT      chats.json of its data export: a list of {"title", "mapping": {id: {"parent",
//   "children",
//                "message": {"author": {"role"}, "content": {"parts": [..]}}}}, "current_node"}
//   Open WebUI   a list of {"chat": {"title", "history": {"messages": {id: {"parentId", "role", "content"}},
//                "currentId"}}}, or one such chat
//
// Trees keep their branches. Of each message its text is taken; images, tools and hidden messages are left
// out, and what followed them follows what came before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "engine/base/result.h"

namespace octavo::app {

// All chats of the file that have a message. `name` is what messages call the source.
Result<std::vector<Chat>> import_chats(std::string_view json, std::string_view name);

// A list that `import_chats` reads.
std::string chats_to_json(const std::vector<Chat>& chats);

}  // namespace octavo::app
