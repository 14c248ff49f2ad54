#include "engine/block/reservation.h"

#include <algorithm>
#include <bit>

#include "engine/base/check.h"
#include "engine/block/block.h"

namespace octavo::block {
namespace {

std::int64_t next_power_of_two(std::int32_t number) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(number)));
}

}  // namespace

std::int64_t estimated_output_tokens(MemoryManager manager, std::int32_t num_output_tokens,
                                     std::int32_t max_model_len) {
  OCTAVO_CHECK(num_output_tokens >= 1, "%d output tokens", num_output_tokens);
  switch (manager) {
    case MemoryManager::kOrcaMax: return max_model_len;
    case MemoryManager::kOrcaPow2: return next_power_of_two(num_output_tokens);
    case MemoryManager::kOrcaOracle: return num_output_tokens;
    case MemoryManager::kPaged: break;
  }
  OCTAVO_CHECK(false, "paging reserves nothing");
}

std::int32_t reservation_tokens(MemoryManager manager, std::int32_t num_prompt_tokens,
                                std::int32_t num_output_tokens, std::int32_t max_model_len) {
  OCTAVO_CHECK(num_prompt_tokens >= 1 && num_prompt_tokens <= max_model_len, "%d prompt tokens, at most %d",
               num_prompt_tokens, max_model_len);
  const std::int64_t estimate = estimated_output_tokens(manager, num_output_tokens, max_model_len);
  return static_cast<std::int32_t>(std::min<std::int64_t>(num_prompt_tokens + estimate, max_model_len));
}

std::int32_t reservation_blocks(std::int32_t num_tokens, std::int32_t block_size) {
  return static_cast<std::int32_t>(next_power_of_two(blocks_for(num_tokens, block_size)));
}

}  // namespace octavo::block
