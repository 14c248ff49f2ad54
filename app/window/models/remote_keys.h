// Keys of servers: in the keyring of the desktop where there is one, else in a file that only its owner can
// read. They are in no setting, chat, export or sentence.
//
// Any thread, one at a time; waits for the keyring and the disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "app/window/platform/secret_service.h"
#include "engine/base/result.h"

namespace octavo::app {

enum class KeyPlace { kNowhere, kKeyring, kFile };

struct KeptKey {
  std::string key;
  KeyPlace place = KeyPlace::kNowhere;
};

class RemoteKeys {
 public:
  RemoteKeys(const std::string& bus_address, std::filesystem::path file)
      : keyring_(bus_address), file_(std::move(file)) {}

  // By the address of the server. A file that is damaged counts as empty.
  KeptKey find(const std::string& address) const;
  Result<KeyPlace> keep(const std::string& address, const std::string& key);
  Result<void> forget(const std::string& address);

 private:
  std::map<std::string, std::string> read_file() const;
  Result<void> write_file(const std::map<std::string, std::string>& keys) const;
  Result<void> forget_in_file(const std::string& address) const;

  const SecretService keyring_;
  const std::filesystem::path file_;
};

// remote_keys.json beside the settings.
std::filesystem::path remote_keys_path(const std::filesystem::path& settings_path);

}  // namespace octavo::app
