#include "app/window/server/server_key.h"

#include <cstring>
#include <system_error>

#include "app/files/whole_file.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::uintmax_t kLongestKey = 4096;  // bytes

}  // namespace

std::string read_server_key(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kLongestKey)
    return {};
  std::string key;
  if (read_whole_file(path, key) != 0) return {};
  return key.substr(0, key.find_first_of("\r\n"));
}

Result<void> write_server_key(const std::filesystem::path& path, const std::string& key) {
  const int reason = write_whole_file(path, key + "\n");
  if (reason == 0) return {};
  return Error{.code = ErrorCode::kIo,
               .message = escape_for_message(path.string()) + ": cannot save the key of the server (" +
                          std::strerror(reason) + "); check that the folder is writable"};
}

}  // namespace octavo::app
