#include "engine/core/request_preparer.h"

#include <optional>
#include <utility>

namespace octavo {

RequestPreparer::RequestPreparer(IntakeSources sources, Deliver deliver)
    : deliver_(std::move(deliver)),
      intake_(sources),
      queue_(*sources.tokenizer),
      thread_([this] { run(); }) {}

void RequestPreparer::close() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(closing_, true)) return;
    queue_.cancel_all();
    deliver_ready();
  }
  changed_.notify_one();
  thread_.join();
}

bool RequestPreparer::submit(std::vector<SubmitRequest> batch) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return false;
    queue_.add(std::move(batch));
  }
  changed_.notify_one();
  return true;
}

void RequestPreparer::cancel(RequestId request_id) {
  std::lock_guard lock(mutex_);
  if (queue_.cancel(request_id)) return deliver_ready();
  deliver_({CancelRequest{request_id}});
}

void RequestPreparer::cancel_output(RequestId request_id, std::int32_t output_index) {
  std::lock_guard lock(mutex_);
  if (!queue_.cancel_output(request_id, output_index)) deliver_({CancelOutput{request_id, output_index}});
}

// A text is freed unlocked: it may be large.
void RequestPreparer::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    std::optional<PreparationQueue::Job> job = queue_.take();
    if (!job) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    PreparedRequest prepared = intake_.prepare(std::move(job->submit), job->stop);
    job.reset();
    lock.lock();
    queue_.finish(std::move(prepared));
    deliver_ready();
  }
}

void RequestPreparer::deliver_ready() {
  if (std::vector<EngineCommand> ready = queue_.take_ready(); !ready.empty()) deliver_(std::move(ready));
}

}  // namespace octavo
