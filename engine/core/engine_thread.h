// An EngineCore on a thread of its own: requests go in through a RequestPreparer, which has a thread too,
// other commands through a bounded queue, events come out through an outbox. It sleeps while there is neither
// work nor a command.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/bounded_queue.h"
#include "engine/base/clock.h"
#include "engine/core/command.h"
#include "engine/core/engine_core.h"
#include "engine/core/event_outbox.h"
#include "engine/core/request_preparer.h"
#include "engine/engine.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_writer.h"
#include "engine/runner/runner.h"
#include "engine/scheduler/scheduler.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// What an engine is made of, loaded and sized.
struct EngineParts {
  EngineDescription description;
  scheduler::SchedulerOptions scheduler;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<runner::Runner> runner;  // owns whatever it computes with
};

class EngineThread final : public Engine {
 public:
  // With `recording`, everything that happens to blocks is written there until the engine ends.
  explicit EngineThread(EngineParts parts, std::unique_ptr<metrics::ByteSink> recording = nullptr);

  ~EngineThread() override { stop(); }

  const EngineDescription& description() const override { return parts_.description; }
  const tokenizer::Tokenizer& tokenizer() const override { return *parts_.tokenizer; }
  RequestId submit(GenerationRequest request) override;
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override;
  void cancel(RequestId request_id) override;
  void cancel_output(RequestId request_id, std::int32_t output_index) override;
  void reset_prefix_cache() override;
  void stop() override;
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override;
  void set_wake_up(std::function<void()> wake_up) override;
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override;
  void watch_block(std::optional<BlockId> block) override;
  KvTotals kv_totals() const override;
  std::shared_ptr<const metrics::StepRecorder> history() const override;
  std::vector<ExpertChoices> take_expert_choices() override;

 private:
  // What one call asked, once it is prepared; a step handles all of it or nothing yet.
  using CommandBatch = std::vector<EngineCommand>;

  void run();
  std::vector<EngineCommand> next_commands();
  void tell(std::vector<EngineEvent> events, bool changed);
  bool publish_state(bool changed);
  bool publish_experts();
  void wake_reader();

  const EngineParts parts_;
  SteadyClock clock_;

  std::mutex submit_mutex_;  // keeps the order of ids and the order of preparation the same
  BoundedQueue<CommandBatch> commands_;
  EventOutbox outbox_;
  std::mutex stop_mutex_;              // whoever stops second waits for the first
  std::atomic<bool> closing_ = false;  // set when the queue is closed
  std::atomic<bool> snapshot_wanted_ = false;
  std::atomic<bool> pool_wanted_ = false;         // and with its blocks
  std::atomic<std::int32_t> watched_block_ = -1;  // -1: none

  std::atomic<bool> experts_wanted_ = false;

  mutable std::mutex published_mutex_;
  KvTotals totals_;  // guarded by published_mutex_
  std::shared_ptr<const KvSnapshot>
      snapshot_;                   // guarded by published_mutex_; shared with readers, never changed
  std::function<void()> wake_up_;  // guarded by published_mutex_
  std::vector<ExpertChoices> expert_choices_;  // guarded by published_mutex_

  bool snapshot_is_newest_ = false;  // engine thread only, as the next two
  SnapshotScope published_scope_ = SnapshotScope::kSequences;
  std::int32_t published_watch_ = -1;                    // what the newest snapshot describes
  EngineCore core_;                                      // engine thread only, except recorder()
  std::unique_ptr<metrics::RecordingWriter> recording_;  // none: nothing is recorded to a file
  std::thread thread_;                                   // everything above exists before it runs
  std::optional<RequestPreparer> preparer_;              // ends before the queue that it delivers to
};

}  // namespace octavo
