// What the attention of one tile works in and on: the tile while a range is computed, its scratch memory, and
// what is left of each query.
#pragma once

#include "kernels/cpu/simd/attention_ahead.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/stored.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr float kMinusInfinity = -__builtin_inff();

// Register tiles: queries x groups of 16 positions for the scores, queries x vectors of 16 dimensions for the
// values. They fill the registers of each instruction set and change no order. Few queries take more groups
// or vectors at once, so that there are enough independent sums to hide the latency of a multiply-add. (Alone
// on a Zen 4 with AVX-512, 64 steps: 6 x 4 reaches 97 % of the peak with floats and 95 % with f16 keys, 8 x 2
// 97 and 88 %, 4 x 4 80 % with floats. With AVX2 many queries by 2 vectors leave one sum without a register,
// and the time of values doubles: Zen 3.)
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kScoreQueries = 6, kScoreGroups = 4, kFewQueries = 4, kFewScoreGroups = 4;
constexpr int kValueQueries = 6, kValueVectors = 4, kFewValueVectors = 4;
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kScoreQueries = 6, kScoreGroups = 1, kFewQueries = 3, kFewScoreGroups = 2;
constexpr int kValueQueries = 6, kValueVectors = 1, kFewValueVectors = 2;
#else
constexpr int kScoreQueries = 2, kScoreGroups = 1, kFewQueries = 1, kFewScoreGroups = 1;
constexpr int kValueQueries = 2, kValueVectors = 2, kFewValueVectors = 2;
#endif

// Keys and values that more queries than this read are converted to floats first.
constexpr int kMostUnconverted = 8;

// Do panels of queries stream a whole range's keys and values from the second level? Where a register tile is
// small they would read it too often (AVX2 on a Zen 4: 2 % slower than chunk by chunk).
#if defined(OCTAVO_SIMD_AVX512)
constexpr bool kStreamsRanges = true;
#else
constexpr bool kStreamsRanges = false;
#endif

// Positions that a range's visits can read when all queries read them together: whole chunks.
constexpr int kMostCommonVisits = kAttentionRange / kChunk;

// Floats between two queries' scores: not a power of two, whose multiples would share a few lines of the
// cache.
constexpr int kScoreStride = kAttentionRange + kLanes;

// Dimensions of a query that stand together: a distance between queries that the compiler knows.
constexpr int kQueryPiece = 64;

constexpr std::int64_t round_up_to(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}
constexpr std::int64_t round_up(std::int64_t value) { return round_up_to(value, kLanes); }

// One query's result over some positions: weights are exp(score - max), values [value_dim padded to 16] their
// weighted sum.
struct Partial {
  float* start;
  float& max() const { return start[0]; }
  float& sum() const { return start[1]; }
  float* values() const { return start + kLanes; }
};

// Where things lie in the scratch memory; every part starts at a multiple of 64 bytes.
struct Workspace {
  Workspace(std::uintptr_t scratch, std::int64_t num_rows, std::int64_t group_size, std::int64_t head_dim,
            std::int64_t value_dim)
      : end(scratch) {
    const std::int64_t num_queries = num_rows * group_size;
    const std::int64_t partials =
        num_queries * attention_partial_floats(static_cast<std::int32_t>(value_dim));
    take(merged, partials);
    take(current, partials);
    take(scores, num_queries * kScoreStride);
    take(queries, num_queries * round_up_to(head_dim, kQueryPiece));
    take(begins, num_queries);
    take(counts, num_queries);
    take(gathered, kChunk * round_up(head_dim));
    take(keys, kAttentionRange * round_up(head_dim));
    take(values, kAttentionRange * round_up(value_dim));
    take(key_scales, kAttentionRange);
    take(value_scales, kAttentionRange);
    take(asking_steps, Ahead::most_asking_steps(head_dim));
    for (Visit*& list : visits) take(list, num_rows * kMostVisitsPerRow);
  }

  template <class Item>
  void take(Item*& start, std::int64_t count) {
    constexpr std::uintptr_t kLine = 64;
    start = reinterpret_cast<Item*>(end);
    end += (static_cast<std::uintptr_t>(count) * sizeof(Item) + kLine - 1) / kLine * kLine;
  }

  float* merged;              // partial of each query over all ranges so far
  float* current;             // partial of each query over one range
  float* scores;              // [num_queries][kScoreStride], later the weights
  float* queries;             // [pieces of the dimensions][num_queries][kQueryPiece]
  std::int32_t* begins;       // [num_queries] first position of the range that the query reads
  std::int32_t* counts;       // [num_queries] end of what it reads; 0: it reads nothing
  float* gathered;            // a visit's keys as stored, [head_dim][kChunk]
  float* keys;                // as floats: [head_dim][kChunk] for each visit of panels, else of one visit
  float* values;              // as floats: [kAttentionRange][padded value_dim] of panels, else of one visit
  float* key_scales;          // of the same positions as `keys`, times the score scale
  float* value_scales;        // of the same positions as `values`
  AskingSteps* asking_steps;  // of Ahead
  Visit* visits[3];  // of this range and the next, and, last because it may have more rows, of the next job
  std::uintptr_t end;
};

// Some queries of the tile, by default all, while one range is computed.
struct RangeJob {
  const AttentionTile& tile;
  const Workspace& workspace;
  std::int32_t first_position;
  Visits visits;
  float* partials;
  Ahead& ahead;
  int first_query = 0, end_query = tile.num_rows * tile.group_size;

  // Of the tile.
  int num_queries() const { return tile.num_rows * tile.group_size; }
  int begin(int query) const { return workspace.begins[query]; }
  int count(int query) const { return workspace.counts[query]; }
  // Of queries first..end - 1.
  int largest_count(int first, int end) const {
    int largest = 0;
    for (int query = first; query < end; ++query) largest = larger(largest, count(query));
    return largest;
  }
  int smallest_count(int first, int end) const {
    int smallest = kAttentionRange;
    for (int query = first; query < end; ++query) smallest = smaller(smallest, count(query));
    return smallest;
  }
  int largest_begin(int first, int end) const {
    int largest = 0;
    for (int query = first; query < end; ++query) largest = larger(largest, begin(query));
    return largest;
  }
  Partial partial(int query) const { return {partials + query * attention_partial_floats(tile.value_dim)}; }
  float* scores(int query) const {
    return workspace.scores + static_cast<std::int64_t>(query - first_query) * kScoreStride;
  }
};

// Lines to ask for beside each panel of queries of a visit, when all panels together ask for as much as the
// visit reads.
inline std::int64_t lines_per_panel(const AttentionTile& tile, const Visit& visit, int panel_queries) {
  const int num_panels = (visit.end_query - visit.first_query + panel_queries - 1) / panel_queries;
  const auto block_lines = static_cast<int>(tile.half_head_bytes / kLineBytes);
  return block_lines * visit.count / (tile.block_size * num_panels) + 1;
}

// scales[i] = factor * scale of the visit's position i; `values`: of its value, else of its key.
template <class Stored>
void load_scales(const AttentionTile& tile, const Visit& visit, bool values, float factor, float* scales) {
  if constexpr (Stored::kHasScales) {
    for_each_piece(tile, visit, [&](const std::byte* block, int offset, int size, int done) {
      const float* source = reinterpret_cast<const float*>(block + tile.scales_offset) + offset +
                            (values && !tile.is_latent ? tile.block_size : 0);
      for (int i = 0; i < size; ++i) scales[done + i] = source[i] * factor;
    });
  } else {
    for (int i = 0; i < kChunk; i += kLanes) store(scales + i, set1(factor * Stored::kFactor));
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
