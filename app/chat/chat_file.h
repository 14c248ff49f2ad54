// One chat in one file (chat_json.h): what `octavo chat` resumes and what people exchange.
#pragma once

#include <filesystem>
#include <string_view>

#include "app/chat/chat.h"
#include "engine/base/result.h"

namespace octavo::app {

// $XDG_DATA_HOME/octavo/chats/terminal.json or ~/.local/share/octavo/chats/terminal.json.
std::filesystem::path default_chat_path();

Result<Chat> read_chat(const std::filesystem::path& path);

// Whole or not at all (app/files/whole_file.h).
Result<void> write_chat(const Chat& chat, const std::filesystem::path& path);

// Any other text of a chat, written the same way.
Result<void> write_private_file(const std::filesystem::path& path, std::string_view text);

}  // namespace octavo::app
