// The engine's own core behind the window's interface: real scheduling, paging and events, without a model
// and without a thread. It steps when it is told to, and counts for itself what it was made to do.
//
// What is told when is as with EngineThread: a snapshot is published at the end of a step that was asked for
// one, or when the engine would wake.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/clock.h"
#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "engine/engine.h"
#include "tests/window/fake_engine.h"

namespace octavo::testing {

class CoreEngine final : public Engine {
 public:
  struct Options {
    std::int32_t num_blocks = 40;
    std::int32_t num_host_blocks = 24;
    std::int32_t num_states = 0;  // of recurrent layers; 0: the model has none, else at least 8
    std::int32_t num_host_states = 0;
    std::int32_t window = 0;  // of layers that have a pool for it; 0: none has. Not beside states
    std::int32_t num_window_blocks = 0;
    std::int32_t num_host_window_blocks = 0;
    std::int32_t block_size = 4;
    std::int32_t max_model_len = 192;
    PreemptionPolicy preemption_mode = PreemptionPolicy::kAuto;
    Speculation speculative = Speculation::kOff;
    bool runs_ahead = false;  // as a device that is given the next step before this one's draws are known
    std::uint64_t seed = 1;
    std::uint64_t first_request = 1;  // ids are never used twice in a process
  };
  CoreEngine(const Options& options, const Clock& clock);
  ~CoreEngine() override;

  // Handles what was asked and computes a step, if there is anything to compute.
  void step();
  // Publishes what was asked for since the last step.
  void wake();
  bool has_work() const;

  // ---- what really is
  const EngineCore& core() const { return core_; }
  // Of a request's first output: its table at the last time that it was computed or had blocks at the end of
  // a step, and all tokens of prompt and answer.
  struct LastTable {
    SequenceId sequence_id{};
    std::vector<BlockId> blocks;  // kNoBlock: somebody else has taken it since
    std::vector<TokenId> token_ids;
    std::int64_t noted = 0;  // when, as a number that is never given twice
  };
  const LastTable* last_table(RequestId request) const;  // nullptr: it never had blocks
  // Tokens, from the beginning, that the block holds the newest of; empty when nobody knows them.
  std::vector<TokenId> tokens_up_to(BlockId block, const KvSnapshot& now) const;
  struct Counts {
    std::int64_t prefilled_tokens = 0, swapped_out_blocks = 0, swapped_in_blocks = 0, block_copies = 0;
    std::int64_t rows_ahead = 0;
  };
  const Counts& counts() const;
  RequestId next_request() const { return RequestId{next_request_}; }

  // ---- Engine
  const EngineDescription& description() const override { return description_; }
  const tokenizer::Tokenizer& tokenizer() const override { return tokenizer_; }
  RequestId submit(GenerationRequest request) override;
  std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) override;
  void cancel(RequestId request_id) override { commands_.emplace_back(CancelRequest{request_id}); }
  void cancel_output(RequestId request_id, std::int32_t output_index) override {
    commands_.emplace_back(CancelOutput{request_id, output_index});
  }
  void reset_prefix_cache() override { commands_.emplace_back(ResetPrefixCache{}); }
  void stop() override {}
  std::vector<EngineEvent> poll(std::chrono::microseconds) override { return std::exchange(events_, {}); }
  void set_wake_up(std::function<void()>) override {}
  std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) override;
  void watch_block(std::optional<BlockId>) override {}
  KvTotals kv_totals() const override { return core_.totals(); }
  std::shared_ptr<const metrics::StepRecorder> history() const override { return core_.recorder(); }

 private:
  class WordRunner;

  void note_tables();
  void note_taken();
  void note_tokens(const EngineEvent& event);
  void publish(bool changed);

  const FakeTokenizer tokenizer_;
  EngineDescription description_;
  std::unique_ptr<WordRunner> runner_;
  EngineCore core_;
  RequestIntake intake_;
  const Clock& clock_;
  std::uint64_t next_request_ = 1;
  std::uint64_t num_drawn_seeds_ = 0;
  std::int64_t num_notes_ = 0;
  std::uint64_t event_mark_ = 0;
  std::vector<EngineCommand> commands_;
  std::vector<EngineEvent> events_;
  std::map<RequestId, LastTable> last_tables_;
  std::shared_ptr<const KvSnapshot> snapshot_;
  bool snapshot_wanted_ = false, pool_wanted_ = false, snapshot_is_newest_ = false;
  SnapshotScope published_scope_ = SnapshotScope::kSequences;
};

}  // namespace octavo::testing
