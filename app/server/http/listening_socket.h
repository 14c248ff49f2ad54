// The socket that clients connect to.
#pragma once

#include <cstdint>
#include <string>

#include "app/files/file_descriptor.h"
#include "engine/base/result.h"

namespace octavo::http {

struct ListeningSocket {
  app::FileDescriptor descriptor;  // never blocks
  std::uint16_t port = 0;          // the one that it got, where any was asked for
  bool is_loopback = false;        // this machine alone reaches it
};

//   host  an IPv4 or IPv6 address in numbers, or localhost: 127.0.0.1
// Errors name host and port, and say what to do.
Result<ListeningSocket> open_listening_socket(const std::string& host, std::uint16_t port);

}  // namespace octavo::http
