#include "engine/engine.h"

#include <filesystem>
#include <string>
#include <utility>

#include "engine/base/clock.h"
#include "engine/engine_thread.h"
#include "engine/model/gguf_file.h"
#include "engine/model/inspection.h"
#include "engine/model/model_config.h"
#include "engine/model/model_tensors.h"
#include "engine/model/vocabulary_reader.h"
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

Result<std::unique_ptr<tokenizer::Tokenizer>> make_tokenizer(const model::GgufFile& file) {
  OCTAVO_TRY(tokenizer::Vocabulary vocabulary, model::read_vocabulary(file));
  return tokenizer::Tokenizer::create(std::move(vocabulary));
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
          .max_model_len = description.max_model_len,
          .enable_prefix_caching = options.enable_prefix_caching,
          .prefill_first = options.prefill_first};
}

// Whatever is wrong with file or options shows before the first weight is read: sizing is arithmetic.
Result<EngineParts> load_parts(const EngineOptions& options, const LoadProgress& progress) {
  OCTAVO_TRY_VOID(validate(options));
  OCTAVO_TRY(auto file, model::GgufFile::open(options.model));
  OCTAVO_TRY(auto config, model::read_model_config(file.header()));
  OCTAVO_TRY(auto tensors, model::find_model_tensors(file, config));
  OCTAVO_TRY(auto tokenizer, make_tokenizer(file));
  OCTAVO_TRY(auto plan, runner::plan_runner(config, tensors, options, runner::available_memory_bytes()));
  OCTAVO_TRY(auto backend, kernels::create_backend({.device = std::string(device_name(options.device)),
                                                    .threads = options.threads,
                                                    .activation = plan.activation}));
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

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options, LoadProgress progress) {
  const SteadyClock clock;
  const std::int64_t begin_us = clock.now_us();
  OCTAVO_TRY(EngineParts parts, load_parts(options, progress));
  parts.description.load_ms = static_cast<double>(clock.now_us() - begin_us) / 1000.0;
  return std::unique_ptr<Engine>(std::make_unique<EngineThread>(std::move(parts)));
}

}  // namespace octavo
