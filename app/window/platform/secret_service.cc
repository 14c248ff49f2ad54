#include "app/window/platform/secret_service.h"

#include <systemd/sd-bus.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace octavo::app {
namespace {

constexpr const char* kSecrets = "org.freedesktop.secrets";
constexpr const char* kSecretsPath = "/org/freedesktop/secrets";
constexpr const char* kServiceInterface = "org.freedesktop.Secret.Service";
constexpr const char* kItemInterface = "org.freedesktop.Secret.Item";
constexpr const char* kCollectionInterface = "org.freedesktop.Secret.Collection";
constexpr const char* kDefaultCollection = "/org/freedesktop/secrets/aliases/default";
constexpr std::uint64_t kReplyTimeoutUs = 3'000'000;

struct CloseSecretsBus {
  void operator()(sd_bus* bus) const { sd_bus_flush_close_unref(bus); }
};
struct UnrefMessage {
  void operator()(sd_bus_message* message) const { sd_bus_message_unref(message); }
};
using SecretsBus = std::unique_ptr<sd_bus, CloseSecretsBus>;
using BusMessage = std::unique_ptr<sd_bus_message, UnrefMessage>;

Error no_keyring() { return {ErrorCode::kNotFound, "there is no keyring that can be used"}; }

Result<SecretsBus> open_secrets(const std::string& address) {
  if (address.empty()) return no_keyring();
  sd_bus* opened = nullptr;
  if (sd_bus_new(&opened) < 0) return no_keyring();
  SecretsBus bus(opened);
  const bool is_open = sd_bus_set_address(opened, address.c_str()) >= 0 &&
                       sd_bus_set_bus_client(opened, 1) >= 0 && sd_bus_start(opened) >= 0;
  if (!is_open) return no_keyring();
  sd_bus_set_method_call_timeout(opened, kReplyTimeoutUs);
  return bus;
}

// REQUIRES: the message's arguments are complete
Result<BusMessage> ask(sd_bus* bus, sd_bus_message* message) {
  sd_bus_message* reply = nullptr;
  const int status = sd_bus_call(bus, message, kReplyTimeoutUs, nullptr, &reply);
  BusMessage owned(reply);
  if (status < 0) return no_keyring();
  return owned;
}

BusMessage call_to(sd_bus* bus, const char* path, const char* interface, const char* method) {
  sd_bus_message* message = nullptr;
  sd_bus_message_new_method_call(bus, &message, kSecrets, path, interface, method);
  return BusMessage(message);
}

Result<std::string> open_channel_of(sd_bus* bus) {
  const BusMessage call = call_to(bus, kSecretsPath, kServiceInterface, "OpenSession");
  if (call == nullptr || sd_bus_message_append(call.get(), "sv", "plain", "s", "") < 0) return no_keyring();
  OCTAVO_TRY(const BusMessage reply, ask(bus, call.get()));
  const char* path = nullptr;
  if (sd_bus_message_skip(reply.get(), "v") < 0 || sd_bus_message_read(reply.get(), "o", &path) < 0)
    return no_keyring();
  return std::string(path);
}

int append_attributes(sd_bus_message* message, const std::string& name) {
  return sd_bus_message_append(message, "a{ss}", 2, "application", "octavo", "server", name.c_str());
}

// The items of this name that can be read without asking anybody.
Result<std::vector<std::string>> items_of(sd_bus* bus, const std::string& name) {
  const BusMessage call = call_to(bus, kSecretsPath, kServiceInterface, "SearchItems");
  if (call == nullptr || append_attributes(call.get(), name) < 0) return no_keyring();
  OCTAVO_TRY(const BusMessage reply, ask(bus, call.get()));
  std::vector<std::string> items;
  if (sd_bus_message_enter_container(reply.get(), SD_BUS_TYPE_ARRAY, "o") < 0) return no_keyring();
  const char* path = nullptr;
  while (sd_bus_message_read(reply.get(), "o", &path) > 0) items.emplace_back(path);
  return items;
}

Result<std::string> secret_of(sd_bus* bus, const std::string& item, const std::string& channel) {
  const BusMessage call = call_to(bus, item.c_str(), kItemInterface, "GetSecret");
  if (call == nullptr || sd_bus_message_append(call.get(), "o", channel.c_str()) < 0) return no_keyring();
  OCTAVO_TRY(const BusMessage reply, ask(bus, call.get()));
  const void* bytes = nullptr;
  std::size_t size = 0;
  const bool is_read = sd_bus_message_enter_container(reply.get(), SD_BUS_TYPE_STRUCT, "oayays") >= 0 &&
                       sd_bus_message_skip(reply.get(), "oay") >= 0 &&
                       sd_bus_message_read_array(reply.get(), SD_BUS_TYPE_BYTE, &bytes, &size) >= 0;
  if (!is_read) return no_keyring();
  return std::string(static_cast<const char*>(bytes), size);
}

int append_item(sd_bus_message* message, const std::string& name, const std::string& secret,
                const std::string& channel) {
  const std::string label = "Octavo: key of " + name;
  const auto steps = {
      sd_bus_message_open_container(message, SD_BUS_TYPE_ARRAY, "{sv}"),
      sd_bus_message_append(message, "{sv}", "org.freedesktop.Secret.Item.Label", "s", label.c_str()),
      sd_bus_message_append(message, "{sv}", "org.freedesktop.Secret.Item.Attributes", "a{ss}", 2,
                            "application", "octavo", "server", name.c_str()),
      sd_bus_message_close_container(message),
      sd_bus_message_open_container(message, SD_BUS_TYPE_STRUCT, "oayays"),
      sd_bus_message_append(message, "o", channel.c_str()),
      sd_bus_message_append_array(message, SD_BUS_TYPE_BYTE, nullptr, 0),
      sd_bus_message_append_array(message, SD_BUS_TYPE_BYTE, secret.data(), secret.size()),
      sd_bus_message_append(message, "s", "text/plain"),
      sd_bus_message_close_container(message),
      sd_bus_message_append(message, "b", 1)};  // in place of one of the same attributes
  for (const int status : steps)
    if (status < 0) return status;
  return 0;
}

}  // namespace

