// The bytes of one connection, as they are or encrypted (tls.h). Never waits: what cannot be done now is done
// when the socket is ready again.
//
// Thread: one at a time. The socket belongs to whoever made the transport, and outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace octavo::http {

class Transport {
 public:
  // No bytes, and not over: nothing can be done before the socket is ready.
  struct Moved {
    std::size_t num_bytes = 0;
    bool is_over = false;  // the peer has left, or broke the protocol
  };
  enum class Opening : std::uint8_t {
    kGoesOn,
    kDone,
    kFailed,
    kPlainRequest,  // somebody speaks HTTP where it is encrypted
  };

  virtual ~Transport() = default;

  // What comes before the first byte of a request. Again until it is done.
  virtual Opening open() = 0;
  // REQUIRES of these: open() is done.
  virtual Moved receive(std::span<char> buffer) = 0;
  virtual Moved send(std::string_view bytes) = 0;
  // The peer learns that nothing more comes.
  virtual void end_sending() = 0;

  // Whether it waits for room in the socket, beside what its owner wants to send.
  virtual bool wants_room() const = 0;
};

std::unique_ptr<Transport> plain_transport(int socket);

}  // namespace octavo::http
