#include "kernels/pool_size.h"

#include <string>

namespace octavo::kernels {
namespace {

Error impossible_pool(const KvLayout& layout, std::int32_t num_blocks) {
  return Error{ErrorCode::kInvalidArgument,
               "a KV pool of " + std::to_string(num_blocks) + " blocks of " +
                   std::to_string(layout.block_size) + " tokens, " + std::to_string(layout.num_layers) +
                   " layers, " + std::to_string(layout.num_kv_heads) + " KV heads of " +
                   std::to_string(layout.head_dim) +
                   " dimensions is impossible; every number must be positive, the block size at most " +
                   std::to_string(KvLayout::kMaxBlockSize) + " and the total below 2^63 bytes",
               "kv_cache"};
}

Error impossible_states(const StateLayout& layout, std::int32_t num_states) {
  return Error{ErrorCode::kInvalidArgument,
               std::to_string(num_states) + " states of " + std::to_string(layout.num_layers) +
                   " layers with " + std::to_string(layout.recurrent_floats) + " and " +
                   std::to_string(layout.convolution_floats) +
                   " numbers each are impossible; there must be some of each, and the total below 2^63 bytes",
               "states"};
}

}  // namespace

Result<std::int64_t> kv_pool_bytes(const KvLayout& layout, std::int32_t num_blocks) {
  const bool has_heads =
      layout.block_size > 0 && layout.block_size <= KvLayout::kMaxBlockSize && layout.head_dim > 0;
  if (!has_heads) return impossible_pool(layout, num_blocks);
  std::int64_t bytes = layout.head_bytes();  // fits: 2^8 tokens of 2^31 elements
  for (const std::int32_t factor : {layout.num_kv_heads, layout.num_layers, num_blocks}) {
    if (factor <= 0 || __builtin_mul_overflow(bytes, std::int64_t{factor}, &bytes)) {
      return impossible_pool(layout, num_blocks);
    }
  }
  return bytes;
}

Result<std::int64_t> state_pool_bytes(const StateLayout& layout, std::int32_t num_states) {
  constexpr std::int64_t kMostFloats = std::int64_t{1} << 60;  // so that the layout's own sums hold
  const auto fits = [](std::int64_t floats) { return floats >= 0 && floats < kMostFloats; };
  if (!fits(layout.recurrent_floats) || !fits(layout.convolution_floats)) {
    return impossible_states(layout, num_states);
  }
  std::int64_t bytes = layout.layer_floats();
  const std::int64_t factors[] = {layout.num_layers, num_states, std::int64_t{sizeof(float)}};
  for (const std::int64_t factor : factors) {
    if (bytes <= 0 || factor <= 0 || __builtin_mul_overflow(bytes, factor, &bytes)) {
      return impossible_states(layout, num_states);
    }
  }
  return bytes;
}

}  // namespace octavo::kernels
