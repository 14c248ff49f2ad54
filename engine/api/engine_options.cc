#include "engine/api/engine_options.h"

#include <cmath>
#include <string_view>

#include "engine/api/option_error.h"

namespace octavo {
namespace {

constexpr std::int32_t kMaxThreads = 1024;
constexpr std::int32_t kMaxBlockSize = 256;
constexpr std::int32_t kMaxSequences = 65536;
constexpr std::int32_t kMaxBatchedTokens = 1 << 20;
constexpr std::int32_t kMaxTargetStepMs = 60'000;
constexpr std::int32_t kMaxSpeculativeTokens = 7;  // steps of more than 8 rows do not guess
constexpr std::int64_t kMaxCacheMebibytes = std::int64_t{1}
                                            << 30;  // a pebibyte: keeps sizes in bytes in 64 bits

Result<void> check_range(std::string_view option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return option_out_of_range(option, std::to_string(low) + " to " + std::to_string(high),
                             std::to_string(value));
}

Result<void> check_ranges(const EngineOptions& options) {
  OCTAVO_TRY_VOID(check_range("threads", options.threads, 0, kMaxThreads));
  OCTAVO_TRY_VOID(check_range("block_size", options.block_size, 1, kMaxBlockSize));
  OCTAVO_TRY_VOID(check_range("max_num_seqs", options.max_num_seqs, 1, kMaxSequences));
  OCTAVO_TRY_VOID(check_range("max_num_batched_tokens", options.max_num_batched_tokens.value_or(1), 1,
                              kMaxBatchedTokens));
  OCTAVO_TRY_VOID(check_range("target_step_ms", options.target_step_ms, 0, kMaxTargetStepMs));
  OCTAVO_TRY_VOID(check_range("max_model_len", options.max_model_len.value_or(1), 1, INT32_MAX));
  OCTAVO_TRY_VOID(check_range("num_kv_blocks", options.num_kv_blocks.value_or(1), 1, INT32_MAX));
  OCTAVO_TRY_VOID(check_range("num_states", options.num_states.value_or(1), 1, INT32_MAX));
  OCTAVO_TRY_VOID(check_range("num_window_blocks", options.num_window_blocks.value_or(0), 0, INT32_MAX));
  OCTAVO_TRY_VOID(check_range("num_speculative_tokens", options.num_speculative_tokens.value_or(1), 1,
                              kMaxSpeculativeTokens));
  OCTAVO_TRY_VOID(check_range("kv_cache_memory", options.kv_cache_memory.value_or(1), 1, kMaxCacheMebibytes));
  OCTAVO_TRY_VOID(check_range("tensor_parallel_size", options.tensor_parallel_size, 1, INT32_MAX));
  const double utilization = options.gpu_memory_utilization.value_or(1.0);
  if (!(utilization > 0.0 && utilization <= 1.0)) {
    return option_out_of_range("gpu_memory_utilization", "above 0 and at most 1",
                               option_number_text(utilization));
  }
  const double swap_space = options.swap_space.value_or(0.0);
  if (!(swap_space >= 0.0 && std::isfinite(swap_space))) {
    return option_out_of_range("swap_space", "a number of GiB, at least 0", option_number_text(swap_space));
  }
  return {};
}

Result<void> check_pool_is_sized_once(const EngineOptions& options) {
  const int given = (options.num_kv_blocks ? 1 : 0) + (options.kv_cache_memory ? 1 : 0) +
                    (options.gpu_memory_utilization ? 1 : 0);
  if (given <= 1) return {};
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .message =
          "num_kv_blocks, kv_cache_memory and gpu_memory_utilization all size the same pool: give only "
          "one of them",
      .subject = "num_kv_blocks"};
}

Result<void> check_is_built(const EngineOptions& options) {
  if (options.tensor_parallel_size > 1) {
    return option_not_built("tensor_parallel_size", "this version supports a single device; use 1");
  }
  if (options.speculative == Speculation::kMtp && options.device == Device::kCuda) {
    return option_not_built("speculative", "mtp runs on the CPU only; use ngram, or the device cpu");
  }
  return {};
}

}  // namespace

Result<void> validate(const EngineOptions& options) {
  OCTAVO_TRY_VOID(check_ranges(options));
  OCTAVO_TRY_VOID(check_pool_is_sized_once(options));
  return check_is_built(options);
}

}  // namespace octavo
