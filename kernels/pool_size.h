// How many bytes a pool takes, with every product checked: layouts come from files and options.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "kernels/kv_layout.h"
#include "kernels/state_layout.h"

namespace octavo::kernels {

// Error kInvalidArgument when a dimension is not positive, the block size not 1..256, or the bytes do not fit
// 63 bits.
Result<std::int64_t> kv_pool_bytes(const KvLayout& layout, std::int32_t num_blocks);

// Error kInvalidArgument when there are no layers, nothing in them or no states, or the bytes do not fit 63
// bits.
Result<std::int64_t> state_pool_bytes(const StateLayout& layout, std::int32_t num_states);

}  // namespace octavo::kernels
