// Sums of weighted values, each one chain over the positions of a range, ascending.
#pragma once

#include "kernels/cpu/simd/attention_scores.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Some queries with positions next to each other.
template <class Stored>
struct ValueTask {
  const typename Stored::Word* const* rows;  // the value of each position
  int count;                                 // positions
  const float* weights;                      // of the first query and position
  float* sums;                               // of the first query
  std::int32_t value_dim;
  bool begins;  // nothing is in `sums` yet
};

// One register tile. kAsks: asks for lines ahead meanwhile.
template <class Stored, int kQueries, int kVectors, bool kAsks>
void value_tile(const ValueTask<Stored>& task, int dimension, Ahead& ahead) {
  constexpr int kLines = larger(1, static_cast<int>(sizeof(typename Stored::Word)) * kVectors / 4);
  const std::int64_t sums_stride = attention_partial_floats(task.value_dim);
  float* sums = task.sums + dimension;
  F32x16 totals[kQueries][kVectors];
  OCTAVO_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) totals[i][v] = zero();
  }
  if (!task.begins) {
    OCTAVO_UNROLL
    for (int i = 0; i < kQueries; ++i) {
      OCTAVO_UNROLL
      for (int v = 0; v < kVectors; ++v) totals[i][v] = load(sums + i * sums_stride + v * kLanes);
    }
  }
  const AskingSteps* steps = kAsks ? ahead.plan_steps(task.count, kLines, kChunk) : nullptr;
  for (int begin = 0; begin < task.count;) {
    const int end = kAsks ? begin + steps->num_steps : task.count;
    const std::byte* line = kAsks ? steps->line : nullptr;
    const std::int64_t step_bytes = kAsks ? steps->step_bytes : 0;
    for (int t = begin; t < end; ++t) {
      if constexpr (kAsks) {
        OCTAVO_UNROLL
        for (int i = 0; i < kLines; ++i) ask_for_line(line + i * kLineBytes);
        line += step_bytes;
      }
      F32x16 value[kVectors];
      OCTAVO_UNROLL
      for (int v = 0; v < kVectors; ++v) value[v] = Stored::read(task.rows[t] + dimension + v * kLanes);
      OCTAVO_UNROLL
      for (int i = 0; i < kQueries; ++i) {
        const F32x16 weight = set1(task.weights[i * kScoreStride + t]);
        OCTAVO_UNROLL
        for (int v = 0; v < kVectors; ++v) totals[i][v] = fma(weight, value[v], totals[i][v]);
      }
    }
    begin = end;
    ++steps;
  }
  OCTAVO_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) store(sums + i * sums_stride + v * kLanes, totals[i][v]);
  }
}

template <class Stored, int kQueries, bool kAsks>
void value_panel(int num_queries, const ValueTask<Stored>& task, Ahead& ahead) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries) return value_panel<Stored, kQueries - 1, kAsks>(num_queries, task, ahead);
  }
  const int dimensions = static_cast<int>(round_up(task.value_dim));
  constexpr int kVectors = kQueries <= kFewQueries ? kFewValueVectors : kValueVectors;
  constexpr int kWide = kVectors * kLanes;
  int d = 0;
  for (; d + kWide <= dimensions; d += kWide) value_tile<Stored, kQueries, kVectors, kAsks>(task, d, ahead);
  for (; d < dimensions; d += kLanes) value_tile<Stored, kQueries, 1, kAsks>(task, d, ahead);
}

// Adds a visit's weighted values for queries first..end - 1. Positions that all of them read go through the
// tile; the few before and behind, which only some read, go query by query: another row's values are never
// touched, so not even an infinity in them can show. `begins`: nothing is in the sums yet; only of whole
// visits.
template <class Stored, bool kAsks>
void add_values(const RangeJob& job, const Visit& visit, const typename Stored::Word* const* rows, int first,
                int end, bool begins) {
  const int begin = visit.first_position - job.first_position;
  const auto add_positions = [&](int from, int to, int query, int num_queries) {
    if (from >= to) return;
    const ValueTask<Stored> task{rows + (from - begin),       to - from,          job.scores(query) + from,
                                 job.partial(query).values(), job.tile.value_dim, begins};
    value_panel<Stored, kValueQueries, kAsks>(num_queries, task, job.ahead);
  };
  const int visit_end = begin + visit.count;
  if (visit.is_whole) return add_positions(begin, visit_end, first, end - first);
  const int common_begin = smaller(visit_end, larger(begin, job.largest_begin(first, end)));
  const int common_end = larger(common_begin, smaller(visit_end, job.smallest_count(first, end)));
  if (common_begin > begin) {
    for (int query = first; query < end; ++query)
      add_positions(larger(begin, job.begin(query)), smaller(common_begin, job.count(query)), query, 1);
  }
  add_positions(common_begin, common_end, first, end - first);
  for (int query = first; query < end; ++query)
    add_positions(common_end, smaller(visit_end, job.count(query)), query, 1);
}

template <class Stored, bool kAsks>
void add_values_to_all(const RangeJob& job, const Visit& visit, const typename Stored::Word* const* rows) {
  const std::int64_t num_lines = kAsks ? 0 : lines_per_panel(job.tile, visit, kValueQueries);
  for (int first = visit.first_query; first < visit.end_query; first += kValueQueries) {
    const int end = smaller(first + kValueQueries, visit.end_query);
    job.ahead.ask(num_lines);
    add_values<Stored, kAsks>(job, visit, rows, first, end, /*begins=*/false);
  }
}