Result<std::optional<std::string>> SecretService::find(const std::string& name) const {
  OCTAVO_TRY(const SecretsBus bus, open_secrets(bus_address_));
  OCTAVO_TRY(const std::vector<std::string> items, items_of(bus.get(), name));
  if (items.empty()) return std::optional<std::string>();
  OCTAVO_TRY(const std::string channel, open_channel_of(bus.get()));
  OCTAVO_TRY(std::string secret, secret_of(bus.get(), items.front(), channel));
  return std::optional(std::move(secret));
}

Result<void> SecretService::keep(const std::string& name, const std::string& secret) const {
  OCTAVO_TRY(const SecretsBus bus, open_secrets(bus_address_));
  OCTAVO_TRY(const std::string channel, open_channel_of(bus.get()));
  const BusMessage call = call_to(bus.get(), kDefaultCollection, kCollectionInterface, "CreateItem");
  if (call == nullptr || append_item(call.get(), name, secret, channel) < 0) return no_keyring();
  OCTAVO_TRY(const BusMessage reply, ask(bus.get(), call.get()));
  const char *item = nullptr, *prompt = nullptr;
  if (sd_bus_message_read(reply.get(), "oo", &item, &prompt) < 0) return no_keyring();
  if (std::string_view(item) == "/") return no_keyring();  // it would ask the person first
  return {};
}

Result<void> SecretService::forget(const std::string& name) const {
  OCTAVO_TRY(const SecretsBus bus, open_secrets(bus_address_));
  OCTAVO_TRY(const std::vector<std::string> items, items_of(bus.get(), name));
  for (const std::string& item : items) {
    const BusMessage call = call_to(bus.get(), item.c_str(), kItemInterface, "Delete");
    if (call == nullptr) return no_keyring();
    OCTAVO_TRY(const BusMessage reply, ask(bus.get(), call.get()));
  }
  return {};
}

}  // namespace octavo::app
