// Blocks within the device pool, and between it and the host's: bytes that nobody looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/runtime/device.h"
#include "kernels/paged_batch.h"

namespace octavo::kernels::cuda {

// One kernel for all of them. `copies` is in device memory. REQUIRES: no target is a source or another
// target.
void copy_pool_blocks(Stream& stream, std::byte* pool, std::int64_t block_bytes, const BlockCopy* copies,
                      std::int32_t num_copies);

// One copy for each run of neighbours: a block holds all layers, so even alone it is some hundred kilobytes,
// which keep the bus busy for longer than a copy takes to start. `copies` is in host memory; the host's pool
// is pinned.
void move_pool_blocks(Stream& stream, const std::byte* sources, std::byte* targets, std::int64_t block_bytes,
                      std::span<const BlockCopy> copies);

}  // namespace octavo::kernels::cuda
