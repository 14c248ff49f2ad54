// What programs must be told to ask a server here, as lines to paste: for a shell, or for a program's own
// configuration.
//
// Pure, but for new_server_key(); any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace octavo::app {

struct ServedAddress {
  std::string address;        // "http://127.0.0.1:8000"
  std::string model;          // as clients name it
  std::string key = {};       // where it is shown; else
  std::string key_file = {};  // lines read it from there; both empty: no key is asked for, and any will do
};

// "http://127.0.0.1:8000"; an IPv6 address gets its brackets.
std::string http_address(const std::string& host, std::uint16_t port, const std::string& scheme = "http");

struct PastedLine {
  std::string program;  // "Claude Code"
  std::string text;     // one line
};
std::vector<PastedLine> client_lines(const ServedAddress& served);

// 32 digits of base 16, of the system's random numbers.
std::string random_hex();
// Another one each time.
std::string new_server_key();

}  // namespace octavo::app
