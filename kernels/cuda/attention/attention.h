// Attention that reads keys and values through block tables (Kwon et al. 2023, arXiv:2309.06180), by the
// online softmax of Dao 2023 (arXiv:2307.08691) on tensor cores.
//
// A tile is 16 rows (decode) or up to 128 (prefill), of one sequence and one KV head: its query heads, and
// its tokens, one after the other, so that grouped heads and the tokens of a chunk share every read. Long
// contexts are cut into partitions of a fixed number of absolute positions, computed beside each other and
// merged in ascending order. With a sliding window a tile begins with the round of slices in which the window
// of its first row begins, and reads nothing before the eight positions (sixteen of types of eight bits) in
// which that window begins, and of those before the window keys only, which it masks.
//
// Numbers. Keys and values are what the bytes mean: float16 and both fp8 types as float16, bfloat16 and int8
// (integers; its scales meet scores and weights) as bfloat16, float32 as the sum of two bfloat16 numbers (16
// bits). Queries and softmax weights are sums of two 16-bit numbers too, but for prefill with float16 keys,
// where they are one float16 number, and with bfloat16 ones, where `half_parts` says. Sums and softmax in
// float. A row's result does not depend on the batch if `deterministic` is set: then every row goes through
// tiles of 16 rows and partitions of kFixedPartition positions. A number that is not finite in the value of a
// token reaches the rows of its own sequence that are computed in the same tile as the token, also those
// before it or with a window behind it; never another sequence.
//
// Ownership: the pool and all arrays are the caller's, in device memory; a PagedAttention owns its scratch,
// sized by reserve(). Thread: one. Errors: of reserve() as Result; in an operation they go to the stream's
// status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_batch.h"
#include "kernels/kv_layout.h"

namespace octavo::kernels::cuda {

struct AttentionOptions {
  bool deterministic = false;
  // Of queries and softmax weights in prefill over bfloat16 and int8; one bfloat16 number has 8 bits
  HalfParts half_parts = HalfParts::kTwo;
  std::int32_t num_multiprocessors = 1;
  // That a block may ask for: cudaDevAttrMaxSharedMemoryPerBlockOptin
  std::int64_t max_shared_bytes = 48 * 1024;
};

// Positions of a partition in deterministic mode.
inline constexpr std::int32_t kFixedPartition = 512;

// Tiles of 16 rows that a step with `numbers` has which is no decode.
inline constexpr std::int32_t kFilledSplitTiles = 32;

class PagedAttention {
 public:
  // `stream` outlives it.
  static std::unique_ptr<PagedAttention> create(Stream& stream, const AttentionOptions& options);
  virtual ~PagedAttention() = default;

  // Scratch for every step of this shape. Error kOutOfMemory.
  virtual Result<void> reserve(const StepShape& shape) = 0;
  virtual std::int64_t scratch_bytes() const = 0;

  // Longest contexts: steps of `num_sequences` whose longest context lies between the same two of them can
  // have one max_context_len, the larger of the two, and so launches of one shape. Ascending; the last is the
  // longest that was reserved. A step with `numbers` gets the partition of its own longest context. Usual:
  // one for contexts that are not cut, one for all others. Deterministic: partitions do not grow with the
  // context, so their number does, and there is one for each four times as long.
  virtual std::vector<std::int32_t> decode_contexts(std::int32_t num_sequences) const = 0;
  virtual std::int32_t decode_partition(std::int32_t num_sequences, std::int32_t context_len) const = 0;

  // Tiles of 16 rows up to the last one of a sequence that goes by them, which are those of few rows:
  // sequences of many have theirs in vain. At least 1; for heads as they were reserved.
  virtual std::int32_t num_split_tiles(std::span<const std::int32_t> query_start) const = 0;

  // backend.h's paged_attention.   q, out  [num_tokens, num_heads * head_dim]
  // REQUIRES: head_dim <= 256; the batch and shape are within what was reserved.
  virtual void attend(const AttentionShape& shape, const DeviceBatch& batch, const KvLayout& layout,
                      std::int32_t layer, const std::byte* pool, const float* q, std::int64_t q_stride,
                      float* out, std::int64_t out_stride) = 0;
};

}  // namespace octavo::kernels::cuda
