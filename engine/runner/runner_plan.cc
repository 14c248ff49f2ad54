#include "engine/runner/runner_plan.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "engine/base/format.h"
#include "engine/model/kv_use.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/runner/sampler.h"
#include "engine/runner/window_pool.h"
#include "engine/scheduler/draft_gate.h"
#include "kernels/step_memory.h"

namespace octavo::runner {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20, kGibibyte = std::int64_t{1} << 30;
constexpr std::int64_t kDefaultHostBytes = 4 * kGibibyte;  // at most
constexpr std::int32_t kDefaultBatchedTokens = 512, kDefaultBatchedTokensOnDevice = 2048;
constexpr double kDefaultUtilization = 0.9;  // of a device's memory
constexpr std::int32_t kDefaultContexts = 8;
constexpr std::int64_t kDefaultShare = 4;  // at most one part in so many of free memory

Error out_of_memory(std::string message, std::string option) {
  return Error{.code = ErrorCode::kOutOfMemory, .message = std::move(message), .subject = std::move(option)};
}

kernels::KvType kv_type_of(KvCacheType type) {
  switch (type) {
    case KvCacheType::kAuto:
    case KvCacheType::kF16: return kernels::KvType::kF16;
    case KvCacheType::kF32: return kernels::KvType::kF32;
    case KvCacheType::kBf16: return kernels::KvType::kBf16;
    case KvCacheType::kFp8E4m3: return kernels::KvType::kFp8E4m3;
    case KvCacheType::kFp8E5m2: return kernels::KvType::kFp8E5m2;
    case KvCacheType::kInt8: return kernels::KvType::kInt8;
  }
  return kernels::KvType::kF16;
}

Result<std::int32_t> resolve_max_model_len(const model::ModelConfig& config, const EngineOptions& options) {
  const std::int32_t wanted = options.max_model_len.value_or(config.context_length);
  if (wanted <= config.context_length) return wanted;
  return Error{.code = ErrorCode::kInvalidArgument,
               .message = "max_model_len is " + std::to_string(wanted) + ", but the model's context is " +
                          std::to_string(config.context_length) + " tokens; use that or less",
               .subject = "max_model_len"};
}

// Of a step that a backend draws from. Rows whose lists are more than that are drawn by the host.
std::int32_t num_adjusted_tokens(const model::ModelConfig& config, const RunnerPlan& plan) {
  constexpr std::int64_t kMost = 1 << 17;  // 2 MiB: 1,024 distinct tokens in each of 128 sequences
  return static_cast<std::int32_t>(
      std::min(kMost, std::int64_t{plan.max_num_batched_tokens} * config.vocabulary_size));
}

kernels::StepShape step_shape_of(const model::ModelConfig& config, const model::ModelTensors& tensors,
                                 const EngineOptions& options, const RunnerPlan& plan) {
  kernels::StepShape shape;
  shape.num_rows = plan.max_num_batched_tokens;
  shape.num_logits_rows = kLogitsRows;
  shape.max_context_len = plan.max_model_len;
  shape.max_num_sequences = std::min(options.max_num_seqs, plan.max_num_batched_tokens);
  shape.block_size = options.block_size;
  shape.embedding_length = config.embedding_length;
  shape.feed_forward_length = std::max(config.feed_forward_length, config.layer_embedding_length);
  shape.layer_embedding_length = config.num_layers * config.layer_embedding_length;
  shape.num_experts = config.experts.num_experts;
  shape.num_used_experts = config.experts.num_used;
  shape.expert_length = config.experts.expert_length;
  shape.shared_expert_length = config.experts.shared_length;
  shape.expert_latent_length = config.experts.latent_length;
  shape.num_heads = config.num_heads;
  const kernels::KvHeads first = config.kv_heads(0);
  shape.num_kv_heads = first.num_kv_heads;
  shape.head_dim = first.head_dim;
  shape.latent_dim = first.latent_dim;
  shape.latent_query_dim = config.latent.query_dim;
  shape.latent_value_dim = config.latent.value_dim;
  shape.latent_query_rank = config.latent.query_rank;
  for (std::int32_t layer = 1; layer < config.num_layers; ++layer) {
    const kernels::KvHeads heads = config.kv_heads(layer);
    if (heads != first && std::ranges::find(shape.other_heads, heads) == shape.other_heads.end())
      shape.other_heads.push_back(heads);
  }
  shape.vocabulary_size = config.vocabulary_size;
  shape.num_layers = config.num_layers;
  shape.num_adjusted_tokens = num_adjusted_tokens(config, plan);
  shape.has_quantised_weights = model::has_quantised_weights(tensors);
  shape.has_unquantised_weights = model::has_unquantised_weights(tensors);
  shape.has_post_norms = config.parts.has_post_norms;
  shape.has_local_rotations = config.local_rope.has_value();
  shape.has_shared_expert_norms = config.parts.experts.stand_beside_dense;
  shape.joins_next_tokens = config.guesses_next_tokens;
  shape.has_attention_gates = config.parts.attention_gate != model::AttentionGate::kNone;
  shape.has_drafts = plan.state_layout.num_draft_rows > 0;
  shape.delta_net = config.recurrent.delta_net;
  shape.state_space = config.recurrent.state_space;
  shape.short_convolution = config.recurrent.short_convolution;
  return shape;
}

// What recurrent layers keep, and room for the guesses of a step where sequences guess ahead.
kernels::StateLayout state_layout_of(const model::ModelConfig& config, const EngineOptions& options) {
  kernels::StateLayout layout = config.recurrent.state_layout();
  const bool guesses = options.speculative != Speculation::kOff;
  if (guesses && !layout.empty()) layout.num_draft_rows = scheduler::kMostRowsWithDrafts - 1;
  return layout;
}

// Beside the weights: what Transformer, Sampler and the kernels hold, the logits of kLogitsRows rows, and
// what drafts bring to states.
std::int64_t working_bytes_of(const model::ModelConfig& config, const RunnerPlan& plan,
                              std::int64_t scratch_bytes) {
  const std::int64_t floats_per_logits_row =
      config.vocabulary_size + kernels::num_logits_pieces(config.vocabulary_size) + 1;
  return model::Transformer::activation_bytes(config, plan.max_num_batched_tokens) +
         kLogitsRows * floats_per_logits_row * std::int64_t{sizeof(float)} +
         Sampler::most_bytes(config.vocabulary_size) + plan.state_layout.draft_bytes() + scratch_bytes;
}

kernels::KvLayout kv_layout_of(const model::ModelConfig& config, const EngineOptions& options) {
  return {kv_type_of(options.kv_cache_dtype), options.block_size, model::find_kv_uses(config).places};
}

// How much of free memory a pool takes whose size was not given.
enum class PoolShare : std::uint8_t { kPart, kContexts, kAll };

// How many blocks the options ask for; `left_bytes` is free memory after weights and working memory.
std::int64_t wanted_blocks(const RunnerPlan& plan, const EngineOptions& options, PoolShare share,
                           std::int64_t left_bytes) {
  if (options.num_kv_blocks) return *options.num_kv_blocks;
  if (options.kv_cache_memory) return *options.kv_cache_memory * kMebibyte / plan.kv_layout.block_bytes();
  const std::int64_t blocks_per_context =
      (std::int64_t{plan.max_model_len} + options.block_size - 1) / options.block_size;
  const std::int64_t affordable =
      left_bytes / (share == PoolShare::kPart ? kDefaultShare : 1) / plan.kv_layout.block_bytes();
  if (share == PoolShare::kAll) return affordable;
  return std::min(kDefaultContexts * blocks_per_context, affordable);
}

std::string pool_option(const EngineOptions& options) {
  return options.kv_cache_memory ? "kv_cache_memory" : "num_kv_blocks";
}

// So many can be addressed, and so many are of use where the size was not given, or where blocks of `others`
// take no bytes because all layers have a window.
std::int64_t most_blocks(const RunnerPlan& plan, const EngineOptions& options,
                         const kernels::KvLayout& others) {
  const std::int64_t most =
      std::numeric_limits<std::int32_t>::max() / options.block_size;  // slots have 32 bits
  if (options.kv_cache_memory && others.num_layers() > 0) return most;
  const std::int64_t blocks_per_context =
      (std::int64_t{plan.max_model_len} + options.block_size - 1) / options.block_size;
  return std::min(most, kDefaultContexts * blocks_per_context);
}

Result<std::int32_t> size_pool(const RunnerPlan& plan, const EngineOptions& options, PoolShare share,
                               std::int64_t left_bytes) {
  const std::int64_t block_bytes = plan.kv_layout.block_bytes();
  const std::int64_t wanted = wanted_blocks(plan, options, share, left_bytes);
  const std::string block_text =
      "a block of " + std::to_string(options.block_size) + " tokens takes " + mebibytes_text(block_bytes);
  if (wanted < 1) {
    const std::int64_t budget =
        options.kv_cache_memory ? *options.kv_cache_memory * kMebibyte : left_bytes / kDefaultShare;
    return out_of_memory(block_text + " of KV cache, but only " + mebibytes_text(budget) +
                             " are set aside for the pool; allow more, or use a smaller block_size",
                         pool_option(options));
  }
  if (wanted > left_bytes / block_bytes) {
    return out_of_memory(std::to_string(wanted) + " KV blocks do not fit: " + block_text + ", and " +
                             mebibytes_text(left_bytes) + " are free next to the weights; use fewer",
                         pool_option(options));
  }
  const std::int64_t most =
      std::numeric_limits<std::int32_t>::max() / options.block_size;  // slots have 32 bits
  if (wanted > most && (options.num_kv_blocks || options.kv_cache_memory)) {
    return out_of_memory(std::to_string(wanted) + " KV blocks are more than the " + std::to_string(most) +
                             " that can be addressed; use fewer",
                         pool_option(options));
  }
  return static_cast<std::int32_t>(std::min(wanted, most));
}

// Layers with a window move to a pool of their own, where that is smaller than the one for all. What they
// leave is for more blocks, unless their number was given.
Result<void> set_windows_apart(const model::ModelConfig& config, const EngineOptions& options,
                               RunnerPlan& plan) {
  const bool may_be_apart = options.memory_manager == MemoryManager::kPaged && options.num_window_blocks != 0;
  if (!may_be_apart || !plan.state_layout.empty()) return {};
  const model::KvUses uses = model::find_kv_uses(config, /*sets_windows_apart=*/true);
  if (uses.window_places.empty() || config.sliding_window >= plan.max_model_len) return {};
  const kernels::KvLayout others(plan.kv_layout.type, options.block_size, uses.places);
  const kernels::KvLayout windows(plan.kv_layout.type, options.block_size, uses.window_places);
  const WindowPool pool{.window = config.sliding_window,
                        .block_size = options.block_size,
                        .bytes_of_others = others.block_bytes(),
                        .bytes_of_windows = windows.block_bytes(),
                        .max_num_seqs = options.max_num_seqs,
                        .max_num_batched_tokens = plan.max_num_batched_tokens,
                        .num_given = options.num_window_blocks};
  const std::int64_t num_blocks = options.num_kv_blocks
                                      ? plan.num_blocks
                                      : pool.most_blocks(plan.kv_bytes(), most_blocks(plan, options, others));
  const std::int64_t num_window_blocks = pool.num_window_blocks(num_blocks);
  if (num_window_blocks >= num_blocks) return {};
  if (num_window_blocks < pool.num_least()) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .message = "num_window_blocks is " + std::to_string(num_window_blocks) +
                            "; a sequence with a window of " + std::to_string(config.sliding_window) +
                            " tokens takes up to " + std::to_string(pool.num_least()) + " blocks of " +
                            std::to_string(options.block_size) +
                            " with a step's tokens: use that or more, or lower max_num_batched_tokens",
                 .subject = "num_window_blocks"};
  }
  plan.kv_layout = others;
  plan.window_layout = windows;
  plan.window = config.sliding_window;
  plan.num_blocks = static_cast<std::int32_t>(num_blocks);
  plan.num_window_blocks = static_cast<std::int32_t>(num_window_blocks);
  return {};
}

