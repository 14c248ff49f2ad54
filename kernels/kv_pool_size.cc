#include "kernels/kv_pool_size.h"

#include <string>

namespace octavo::kernels {

Result<std::int64_t> kv_pool_bytes(const KvLayout& layout, std::int32_t num_blocks) {
  std::int64_t bytes = 0;
  const bool is_possible = layout.num_layers() > 0 && num_blocks > 0 &&
                           !__builtin_mul_overflow(layout.block_bytes(), std::int64_t{num_blocks}, &bytes);
  if (is_possible) return bytes;
  return Error{ErrorCode::kInvalidArgument,
               "a KV pool of " + std::to_string(num_blocks) + " blocks of " +
                   std::to_string(layout.block_size) +
                   " tokens is impossible; blocks, layers, KV heads and dimensions must be positive, the block "
                   "size at most " +
                   std::to_string(KvLayout::kMaxBlockSize) + " and the total below 2^63 bytes",
               "kv_cache"};
}

}  // namespace octavo::kernels
