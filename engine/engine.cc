#include "engine/engine.h"

#include <string>
#include <utility>

#include "engine/base/clock.h"
#include "engine/core/engine_thread.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_limits.h"
#include "engine/opened_model.h"
#include "engine/runner/model_runner.h"

namespace octavo {
namespace {

std::int32_t num_speculative_tokens(const EngineOptions& options) {
  const bool predicts = options.speculative == Speculation::kMtp;
  return options.num_speculative_tokens.value_or(predicts ? scheduler::kUsualPredictions
                                                          : scheduler::kMostRowsWithDrafts - 1);
}

scheduler::SchedulerOptions scheduler_options(const EngineOptions& options,
                                              const EngineDescription& description) {
  return {.block_size = description.block_size,
          .num_blocks = description.num_blocks,
          .bytes_per_block = description.bytes_per_block,
          .max_num_seqs = description.max_num_seqs,
          .max_num_batched_tokens = description.max_num_batched_tokens,
          .target_step_us = 1000 * options.target_step_ms,
          .max_model_len = description.max_model_len,
          .enable_prefix_caching = options.enable_prefix_caching,
          .num_host_blocks = description.num_host_blocks,
          .num_states = description.num_states,
          .num_host_states = description.num_host_states,
          .bytes_per_state = description.bytes_per_state,
          .window = description.window,
          .num_window_blocks = description.num_window_blocks,
          .num_host_window_blocks = description.num_host_window_blocks,
          .bytes_per_window_block = description.bytes_per_window_block,
          .preemption_mode = options.preemption_mode,
          .admit_after_preemption = options.admit_after_preemption,
          .memory_manager = options.memory_manager,
          .batching_policy = options.batching_policy,
          .admission_reserve = options.admission_reserve,
          .prefill_first = options.prefill_first,
          .speculative = options.speculative,
          .num_speculative_tokens = num_speculative_tokens(options)};
}

Result<EngineParts> load_parts(const EngineOptions& options, const LoadProgress& progress) {
  OCTAVO_TRY(OpenedModel opened, open_model(options));
  EngineParts parts;
  parts.description.model = std::move(opened.description);
  parts.description.max_num_seqs = options.max_num_seqs;
  OCTAVO_TRY(auto model_runner, runner::ModelRunner::load(std::move(opened.parts), progress));
  model_runner->describe(parts.description);
  parts.scheduler = scheduler_options(options, parts.description);
  parts.tokenizer = std::move(opened.tokenizer);
  parts.runner = std::move(model_runner);
  return parts;
}

// Before anything is loaded: who cannot record need not wait to learn it. Null when nobody asked for it.
Result<std::unique_ptr<metrics::ByteSink>> open_recording(const EngineOptions& options) {
  if (options.record.empty()) return std::unique_ptr<metrics::ByteSink>();
  OCTAVO_TRY(auto file, metrics::RecordingFile::open(options.record));
  return std::unique_ptr<metrics::ByteSink>(std::move(file));
}

Result<void> check_can_be_recorded(const EngineDescription& description) {
  if (description.num_blocks <= metrics::kMaxRecordedBlocks) return {};
  return Error{.code = ErrorCode::kUnsupported,
               .message = "record: a pool of " + std::to_string(description.num_blocks) +
                          " blocks is too large to record; the limit is " +
                          std::to_string(metrics::kMaxRecordedBlocks) +
                          "; choose a smaller --num-kv-blocks or a larger --block-size",
               .subject = "record"};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options, LoadProgress progress) {
  const SteadyClock clock;
  const std::int64_t begin_us = clock.now_us();
  OCTAVO_TRY(auto recording, open_recording(options));
  OCTAVO_TRY(EngineParts parts, load_parts(options, progress));
  if (recording) OCTAVO_TRY_VOID(check_can_be_recorded(parts.description));
  parts.description.load_ms = static_cast<double>(clock.now_us() - begin_us) / 1000.0;
  return std::unique_ptr<Engine>(std::make_unique<EngineThread>(std::move(parts), std::move(recording)));
}

}  // namespace octavo
