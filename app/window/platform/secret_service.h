// The keyring of the person's desktop: org.freedesktop.secrets (GNOME Keyring, KWallet, KeePassXC) over the
// message bus. Each call asks once and waits for the answer, some seconds at most; nobody is asked to unlock
// anything: a locked keyring counts as none.
//
// Any thread, one at a time. Secrets cross the bus as they are, as libsecret's do on a bus of one person.
#pragma once

#include <optional>
#include <string>

#include "engine/base/result.h"

struct sd_bus;

namespace octavo::app {

class SecretService {
 public:
  // `bus_address` as DBUS_SESSION_BUS_ADDRESS names it; empty: there is none.
  explicit SecretService(std::string bus_address) : bus_address_(std::move(bus_address)) {}

  // The secret of this name that Octavo kept; nullopt: there is none. kNotFound: no keyring that can be used.
  Result<std::optional<std::string>> find(const std::string& name) const;
  Result<void> keep(const std::string& name, const std::string& secret) const;
  Result<void> forget(const std::string& name) const;

 private:
  const std::string bus_address_;
};

}  // namespace octavo::app