inline void clear_sums(const RangeJob& job) {
  for (int query = job.first_query; query < job.end_query; ++query) {
    if (job.count(query) == 0) continue;
    for (int d = 0; d < job.tile.value_dim; d += kLanes) store(job.partial(query).values() + d, zero());
  }
}

template <class Stored>
void convert_values(const typename Stored::Word* source, int value_dim, float* target) {
  int d = 0;
  for (; d + kLanes <= value_dim; d += kLanes) store(target + d, Stored::read(source + d));
  if (d == value_dim) return;
  typename Stored::Word words[kLanes] = {};  // a whole vector would reach past the last value of the pool
  for (int lane = 0; d + lane < value_dim; ++lane) words[lane] = source[d + lane];
  store(target + d, Stored::read(words));
}

template <class Stored>
constexpr bool scales_values() {
  return Stored::kHasScales || Stored::kFactor != 1.0f;
}

// Of types with scales or a factor: weights times that of their position's value. (The sum of the weights is
// without them.)
inline void scale_weights(const RangeJob& job, const Visit& visit, const float* scales) {
  const int end_query = smaller(visit.end_query, job.end_query);
  for (int query = larger(visit.first_query, job.first_query); query < end_query; ++query) {
    float* weights = job.scores(query) + (visit.first_position - job.first_position);
    for (int i = 0; i < visit.count; i += kLanes)
      store(weights + i, mul(load(weights + i), load(scales + i)));
  }
}

// Four rows of four numbers become columns.
OCTAVO_INLINE void transpose_square(const float* source, std::int64_t source_stride, float* target,
                                    std::int64_t target_stride) {
  typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
  const auto row = [&](int i) { return *reinterpret_cast<const Four*>(source + i * source_stride); };
  const auto put = [&](int i, Four values) { *reinterpret_cast<Four*>(target + i * target_stride) = values; };
  const Four a = row(0), b = row(1), c = row(2), d = row(3);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  put(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// The first value_dim dimensions of a visit's converted keys [dimensions][kChunk], as values [count][padded].
inline void values_of_keys(const float* keys, int count, int value_dim, float* values) {
  constexpr int kSide = 4;
  const std::int64_t padded = round_up(value_dim);
  int t = 0;
  for (; t + kSide <= count; t += kSide) {
    int d = 0;
    for (; d + kSide <= value_dim; d += kSide)
      transpose_square(keys + d * kChunk + t, kChunk, values + t * padded + d, padded);
    for (; d < value_dim; ++d) {
      for (int i = 0; i < kSide; ++i) values[(t + i) * padded + d] = keys[d * kChunk + t + i];
    }
  }
  for (; t < count; ++t) {
    for (int d = 0; d < value_dim; ++d) values[t * padded + d] = keys[d * kChunk + t];
  }
  for (t = 0; t < count; ++t) {
    for (std::int64_t d = value_dim; d < padded; ++d) values[t * padded + d] = 0.0f;
  }
}

// Of a visit of a latent tile; they are converted again, because a range's floats do not fit the second
// level.
template <class Stored>
void load_latent_values(const RangeJob& job, const Visit& visit) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  Word* gathered = reinterpret_cast<Word*>(job.workspace.gathered);
  with_key_places(tile.block_size, [&](auto places) {
    constexpr KeyPlaces kPlaces = decltype(places)::kValue;
    convert_keys<Stored, kPlaces>(locate_keys<Word, kPlaces>(tile, visit, gathered), num_groups(visit),
                                  tile.value_dim, job.workspace.keys);
  });
  values_of_keys(job.workspace.keys, visit.count, tile.value_dim, job.workspace.values);
}

template <class Stored>
void compute_values(const RangeJob& job) {
  clear_sums(job);
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  const std::int64_t padded = round_up(tile.value_dim);
  const Word* rows[kChunk];  // the value of each position of a visit
  const float* converted_rows[kChunk];
  for (int i = 0; i < kChunk; ++i) converted_rows[i] = job.workspace.values + i * padded;
  for (int v = 0; v < job.visits.size; ++v) {
    const Visit& visit = job.visits.start[v];
    if constexpr (scales_values<Stored>()) {
      float* scales = job.workspace.value_scales;
      load_scales<Stored>(tile, visit, /*values=*/true, 1.0f, scales);
      scale_weights(job, visit, scales);
    }
    if (tile.is_latent) {
      load_latent_values<Stored>(job, visit);
      add_values_to_all<StoredF32, /*kAsks=*/false>(job, visit, converted_rows);
      continue;
    }
    for_each_piece(tile, visit, [&](const std::byte* block, int offset, int size, int done) {
      const Word* values = reinterpret_cast<const Word*>(block + tile.half_head_bytes);
      for (int i = 0; i < size; ++i) rows[done + i] = values + (offset + i) * tile.value_dim;
    });
    if (padded == tile.value_dim && visit.end_query - visit.first_query <= kMostUnconverted) {
      add_values_to_all<Stored, /*kAsks=*/true>(job, visit, rows);
      continue;
    }
    for (int i = 0; i < visit.count; ++i)
      convert_values<Stored>(rows[i], tile.value_dim, job.workspace.values + i * padded);
    add_values_to_all<StoredF32, /*kAsks=*/false>(job, visit, converted_rows);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
