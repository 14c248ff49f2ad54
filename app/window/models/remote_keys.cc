#include "app/window/models/remote_keys.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/files/whole_file.h"
#include "engine/base/text.h"

namespace octavo::app {

KeptKey RemoteKeys::find(const std::string& address) const {
  const auto kept = keyring_.find(address);
  if (kept && *kept) return {**kept, KeyPlace::kKeyring};
  const auto keys = read_file();
  const auto found = keys.find(address);
  return found == keys.end() ? KeptKey{} : KeptKey{found->second, KeyPlace::kFile};
}

Result<KeyPlace> RemoteKeys::keep(const std::string& address, const std::string& key) {
  if (keyring_.keep(address, key)) {
    OCTAVO_TRY_VOID(forget_in_file(address));  // or an older one would live on
    return KeyPlace::kKeyring;
  }
  auto keys = read_file();
  keys[address] = key;
  OCTAVO_TRY_VOID(write_file(keys));
  return KeyPlace::kFile;
}

Result<void> RemoteKeys::forget(const std::string& address) {
  if (const auto forgotten = keyring_.forget(address);
      !forgotten && forgotten.error().code != ErrorCode::kNotFound)
    return forgotten;
  return forget_in_file(address);
}

Result<void> RemoteKeys::forget_in_file(const std::string& address) const {
  auto keys = read_file();
  if (keys.erase(address) == 0) return {};
  return write_file(keys);
}

std::map<std::string, std::string> RemoteKeys::read_file() const {
  std::string bytes;
  if (read_whole_file(file_, bytes) != 0) return {};
  const auto json = nlohmann::json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  std::map<std::string, std::string> keys;
  if (!json.is_object()) return keys;
  for (const auto& [address, key] : json.items())
    if (key.is_string()) keys[address] = key.get<std::string>();
  return keys;
}

Result<void> RemoteKeys::write_file(const std::map<std::string, std::string>& keys) const {
  const std::string bytes =
      nlohmann::json(keys).dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  const int problem = write_whole_file(file_, bytes + "\n");
  if (problem == 0) return {};
  return Error{ErrorCode::kIo, path_for_message(file_) + " could not be written, so the key is not kept: " +
                                   std::strerror(problem)};
}

std::filesystem::path remote_keys_path(const std::filesystem::path& settings_path) {
  return settings_path.parent_path() / "remote_keys.json";
}

}  // namespace octavo::app
