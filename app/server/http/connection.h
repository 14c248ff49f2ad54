// One client: its socket, the request that comes, and the answer that goes. What comes in one go but belongs
// to later requests waits here until the answers before are written, so that answers keep the order.
//
// It is told of events and of time, and says what it waits for; it knows neither epoll nor the other
// connections.
//
// When a client has left: its socket failed or was closed while its answer was not complete. An end of what
// it sends counts too, though it may be half a close: the two look the same until something is written, and
// waiting for that would let a computation run on for nobody. HTTP clients do not close halves.
//
// Thread: the server's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/files/file_descriptor.h"
#include "app/server/http/deadlines.h"
#include "app/server/http/mailbox.h"
#include "app/server/http/pending_answer.h"
#include "app/server/http/request_parser.h"
#include "app/server/http/server.h"
#include "app/server/http/transport.h"

namespace octavo::http {

// What the connections of one server share; it outlives them.
struct ConnectionContext {
  Limits limits;
  std::shared_ptr<const TlsIdentity> tls;  // nullptr: HTTP as it is
  CheckHead check_head;
  Handle handle;
  Refuse refuse;
  std::shared_ptr<Mailbox> mailbox;
  std::atomic<std::size_t> num_open_answers = 0;
};

class Connection {
 public:
  Connection(ConnectionId id, app::FileDescriptor socket, ConnectionContext& context, Time now);
  ~Connection();  // the client of an answer that is not complete is told to have left
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What it waits for, after each call of those below.
  std::uint32_t wanted_events() const;  // of epoll
  std::optional<Time> deadline() const { return deadline_; }
  bool is_over() const { return is_over_; }  // to be destroyed

  void on_events(std::uint32_t events, Time now);
  void on_deadline(Time now);
  void on_answer(const PendingAnswer& answer, Time now);  // it has moved on, if it is still awaited

  // Since when no request is under way, not even while it opens; nullopt while one is.
  std::optional<Time> idle_since() const;

  int socket() const { return socket_.get(); }

 private:
  enum class Phase {
    kOpening,    // before the first request: the handshake of TLS
    kIdle,       // between requests
    kHead,       // some of a request has come
    kBody,       // its head was let through
    kAnswering,  // it is with its handler, or its answer is on the way; nothing is read
    kLeaving,    // all is said: what the client still sends is dropped, so that it can read the answer
  };

  void advance(Time now);

  void open(Time now);
  bool read();
  void read_request(Time now);
  void feed_parser();
  bool let_body_in(Time now);
  void handle_request();
  void refuse(int status, const std::string& sentence);
  void answer_and_close(const Response& response);
  AnswerForm answer_form() const;
  void begin_answer(const AnswerForm& form);
  std::shared_ptr<PendingAnswer> new_answer(const AnswerForm& form) const;

  bool write_answer(Time now);
  void send_waiting(Time now);
  void finish_answer(Time now);
  void say_that_nobody_answered();
  void cut_answer();

  void become_idle(Time now);
  void leave(Time now);
  void drop(std::size_t count);

  const ConnectionId id_;
  const app::FileDescriptor socket_;
  ConnectionContext& context_;
  std::unique_ptr<Transport> transport_;

  Phase phase_ = Phase::kOpening;
  bool is_over_ = false;
  Time idle_since_ = {};
  std::optional<Time> deadline_ = {};

  RequestParser parser_;
  std::string unread_ = {};  // what has come and the parser has not taken
  std::shared_ptr<PendingAnswer> answer_ = {};
  std::string unsent_ = {};
  std::size_t num_sent_ = 0;     // of unsent_
  std::size_t num_dropped_ = 0;  // while leaving
};

}  // namespace octavo::http
