// One engine for several readers, such as the window and a server in it. Each reader is an Engine of its own:
// it is told of what was submitted through it, and of nothing else. Blocks, queue and figures are those of
// the one engine.
//
// Ownership: owns the engine; readers end before this. This is a reader, too, the first.
// Thread: as Engine; each reader may be polled on another thread. There is no thread here: whoever polls
// hands out what waits, and a reader that waits is woken by whatever the engine has to tell.
// Bounds: what a reader does not take joins (EventOutbox), so a slow one costs no more than its answers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace octavo {

class SharedEngine final : public Engine {
 public:
  // Sees each event once, whoever submitted its request, in the order in which they came and before its
  // reader does; on the thread of whoever polls, one call at a time. It must return soon, and must not call
  // the engine.
  using Observer = std::function<void(const EngineEvent& event)>;

  explicit SharedEngine(std::unique_ptr<Engine> engine, Observer everything = {});
  // Ends the engine, as Engine's destructor does.
  ~SharedEngine() override;
  SharedEngine(const SharedEngine&) = delete;
  SharedEngine& operator=(const SharedEngine&) = delete;

  // What it submitted and did not see the end of goes on without it.
  std::unique_ptr<Engine> open_reader();

  const EngineDescription& description() const override;
  const tokenizer::Tokenizer& tokenizer() const override;
  RequestId submit(GenerationRequest request) override;
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override;
  void cancel(RequestId request_id) override;
  void cancel_output(RequestId request_id, std::int32_t output_index) override;
  void reset_prefix_cache() override;
  void stop() override;  // for all readers
  std::vector<EngineEvent> poll(std::chrono::microseconds timeout) override;
  void set_wake_up(std::function<void()> wake_up) override;
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override;
  void watch_block(std::optional<BlockId> block) override;  // one for all readers: the last that was asked
  KvTotals kv_totals() const override;
  std::vector<ExpertChoices> take_expert_choices() override;
  std::shared_ptr<const metrics::StepRecorder> history() const override;
  Trace trace_since(std::uint64_t step_mark, std::uint64_t event_mark) const override;

 private:
  class Hub;
  class Reader;

  std::unique_ptr<Hub> hub_;
  std::unique_ptr<Reader> first_;  // ends before the hub
};

}  // namespace octavo
