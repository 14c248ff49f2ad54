// The real model behind Runner: one step is the moves of blocks, the forward pass over all rows, and the
// draws.
//
// Ownership: owns backend, weights, both KV pools, clock and scratch. Thread: load() on any one thread,
// then the engine's. Numbers: what a sequence gets depends on its own tokens and sampling only
// (kernels/backend.h, sampler.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/model_description.h"
#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "engine/model/model_config.h"
#include "engine/model/model_source.h"
#include "engine/model/model_tensors.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/runner/grammar_masks.h"
#include "engine/runner/model_input.h"
#include "engine/runner/next_token_guesser.h"
#include "engine/runner/runner.h"
#include "engine/runner/runner_plan.h"
#include "engine/runner/sampler.h"
#include "kernels/backend.h"

namespace octavo::runner {

// What a runner is built from; the source is closed when the weights are prepared. `tensors` and `plan` were
// made from `source` and `config`; the backend with the plan's activation.
struct RunnerParts {
  std::unique_ptr<model::ModelSource> source;
  model::ModelConfig config;
  model::ModelTensors tensors;
  RunnerPlan plan;
  std::unique_ptr<kernels::Backend> backend;
  std::vector<TokenId> end_token_ids;                                    // what min_tokens forbids
  std::unique_ptr<const Clock> clock = std::make_unique<SteadyClock>();  // measures swaps
};

class ModelRunner final : public Runner {
 public:
  // Prepares the weights, allocates the pools, and prepares steps as the backend wants it. Reports progress.
  // Errors: kCancelled; kOutOfMemory; kIo when the file changed meanwhile.
  static Result<std::unique_ptr<ModelRunner>> load(RunnerParts parts,
                                                   const model::LoadProgress& progress = {});

  Result<void> execute(const scheduler::SchedulerOutput& step, RunnerOutput& output) override;
  bool begin(const scheduler::SchedulerOutput& step) override;
  Result<void> finish(const scheduler::SchedulerOutput& step, RunnerOutput& output) override;
  std::vector<SequenceId> settle(const scheduler::SchedulerOutput& step,
                                 std::span<const scheduler::CommittedToken> tokens) override;
  void report_experts(bool wanted) override { reports_experts_ = wanted; }

  // A step for the logits of the last `num_rows` of its rows, which draws nothing: [num_rows,
  // vocabulary_size], valid until the next call. For whoever drives the runner without a scheduler.
  // REQUIRES: 1 <= num_rows <= kLogitsRows; otherwise as execute().
  Result<std::span<const float>> compute_logits(const scheduler::SchedulerOutput& step,
                                                std::int32_t num_rows);

  // Fills in what is known here: all but model, max_num_seqs and load_ms.
  void describe(EngineDescription& description) const;

  std::int64_t weight_bytes() const { return transformer_.weights().memory_bytes(); }
  // As allocated now, beside weights and pools; the sampler, which grows with
  // what may be drawn, at its largest.
  std::int64_t working_bytes() const;

 private:
  // A row whose logits are needed.
  struct LogitsRow {
    std::int32_t row;            // of the step
    std::size_t sequence_index;  // in step.sequences
    std::int32_t position;       // of the row's token
    bool gives_prompt_logprob;   // of the prompt's token at position + 1
    std::span<const scheduler::SampleTarget> samples;
    std::optional<std::size_t> first_draw = {};  // of draws_: then the backend draws, and no logits come
  };

  // A step that was begun, of which nothing but its draws is to come: who gets them, in order.
  using BegunStep = std::vector<SequenceId>;

  // Null in a plan without such layers, or, of the host, without such blocks or states.
  struct Pools {
    std::unique_ptr<kernels::KvCache> device;
    std::unique_ptr<kernels::HostKvCache> host;
    std::unique_ptr<kernels::StateCache> states;
    std::unique_ptr<kernels::HostStateCache> host_states;
    std::unique_ptr<kernels::KvCache> windows;  // of layers with a window, where they are set apart
    std::unique_ptr<kernels::HostKvCache> host_windows;
  };
  static Result<Pools> allocate_pools(const RunnerPlan& plan, kernels::Backend& backend);