// `left_bytes` is free memory after weights and working memory. At least one sequence must be able to run.
Result<void> size_states(const EngineOptions& options, std::int64_t left_bytes, RunnerPlan& plan) {
  if (plan.state_layout.empty()) return {};
  const std::int64_t state_bytes = plan.bytes_per_state();
  const std::int64_t wanted =
      options.num_states.value_or(std::int64_t{options.max_num_seqs} + kDefaultCheckpoints);
  const std::int64_t affordable = left_bytes / (options.num_states ? 1 : kDefaultShare) / state_bytes;
  if (affordable < (options.num_states ? wanted : 1)) {
    return out_of_memory("a state of this model's recurrent layers takes " + mebibytes_text(state_bytes) +
                             ", and " + std::to_string(options.num_states ? wanted : 1) + " do not fit the " +
                             mebibytes_text(left_bytes) + " that are free next to the weights; use fewer",
                         "num_states");
  }
  plan.num_states = static_cast<std::int32_t>(std::min(wanted, affordable));
  return {};
}

// Of a host pool of `host_bytes`, which is then as much smaller for blocks.
std::int64_t take_host_states(std::int64_t host_bytes, RunnerPlan& plan) {
  if (plan.num_states == 0) return host_bytes;
  const std::int64_t affordable = host_bytes / kDefaultShare / plan.bytes_per_state();
  plan.num_host_states = static_cast<std::int32_t>(std::min<std::int64_t>(plan.num_states, affordable));
  return host_bytes - plan.num_host_states * plan.bytes_per_state();
}

