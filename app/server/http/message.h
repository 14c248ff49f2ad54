// One HTTP request as read, and one answer as written. Plain values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

struct Header {
  std::string name;  // in lower case
  std::string value;
};

struct Request {
  std::string method;      // "GET"; HEAD comes as GET, and its answer goes without the body
  std::string path;        // as sent: nothing is percent-decoded
  std::string query = {};  // behind '?', as sent; may be empty
  std::vector<Header> headers = {};
  std::string body = {};

  // Of the first header of this name; empty when there is none.
  //   name  in lower case
  std::string_view header(std::string_view name) const {
    for (const Header& header : headers)
      if (header.name == name) return header.value;
    return {};
  }
  bool has_header(std::string_view name) const {
    for (const Header& header : headers)
      if (header.name == name) return true;
    return false;
  }
};

struct Response {
  int status = 200;
  std::vector<Header> headers = {};  // beside Content-Length, Connection and Date, which the server writes
  std::string body = {};
};

}  // namespace octavo::http
