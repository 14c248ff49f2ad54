#include "engine/runner/window_pool.h"

#include <algorithm>

#include "engine/block/window_manager.h"

namespace octavo::runner {

std::int64_t WindowPool::num_least() const {
  return std::int64_t{block::num_places_for_sequence(window, block_size)} +
         block::num_places_for_step(max_num_batched_tokens, block_size);
}

std::int64_t WindowPool::num_window_blocks(std::int64_t num_blocks) const {
  if (num_given) return std::min<std::int64_t>(*num_given, num_blocks);
  const std::int64_t num_texts = num_blocks * block_size / (std::int64_t{kWindowsPerText} * window);
  const std::int64_t num_sequences =
      std::clamp<std::int64_t>(num_texts, std::min(kLeastTexts, max_num_seqs), max_num_seqs);
  const std::int64_t wanted = num_sequences * block::num_places_for_sequence(window, block_size) +
                              block::num_places_for_step(max_num_batched_tokens, block_size);
  return std::min(num_blocks, wanted);
}

std::int64_t WindowPool::most_blocks(std::int64_t bytes, std::int64_t most) const {
  std::int64_t fits = 0, exceeds = most + 1;
  while (exceeds - fits > 1) {
    const std::int64_t middle = fits + (exceeds - fits) / 2;
    const std::int64_t taken = middle * bytes_of_others + num_window_blocks(middle) * bytes_of_windows;
    (taken <= bytes ? fits : exceeds) = middle;
  }
  return fits;
}

}  // namespace octavo::runner
