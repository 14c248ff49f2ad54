#include "app/chat/chat_file.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "app/chat/chat_json.h"
#include "app/files/whole_file.h"
#include "engine/base/home_folder.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

Error failed(const std::filesystem::path& path, std::string_view doing, int reason) {
  return {.code = ErrorCode::kIo,
          .message = "the chat file '" + escape_for_message(path.string()) + "' cannot be " +
                     std::string(doing) + ": " + std::strerror(reason)};
}

}  // namespace

std::filesystem::path default_chat_path() { return data_folder() / "octavo/chats/terminal.json"; }

Result<Chat> read_chat(const std::filesystem::path& path) {
  std::string text;
  if (const int reason = read_whole_file(path, text); reason != 0) return failed(path, "read", reason);
  return chat_from_json(text, path.filename().string());
}

Result<void> write_chat(const Chat& chat, const std::filesystem::path& path) {
  return write_private_file(path, chat_to_json(chat));
}

Result<void> write_private_file(const std::filesystem::path& path, std::string_view text) {
  const int reason = write_whole_file(path, text);
  if (reason != 0) return failed(path, "written", reason);
  return {};
}

}  // namespace octavo::app
