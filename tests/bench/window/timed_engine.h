// An engine that notes how long its callers wait for it.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/bench/window/bar_window.h"

namespace octavo::bench {

class TimedEngine final : public Engine {
 public:
  explicit TimedEngine(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  // Milliseconds of the longest call: what it computed, and all of its time if it slept, as on a lock. Having
  // been interrupted for another program is no wait for the engine; `longest_call_ms` counts that too.
  double longest_wait_ms() const { return longest_wait_ms_; }
  double longest_call_ms() const { return longest_call_ms_; }
  void forget_waits() { longest_wait_ms_ = longest_call_ms_ = 0; }
  Engine& inner() { return *engine_; }

  const EngineDescription& description() const override { return engine_->description(); }
  const tokenizer::Tokenizer& tokenizer() const override { return engine_->tokenizer(); }
  RequestId submit(GenerationRequest request) override {
    return timed([&] { return engine_->submit(std::move(request)); });
  }
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override {
    return timed([&] { return engine_->submit_all(std::move(requests)); });
  }
  void cancel(RequestId request_id) override {
    timed([&] { return engine_->cancel(request_id), 0; });
  }
  void cancel_output(RequestId request_id, std::int32_t output_index) override {
    timed([&] { return engine_->cancel_output(request_id, output_index), 0; });
  }
  void reset_prefix_cache() override {
    timed([&] { return engine_->reset_prefix_cache(), 0; });
  }
  void stop() override { engine_->stop(); }
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override {
    return timed([&] { return engine_->poll(timeout); });
  }
  void set_wake_up(std::function<void()> wake_up) override { engine_->set_wake_up(std::move(wake_up)); }
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override {
    return timed([&] { return engine_->kv_snapshot(scope); });
  }
  void watch_block(std::optional<BlockId> block) override {
    timed([&] { return engine_->watch_block(block), 0; });
  }
  KvTotals kv_totals() const override {
    return timed([&] { return engine_->kv_totals(); });
  }
  Trace trace_since(std::uint64_t step_mark, std::uint64_t event_mark) const override {
    return timed([&] { return engine_->trace_since(step_mark, event_mark); });
  }
  std::shared_ptr<const metrics::StepRecorder> history() const override {
    return timed([&] { return engine_->history(); });
  }

 private:
  static std::int64_t num_sleeps() {
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  }

  template <class Call>
  std::invoke_result_t<Call&> timed(Call&& call) const {
    const std::int64_t sleeps = num_sleeps();
    const double begin = wall_seconds(), processor = thread_seconds();
    auto result = call();
    const double call_ms = (wall_seconds() - begin) * 1e3, computed_ms = (thread_seconds() - processor) * 1e3;
    longest_call_ms_ = std::max(longest_call_ms_, call_ms);
    longest_wait_ms_ = std::max(longest_wait_ms_, num_sleeps() == sleeps ? computed_ms : call_ms);
    return result;
  }

  std::unique_ptr<Engine> engine_;
  mutable double longest_wait_ms_ = 0, longest_call_ms_ = 0;
};

}  // namespace octavo::bench
