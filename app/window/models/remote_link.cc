#include "app/window/models/remote_link.h"

#include <chrono>
#include <utility>

#include "app/remote/remote_metrics.h"

namespace octavo::app {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr std::chrono::seconds kLookTime{5};
constexpr std::size_t kMostMetricBytes = 8 * 1024 * 1024;

}  // namespace

RemoteLink::RemoteLink(RemoteKeys keys, const Clock& clock, std::function<void()> wake_up)
    : clock_(clock),
      wake_up_(std::move(wake_up)),
      keys_(std::move(keys)),
      jobs_([this](const RemoteJob& job) { return ask(job); }, wake_up_, JobsLeft::kDropped),
      watch_thread_([this] { run_watch(); }) {}

RemoteLink::~RemoteLink() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  watch_thread_.join();
}

bool RemoteLink::is_stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

std::optional<RemoteListed> RemoteLink::ask(const RemoteJob& job) {
  RemoteListed listed{.serial = job.serial};
  if (job.forgets_key) {
    const std::lock_guard lock(keys_mutex_);
    const auto forgotten = keys_.forget(job.address);
    if (forgotten) return std::nullopt;
    listed.key_problem = forgotten.error().message;
    listed.asked_nothing = true;
    return listed;
  }
  KeptKey key{.key = job.key};
  if (key.key.empty()) {
    const std::lock_guard lock(keys_mutex_);
    key = keys_.find(job.address);
  }
  http::Client client(clock_);
  listed.models =
      list_models(client, {.address = job.address, .key = key.key}, [this] { return is_stopping(); });
  listed.key_place = key.place;
  if (job.key.empty() || !listed.models) return listed;
  const std::lock_guard lock(keys_mutex_);
  const auto kept = keys_.keep(job.address, job.key);
  if (kept) {
    listed.key_place = *kept;
  } else {
    listed.key_problem = kept.error().message;
  }
  return listed;
}

void RemoteLink::watch(std::optional<WatchedServer> server) {
  {
    const std::lock_guard lock(mutex_);
    if (watched_ == server) return;
    watched_ = std::move(server);
    loads_.clear();
  }
  changed_.notify_all();
}

std::vector<RemoteLoadTold> RemoteLink::take_loads() {
  const std::lock_guard lock(mutex_);
  return std::exchange(loads_, {});
}

void RemoteLink::run_watch() {
  http::Client client(clock_);
  std::optional<WatchedServer> known;  // whose key this is
  std::string key;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || watched_.has_value(); });
    if (stopping_) return;
    const WatchedServer server = *watched_;
    lock.unlock();
    if (known != server) {
      const std::lock_guard keys_lock(keys_mutex_);
      key = keys_.find(server.address).key;
      known = server;
    }
    RemoteLoadTold told = look(client, server, key);
    lock.lock();
    if (stopping_) return;
    if (watched_ == server) {
      loads_.push_back(std::move(told));
      lock.unlock();
      wake_up_();
      lock.lock();
    }
    changed_.wait_for(lock, kBetweenLooks, [&] { return stopping_ || watched_ != server; });
  }
}

RemoteLoadTold RemoteLink::look(http::Client& client, const WatchedServer& server, const std::string& key) {
  const Endpoint endpoint{.address = server.address, .key = key};
  http::ClientRequest request = request_at(server_root(server.address) + "/metrics", endpoint);
  request.limits = {.connect_time = kLookTime, .idle_time = kLookTime, .body_bytes = kMostMetricBytes};
  const auto response = http::fetch(client, std::move(request), [this] { return is_stopping(); });
  RemoteLoadTold told{.seconds = static_cast<double>(clock_.now_us()) / 1e6};
  if (!response) {
    told.load = response.error();
  } else if (response->status != 200) {
    told.load = error_of_answer(response->status, response->body, server.address);
  } else {
    told.load = read_remote_metrics(response->body, server.model);
  }
  return told;
}

}  // namespace octavo::app
