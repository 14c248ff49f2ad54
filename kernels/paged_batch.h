// One step's rows and where their keys and values are: plain arrays in host memory, built by
// engine/runner, read by every backend. Rows of one sequence are consecutive and ascending in position;
// prefill chunks and decodes stand side by side.
#pragma once

#include <cstdint>
#include <span>

namespace octavo::kernels {

struct PagedBatch {
  std::int32_t num_tokens = 0;              // rows
  std::int32_t num_sequences = 0;           // at most one run of rows for each
  std::span<const std::int32_t> positions;  // [num_tokens] absolute, 0-based
  std::span<const std::int32_t>
      slot_mapping;  // [num_tokens] block_id * block_size + offset: where K and V go; -1: nowhere, and the
                     // row's sequence attends to nothing (of a device's own steps and rehearsals)
  std::span<const std::int32_t> query_start;   // [num_sequences + 1] first row of each sequence
  std::span<const std::int32_t> context_lens;  // [num_sequences] tokens with KV, this step's included
  std::span<const std::int32_t>
      block_tables;  // [num_sequences, max_blocks]; entries past the context are not read
  std::int32_t max_blocks = 0;
  // [num_tokens, rotary_dim / 2, 2]: cosine and sine of each row's rotation angles,
  // already times the attention factor. Empty: the backend keeps them (Backend::keep_rotations).
  std::span<const float> rotations;
  // The same for the layers that rotate by other angles; else empty
  std::span<const float> local_rotations = {};
  // [num_tokens]: what the queries of each row are multiplied by, rotated; empty: nothing. Not on CUDA yet:
  // BackendOptions::needs_scaled_queries
  std::span<const float> query_scales = {};
  // [num_sequences], all different: where each sequence's recurrent layers keep their state; empty: the model
  // has none
  std::span<const std::int32_t> states = {};
  // [num_sequences]: so many rows at the end of each sequence are a draft, guesses of which it is not known
  // yet whether they count; empty: none are. Only recurrent layers ask: a state cannot be cut
  std::span<const std::int32_t> num_drafted = {};
  // slot_mapping and block_tables of layers with a window that have a pool of their own, where entries behind
  // the window are not read either; else empty
  std::span<const std::int32_t> window_slot_mapping = {}, window_block_tables = {};
};

// Indices of blocks or states, each in its own pool.
struct BlockCopy {
  std::int32_t source = 0;
  std::int32_t target = 0;
};

}  // namespace octavo::kernels
