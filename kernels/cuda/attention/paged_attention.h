// Keys and values in blocks, on the device: writing a step's into their slots, and attention that reads them
// through block tables (Kwon et al. 2023, arXiv:2309.06180), by the online softmax of Dao 2023
// (arXiv:2307.08691) on tensor cores.
//
// A tile is 16 rows (decode) or up to 64 (prefill), of one sequence and one KV head: its query heads, and its
// tokens, one after the other, so that grouped heads and the tokens of a chunk share every read. Long
// contexts are cut into partitions of a fixed number of absolute positions, computed beside each other and
// merged in ascending order. With a sliding window a tile begins with the round of slices in which the window
// of its first row begins, and reads nothing before the eight positions in which that window begins, and of
// those before the window keys only, which it masks.
//
// Numbers. Keys and values are what the bytes mean: float16 and both fp8 types as float16, bfloat16 and int8
// (integers; its scales meet scores and weights) as bfloat16, float32 as the sum of two bfloat16 numbers (16
// bits). Queries and softmax weights are sums of two 16-bit numbers too, but for prefill with float16 keys,
// where they are one float16 number. Sums and softmax in float. A row's result does not depend on the batch
// if `deterministic` is set: then every row goes through tiles of 16 rows and partitions of kFixedPartition
// positions. A number that is not finite in the value of a token reaches the rows of its own sequence that
// are computed in the same tile as the token, also those before it or with a window behind it; never another
// sequence.
//
// Ownership: the pool and all arrays are the caller's, in device memory; a PagedAttention owns its scratch,
// sized by reserve(). Thread: one. Errors: of reserve() as Result; in an operation they go to the stream's
// status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/kv_layout.h"

namespace octavo::kernels::cuda {

// Of a decode step whose launches have one shape for many steps: what a launch would else have as an
// argument.
struct StepNumbers {
  std::int32_t max_blocks = 0;
  std::int32_t partition = 0;  // decode_partition()
};

// kernels/paged_batch.h's arrays in device memory, and what the host knows of them. A slot of -1 is that of a
// row that only fills a step up: nothing is written or attended to for it.
struct DeviceBatch {
  std::int32_t num_tokens = 0;
  std::int32_t num_sequences = 0;
  std::int32_t max_blocks = 0;
  std::int32_t min_rows = 0;  // fewest and most rows of a sequence
  std::int32_t max_rows = 0;
  // Of any sequence, or more: it sizes the grid (a captured graph's: the most of all)
  std::int32_t max_context_len = 0;
  // Device memory; null: max_blocks, and a partition for max_context_len
  const StepNumbers* numbers = nullptr;
  const std::int32_t* positions = nullptr;
  const std::int32_t* slot_mapping = nullptr;
  const std::int32_t* query_start = nullptr;
  const std::int32_t* context_lens = nullptr;
  const std::int32_t* block_tables = nullptr;
  const float* rotations = nullptr;
  const float* local_rotations = nullptr;  // null: the model has none
};

struct AttentionOptions {
  bool deterministic = false;
  std::int32_t num_multiprocessors = 1;
  // That a block may ask for: cudaDevAttrMaxSharedMemoryPerBlockOptin
  std::int64_t max_shared_bytes = 48 * 1024;
};

// Positions of a partition in deterministic mode.
inline constexpr std::int32_t kFixedPartition = 512;

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

class PagedAttention {
 public:
  // `stream` outlives it.
  static std::unique_ptr<PagedAttention> create(Stream& stream, const AttentionOptions& options);
  virtual ~PagedAttention() = default;

  // Scratch for every step of this shape. Error kOutOfMemory.
  virtual Result<void> reserve(const StepShape& shape) = 0;
  virtual std::int64_t scratch_bytes() const = 0;

  // Longest contexts: decode steps of `num_sequences` whose longest context lies between the same two of them
  // can have one max_context_len, the larger of the two, and so launches of one shape. Ascending; the last is
  // the longest that was reserved. A decode step with `numbers` gets the partition of its own longest
  // context. Usual: one for contexts that are not cut, one for all others. Deterministic: partitions do not
  // grow with the context, so their number does, and there is one for each four times as long.
  virtual std::vector<std::int32_t> decode_contexts(std::int32_t num_sequences) const = 0;
  virtual std::int32_t decode_partition(std::int32_t num_sequences, std::int32_t context_len) const = 0;

  // backend.h's paged_attention.   q, out  [num_tokens, num_heads * head_dim]
  // REQUIRES: head_dim <= 256; the batch and shape are within what was reserved.
  virtual void attend(const AttentionShape& shape, const DeviceBatch& batch, const KvLayout& layout,
                      std::int32_t layer, const std::byte* pool, const float* q, std::int64_t q_stride,
                      float* out, std::int64_t out_stride) = 0;
};

}  // namespace octavo::kernels::cuda
