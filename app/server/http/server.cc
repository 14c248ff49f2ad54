#include "app/server/http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "app/server/http/connection.h"
#include "app/server/http/deadlines.h"
#include "app/server/http/listening_socket.h"
#include "app/server/http/mailbox.h"
#include "engine/base/check.h"

namespace octavo::http {
namespace {

// What events and deadlines are of; connections come behind these.
constexpr ConnectionId kListenerId = 0;
constexpr ConnectionId kMailboxId = 1;
constexpr ConnectionId kFirstConnectionId = 2;

constexpr int kMaxNewcomers = 64;                           // at once; the others have their turn between
constexpr std::chrono::milliseconds kProtectedTime{1'000};  // in which an idle connection does not give way
constexpr std::chrono::milliseconds kAcceptPause{100};      // when the system has no descriptor left

class EpollServer final : public Server {
 public:
  EpollServer(const ServerOptions& options, CheckHead check_head, Handle handle, Refuse refuse,
              ListeningSocket listener, app::FileDescriptor epoll, app::FileDescriptor event);
  ~EpollServer() override;

  // Errors: the system gives no thread, or does not watch the sockets.
  Result<void> start();

  std::uint16_t port() const override { return port_; }
  bool is_loopback() const override { return is_loopback_; }
  std::size_t num_connections() const override { return num_connections_; }
  void stop_accepting() override { context_.mailbox->ask_to_stop_accepting(); }
  std::size_t num_open_answers() const override { return context_.num_open_answers; }

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    std::uint32_t watched_events = 0;
  };

  void run();
  void turn();
  int milliseconds_to_deadline() const;

  // Does something to a connection, if it is still there, and then what the connection wants.
  template <class Action>
  void with_connection(ConnectionId id, Action action);
  void settle(ConnectionId id, Entry& entry);
  void remove(ConnectionId id);

  void bring_answers(Time now);
  void meet_deadlines(Time now);
  void close_door();

  void accept_newcomers(Time now);
  void let_in(app::FileDescriptor socket, Time now);
  bool make_room(Time now);
  void pause_accepting(Time now);
  bool watch(int operation, int descriptor, ConnectionId id, std::uint32_t events) const;

  ConnectionContext context_;
  const std::uint16_t port_;
  const bool is_loopback_;
  std::atomic<std::size_t> num_connections_ = 0;

  // Of the server's thread, once it runs.
  app::FileDescriptor listener_;
  app::FileDescriptor epoll_;
  std::unordered_map<ConnectionId, Entry> connections_;
  Deadlines deadlines_;
  ConnectionId next_id_ = kFirstConnectionId;

  std::thread thread_;  // last: everything above exists before it runs
};

EpollServer::EpollServer(const ServerOptions& options, CheckHead check_head, Handle handle, Refuse refuse,
                         ListeningSocket listener, app::FileDescriptor epoll, app::FileDescriptor event)
    : context_{.limits = options.limits,
               .tls = options.tls,
               .check_head = std::move(check_head),
               .handle = std::move(handle),
               .refuse = std::move(refuse),
               .mailbox = std::make_shared<Mailbox>(std::move(event))},
      port_(listener.port),
      is_loopback_(listener.is_loopback),
      listener_(std::move(listener.descriptor)),
      epoll_(std::move(epoll)) {}

EpollServer::~EpollServer() {
  context_.mailbox->ask_to_end();
  if (thread_.joinable()) thread_.join();
}

Result<void> EpollServer::start() {
  const auto failure = [](int number) {
    return Error{ErrorCode::kIo, "cannot start the server: " + std::generic_category().message(number) +
                                     ": close other programs"};
  };
  if (!watch(EPOLL_CTL_ADD, listener_.get(), kListenerId, EPOLLIN) ||
      !watch(EPOLL_CTL_ADD, context_.mailbox->event(), kMailboxId, EPOLLIN))
    return failure(errno);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return failure(error.code().value());
  }
  return {};
}

// ---- the server's thread

void EpollServer::run() {
  while (!context_.mailbox->is_asked_to_end()) turn();
  while (!connections_.empty()) remove(connections_.begin()->first);
  bring_answers(std::chrono::steady_clock::now());  // callbacks that came with the end
  context_.mailbox->close();
}

void EpollServer::turn() {
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to_deadline());
  OCTAVO_CHECK(count >= 0 || errno == EINTR, "epoll_wait fails only for a signal");
  const Time now = std::chrono::steady_clock::now();
  bool has_newcomers = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kListenerId) {
      has_newcomers = true;
    } else if (event.data.u64 == kMailboxId) {
      bring_answers(now);
    } else {
      with_connection(event.data.u64,
                      [&](Connection& connection) { connection.on_events(event.events, now); });
    }
  }
  meet_deadlines(now);
  if (context_.mailbox->is_asked_to_stop_accepting()) close_door();
  if (has_newcomers) accept_newcomers(now);  // last: a connection that seemed idle may have spoken
}

