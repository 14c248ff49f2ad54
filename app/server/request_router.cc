#include "app/server/request_router.h"

#include <chrono>
#include <utility>
#include <variant>

namespace octavo::app {
namespace {

constexpr std::chrono::milliseconds kLongestPoll{100};  // between ticks; in which a stop is noticed

}  // namespace

bool is_last_event(const EngineEvent& event) {
  return std::holds_alternative<RequestFinished>(event) || std::holds_alternative<RequestFailed>(event);
}

RequestRouter::RequestRouter(Engine& engine, Observer everything, Tick tick)
    : engine_(engine),
      everything_(std::move(everything)),
      tick_(std::move(tick)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

RequestRouter::~RequestRouter() { thread_.request_stop(); }

std::vector<RequestId> RequestRouter::submit(
    std::vector<GenerationRequest> requests, Sink sink,
    const std::function<void(const std::vector<RequestId>&)>& submitted) {
  const auto shared = std::make_shared<Sink>(std::move(sink));
  const std::lock_guard lock(mutex_);
  const std::vector<RequestId> ids = engine_.submit_all(std::move(requests));
  for (std::size_t i = 0; i < ids.size(); ++i) open_.emplace(ids[i], Open{shared, i});
  num_waiting_ += ids.size();
  submitted(ids);
  return ids;
}

void RequestRouter::cancel(const std::vector<RequestId>& requests) {
  for (const RequestId id : requests) engine_.cancel(id);
}

void RequestRouter::cancel_all() {
  std::vector<RequestId> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, open] : open_) all.push_back(id);
  }
  cancel(all);
}

std::size_t RequestRouter::num_open() const {
  const std::lock_guard lock(mutex_);
  return open_.size();
}

std::size_t RequestRouter::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_waiting_;
}

void RequestRouter::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (const EngineEvent& event : engine_.poll(kLongestPoll)) pass_on(event);
    if (tick_) tick_();
  }
  cancel_all();
  while (num_open() > 0) {
    for (const EngineEvent& event : engine_.poll(kLongestPoll)) pass_on(event);
  }
}

void RequestRouter::pass_on(const EngineEvent& event) {
  std::shared_ptr<Sink> sink;
  std::size_t index = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(request_id_of(event));
    if (found == open_.end()) return;  // submitted by somebody else, before this router
    Open& open = found->second;
    const bool is_over = is_last_event(event);
    if (open.waiting && (is_over || std::holds_alternative<RequestAdmitted>(event))) {
      open.waiting = false;
      --num_waiting_;
    }
    sink = open.sink;
    index = open.index;
    if (is_over) open_.erase(found);
  }
  if (everything_) everything_(event);
  (*sink)(index, event);
}

}  // namespace octavo::app
