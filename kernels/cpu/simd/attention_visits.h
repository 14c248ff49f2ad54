// The pieces in which a tile reads its keys and values: which positions, through which block table, for which
// queries.
//
// Rows of a tile may belong to several sequences. As long as neighbours stand in the same blocks, one visit
// serves all of them; where they part, the visits branch, and each branch is followed to its end before the
// next one begins. For every query the visits that concern it come in ascending order of positions, whatever
// the others share.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/kernel_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr int kChunk = 64;  // positions of a visit at most
constexpr int kGroupsPerChunk = kChunk / kLanes;
static_assert(kAttentionRange % kChunk == 0);
constexpr int kMostVisitsPerRow = kAttentionRange / kLanes;

constexpr int smaller(int a, int b) { return a < b ? a : b; }
constexpr int larger(int a, int b) { return a > b ? a : b; }

struct Visit {
  const std::int32_t* block_table;
  std::int32_t first_position;  // a multiple of kLanes
  std::int32_t count;           // 1..kChunk
  std::int32_t first_query, end_query;
  bool is_whole;  // all of its queries read all of its positions
};

OCTAVO_INLINE int num_groups(const Visit& visit) { return (visit.count + kLanes - 1) / kLanes; }

struct Visits {
  const Visit* start = nullptr;
  int size = 0;
};

// Rows first..end - 1 of a tile from `position` on, up to `range_end`.
struct VisitPlan {
  const AttentionTile& tile;
  std::int32_t range_end;
  Visit* visits;
  int size = 0;

  void add_rows(int first, int end, std::int32_t position) {
    for (;;) {
      const Bounds bounds = find_bounds(first, end);
      position = larger(position, bounds.begin / kLanes * kLanes);
      const int reach = bounds.reach;
      if (position >= reach) return;
      int last = smaller(position + kChunk, reach);
      const int split = rows_together(first, end, position, last);
      if (split < end) {
        add_rows(first, split, position);
        first = split;
        continue;
      }
      visits[size++] = {tile.rows[first].block_table,
                        position,
                        last - position,
                        first * tile.group_size,
                        end * tile.group_size,
                        bounds.common_begin <= position && bounds.common_end >= last};
      position = last;
    }
  }

 private:
  // Of what any of the rows reads, up to the end of the range, and of what all of them read.
  struct Bounds {
    int begin, reach;
    int common_begin, common_end;
  };
  Bounds find_bounds(int first, int end) const {
    Bounds bounds{range_end, 0, 0, range_end};
    for (int row = first; row < end; ++row) {
      const AttentionRow& each = tile.rows[row];
      bounds.begin = smaller(bounds.begin, each.first);
      bounds.common_begin = larger(bounds.common_begin, each.first);
      bounds.reach = larger(bounds.reach, each.position + 1);
      bounds.common_end = smaller(bounds.common_end, each.position + 1);
    }
    bounds.reach = smaller(bounds.reach, range_end);
    return bounds;
  }

  // The first row behind `first` that shares no group of positions from `position` on; shortens the visit's
  // `last` to what all before it share.
  int rows_together(int first, int end, std::int32_t position, int& last) const {
    for (int row = first + 1; row < end; ++row) {
      const int shared = tile.rows[row].num_shared;
      if (shared >= last) continue;
      const int groups = (shared - position) / kLanes;
      if (shared < position || groups == 0) return row;
      last = position + groups * kLanes;
    }
    return end;
  }
};

// Visits of one range into `target` [num_rows * kMostVisitsPerRow].
inline Visits plan_visits(const AttentionTile& tile, std::int32_t range, Visit* target) {
  VisitPlan plan{tile, (range + 1) * kAttentionRange, target};
  plan.add_rows(0, tile.num_rows, range * kAttentionRange);
  return {target, plan.size};
}

// ---- where a visit's positions lie

// K of the block that holds a position.
OCTAVO_INLINE const std::byte* block_at(const AttentionTile& tile, const Visit& visit, int position) {
  return tile.kv + visit.block_table[position / tile.block_size] * tile.block_bytes;
}

// Calls function(block, offset, size, done) for each block's piece of the visit: `size` positions from
// `offset` in the block on, after `done` earlier ones.
template <class Function>
OCTAVO_INLINE void for_each_piece(const AttentionTile& tile, const Visit& visit, const Function& function) {
  for (int done = 0; done < visit.count;) {
    const int position = visit.first_position + done;
    const int offset = position % tile.block_size;
    const int size = smaller(tile.block_size - offset, visit.count - done);
    function(block_at(tile, visit, position), offset, size, done);
    done += size;
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
