// Steps that stand for many others while a model loads: they are run once before any other, or recorded. Only
// their shape matters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/paged_batch.h"

namespace octavo::kernels {

// The first num_decodes sequences have one row each, the other rows are of as few sequences as contexts
// allow.
struct SampleStep {
  std::int32_t num_rows = 0;
  std::int32_t num_decodes = 0;
  std::int32_t context_len = 0;  // of each sequence, in tokens
};

// Such a step: token 0 at the end of each context. Owns what batch() and token_ids() look at.
class SampleBatch {
 public:
  // `slot`: of every row. `rotary_dim`: of its angles, which are zeros; 0: the backend keeps them. All blocks
  // are block 0.
  SampleBatch(const SampleStep& step, std::int32_t slot, std::int32_t block_size,
              std::int32_t rotary_dim = 0);

  PagedBatch batch() const;
  std::span<const std::int32_t> token_ids() const { return token_ids_; }

 private:
  std::int32_t max_blocks_;
  std::vector<std::int32_t> token_ids_, positions_, slots_, query_start_, context_lens_, block_tables_;
  std::vector<float> rotations_;
};

}  // namespace octavo::kernels
