#include "app/window/server/server_runner.h"

#include <chrono>
#include <thread>
#include <utility>

namespace octavo::app {
namespace {

constexpr std::chrono::milliseconds kLook{10};
constexpr std::chrono::seconds kLongestEnd{2};

}  // namespace

ServerRunner::ServerRunner(ServerDoor& door, std::function<void()> wake_up)
    : door_(door),
      jobs_([this](const Job& job) { return std::optional(perform(job)); }, std::move(wake_up),
            JobsLeft::kDone) {}

ServerRunner::~ServerRunner() { stop(); }

ServerReport ServerRunner::perform(const Job& job) {
  close();
  const auto* start = std::get_if<Start>(&job);
  if (start == nullptr) return {};
  auto server = http::Server::listen(
      {.host = "127.0.0.1", .port = start->port},
      [this](const http::Request& head) { return door_.check_head(head); },
      [this](http::Request request, http::Reply reply) {
        door_.handle(std::move(request), std::move(reply));
      },
      Service::refuse);
  if (!server) return {.problem = server.error()};
  const std::lock_guard lock(mutex_);
  server_ = *std::move(server);
  return {.port = server_->port()};
}

void ServerRunner::close() {
  std::unique_ptr<http::Server> server;
  {
    const std::lock_guard lock(mutex_);
    if (!server_) return;
    server_->stop_accepting();
  }
  const auto end = std::chrono::steady_clock::now() + kLongestEnd;
  while (num_open_answers() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kLook);
  const std::lock_guard lock(mutex_);
  server = std::move(server_);
}

std::size_t ServerRunner::num_open_answers() const {
  const std::lock_guard lock(mutex_);
  return server_ ? server_->num_open_answers() : 0;
}

}  // namespace octavo::app
