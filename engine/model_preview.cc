#include "engine/model_preview.h"

#include <limits>
#include <string_view>
#include <utility>

#include "engine/model/inspection.h"
#include "engine/model/weights.h"
#include "engine/runner/runner_plan.h"

namespace octavo {
namespace {

// More than any machine has, and far from wrapping when amounts are added.
constexpr std::int64_t kUnlimitedBytes = std::numeric_limits<std::int64_t>::max() / 4;

// A key of another type than text is nothing that people wrote.
std::string text_of(const model::Metadata& metadata, std::string_view key) {
  const auto found = metadata.find<std::string_view>(key);
  return found && *found ? std::string(**found) : std::string();
}

MemoryPlan memory_plan(const runner::RunnerPlan& plan) {
  return {.weight_bytes = plan.weight_bytes,
          .working_bytes = plan.working_bytes,
          .bytes_per_block = plan.kv_layout.block_bytes(),
          .block_size = plan.kv_layout.block_size,
          .num_blocks = plan.num_blocks,
          .num_host_blocks = plan.num_host_blocks,
          .bytes_per_state = plan.bytes_per_state(),
          .num_states = plan.num_states,
          .num_host_states = plan.num_host_states,
          .bytes_per_window_block = plan.window_layout.block_bytes(),
          .num_window_blocks = plan.num_window_blocks,
          .num_host_window_blocks = plan.num_host_window_blocks,
          .max_model_len = plan.max_model_len};
}

EngineOptions least_of(const EngineOptions& options, std::int32_t context_length) {
  EngineOptions least = options;
  if (!options.num_kv_blocks && !options.kv_cache_memory) {
    const std::int32_t tokens = options.max_model_len.value_or(context_length);
    least.num_kv_blocks = (tokens + options.block_size - 1) / options.block_size;
  }
  if (!options.num_states) least.num_states = 1;
  if (!options.swap_space) least.swap_space = 0.0;
  return least;
}

}  // namespace

Result<ModelPreview> ModelPreview::open(const std::filesystem::path& path) {
  OCTAVO_TRY(auto source, model::open_model_source(path));
  OCTAVO_TRY(auto config, model::read_model_config(source->metadata()));
  OCTAVO_TRY(auto tensors, model::find_model_tensors(*source, config));
  OCTAVO_TRY(tokenizer::Vocabulary vocabulary, source->read_vocabulary());
  std::string notice = std::exchange(vocabulary.notice, {});
  OCTAVO_TRY(auto tokenizer, tokenizer::Tokenizer::create(std::move(vocabulary)));
  return ModelPreview(Parts{std::move(source), std::move(config), std::move(tensors), std::move(tokenizer),
                            std::move(notice)});
}

ModelDescription ModelPreview::describe() const {
  return model::describe_model(*parts_.source, parts_.config);
}

ModelOrigin ModelPreview::origin() const {
  const model::Metadata& metadata = parts_.source->metadata();
  return {.author = text_of(metadata, "general.author"),
          .organisation = text_of(metadata, "general.organization"),
          .licence = text_of(metadata, "general.license"),
          .base_model = text_of(metadata, "general.base_model.0.name")};
}

bool ModelPreview::has_quantised_weights() const { return model::has_quantised_weights(parts_.tensors); }

Result<void> ModelPreview::try_chat_template() const {
  if (!parts_.tokenizer->has_chat_template()) return {};
  const ChatMessage message{.role = Role::kUser, .content = "Hello"};
  OCTAVO_TRY([[maybe_unused]] const auto spans, parts_.tokenizer->apply_chat_template({&message, 1}, {}));
  return {};
}

Result<MemoryPlan> ModelPreview::plan(const EngineOptions& options, std::int64_t available_bytes) const {
  OCTAVO_TRY_VOID(validate(options));
  if (options.speculative != Speculation::kMtp)
    return plan_of(parts_.config, parts_.tensors, options, available_bytes);
  model::ModelConfig config = parts_.config;
  model::ModelTensors tensors = parts_.tensors;
  OCTAVO_TRY_VOID(model::add_next_token_layer(*parts_.source, config, tensors));
  return plan_of(config, tensors, options, available_bytes);
}

Result<MemoryPlan> ModelPreview::plan_of(const model::ModelConfig& config, const model::ModelTensors& tensors,
                                         const EngineOptions& options, std::int64_t available_bytes) {
  const auto wanted = runner::plan_runner(config, tensors, options, available_bytes);
  if (wanted) return memory_plan(*wanted);
  if (wanted.error().code != ErrorCode::kOutOfMemory) return wanted.error();
  OCTAVO_TRY(const auto least,
             runner::plan_runner(config, tensors, least_of(options, config.context_length), kUnlimitedBytes));
  MemoryPlan plan = memory_plan(least);
  plan.refusal = wanted.error();
  return plan;
}

Result<ModelDescription> read_model_description(const std::filesystem::path& path) {
  OCTAVO_TRY(const auto source, model::open_model_source(path));
  OCTAVO_TRY(const auto config, model::read_model_config(source->metadata()));
  OCTAVO_TRY_VOID(model::find_model_tensors(*source, config));
  return model::describe_model(*source, config);
}

std::int64_t resident_bytes(const EngineDescription& description, const KvTotals& totals) {
  const std::int64_t num_written = totals.peak_used_blocks + totals.peak_host_used_blocks;
  return description.weight_bytes + description.working_bytes + num_written * description.bytes_per_block +
         totals.states.peak_held * description.bytes_per_state +
         totals.windows.peak_held * description.bytes_per_window_block;
}

std::int64_t unwritten_pool_bytes(const EngineDescription& description, const KvTotals& totals) {
  return (description.num_blocks - totals.peak_used_blocks) * description.bytes_per_block +
         (description.num_states - totals.states.peak_held) * description.bytes_per_state +
         (description.num_window_blocks - totals.windows.peak_held) * description.bytes_per_window_block;
}

}  // namespace octavo