// Blocks of swap_space, which is any number from 0 on; no more than `most`, so that nothing overflows.
std::int64_t blocks_in_gibibytes(double gibibytes, std::int64_t block_bytes, std::int64_t most) {
  const double blocks = gibibytes * static_cast<double>(kGibibyte) / static_cast<double>(block_bytes);
  return blocks < static_cast<double>(most) ? static_cast<std::int64_t>(blocks) : most;
}

// `left_bytes` is free memory beside the device pool, too.
Result<void> size_host_pool(const EngineOptions& options, std::int64_t left_bytes, RunnerPlan& plan) {
  // With its part of the pool of windows.
  const std::int64_t block_bytes = (plan.kv_bytes() + plan.num_blocks - 1) / plan.num_blocks;
  const auto add_windows = [&plan] {
    plan.num_host_window_blocks = static_cast<std::int32_t>(std::int64_t{plan.num_window_blocks} *
                                                            plan.num_host_blocks / plan.num_blocks);
  };
  if (!options.swap_space) {
    const std::int64_t affordable =
        take_host_states(std::min(kDefaultHostBytes, left_bytes), plan) / block_bytes;
    plan.num_host_blocks = static_cast<std::int32_t>(std::min<std::int64_t>(plan.num_blocks, affordable));
    add_windows();
    return {};
  }
  const double state_gibibytes =
      static_cast<double>(plan.num_states * plan.bytes_per_state()) / static_cast<double>(kGibibyte);
  const double for_states = std::min(*options.swap_space / kDefaultShare, state_gibibytes);
  if (plan.num_states > 0)
    plan.num_host_states =
        static_cast<std::int32_t>(blocks_in_gibibytes(for_states, plan.bytes_per_state(), plan.num_states));
  const std::int64_t wanted =
      blocks_in_gibibytes(*options.swap_space - for_states, block_bytes, std::int64_t{plan.num_blocks} + 1);
  plan.num_host_blocks = static_cast<std::int32_t>(std::min<std::int64_t>(wanted, plan.num_blocks));
  add_windows();
  if (plan.host_bytes() > left_bytes) {
    return out_of_memory("swap_space asks for " + mebibytes_text(plan.host_bytes()) + ", but " +
                             mebibytes_text(left_bytes) +
                             " are free next to the weights and the device pool; use less",
                         "swap_space");
  }
  if (wanted > plan.num_blocks) {
    plan.notice = "swap_space is larger than the device pool; the host pool is limited to the same " +
                  std::to_string(plan.num_host_blocks) + " blocks, " + mebibytes_text(plan.host_bytes());
  } else if (wanted == 0 && *options.swap_space > 0.0) {
    plan.notice = "swap_space is too small for one block, which takes " + mebibytes_text(block_bytes) +
                  "; swapping is off";
  }
  return {};
}

}  // namespace

