// Requests between their submission and the engine, in order: what is prepared enters the engine in the order
// of submission, however long each takes, and all that was submitted in one call enters together. A request
// that is cancelled here leaves at once and holds nobody up. Knows no thread and prepares nothing itself, so
// that simulation runs it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <stop_token>
#include <vector>

#include "engine/base/ids.h"
#include "engine/core/command.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

class PreparationQueue {
 public:
  // The tokenizer outlives the queue.
  explicit PreparationQueue(const tokenizer::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // One call's requests.  REQUIRES: ids ascend, from call to call too
  void add(std::vector<SubmitRequest> batch);

  struct Job {
    SubmitRequest submit;
    std::stop_token stop;  // requested when nobody wants the result any more; finish() is called all the same
  };
  // The first request that nobody prepares yet; nullopt: there is none.
  std::optional<Job> take();
  // REQUIRES: take() gave this request, and it is finished once
  void finish(PreparedRequest prepared);

  // False: the request has entered the engine, or never was here.
  bool cancel(RequestId request_id);
  void cancel_all();
  // One output: the wish enters the engine with the request, right behind it. False: as cancel().
  bool cancel_output(RequestId request_id, std::int32_t output_index);

  // What may enter the engine now, in order.
  std::vector<EngineCommand> take_ready();

  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    SubmitRequest submit;  // its prompt is gone once it was taken
    std::optional<PreparedRequest> prepared = {};
    std::stop_source stop = {};
    std::vector<std::int32_t> cancelled_outputs = {};
  };
  struct Batch {
    RequestId last;
    std::size_t num_unprepared = 0;
  };

  void settle(RequestId request_id);
  void abandon(Entry& entry);

  const tokenizer::Tokenizer& tokenizer_;
  std::map<RequestId, Entry> entries_;  // neither entered nor cancelled
  std::deque<Batch> batches_;           // not yet entered, ascending
  RequestId last_taken_{};
  std::vector<EngineCommand> ready_;
};

}  // namespace octavo