  ModelRunner(RunnerParts parts, model::Transformer transformer, Pools pools);

  void accept_drafts(const scheduler::SchedulerOutput& step,
                     std::span<const scheduler::CommittedToken> tokens);
  Result<void> guess_next_tokens(const scheduler::SchedulerOutput& step);
  std::span<std::int32_t> begin_experts(const scheduler::SchedulerOutput& step, RunnerOutput& output) const;
  void move_blocks(RunnerOutput& output);
  void move_states_and_windows(RunnerOutput& output);
  void move_state(const block::PoolMove& move);
  void move_window(const block::PoolMove& move);
  model::LayerCaches caches() const {
    return {.kv = pools_.device.get(), .window_kv = pools_.windows.get(), .states = pools_.states.get()};
  }
  void note_times(RunnerOutput& output);
  bool may_begin(const scheduler::SchedulerOutput& step) const;
  BegunStep take_begun();
  void name_drawn_tokens(const scheduler::SchedulerOutput& step);
  static bool adjusts_logits(const scheduler::SchedulerOutput& step);
  void choose_logits_rows(const scheduler::SchedulerOutput& step);
  void leave_to_backend(const scheduler::ScheduledSequence& sequence, LogitsRow& row);
  bool add_draws(const scheduler::ScheduledSequence& sequence, const LogitsRow& row);
  bool add_drawn_row(const scheduler::ScheduledSequence& sequence, const LogitsRow& row,
                     const scheduler::SampleTarget& target);
  Result<void> draw_on_backend();
  kernels::MatrixView logits_of(std::span<const std::int32_t> rows);
  Result<void> fetch_logits(std::span<const std::int32_t> rows);
  Result<void> fetch_first_logits(std::span<const LogitsRow> rows);
  void use_logits(const scheduler::ScheduledSequence& sequence, const LogitsRow& row, std::size_t index,
                  RunnerOutput& output);
  Result<void> deliver(const scheduler::SchedulerOutput& step, RunnerOutput& output);
  void read_hidden_states(const scheduler::SchedulerOutput& step, RunnerOutput& output);

  // Set once. The backend outlives what was made from it.
  model::ModelConfig config_;
  RunnerPlan plan_;
  std::unique_ptr<kernels::Backend> backend_;
  bool is_waited_for_;  // the backend: it returns before it has computed
  model::Transformer transformer_;
  Pools pools_;
  std::unique_ptr<const Clock> clock_;
  Sampler sampler_;
  GrammarMasks masks_;
  NextTokenGuesser guesser_;
  std::vector<std::int32_t> expert_layers_;
  bool reports_experts_ = false;
  std::deque<BegunStep> begun_;  // the oldest first
  // Of one step.
  ModelInput input_;
  std::vector<LogitsRow> logits_rows_;
  std::vector<std::int32_t> drawn_rows_;                 // of the step: those that the backend draws from
  std::vector<kernels::TokenDraw> draws_;                // their rows are indices into drawn_rows_
  std::vector<kernels::RowAdjustment> row_adjustments_;  // likewise
  std::vector<kernels::LogitAdjustment> token_adjustments_;
  std::vector<kernels::DrawnToken> drawn_;
  std::vector<std::int32_t> num_accepted_;  // of each draft
  std::optional<std::size_t> mistaken_;  // the newest of step.sequences whose draft was not drawn as guessed
  std::vector<float> logits_;            // [kLogitsRows, vocabulary_size]
  std::vector<std::int32_t> hidden_rows_;
  std::vector<float> log_sums_, piece_maxima_;  // of each row of logits: kernels::LogitsSummary
};

}  // namespace octavo::runner
