#include "app/conversation/conversation_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "app/conversation/conversation_json.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

Error failed(const std::filesystem::path& path, std::string_view doing) {
  return {.code = ErrorCode::kIo,
          .message = "the conversation file '" + escape_for_message(path.string()) + "' cannot be " +
                     std::string(doing) + ": " + std::strerror(errno)};
}

// Everything, and onto the disk.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0;
}

}  // namespace

std::filesystem::path default_conversation_path() {
  const char* const data_home = std::getenv("XDG_DATA_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder = ".";
  if (data_home != nullptr && *data_home != '\0') {
    folder = data_home;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local/share";
  }
  return folder / "octavo/chats/terminal.json";
}

Result<Conversation> read_conversation(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return failed(path, "read");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return conversation_from_json(text, path.filename().string());
}

Result<void> write_conversation(const Conversation& conversation, const std::filesystem::path& path) {
  return write_private_file(path, conversation_to_json(conversation));
}

Result<void> write_private_file(const std::filesystem::path& path, std::string_view text) {
  std::error_code unused;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), unused);
  const std::filesystem::path staged = path.string() + ".part";
  const int descriptor = ::open(staged.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (descriptor < 0) return failed(path, "written");
  const bool written = write_all(descriptor, text);
  const int write_errno = errno;
  ::close(descriptor);
  if (!written || ::rename(staged.c_str(), path.c_str()) != 0) {
    if (!written) errno = write_errno;
    Error error = failed(path, "written");
    ::unlink(staged.c_str());
    return error;
  }
  return {};
}

}  // namespace octavo::app
