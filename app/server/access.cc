#include "app/server/access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// "localhost:8000" as its name and its port, which may be missing; IPv6 stands in brackets, which are kept.
struct HostAndPort {
  std::string name;
  std::string port;
};

HostAndPort split_host(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : std::string_view::npos;
  const std::size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return {ascii_lower_case(host), {}};
  return {ascii_lower_case(host.substr(0, colon)), std::string(host.substr(colon + 1))};
}

// An address in numbers: nobody owns it as a name, so that nobody can point it here.
bool is_numeric_address(const std::string& name) {
  in_addr v4 = {};
  in6_addr v6 = {};
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    return inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &v6) == 1;
  return inet_pton(AF_INET, name.c_str(), &v4) == 1;
}

bool is_known_host(const AccessRules& rules, std::string_view host) {
  const HostAndPort given = split_host(host);
  const bool is_listed =
      std::any_of(rules.allowed_hosts.begin(), rules.allowed_hosts.end(), [&](const std::string& allowed) {
        return ascii_lower_case(allowed) == given.name || ascii_lower_case(allowed) == ascii_lower_case(host);
      });
  if (is_listed) return true;
  if (!given.port.empty() && given.port != std::to_string(rules.port)) return false;
  if (given.name == "localhost" || given.name == "127.0.0.1" || given.name == "[::1]") return true;
  return !rules.is_loopback && is_numeric_address(given.name);
}

bool is_allowed_origin(const AccessRules& rules, std::string_view origin) {
  return std::find(rules.allowed_origins.begin(), rules.allowed_origins.end(), origin) !=
         rules.allowed_origins.end();
}

std::string_view given_key(const http::Request& head) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view authorization = head.header("authorization");
  if (ascii_lower_case(authorization.substr(0, kScheme.size())) == kScheme)
    return authorization.substr(kScheme.size());
  return head.header("x-api-key");
}

}  // namespace

bool are_equal_in_constant_time(std::string_view given, std::string_view wanted) {
  unsigned difference = given.size() == wanted.size() ? 0u : 1u;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = wanted.empty() ? '\0' : wanted[i % wanted.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i] ^ other));
  }
  return difference == 0;
}

std::optional<ApiError> refusal(const AccessRules& rules, const http::Request& head, bool needs_key) {
  const std::string_view host = head.header("host");
  if (!is_known_host(rules, host)) {
    return api_error(421, "this server does not answer for the host '" + escape_for_message(host) +
                              "': use localhost or 127.0.0.1, or start it with --allowed-host");
  }
  if (head.has_header("origin") && !is_allowed_origin(rules, head.header("origin"))) {
    return api_error(403, "web pages of '" + escape_for_message(head.header("origin")) +
                              "' may not use this server: start it with --allowed-origin to let them");
  }
  if (head.method == "OPTIONS") return std::nullopt;  // a browser asks without the key whether it may ask
  if (needs_key && !rules.key.empty() && !are_equal_in_constant_time(given_key(head), rules.key)) {
    ApiError error =
        api_error(401,
                  "the key is missing or wrong: send the one that the server was started with as "
                  "`Authorization: Bearer KEY`");
    error.code = "invalid_api_key";
    return error;
  }
  if (head.method == "POST") {
    const std::string_view type = head.header("content-type");
    const std::string media = ascii_lower_case(type.substr(0, type.find_first_of("; ")));
    const std::string_view length = head.header("content-length");
    const bool has_body = head.has_header("transfer-encoding") || (!length.empty() && length != "0");
    if (!has_body && type.empty()) return std::nullopt;
    if (media != "application/json")
      return api_error(415, "the body must be JSON, with the header `Content-Type: application/json`");
  }
  return std::nullopt;
}

std::vector<http::Header> origin_headers(const AccessRules& rules, const http::Request& head) {
  const std::string_view origin = head.header("origin");
  if (origin.empty() || !is_allowed_origin(rules, origin)) return {};
  std::vector<http::Header> headers = {{"Access-Control-Allow-Origin", std::string(origin)},
                                       {"Vary", "Origin"}};
  if (head.method == "OPTIONS") {
    headers.push_back({"Access-Control-Allow-Methods", "GET, POST"});
    headers.push_back({"Access-Control-Allow-Headers", "authorization, content-type, x-api-key"});
    headers.push_back({"Access-Control-Max-Age", "600"});
  }
  return headers;
}

}  // namespace octavo::app
