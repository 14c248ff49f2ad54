// The kernels that exist once for each instruction set, as one table of function pointers. Arguments are
// numbers, pointers and plain structs, because nothing inline may be shared between instruction sets (rule 1
// of kernels/cpu/simd.h).
//
// Pure functions of their arguments, callable from any thread. All tables give the same bits.
// Matrix products have a table of their own beside this one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/kv_type.h"

namespace octavo::kernels::cpu {

// Where one token's key and value of one KV head go.
struct KvSlot {
  KvType type;
  std::int32_t head_dim;
  std::int64_t key_stride;     // elements between two dimensions of K: the block size
  void* key;                   // dimension 0
  void* value;                 // null: it is part of the key, and not stored again
  float* key_scale = nullptr;  // of types with scales only
  float* value_scale = nullptr;
};

// A token whose query heads attend to what stands before it.
struct AttentionRow {
  static constexpr std::int32_t kSameSequence = 0x7fffffff;

  std::int32_t row;    // of q and out
  std::int32_t first;  // reads first..position
  std::int32_t position;
  const std::int32_t* block_table;  // of its sequence
  std::int32_t num_shared;          // positions that stand in the same blocks as those of the row before
};

// Attention of a tile: rows, and the query heads that share one KV head. A row and one of these heads
// together make a query; query = index of the row in the tile * group_size + head. What neighbouring rows
// share is read and converted once for all of them.
struct AttentionTile {
  // K and V of one layer and KV head: of block b, K stands at kv + b * block_bytes, V half_head_bytes behind
  // it, scales (of types that have them) scales_offset behind it.
  const std::byte* kv;
  std::int64_t block_bytes;
  std::int64_t half_head_bytes;
  std::int64_t scales_offset;
  KvType type;
  std::int32_t block_size;
  std::int32_t head_dim;   // of keys
  std::int32_t value_dim;  // of values, and of `out`
  bool
      is_latent;  // values are the first value_dim numbers of the keys, and there is neither V nor its scales
  float score_scale;
  float score_soft_cap;  // 0: none

  std::int32_t group_size;   // query heads per KV head
  std::int32_t first_range;  // of kAttentionRange positions: the first that a row reads
  std::int32_t num_rows;
  const AttentionRow* rows;
  const float* q;         // first head of the group in row 0; heads lie head_dim apart
  std::int64_t q_stride;  // floats between rows
  float* out;             // as q; heads lie value_dim apart
  std::int64_t out_stride;
  const float* sinks = nullptr;  // [group_size], as of AttentionShape; null: none
};

// Some ranges of kAttentionRange positions of a tile.
struct AttentionJob {
  AttentionTile tile;
  std::int32_t first_range, end_range;
  // What this worker will probably do next, or null. Its first keys are asked for while this job ends; it is
  // then called with was_announced.
  const AttentionJob* next = nullptr;
  bool was_announced = false;
};

// The convolution over time of `count` neighbouring channels of one sequence, in place. Numbers: a channel's
// sum begins with its bias and takes the inputs oldest first, each by a fused multiply-add.
struct ChannelConvolution {
  const float* weights;         // [count, width], the newest token last
  const float* bias;            // [count]; null: none
  std::int32_t width;           // tokens that a sum takes
  float* history;               // [width - 1]: inputs before the first row, oldest first; then after the last
  std::int64_t history_stride;  // floats
  float* rows;                  // [num_rows]: inputs, then sums
  std::int64_t row_stride, num_rows, count;
  bool applies_silu;  // to the sums
};

// Consecutive tokens of one value head of Gated DeltaNet (kernels/backend.h). Numbers: the sums S^T k and S^T
// q of each value are chains of fused multiply-adds over the key's dimensions, ascending, as is each update
// of S; so a sequence may be cut between any two tokens.
struct DeltaRuleJob {
  float* state;  // S [key_dim][value_dim]
  std::int32_t key_dim, value_dim;
  std::int64_t num_rows;        // at least one
  const float *queries, *keys;  // [num_rows][key_dim]
  float* values;                // [num_rows][value_dim]: v, then the output
  std::int64_t row_stride;      // floats, of all three
  const float *decays, *betas;  // [num_rows]: factors of S and of the error
  std::int64_t gate_stride;     // floats, of both
};

// Consecutive tokens of one head of Mamba-2 (kernels/backend.h). Numbers: the sums S^T C are chains of fused
// multiply-adds over the state's dimensions, ascending; so a sequence may be cut between any two tokens.
struct StateSpaceJob {
  float* state;  // S [state_size][head_dim]
  std::int32_t state_size, head_dim;
  std::int64_t num_rows;
  float* inputs;                // [num_rows][head_dim]: x, then the output
  const float *writes, *reads;  // [num_rows][state_size]: B and C
  std::int64_t row_stride;      // floats, of all three
  const float *decays, *times;  // [num_rows]: factors of S and of x
  std::int64_t time_stride;     // floats, of both
  float skip;
};

// Softmax and value sums run over ranges of this many absolute positions, each by itself; the ranges' results
// are merged in ascending order. A row's ranges depend on nothing but its position, so neither does the
// result.
inline constexpr std::int32_t kAttentionRange = 256;

inline constexpr std::int64_t kPieceEntries = 64;                   // kLogitsPiece of kernels/backend.h
inline constexpr float kSwigluLimit = 7.0f, kSwigluSlope = 1.702f;  // those of kernels/backend.h

struct KernelTable {
  // out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]. `out` may be `x`.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int64_t size, float* out);
  // out[i] = (x[i] - mean(x)) / sqrt(variance(x) + epsilon) * weight[i] + bias[i]; a
  // null bias: none. `out` may be `x`.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t size,
                     float* out);

