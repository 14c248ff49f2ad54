// A step's keys and values on their way into the pool's slots.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_batch.h"
#include "kernels/kv_layout.h"

namespace octavo::kernels::cuda {

// RMS norms of single heads, [head_dim] each in device memory. Null: none.
struct HeadNorms {
  const float* query = nullptr;
  const float* key = nullptr;
  float epsilon = 0.0f;
};

// Normalises and rotates the queries where they stand, likewise the keys, and rounds keys and values into
// their slots, as kv_layout.h defines it (of int8's eight scales the best one by sums in float: a tie
// within rounding may go either way).
//   q  [num_tokens, num_heads * head_dim] (null: no queries)    k, v  [num_tokens, num_kv_heads * head_dim]
void write_kv(Stream& stream, const AttentionShape& shape, const DeviceBatch& batch, const KvLayout& layout,
              std::int32_t layer, float* q, std::int64_t q_stride, const float* k, const float* v,
              std::int64_t kv_stride, std::byte* pool, const HeadNorms& norms = {});

}  // namespace octavo::kernels::cuda
