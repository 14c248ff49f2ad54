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

// Whole or not at all (app/files/whole_file.h).
Result<void> write_conversation(const Conversation& conversation, const std::filesystem::path& path);

// Any other text of a conversation, written the same way.
Result<void> write_private_file(const std::filesystem::path& path, std::string_view text);

}  // namespace octavo::app
