#include "app/server/http/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/base/text.h"

namespace octavo::http {
namespace {

constexpr int kBacklog = 1024;  // a burst of clients waits here, and is not turned away

// Of either family; the same bytes, as the system wants them.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_in& ip4() { return reinterpret_cast<sockaddr_in&>(storage); }
  sockaddr_in6& ip6() { return reinterpret_cast<sockaddr_in6&>(storage); }
  bool is_ip4() const { return storage.ss_family == AF_INET; }

  std::uint16_t port() { return ntohs(is_ip4() ? ip4().sin_port : ip6().sin6_port); }
  bool is_loopback() {
    if (is_ip4()) return (ntohl(ip4().sin_addr.s_addr) >> 24) == 127;
    return IN6_IS_ADDR_LOOPBACK(&ip6().sin6_addr);
  }
};

std::optional<SocketAddress> parse_address(const std::string& host, std::uint16_t port) {
  SocketAddress address;
  const char* const numbers = host == "localhost" ? "127.0.0.1" : host.c_str();
  if (host.find('\0') != std::string::npos) return std::nullopt;
  if (::inet_pton(AF_INET, numbers, &address.ip4().sin_addr) == 1) {
    address.ip4().sin_family = AF_INET;
    address.ip4().sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
    return address;
  }
  if (::inet_pton(AF_INET6, numbers, &address.ip6().sin6_addr) == 1) {
    address.ip6().sin6_family = AF_INET6;
    address.ip6().sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
    return address;
  }
  return std::nullopt;
}

Error listening_error(const std::string& host, std::uint16_t port, int number) {
  const bool is_ip6 = host.find(':') != std::string::npos;
  const std::string place =
      "cannot listen at " + (is_ip6 ? "[" + host + "]" : host) + ":" + std::to_string(port) + ": ";
  switch (number) {
    case EADDRINUSE:
      return {ErrorCode::kIo, place + "another program has this port: end it, or choose another port",
              "port"};
    case EADDRNOTAVAIL:
      return {ErrorCode::kIo,
              place +
                  "this machine has no such address: choose 127.0.0.1 for this machine alone, or 0.0.0.0 "
                  "for every network",
              "host"};
    case EACCES:
      return {ErrorCode::kIo, place + "the system does not allow it: choose a port from 1024 on", "port"};
    case EAFNOSUPPORT:
      return {ErrorCode::kIo, place + "this machine does not speak IPv6: choose 127.0.0.1", "host"};
    default:
      return {ErrorCode::kIo,
              place + std::generic_category().message(number) + ": choose another address or another port"};
  }
}

}  // namespace

Result<ListeningSocket> open_listening_socket(const std::string& host, std::uint16_t port) {
  auto address = parse_address(host, port);
  if (!address) {
    return Error{ErrorCode::kInvalidArgument,
                 "cannot listen at \"" + escape_for_message(host) + "\", port " + std::to_string(port) +
                     ": give an address in numbers, such as 127.0.0.1 or ::1, or localhost",
                 "host"};
  }
  ListeningSocket listener;
  listener.descriptor = app::FileDescriptor(
      ::socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  const int descriptor = listener.descriptor.get();
  const int on = 1;  // a server that has just ended does not keep its port
  const bool listens =
      listener.descriptor.ok() && ::setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(descriptor, address->get(), address->size) == 0 && ::listen(descriptor, kBacklog) == 0 &&
      ::getsockname(descriptor, address->get(), &address->size) == 0;
  if (!listens) return listening_error(host, port, errno);
  listener.port = address->port();
  listener.is_loopback = address->is_loopback();
  return listener;
}

}  // namespace octavo::http
