// One conversation in one file (conversation_json.h): what `octavo chat` resumes and what people exchange.
#pragma once

#include <filesystem>
#include <string_view>

#include "app/conversation/conversation.h"
#include "engine/base/result.h"

namespace octavo::app {

// $XDG_DATA_HOME/octavo/chats/terminal.json or ~/.local/share/octavo/chats/terminal.json.
std::filesystem::path default_conversation_path();

Result<Conversation> read_conversation(const std::filesystem::path& path);

// Writes beside the target, syncs and renames, so that the file is the old or the new conversation, never
// half of one. Readable by its owner only. Makes the folder when it is missing.
Result<void> write_conversation(const Conversation& conversation, const std::filesystem::path& path);

// Any other text of a conversation, written the same way.
Result<void> write_private_file(const std::filesystem::path& path, std::string_view text);

}  // namespace octavo::app