  // a[i] += b[i]
  void (*add_row)(float* a, const float* b, std::int64_t size);

  // a[i] *= b[i]
  void (*multiply_row)(float* a, const float* b, std::int64_t size);

  // a[i] += factor * b[i], rounded twice
  void (*add_scaled_row)(float* a, const float* b, float factor, std::int64_t size);

  // a[i] *= factor
  void (*scale_row)(float* a, float factor, std::int64_t size);

  // gate[i] = activation(gate[i]) * up[i]; the others a[i] = activation(a[i]). As
  // FeedForwardActivation of backend.h.
  void (*silu_mul)(float* gate, const float* up, std::int64_t size);
  void (*gelu_mul)(float* gate, const float* up, std::int64_t size);
  void (*relu_mul)(float* gate, const float* up, std::int64_t size);
  void (*squared_relu_mul)(float* gate, const float* up, std::int64_t size);
  void (*clamped_swiglu)(float* gate, const float* up, std::int64_t size);
  void (*silu)(float* a, std::int64_t size);
  void (*gelu)(float* a, std::int64_t size);
  void (*relu)(float* a, std::int64_t size);
  void (*squared_relu)(float* a, std::int64_t size);

  // a[i] *= sigmoid(gate[i])
  void (*sigmoid_mul)(float* a, const float* gate, std::int64_t size);
  // a[i] = sigmoid(a[i])
  void (*sigmoid)(float* a, std::int64_t size);
  // a[i] = log(1 + exp(a[i] + bias[i]))
  void (*softplus)(float* a, const float* bias, std::int64_t size);
  // a[i] = exp(a[i] * factor[i])
  void (*exp_scaled)(float* a, const float* factor, std::int64_t size);
  // a[i] = a[i] / sqrt(sum(a^2) + epsilon) * scale
  void (*unit_vector)(float* a, float epsilon, float scale, std::int64_t size);

  // a[i] = cap * tanh(a[i] / cap), NaN where a[i] is not finite.
  void (*soft_cap)(float* a, float cap, std::int64_t size);

  // Rotates `num_heads` neighbouring heads in place.
  //   rotations  [rotary_dim / 2, 2] cosine and sine
  //   halves     pairs (i, i + rotary_dim / 2); else (2i, 2i + 1)
  void (*rotate_heads)(float* heads, std::int32_t num_heads, std::int32_t head_dim, std::int32_t rotary_dim,
                       bool halves, const float* rotations);

  // scratch: as many floats as there are weights
  void (*convolve)(const ChannelConvolution& job, float* scratch);
  void (*delta_rule)(const DeltaRuleJob& job);
  void (*state_space)(const StateSpaceJob& job);

  // Rounds one token's key and value [head_dim] to the KV type and stores them; the value where it has a
  // slot.
  void (*write_kv)(const float* key, const float* value, const KvSlot& slot);

  // *max = largest of logits[0, size), *sum = sum of exp(logits[i] - *max), piece_maxima[p] = largest of the
  // p-th kPieceEntries. In a piece of nothing but impossible tokens the sum is 0.
  void (*summarise_logits)(const float* logits, std::int64_t size, float* piece_maxima, float* max,
                           float* sum);
  // Puts `count` pairs of maximum and sum together: the exponentials of all sum to *sum * exp(*max).
  void (*merge_exp_sums)(const float* maxima, const float* sums, std::int64_t count, float* max, float* sum);
  // As Backend::softmax_weights.
  void (*softmax_weights)(const double* scores, std::int64_t size, double best, double inverse_temperature,
                          double* weights, double* piece_sums);

  // Floats of working memory (aligned to 64 bytes) that the attention kernels want, and of one query's
  // partial result.
  std::int64_t (*attention_scratch_floats)(std::int32_t num_rows, std::int32_t group_size,
                                           std::int32_t head_dim, std::int32_t value_dim);
  std::int64_t (*attention_partial_floats)(std::int32_t value_dim);

  // All ranges that the tile reads, one after the other, into `out`.
  void (*attend)(const AttentionJob& job, float* scratch);
  // Each range into [num_queries][attention_partial_floats]; first_range's stand at `partials`, the next
  // one's range_stride floats on. Queries that read nothing of a range leave theirs untouched.
  void (*attend_ranges)(const AttentionJob& job, float* scratch, float* partials, std::int64_t range_stride);
  // Merges what attend_ranges left for the tile's ranges and writes `out`; the same bits as `attend`. The
  // partials are used up.
  void (*merge_ranges)(const AttentionTile& tile, float* partials, std::int64_t range_stride);
};

// REQUIRES: isa is in this build; calling what the table holds also needs a machine that runs it.
const KernelTable& kernel_table(InstructionSet isa);

}  // namespace octavo::kernels::cpu