// Rounded up: waking up before the time would be a turn for nothing.
int EpollServer::milliseconds_to_deadline() const {
  const auto first = deadlines_.first();
  if (!first) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*first - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

template <class Action>
void EpollServer::with_connection(ConnectionId id, Action action) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  action(*found->second.connection);
  settle(id, found->second);
}

void EpollServer::settle(ConnectionId id, Entry& entry) {
  const Connection& connection = *entry.connection;
  if (connection.is_over()) return remove(id);
  deadlines_.set(id, connection.deadline());
  const std::uint32_t wanted = connection.wanted_events();
  if (wanted == entry.watched_events) return;
  const int operation = entry.watched_events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (!watch(operation, connection.socket(), id, wanted)) return remove(id);
  entry.watched_events = wanted;
}

void EpollServer::remove(ConnectionId id) {
  deadlines_.set(id, std::nullopt);
  const auto removed = connections_.extract(id);  // before it is destroyed: that may call back
  num_connections_ = connections_.size();
}

void EpollServer::bring_answers(Time now) {
  for (const auto& answer : context_.mailbox->take()) {
    if (!connections_.contains(answer->connection())) answer->client_left();
    with_connection(answer->connection(),
                    [&](Connection& connection) { connection.on_answer(*answer, now); });
  }
}

void EpollServer::meet_deadlines(Time now) {
  while (const auto id = deadlines_.take_due(now)) {
    if (*id == kListenerId) {
      if (listener_.ok()) watch(EPOLL_CTL_MOD, listener_.get(), kListenerId, EPOLLIN);
    } else {
      with_connection(*id, [&](Connection& connection) { connection.on_deadline(now); });
    }
  }
}

// Nobody is let in any more, and who only waits is sent away; the others go behind their answers.
void EpollServer::close_door() {
  if (!listener_.ok()) return;
  listener_.reset();
  std::vector<ConnectionId> idle;
  for (const auto& [id, entry] : connections_)
    if (entry.connection->idle_since()) idle.push_back(id);
  for (const ConnectionId id : idle) remove(id);
}

// ---- newcomers

void EpollServer::accept_newcomers(Time now) {
  for (int i = 0; i < kMaxNewcomers && listener_.ok(); ++i) {
    app::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.ok()) {
      let_in(std::move(socket), now);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return pause_accepting(now);
    }
  }
}

void EpollServer::let_in(app::FileDescriptor socket, Time now) {
  if (connections_.size() >= context_.limits.num_connections && !make_room(now)) return;
  const int on = 1;  // pieces of a stream go at once
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const ConnectionId id = next_id_++;
  Entry& entry = connections_[id];
  entry.connection = std::make_unique<Connection>(id, std::move(socket), context_, now);
  num_connections_ = connections_.size();
  settle(id, entry);
}

// Whether the connection that was idle longest has gone. One that became idle just now stays: a burst of
// clients would push out those that are about to ask.
bool EpollServer::make_room(Time now) {
  ConnectionId oldest = 0;
  Time oldest_time = now - kProtectedTime;
  for (const auto& [id, entry] : connections_) {
    const auto since = entry.connection->idle_since();
    if (!since || *since > oldest_time) continue;
    oldest = id;
    oldest_time = *since;
  }
  if (oldest == 0) return false;
  remove(oldest);
  return true;
}

// The newcomer still waits at the door, and would wake us at once for ever.
void EpollServer::pause_accepting(Time now) {
  make_room(now);
  watch(EPOLL_CTL_MOD, listener_.get(), kListenerId, 0);
  deadlines_.set(kListenerId, now + kAcceptPause);
}

bool EpollServer::watch(int operation, int descriptor, ConnectionId id, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const ServerOptions& options, CheckHead check_head,
                                               Handle handle, Refuse refuse) {
  OCTAVO_TRY(ListeningSocket listener, open_listening_socket(options.host, options.port));
  app::FileDescriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  app::FileDescriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.ok() || !event.ok()) {
    return Error{ErrorCode::kIo, "cannot start the server: too many files are open: close other programs"};
  }
  auto server =
      std::make_unique<EpollServer>(options, std::move(check_head), std::move(handle), std::move(refuse),
                                    std::move(listener), std::move(epoll), std::move(event));
  OCTAVO_TRY_VOID(server->start());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace octavo::http
