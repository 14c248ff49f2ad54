#include "kernels/kv_pool_size.h"

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

}  // namespace octavo::kernels
