// A client of HTTP that sends and takes bytes, for tests over real sockets of this machine.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "app/files/file_descriptor.h"

namespace octavo::http {

// Ends a test that has failed; nothing that goes well waits so long.
inline constexpr std::chrono::seconds kFailedAfter{20};

inline bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kFailedAfter;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class HttpClient {
 public:
  HttpClient() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{kFailedAfter.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }

  bool connect(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void close_sending() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.reset(); }
  int descriptor() const { return socket_.get(); }

  bool has_input() {
    char byte;
    return ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  // What comes up to and with `end`; less when the connection ends before.
  std::string read_until(std::string_view end) {
    while (received_.find(end) == std::string::npos && receive()) {
    }
    const std::size_t found = received_.find(end);
    return take(found == std::string::npos ? received_.size() : found + end.size());
  }
  std::string read_bytes(std::size_t count) {
    while (received_.size() < count && receive()) {
    }
    return take(std::min(count, received_.size()));
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return take(received_.size());
  }
  // Of an answer with Content-Length.
  std::string read_head() { return read_until("\r\n\r\n"); }
  std::string read_answer() {
    const std::string head = read_head();
    const std::size_t length = head.find("Content-Length: ");
    if (length == std::string::npos) return head;
    return head + read_bytes(std::stoul(head.substr(length + std::strlen("Content-Length: "))));
  }
  std::string ask(const std::string& bytes) { return send(bytes) ? read_answer() : ""; }

  // The server has closed it; nothing more was to come.
  bool has_ended() { return read_to_end().empty() && is_ended_; }
  bool was_reset() const { return was_reset_; }

 private:
  bool receive() {
    char buffer[16 * 1024];
    const ssize_t count = ::recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count > 0) received_.append(buffer, static_cast<std::size_t>(count));
    if (count < 0 && errno == ECONNRESET) was_reset_ = true;
    if (count == 0 || was_reset_) is_ended_ = true;
    return count > 0;
  }
  std::string take(std::size_t count) {
    std::string taken = received_.substr(0, count);
    received_.erase(0, count);
    return taken;
  }

  app::FileDescriptor socket_;
  bool is_ended_ = false;
  bool was_reset_ = false;
  std::string received_;
};

}  // namespace octavo::http
