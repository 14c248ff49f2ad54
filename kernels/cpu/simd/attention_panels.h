// A range that all queries of a tile read together, as those of a long prompt do: its keys and values are
// converted to floats once, and then panels of a few queries go through scores, weights and values one after
// the other.
//
// A panel's scores stay in the first-level cache and its sums in registers, while the range's keys and values
// (64 KiB each for 64 dimensions) stream from the second level, which keeps up: a register tile reads 4
// vectors of them for 24 multiply-adds. (Zen 4: 76 % of the peak at the end of 4,096 tokens. Where each chunk
// of positions went through all queries before the next, 71 %: their scores and sums went to the second level
// and back.)
#pragma once

#include "kernels/cpu/simd/attention_scores.h"
#include "kernels/cpu/simd/attention_values.h"
#include "kernels/cpu/simd/attention_weights.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr int kPanelQueries = 2 * kScoreQueries;
static_assert(kPanelQueries % kScoreQueries == 0 && kPanelQueries % kValueQueries == 0);

// Fewer queries than these go chunk by chunk: their scores and sums are small, and a chunk's keys and values
// stay in the first-level cache from their conversion on. (Sapphire Rapids, one thread, a step behind 6,400
// tokens, panels and chunks: 16 rows of three queries 89.8 and 83.4 ms, 24 rows 121.9 and 118.4, 32 rows
// 157.5 and 154.5, 64 rows 296 and 297.)
constexpr int kFewestOfPanels = 128;

// Is it such a range, and are there enough queries to pay for converting it? A latent range's floats (1.1 MB
// for keys of 576 and values of 512) would not stay in the second level.
inline bool takes_panels(const AttentionTile& tile, Visits visits) {
  if (!kStreamsRanges || tile.is_latent) return false;
  const int num_queries = tile.num_rows * tile.group_size;
  if (num_queries < kFewestOfPanels || visits.size == 0 || visits.size > kMostCommonVisits) return false;
  for (int v = 0; v < visits.size; ++v) {
    const Visit& visit = visits.start[v];
    if (visit.first_query != 0 || visit.end_query != num_queries) return false;
  }
  return true;
}

inline float* keys_of_visit(const RangeJob& job, int v) {
  return job.workspace.keys + std::int64_t{v} * kChunk * job.tile.head_dim;
}

template <class Stored>
void convert_keys_of_range(const RangeJob& job) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  for (int v = 0; v < job.visits.size; ++v) {
    const Visit& visit = job.visits.start[v];
    load_scales<Stored>(tile, visit, /*values=*/false, tile.score_scale,
                        job.workspace.key_scales + v * kChunk);
    with_key_places(tile.block_size, [&](auto places) {
      constexpr KeyPlaces kPlaces = decltype(places)::kValue;
      const KeyChunk<Word> keys =
          locate_keys<Word, kPlaces>(tile, visit, reinterpret_cast<Word*>(job.workspace.gathered));
      convert_keys<Stored, kPlaces>(keys, num_groups(visit), tile.head_dim, keys_of_visit(job, v));
    });
  }
}

template <class Stored>
void convert_values_of_range(const RangeJob& job) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  const std::int64_t padded = round_up(tile.value_dim);
  float* target = job.workspace.values;
  for (int v = 0; v < job.visits.size; ++v) {
    const Visit& visit = job.visits.start[v];
    if constexpr (scales_values<Stored>())
      load_scales<Stored>(tile, visit, /*values=*/true, 1.0f, job.workspace.value_scales + v * kChunk);
    for_each_piece(tile, visit, [&](const std::byte* block, int offset, int size, int) {
      const Word* values = reinterpret_cast<const Word*>(block + tile.half_head_bytes);
      for (int i = 0; i < size; ++i, target += padded)
        convert_values<Stored>(values + (offset + i) * tile.value_dim, tile.value_dim, target);
    });
  }
}

// All visits of the range as one.
inline Visit whole_range(const RangeJob& job) {
  Visit range = job.visits.start[0];
  for (int v = 1; v < job.visits.size; ++v) {
    range.count += job.visits.start[v].count;
    range.is_whole = range.is_whole && job.visits.start[v].is_whole;
  }
  return range;
}

// The job's queries; rows: the value of each position of `range`.
template <class Stored>
void attend_panel(const RangeJob& job, const Visit& range, const float* const* rows) {
  for (int v = 0; v < job.visits.size; ++v)
    score_visit<StoredF32, KeyPlaces::kAdjacent, /*kAsks=*/false>(
        job, job.visits.start[v], adjacent_keys<float>(keys_of_visit(job, v)),
        job.workspace.key_scales + v * kChunk, /*num_lines_per_panel=*/0);
  compute_all_weights(job);
  if constexpr (scales_values<Stored>()) {
    for (int v = 0; v < job.visits.size; ++v)
      scale_weights(job, job.visits.start[v], job.workspace.value_scales + v * kChunk);
  }
  if (!range.is_whole) clear_sums(job);
  for (int first = job.first_query; first < job.end_query; first += kValueQueries)
    add_values<StoredF32, /*kAsks=*/false>(job, range, rows, first,
                                           smaller(first + kValueQueries, job.end_query),
                                           /*begins=*/range.is_whole);
}

// Calls done(panel) behind each panel. Meanwhile asks for what `next` reads, keys first.
template <class Stored, class Done>
void attend_by_panels(const RangeJob& job, const AttentionTile* next_tile, Visits next, const Done& done) {
  convert_keys_of_range<Stored>(job);
  convert_values_of_range<Stored>(job);
  const Visit range = whole_range(job);
  const std::int64_t padded = round_up(job.tile.value_dim);
  const float* rows[kAttentionRange];
  for (int i = 0; i < range.count; ++i) rows[i] = job.workspace.values + i * padded;

  const int num_queries = job.num_queries();
  const int middle = num_queries / 2 / kPanelQueries * kPanelQueries;
  const std::int64_t num_lines =
      next_tile == nullptr ? 0
                           : next_tile->half_head_bytes * kAttentionRange * kPanelQueries /
                                     (larger(middle, kPanelQueries) * kLineBytes * next_tile->block_size) +
                                 1;
  job.ahead.follow_next(next_tile, next);
  for (int first = 0; first < num_queries; first += kPanelQueries) {
    RangeJob panel = job;
    panel.first_query = first;
    panel.end_query = smaller(first + kPanelQueries, num_queries);
    if (first == middle && next_tile != nullptr) {  // half of the panels for the keys, half for the values
      job.ahead.ask_for_all();
      job.ahead.follow_values(*next_tile, next);
    }
    job.ahead.ask(num_lines);
    if (job.largest_count(first, panel.end_query) == 0) continue;
    attend_panel<Stored>(panel, range, rows);
    done(panel);
  }
  job.ahead.ask_for_all();
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
