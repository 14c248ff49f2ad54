#include "engine/core/request_preparer.h"

#include <algorithm>
#include <iterator>

namespace octavo {
namespace {

bool wants_structure(const SubmitRequest& submit) {
  return submit.request.sampling.structured_output.has_value();
}

}  // namespace

RequestPreparer::RequestPreparer(IntakeSources sources, Deliver deliver)
    : sources_(std::move(sources)),
      deliver_(std::move(deliver)),
      queues_{std::make_shared<PreparationQueue>(*sources_.tokenizer)},
      threads_{std::thread([this] { run(Work::kTexts); }), std::thread([this] { run(Work::kStructured); }),
               std::thread([this] { run(Work::kStructured); })} {}

void RequestPreparer::close() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(closing_, true)) return;
    for (const QueuePointer& queue : queues_) queue->cancel_all();
    deliver_ready();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool RequestPreparer::submit(std::vector<SubmitRequest> batch) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return false;
    const bool is_apart = std::ranges::any_of(batch, wants_structure);
    if (is_apart) queues_.push_back(std::make_shared<PreparationQueue>(*sources_.tokenizer));
    (is_apart ? queues_.back() : queues_.front())->add(std::move(batch));
  }
  changed_.notify_all();
  return true;
}

void RequestPreparer::cancel(RequestId request_id) {
  std::lock_guard lock(mutex_);
  const auto cancel_in = [&](const QueuePointer& queue) { return queue->cancel(request_id); };
  if (std::ranges::any_of(queues_, cancel_in)) return deliver_ready();
  deliver_({CancelRequest{request_id}});
}

void RequestPreparer::cancel_output(RequestId request_id, std::int32_t output_index) {
  std::lock_guard lock(mutex_);
  const auto cancel_in = [&](const QueuePointer& queue) {
    return queue->cancel_output(request_id, output_index);
  };
  if (!std::ranges::any_of(queues_, cancel_in)) deliver_({CancelOutput{request_id, output_index}});
}

std::optional<std::pair<RequestPreparer::QueuePointer, PreparationQueue::Job>> RequestPreparer::take(
    Work work) {
  const auto first_apart = std::next(queues_.begin());
  const auto begin = work == Work::kTexts ? queues_.begin() : first_apart;
  const auto end = work == Work::kTexts ? first_apart : queues_.end();
  for (auto queue = begin; queue != end; ++queue) {
    if (auto job = (*queue)->take()) return std::pair(*queue, *std::move(job));
  }
  return std::nullopt;
}

// A text is freed unlocked: it may be large.
void RequestPreparer::run(Work work) {
  RequestIntake intake(sources_);
  std::unique_lock lock(mutex_);
  while (!closing_) {
    auto taken = take(work);
    if (!taken) {
      changed_.wait(lock);
      continue;
    }
    lock.unlock();
    PreparedRequest prepared = intake.prepare(std::move(taken->second.submit), taken->second.stop);
    const QueuePointer queue = std::move(taken->first);
    taken.reset();
    lock.lock();
    queue->finish(std::move(prepared));
    deliver_ready();
  }
}

void RequestPreparer::deliver_ready() {
  for (const QueuePointer& queue : queues_) {
    if (std::vector<EngineCommand> ready = queue->take_ready(); !ready.empty()) deliver_(std::move(ready));
  }
  const auto is_done = [](const QueuePointer& queue) { return queue->empty(); };
  queues_.erase(std::remove_if(std::next(queues_.begin()), queues_.end(), is_done), queues_.end());
}

}  // namespace octavo
