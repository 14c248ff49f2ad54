#include "app/window/models/tiny_pool.h"

#include <algorithm>
#include <utility>

namespace octavo::app {
namespace {

// Two questions of about 200 tokens start side by side, and one has to make room when their answers have
// grown by about 120 tokens each. One context always fits, so that whoever is swapped out comes back.
constexpr std::int32_t kPoolTokens = 640, kContextTokens = 512;
constexpr std::int32_t kMostBlockTokens = 16;  // larger ones would leave few to look at

}  // namespace

EngineOptions with_tiny_pool(EngineOptions options, std::int32_t max_model_len) {
  options.block_size = std::min(options.block_size, kMostBlockTokens);
  options.num_kv_blocks = (kPoolTokens + options.block_size - 1) / options.block_size;
  options.kv_cache_memory.reset();
  options.gpu_memory_utilization.reset();
  options.swap_space.reset();  // as large as the device pool
  options.max_model_len = std::min(max_model_len, kContextTokens);
  options.preemption_mode = PreemptionPolicy::kSwap;
  options.memory_manager = MemoryManager::kPaged;
  options.batching_policy = BatchingPolicy::kIteration;
  options.record.clear();  // it would write over the recording of the engine before
  return options;
}

std::optional<ModelLoad> tiny_pool_load(const ModelLoad& present, std::int32_t max_model_len) {
  if (present.own) return std::nullopt;
  ModelLoad lent{.options = with_tiny_pool(present.options, max_model_len), .own = present.options};
  lent.own->record.clear();
  return lent;
}

std::optional<ModelLoad> own_pool_load(const ModelLoad& present) {
  if (!present.own) return std::nullopt;
  return ModelLoad{.options = *present.own};
}

}  // namespace octavo::app
