// An HTTP/1.1 server for programs on this machine: many connections, long streams, and peers that may send
// anything. One thread waits for all sockets (epoll), so that idle and slow connections cost no thread.
//
// Thread: listen() starts the server's thread; check_head and handle are called on it and must return soon. A
// Reply may be used from any thread, also after its client has left or the server has ended, when it does
// nothing.
// Limits hold for whole requests, not for single reads: a client that sends a byte a second is ended, too.
// What a peer sends is never trusted and never fatal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/server/http/message.h"
#include "app/server/http/tls.h"
#include "engine/base/result.h"

namespace octavo::http {

struct Limits {
  std::size_t request_line_bytes = 8 * 1024;
  std::size_t num_headers = 100;
  std::size_t header_bytes = 32 * 1024;  // all of a request's together
  std::size_t body_bytes = 8 * 1024 * 1024;
  std::chrono::milliseconds head_time{10'000};   // from the first byte of a request to the end of its head
  std::chrono::milliseconds body_time{30'000};   // from there to the end of its body
  std::chrono::milliseconds idle_time{30'000};   // between requests
  std::chrono::milliseconds write_time{30'000};  // in which a client takes nothing of what waits for it
  std::size_t num_connections = 512;             // at the limit the one that is idle longest goes
  std::size_t waiting_bytes =
      16 * 1024 * 1024;  // that a client may let wait of one answer; beyond, it is dropped
};

// The place for one answer: whole, or in pieces. Copies are the same place. An answer that nobody finishes is
// given up when the last copy goes: 500, or a cut connection where it had begun.
class Reply {
 public:
  class Place;  // of the server
  explicit Reply(std::shared_ptr<Place> place) : place_(std::move(place)) {}

  void send(Response response) const;

  // The head at once, pieces as they come (chunked), and the end. REQUIRES: begin comes first, end last.
  void begin(int status, std::vector<Header> headers) const;
  void write(std::string piece) const;  // empty: nothing is sent
  void end() const;

  // Called once, on the server's thread, when the client has left before the end of the answer; in its next
  // turn when it has already. At most one callback, which must not hold this Reply: nobody else could end it.
  void on_client_left(std::function<void()> callback) const;

 private:
  std::shared_ptr<Place> place_;
};

// Looks at a request whose head is complete, before its body is read: an answer refuses it.
using CheckHead = std::function<std::optional<Response>(const Request& head)>;
using Handle = std::function<void(Request request, Reply reply)>;
// The answer to what is no request, breaks a limit, or was lost here: a status from 400 on and one sentence.
using Refuse = std::function<Response(int status, const std::string& sentence)>;

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address in numbers, or localhost
  std::uint16_t port = 8000;       // 0: any that is free
  Limits limits = {};
  std::shared_ptr<const TlsIdentity> tls = {};  // nullptr: HTTP as it is
};

class Server {
 public:
  // Listens when it returns. Fails with a sentence that names host and port.
  static Result<std::unique_ptr<Server>> listen(const ServerOptions& options, CheckHead check_head,
                                                Handle handle, Refuse refuse);
  virtual ~Server() = default;  // ends the thread and every connection

  virtual std::uint16_t port() const = 0;
  // Whether it listens to this machine alone.
  virtual bool is_loopback() const = 0;
  virtual std::size_t num_connections() const = 0;

  // From now on nobody is let in, and connections close behind their answers.
  virtual void stop_accepting() = 0;
  virtual std::size_t num_open_answers() const = 0;  // requests that have no complete answer yet
};

}  // namespace octavo::http
