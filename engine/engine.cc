#include "engine/engine.h"

#include <filesystem>
#include <string>
#include <utility>

#include "engine/base/clock.h"
#include "engine/core/engine_thread.h"
#include "engine/metrics/recording_file.h"
#include "engine/metrics/recording_limits.h"
#include "engine/model/inspection.h"
#include "engine/model_preview.h"
#include "engine/runner/model_runner.h"
#include "engine/runner/runner_plan.h"
#include "kernels/backends.h"

namespace octavo {
namespace {

std::string_view device_name(Device device) {
  switch (device) {
    case Device::kAuto: return "auto";
    case Device::kCpu: return "cpu";
    case Device::kCuda: return "cuda";
  }
  return "auto";
}

std::vector<TokenId> end_token_ids(const tokenizer::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (tokenizer.is_end_of_sequence(id)) ids.push_back(id);
  }
  return ids;
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
          .preemption_mode = options.preemption_mode,
          .admit_after_preemption = options.admit_after_preemption,
          .memory_manager = options.memory_manager,
          .batching_policy = options.batching_policy,
          .reserve_block_per_sequence = options.reserve_block_per_sequence,
          .prefill_first = options.prefill_first,
          .speculative = options.speculative};
}

// Whatever is wrong with file or options shows before the first weight is read: sizing is arithmetic.
Result<EngineParts> load_parts(const EngineOptions& options, const LoadProgress& progress) {
  OCTAVO_TRY_VOID(validate(options));
  OCTAVO_TRY(ModelPreview preview, ModelPreview::open(options.model));
  auto [file, config, tensors, tokenizer] = std::move(preview).take_parts();
  std::string notice;
  OCTAVO_TRY(auto backend, kernels::create_backend({.device = std::string(device_name(options.device)),
                                                    .threads = options.threads,
                                                    .activation = runner::activation_of(options, tensors),
                                                    .deterministic = options.deterministic.value_or(false),
                                                    .graphs = options.cuda_graphs},
                                                   &notice));
  const std::int64_t host_bytes = runner::available_memory_bytes();
  OCTAVO_TRY(auto plan, backend->device_bytes()
                            ? runner::plan_runner_on_device(config, tensors, options, host_bytes, *backend)
                            : runner::plan_runner(config, tensors, options, host_bytes));
  if (!notice.empty()) plan.notice = plan.notice.empty() ? notice : notice + "; " + plan.notice;
  EngineParts parts;
  parts.description.model = model::describe_model(file, config);
  parts.description.max_num_seqs = options.max_num_seqs;
  OCTAVO_TRY(auto model_runner, runner::ModelRunner::load({.file = std::move(file),
                                                           .config = std::move(config),
                                                           .tensors = std::move(tensors),
                                                           .plan = plan,
                                                           .backend = std::move(backend),
                                                           .end_token_ids = end_token_ids(*tokenizer)},
                                                          progress));
  model_runner->describe(parts.description);
  parts.scheduler = scheduler_options(options, parts.description);
  parts.tokenizer = std::move(tokenizer);
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
