// How large a pool is that layers with a window have for themselves (engine/block/window_manager.h).
// Arithmetic alone.
#pragma once

#include <cstdint>
#include <optional>

namespace octavo::runner {

// Texts of so many windows each, of which the other pool is taken to be full; and of so many at least.
inline constexpr std::int32_t kWindowsPerText = 4, kLeastTexts = 8;

struct WindowPool {
  std::int32_t window = 0;                                 // tokens; above 0
  std::int32_t block_size = 0;                             // tokens
  std::int64_t bytes_of_others = 0, bytes_of_windows = 0;  // of a block, in either pool
  std::int32_t max_num_seqs = 0, max_num_batched_tokens = 0;
  std::optional<std::int32_t> num_given = {};

  // With which one sequence can run, whatever its length.
  std::int64_t num_least() const;
  // Beside so many blocks of the other pool: the given number, or what num_blocks / kWindowsPerText tokens of
  // windows take, but no fewer than for kLeastTexts sequences and no more than for max_num_seqs. At most
  // num_blocks. Grows with num_blocks.
  std::int64_t num_window_blocks(std::int64_t num_blocks) const;
  // The most blocks, up to `most`, that take no more than `bytes` with their window blocks.
  std::int64_t most_blocks(std::int64_t bytes, std::int64_t most) const;
};

}  // namespace octavo::runner
