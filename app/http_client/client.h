// An HTTP client for servers of models: many requests at once on one thread, answers in pieces as they come,
// TLS, proxies. What libcurl does, as values and without exceptions.
//
// Thread: one, which calls everything but wake_up; handlers are called within wait(). They may start and
// cancel requests, and must not destroy the client.
// An answer comes as fast as on_body takes it: while a handler writes to a slow disk nothing more is read.
// What a server sends is never trusted and never fatal: every limit ends its own request alone. No redirect
// is followed, since a key must not go where nobody sent it.
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
#include "engine/base/clock.h"
#include "engine/base/result.h"

namespace octavo::http {

struct TransferLimits {
  std::chrono::milliseconds connect_time{10'000};
  // In which nothing comes; a server may think for long before the first token. 0: no limit
  std::chrono::milliseconds idle_time{300'000};
  std::size_t body_bytes = 256 * 1024 * 1024;
};

struct ClientRequest {
  std::string method = "GET";
  std::string url;  // http or https
  std::vector<Header> headers = {};
  std::string body = {};
  TransferLimits limits = {};
};

struct AnswerHead {
  int status = 0;
  std::vector<Header> headers = {};  // names in lower case

  // Of the first header of this name; empty when there is none.
  std::string_view header(std::string_view name) const;
};

// How a request ended.
struct TransferEnd {
  std::optional<Error> error = {};  // none: the answer is complete, whatever its status
  // Whether the server may have seen the request: if not, asking once more does nothing twice.
  bool may_have_arrived = false;
};

struct TransferHandlers {
  std::function<void(const AnswerHead&)> on_head = {};  // at most once, before the first piece
  std::function<void(std::string_view piece)> on_body = {};
  std::function<void(const TransferEnd&)> on_end = {};  // exactly once, last; never after cancel
};

using TransferId = std::uint64_t;

class Client {
 public:
  // The clock measures idle times and must outlive the client.
  //   ca_file  certificates that are trusted instead of the system's; empty: the system's
  explicit Client(const Clock& clock, std::string ca_file = {});
  ~Client();  // ends every connection; nobody is told
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sent in the next wait(). What is wrong with it is told by on_end.
  TransferId start(ClientRequest request, TransferHandlers handlers);
  // Closes its connection. No effect on one that has ended.
  void cancel(TransferId id);

  // Sends and receives until something happened or the time is over.
  void wait(std::chrono::milliseconds timeout);
  // Ends the wait that is under way, or the next one. Any thread.
  void wake_up();

  std::size_t num_open() const;

 private:
  class Transfers;
  std::unique_ptr<Transfers> transfers_;
};

// One whole answer, waited for; other requests of the client go on meanwhile. `is_stopped` is asked ten times
// a second: true ends it (kCancelled).
Result<Response> fetch(Client& client, ClientRequest request, const std::function<bool()>& is_stopped = {});

}  // namespace octavo::http
