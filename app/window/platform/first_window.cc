#include "app/window/platform/first_window.h"
#include "engine/base/home_folder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace octavo::app {
namespace {

namespace fs = std::filesystem;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::string_view kGreeting = "octavo 1\n";
constexpr std::string_view kTaken = "ok\n";

// An address by way of the folder: a socket's own may have 107 characters only.
struct Address {
  FileDescriptor folder;
  sockaddr_un name;

  explicit Address(const fs::path& path)
      : folder(::open(path.parent_path().c_str(), O_PATH | O_CLOEXEC)), name{} {
    name.sun_family = AF_UNIX;
    std::snprintf(name.sun_path, sizeof name.sun_path, "/proc/self/fd/%d/%s", folder.get(),
                  path.filename().c_str());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

int milliseconds_until(SteadyTime end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

bool wait_for(int descriptor, short events, SteadyTime end) {
  pollfd waited{descriptor, events, 0};
  int ready = 0;
  do {
    ready = ::poll(&waited, 1, milliseconds_until(end));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool send_all(int descriptor, std::string_view bytes, SteadyTime end) {
  while (!bytes.empty()) {
    if (!wait_for(descriptor, POLLOUT, end)) return false;
    const ssize_t sent = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// All that the other side says before it stops; none when it says more than `most`, or takes too long.
std::optional<std::string> receive_all(int descriptor, std::size_t most, SteadyTime end) {
  std::string received;
  char buffer[4096];
  while (true) {
    if (!wait_for(descriptor, POLLIN, end)) return std::nullopt;
    const ssize_t count = ::recv(descriptor, buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return received;
    received.append(buffer, static_cast<std::size_t>(count));
    if (received.size() > most) return std::nullopt;
  }
}

std::optional<OtherStart> parse(std::string_view message) {
  if (!message.starts_with(kGreeting)) return std::nullopt;
  message.remove_prefix(kGreeting.size());
  OtherStart start;
  while (!message.empty()) {
    const std::size_t end = message.find('\0');
    if (end == std::string_view::npos || end == 0 || message.front() != '/') return std::nullopt;
    start.files.emplace_back(message.substr(0, end));
    message.remove_prefix(end + 1);
  }
  return start;
}

bool is_own_process(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

fs::path lock_of(const fs::path& socket_path) { return socket_path.string() + ".lock"; }

// Less than the other start waits: what it gave up, nobody does.
constexpr std::chrono::milliseconds kServing = kReplyTimeout * 3 / 4;

// Also `connect` waits, where many ask at once.
void limit_sending(int descriptor, std::chrono::milliseconds limit) {
  const timeval time{limit.count() / 1000, (limit.count() % 1000) * 1000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

int new_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

fs::path default_socket_path(const fs::path& chats_path) {
  std::error_code ignored;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(chats_path, ignored), ignored);
  const auto runtime = runtime_folder();
  if (!runtime) return absolute.parent_path() / "window.socket";
  char name[48];
  std::snprintf(name, sizeof name, "octavo-%016llx.socket",
                static_cast<unsigned long long>(hash_of(absolute.string())));
  return *runtime / name;
}

std::unique_ptr<FirstWindow> FirstWindow::listen(const fs::path& socket_path, std::function<void()> wake_up) {
  std::unique_ptr<FirstWindow> window(new FirstWindow(socket_path, std::move(wake_up)));
  return window->open() ? std::move(window) : nullptr;
}

FirstWindow::FirstWindow(fs::path socket_path, std::function<void()> wake_up)
    : socket_path_(std::move(socket_path)), wake_up_(std::move(wake_up)) {}

// The lock says who listens; a socket that a killed process left behind is in nobody's way.
bool FirstWindow::open() {
  if (!make_private_folder(socket_path_.parent_path())) return false;
  if (lock_.take(lock_of(socket_path_)) != LockOutcome::kLocked) return false;
  ::unlink(socket_path_.c_str());
  FileDescriptor listener(new_socket());
  const Address address(socket_path_);
  if (!listener.ok() || !address.folder.ok()) return false;
  // On Linux the socket's permissions are those of the file that bind makes.
  if (::fchmod(listener.get(), 0600) != 0) return false;
  if (::bind(listener.get(), address.get(), sizeof address.name) != 0) return false;
  if (::chmod(socket_path_.c_str(), 0600) != 0 || ::listen(listener.get(), 8) != 0) return false;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  stop_reader_ = FileDescriptor(ends[0]);
  stop_writer_ = FileDescriptor(ends[1]);
  listener_ = std::move(listener);
  thread_ = std::thread([this] { run(); });
  return true;
}

FirstWindow::~FirstWindow() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  taken_.notify_all();
  stop_writer_.reset();
  thread_.join();
  ::unlink(socket_path_.c_str());
}

std::vector<OtherStart> FirstWindow::take_starts() {
  std::vector<OtherStart> starts;
  {
    const std::lock_guard lock(mutex_);
    starts = std::exchange(starts_, {});
    num_taken_ = num_received_;
  }
  if (!starts.empty()) taken_.notify_all();
  return starts;
}

void FirstWindow::run() {
  while (true) {
    pollfd waited[2] = {{listener_.get(), POLLIN, 0}, {stop_reader_.get(), POLLIN, 0}};
    if (::poll(waited, 2, -1) < 0 && errno != EINTR) return;
    if (waited[1].revents != 0) return;
    if (waited[0].revents == 0) continue;
    const FileDescriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection.ok() && is_own_process(connection.get())) serve(connection.get());
  }
}

void FirstWindow::serve(int connection) {
  const SteadyTime end = std::chrono::steady_clock::now() + kServing;
  const auto message = receive_all(connection, kLongestMessage, end);
  if (!message) return;
  auto start = parse(*message);
  if (!start) return;
  std::unique_lock lock(mutex_);
  if (stopping_) return;
  starts_.push_back(*std::move(start));
  const std::size_t number = ++num_received_;
  lock.unlock();
  wake_up_();
  lock.lock();
  const bool taken = taken_.wait_until(lock, end, [&] { return stopping_ || num_taken_ >= number; });
  if (!taken || num_taken_ < number) {
    // The other start goes on by itself, and must not happen here as well when this window wakes up.
    if (!starts_.empty()) starts_.pop_back();
    return;
  }
  lock.unlock();
  send_all(connection, kTaken, std::chrono::steady_clock::now() + kServing);
}

HandOver hand_over(const fs::path& socket_path, const std::vector<std::string>& files,
                   std::chrono::milliseconds timeout) {
  const SteadyTime end = std::chrono::steady_clock::now() + timeout;
  const Address address(socket_path);
  const FileDescriptor connection(new_socket());
  if (!address.folder.ok() || !connection.ok()) return HandOver::kNobody;
  limit_sending(connection.get(), timeout);
  if (::connect(connection.get(), address.get(), sizeof address.name) != 0)
    return errno == EAGAIN ? HandOver::kNoAnswer : HandOver::kNobody;
  std::string message(kGreeting);
  for (const std::string& file : files) {
    std::error_code error;
    const fs::path absolute = fs::absolute(file, error);
    if (!error) message.append(absolute.string()).push_back('\0');
  }
  if (message.size() > kLongestMessage) return HandOver::kNoAnswer;
  if (!is_own_process(connection.get()) || !send_all(connection.get(), message, end))
    return HandOver::kNoAnswer;
  ::shutdown(connection.get(), SHUT_WR);
  const auto answer = receive_all(connection.get(), kTaken.size(), end);
  return answer == kTaken ? HandOver::kTaken : HandOver::kNoAnswer;
}

}  // namespace octavo::app
