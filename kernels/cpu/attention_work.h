// How the attention of a step is cut into items for the threads. The cut changes no bit of any result.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo::kernels::cpu {

struct AttentionWork {
  // Neighbouring rows of one sequence.
  struct Tile {
    std::int32_t sequence;
    std::int32_t first_row, num_rows;
    std::int32_t num_ranges;       // of kAttentionRange positions that its last row reads
    std::int64_t partials_offset;  // floats; where its partial results stand, or kWhole
    std::int64_t cost() const { return static_cast<std::int64_t>(num_rows) * num_ranges; }
  };
  static constexpr std::int64_t kWhole = -1;
  static constexpr std::int32_t kAllRanges = -1;

  struct Item {
    std::int32_t tile;
    std::int32_t kv_head;
    std::int32_t range;  // kAllRanges: from the first to the last, straight into the output
  };

  // A tile and KV head whose ranges became items of their own.
  struct Split {
    std::int32_t tile;
    std::int32_t kv_head;
  };

  std::vector<Tile> tiles;
  std::vector<Item> items;
  std::vector<Split> splits;
  std::int64_t num_partial_floats = 0;
};

}  // namespace octavo::kernels::cpu
