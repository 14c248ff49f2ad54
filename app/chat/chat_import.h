// Chats of other programs. One reading for every file that people have:
//
//   Octavo       a chat (chat_json.h), or a list of them
//   ChatGPT      chats.json of its data export: a list of {"title", "mapping": {id: {"parent",
//   "children",
//                "message": {"author": {"role"}, "content": {"parts": [..]}}}}, "current_node"}
//   Open WebUI   a list of {"chat": {"title", "history": {"messages": {id: {"parentId", "role", "content"}},
//                "currentId"}}}, or one such chat
//
// Trees keep their branches, and chats their dates. Of each message its text is taken; images, files, tools
// and hidden messages are left out and counted, and what followed them follows what came before. Other
// programs' files say nothing of sampling (Chat::has_sampling).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "engine/base/result.h"

namespace octavo::app {

// How many of each were left out.
struct LeftOut {
  std::int64_t num_images = 0, num_files = 0, num_recordings = 0;
  std::int64_t num_tool_messages = 0, num_hidden_messages = 0;
  std::int64_t num_others = 0;  // messages and parts of them of any other kind
};

// "Left out: 3 images and 1 tool message."; empty where nothing was.
std::string left_out_sentence(const LeftOut& left_out);

struct ImportedChats {
  std::vector<Chat> chats;  // in the order of the file
  LeftOut left_out;
};

// All chats of the file that have a message. `name` is what messages call the source.
Result<ImportedChats> import_chats(std::string_view json, std::string_view name);

// A list that `import_chats` reads.
std::string chats_to_json(const std::vector<Chat>& chats);

}  // namespace octavo::app
