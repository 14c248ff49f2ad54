// Who may talk to the server. A web page that a person has open can make their browser send requests to this
// machine, and a name that somebody else owns can point to it (DNS rebinding): both are told apart by Host
// and Origin, before anything else of a request is looked at. The key keeps out everybody else on the
// machine.
//
// Thread: immutable; any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/server/api_error.h"
#include "app/server/http/message.h"

namespace octavo::app {

struct AccessRules {
  std::uint16_t port = 0;
  bool is_loopback = true;                        // whether this machine alone reaches it
  std::vector<std::string> allowed_hosts = {};    // names beside those of this machine
  std::vector<std::string> allowed_origins = {};  // of web pages: "http://localhost:3000"
  std::string key = {};                           // empty: none is asked for
};

// Why the request is refused; nullopt: it is not. Looks at its head alone.
//   needs_key  whether its route is behind the key
std::optional<ApiError> refusal(const AccessRules& rules, const http::Request& head, bool needs_key);

// What a browser is told that asks for an allowed page; nothing for everybody else.
std::vector<http::Header> origin_headers(const AccessRules& rules, const http::Request& head);

// Takes as long whichever byte differs.
bool are_equal_in_constant_time(std::string_view given, std::string_view wanted);

}  // namespace octavo::app
