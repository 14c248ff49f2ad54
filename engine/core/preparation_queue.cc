#include "engine/core/preparation_queue.h"

#include <algorithm>
#include <utility>

#include "engine/core/request_intake.h"

namespace octavo {

void PreparationQueue::add(std::vector<SubmitRequest> batch) {
  if (batch.empty()) return;
  batches_.push_back({batch.back().request_id, batch.size()});
  for (SubmitRequest& submit : batch) {
    entries_.emplace_hint(entries_.end(), submit.request_id, Entry{.submit = std::move(submit)});
  }
}

std::optional<PreparationQueue::Job> PreparationQueue::take() {
  const auto next = entries_.upper_bound(last_taken_);
  if (next == entries_.end()) return std::nullopt;
  Entry& entry = next->second;
  last_taken_ = next->first;
  GenerationRequest without_prompt{.prompt = {}, .sampling = entry.submit.request.sampling};
  without_prompt.embedding = entry.submit.request.embedding;
  return Job{.submit = {last_taken_, std::exchange(entry.submit.request, std::move(without_prompt)),
                        entry.submit.submitted_us},
             .stop = entry.stop.get_token()};
}

// A request that was cancelled meanwhile has left.
void PreparationQueue::finish(PreparedRequest prepared) {
  const RequestId request_id = prepared.request_id;
  const auto entry = entries_.find(request_id);
  if (entry == entries_.end()) return;
  entry->second.prepared = std::move(prepared);
  settle(request_id);
}

bool PreparationQueue::cancel(RequestId request_id) {
  const auto entry = entries_.find(request_id);
  if (entry == entries_.end()) return false;
  abandon(entry->second);
  const bool was_awaited = !entry->second.prepared;
  entries_.erase(entry);
  if (was_awaited) settle(request_id);
  return true;
}

bool PreparationQueue::cancel_output(RequestId request_id, std::int32_t output_index) {
  const auto entry = entries_.find(request_id);
  if (entry == entries_.end()) return false;
  entry->second.cancelled_outputs.push_back(output_index);
  return true;
}

void PreparationQueue::cancel_all() {
  for (auto& [request_id, entry] : entries_) abandon(entry);
  entries_.clear();
  batches_.clear();
}

std::vector<EngineCommand> PreparationQueue::take_ready() { return std::exchange(ready_, {}); }

// The request's batch waits for one less; batches that wait for none enter.
void PreparationQueue::settle(RequestId request_id) {
  --std::ranges::lower_bound(batches_, request_id, {}, &Batch::last)->num_unprepared;
  for (; !batches_.empty() && batches_.front().num_unprepared == 0; batches_.pop_front()) {
    const auto end = entries_.upper_bound(batches_.front().last);
    for (auto entry = entries_.begin(); entry != end; entry = entries_.erase(entry)) {
      ready_.push_back(*std::move(entry->second.prepared));
      for (const std::int32_t output_index : entry->second.cancelled_outputs)
        ready_.push_back(CancelOutput{entry->first, output_index});
    }
  }
}

// What could never have run is refused even now: it has no outputs that could finish.
void PreparationQueue::abandon(Entry& entry) {
  entry.stop.request_stop();
  const SubmitRequest& submit = entry.submit;
  auto num_outputs = count_outputs(submit.request, tokenizer_);
  if (num_outputs) {
    ready_.push_back(AbandonedRequest{submit.request_id, *num_outputs, submit.submitted_us});
  } else {
    ready_.push_back(PreparedRequest{submit.request_id, std::move(num_outputs).error(), submit.submitted_us});
  }
}

}  // namespace octavo
