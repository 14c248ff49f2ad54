#include "app/server/http/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace octavo::http {
namespace {

Transport::Moved moved_by(ssize_t count) {
  if (count >= 0) return {.num_bytes = static_cast<std::size_t>(count)};
  const bool may_be_tried_again = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {.num_bytes = 0, .is_over = !may_be_tried_again};
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(int socket) : socket_(socket) {}

  Opening open() override { return Opening::kDone; }
  Moved receive(std::span<char> buffer) override {
    const ssize_t count = ::recv(socket_, buffer.data(), buffer.size(), 0);
    return count == 0 ? Moved{.is_over = true} : moved_by(count);
  }
  Moved send(std::string_view bytes) override {
    return moved_by(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void end_sending() override { ::shutdown(socket_, SHUT_WR); }
  bool wants_room() const override { return false; }

 private:
  const int socket_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(int socket) { return std::make_unique<PlainTransport>(socket); }

}  // namespace octavo::http