std::int64_t available_memory_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key; meminfo >> key;) {
    std::int64_t kibibytes = 0;
    if (key == "MemAvailable:" && meminfo >> kibibytes) return kibibytes * 1024;
    meminfo.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

// Unquantised weights meet floats whatever was asked for.
kernels::Activation activation_of(const EngineOptions& options, const model::ModelTensors& tensors) {
  if (!model::has_quantised_weights(tensors)) return kernels::Activation::kF32;
  switch (options.activation_dtype) {
    case ActivationType::kF32: return kernels::Activation::kF32;
    case ActivationType::kInt8: return kernels::Activation::kInt8;
    case ActivationType::kAuto:
    case ActivationType::kInt16: return kernels::Activation::kInt16;
  }
  return kernels::Activation::kInt16;
}

namespace {

// Everything but bytes to work in and pools.
Result<RunnerPlan> plan_shapes(const model::ModelConfig& config, const model::ModelTensors& tensors,
                               const EngineOptions& options, std::int32_t default_batched_tokens) {
  RunnerPlan plan;
  plan.activation = activation_of(options, tensors);
  plan.dtype = options.dtype;
  OCTAVO_TRY(plan.max_model_len, resolve_max_model_len(config, options));
  plan.max_num_batched_tokens = options.max_num_batched_tokens.value_or(default_batched_tokens);
  plan.kv_layout = kv_layout_of(config, options);
  plan.state_layout = state_layout_of(config, options);
  plan.weight_bytes = model::planned_weight_bytes(tensors, options.dtype);
  plan.step_shape = step_shape_of(config, tensors, options, plan);
  return plan;
}

// Of available memory, beside weights and working memory.
Result<std::int64_t> bytes_for_pools(const RunnerPlan& plan, std::int64_t available_bytes) {
  const std::int64_t left_bytes = available_bytes - plan.weight_bytes - plan.working_bytes;
  if (left_bytes > 0) return left_bytes;
  return out_of_memory("the model needs " + mebibytes_text(plan.weight_bytes) + " for weights and " +
                           mebibytes_text(plan.working_bytes) + " for working memory, but only " +
                           mebibytes_text(available_bytes) +
                           " are free; close other programs or choose a smaller model",
                       "model");
}

}  // namespace

Result<RunnerPlan> plan_runner(const model::ModelConfig& config, const model::ModelTensors& tensors,
                               const EngineOptions& options, std::int64_t available_bytes) {
  OCTAVO_TRY(RunnerPlan plan, plan_shapes(config, tensors, options, kDefaultBatchedTokens));
  OCTAVO_TRY(const std::int64_t scratch_bytes,
             kernels::planned_scratch_bytes(plan.step_shape, plan.activation, options.threads));
  plan.working_bytes = working_bytes_of(config, plan, scratch_bytes);
  OCTAVO_TRY(std::int64_t left_bytes, bytes_for_pools(plan, available_bytes));
  OCTAVO_TRY_VOID(size_states(options, left_bytes, plan));
  left_bytes -= plan.state_bytes();
  OCTAVO_TRY(plan.num_blocks, size_pool(plan, options, PoolShare::kPart, left_bytes));
  OCTAVO_TRY_VOID(set_windows_apart(config, options, plan));
  OCTAVO_TRY_VOID(size_host_pool(options, left_bytes - plan.kv_bytes(), plan));
  return plan;
}

Result<RunnerPlan> plan_runner_on_device(const model::ModelConfig& config, const model::ModelTensors& tensors,
                                         const EngineOptions& options, std::int64_t available_bytes,
                                         kernels::Backend& backend) {
  OCTAVO_TRY(RunnerPlan plan, plan_shapes(config, tensors, options, kDefaultBatchedTokensOnDevice));
  const kernels::DeviceBytes before = *backend.device_bytes();
  const double share = options.gpu_memory_utilization.value_or(kDefaultUtilization);
  const auto allowed = static_cast<std::int64_t>(share * static_cast<double>(before.total_bytes));
  const std::int64_t used_by_others = before.total_bytes - before.free_bytes - backend.scratch_bytes();
  OCTAVO_TRY_VOID(backend.reserve_step(plan.step_shape));
  plan.working_bytes = working_bytes_of(config, plan, backend.scratch_bytes());
  OCTAVO_TRY(std::int64_t left_bytes, bytes_for_pools(plan, allowed - used_by_others));
  OCTAVO_TRY_VOID(size_states(options, left_bytes, plan));
  left_bytes -= plan.state_bytes();
  const PoolShare pool_share = options.gpu_memory_utilization ? PoolShare::kAll : PoolShare::kContexts;
  OCTAVO_TRY(plan.num_blocks, size_pool(plan, options, pool_share, left_bytes));
  OCTAVO_TRY_VOID(size_host_pool(options, available_bytes, plan));
  return plan;
}

}  // namespace octavo::runner
