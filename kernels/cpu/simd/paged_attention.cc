// Attention of one tile over ranges of positions: scores, softmax, value sums, each over 32 positions at a
// time, so that converted keys and values stay in the first-level cache while every query of the tile uses
// them.
//
// Order of each query's sums, the same in every tile, for every block size and instruction set:
//   score   one chain over the dimensions, ascending
//   softmax over a range: 16 lanes, each adding every 16th position ascending; then horizontal_sum
//   values  one chain over the positions of a range, ascending; ranges merged ascending as in Milakov &
//   Gimelshein 2018
//           (arXiv:1805.02867)
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/stored.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr int kChunk = 32;  // positions
constexpr int kGroupsPerChunk = kChunk / kLanes;
static_assert(kAttentionRange % kChunk == 0);
constexpr float kMinusInfinity = -__builtin_inff();

// Register tiles: queries x groups of 16 positions for the scores, queries x vectors of 16 dimensions for the
// values. They fill the registers of each instruction set and change no order.
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kScoreQueries = 8, kScoreGroups = 2, kValueQueries = 4, kValueVectors = 4;
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kScoreQueries = 6, kScoreGroups = 1, kValueQueries = 3, kValueVectors = 2;
#else
constexpr int kScoreQueries = 2, kScoreGroups = 1, kValueQueries = 2, kValueVectors = 2;
#endif

constexpr std::int64_t round_up(std::int64_t value) { return (value + kLanes - 1) / kLanes * kLanes; }
constexpr int smaller(int a, int b) { return a < b ? a : b; }
constexpr int larger(int a, int b) { return a > b ? a : b; }

// One query's result over some positions: weights are exp(score - max), values [head_dim padded to 16] their
// weighted sum.
struct Partial {
  float* start;
  float& max() const { return start[0]; }
  float& sum() const { return start[1]; }
  float* values() const { return start + kLanes; }
};

// Where things lie in the scratch memory; every part starts at a multiple of 64 bytes.
struct Workspace {
  Workspace(float* scratch, std::int64_t num_queries, std::int64_t head_dim)
      : merged(scratch),
        current(merged + num_queries * attention_partial_floats(static_cast<std::int32_t>(head_dim))),
        scores(current + num_queries * attention_partial_floats(static_cast<std::int32_t>(head_dim))),
        packed_queries(scores + num_queries * kAttentionRange),
        gathered(packed_queries + round_up(num_queries * head_dim)),
        converted(gathered + kChunk * round_up(head_dim)),
        key_scales(converted + kChunk * round_up(head_dim)),
        value_scales(key_scales + kChunk) {}

  float* merged;          // partial of each query over all ranges so far
  float* current;         // partial of each query over one range
  float* scores;          // [num_queries][kAttentionRange], later the weights
  float* packed_queries;  // panels of kScoreQueries queries, each [head_dim][queries of the panel]
  float* gathered;        // a chunk of keys as stored, [head_dim][kChunk]
  float* converted;       // a chunk of keys [head_dim][kChunk] or values [kChunk][padded head_dim] as floats
  float* key_scales;      // [kChunk], times the score scale
  float* value_scales;    // [kAttentionRange]
};

// The tile while one range is computed.
struct RangeJob {
  const AttentionTile& tile;
  const Workspace& workspace;
  std::int32_t first_position;
  std::int32_t end_position;  // of what the caller reads in this and later ranges
  float* partials;

  int num_queries() const { return tile.num_rows * tile.group_size; }
  // How many positions of the range the query reads; ascending with the query.
  int count(int query) const {
    const int reached = tile.positions[query / tile.group_size] + 1 - first_position;
    return larger(0, smaller(reached, kAttentionRange));
  }
  int tile_count() const { return count(num_queries() - 1); }
  Partial partial(int query) const { return {partials + query * attention_partial_floats(tile.head_dim)}; }
  float* scores(int query) const {
    return workspace.scores + static_cast<std::int64_t>(query) * kAttentionRange;
  }
};

void pack_queries(const AttentionTile& tile, const Workspace& workspace) {
  const int num_queries = tile.num_rows * tile.group_size;
  for (int first = 0; first < num_queries; first += kScoreQueries) {
    const int size = smaller(kScoreQueries, num_queries - first);
    float* panel = workspace.packed_queries + static_cast<std::int64_t>(first) * tile.head_dim;
    for (int i = 0; i < size; ++i) {
      const int row = (first + i) / tile.group_size, head = (first + i) % tile.group_size;
      const float* query = tile.q + row * tile.q_stride + static_cast<std::int64_t>(head) * tile.head_dim;
      for (int d = 0; d < tile.head_dim; ++d) panel[d * size + i] = query[d];
    }
  }
}

// ---- where things lie
// ------------------------------------------------------------------------------------------------

// K of the block that holds a position.
OCTAVO_INLINE const std::byte* block_at(const AttentionTile& tile, int position) {
  return tile.kv + tile.block_table[position / tile.block_size] * tile.block_bytes;
}

// Calls function(block, offset, size, done) for each block's piece of positions [first, first + count):
// `size` positions from `offset` in the block on, after `done` earlier ones.
template <class Function>
OCTAVO_INLINE void for_each_piece(const AttentionTile& tile, int first, int count, const Function& function) {
  for (int done = 0; done < count;) {
    const int offset = (first + done) % tile.block_size;
    const int size = smaller(tile.block_size - offset, count - done);
    function(block_at(tile, first + done), offset, size, done);
    done += size;
  }
}

// scales[i] = factor * scale of position first + i; `values`: of its value, else of its key.
template <class Stored>
void load_scales(const AttentionTile& tile, int first, int count, bool values, float factor, float* scales) {
  if constexpr (Stored::kHasScales) {
    for_each_piece(tile, first, count, [&](const std::byte* block, int offset, int size, int done) {
      const float* source = reinterpret_cast<const float*>(block + tile.scales_offset) + offset +
                            (values ? tile.block_size : 0);
      for (int i = 0; i < size; ++i) scales[done + i] = source[i] * factor;
    });
  } else {
    for (int i = 0; i < count; i += kLanes) store(scales + i, set1(factor * Stored::kFactor));
  }
}

// ---- asking for memory ahead
// ------------------------------------------------------------------------------------------------
//
// The hardware's prefetchers follow the bytes of a block but not a block table. Without this, one row over
// 2,048 positions of f16 in 30 layers takes 1.7 times as long (4.4 ms instead of 2.6 on a Zen 5 core).
// Inlined by force: GCC takes a function that only prefetches for one without effect and drops its calls.

constexpr int kKeysAhead = 2 * kChunk;            // positions: about the time that memory takes
constexpr int kFirstLevel = 3, kSecondLevel = 2;  // __builtin_prefetch's names of caches

template <int kLevel>
OCTAVO_INLINE void prefetch_bytes(const std::byte* start, std::int64_t num_bytes) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t i = 0; i < num_bytes; i += kLine) __builtin_prefetch(start + i, 0, kLevel);
}

template <class Stored>
OCTAVO_INLINE void prefetch_keys(const AttentionTile& tile, int first, int end) {
  constexpr std::int64_t kWordBytes = sizeof(typename Stored::Word);
  for_each_piece(
      tile, first, end - first, [&](const std::byte* block, int offset, int size, int) OCTAVO_INLINE_LAMBDA {
        if constexpr (Stored::kHasScales)
          prefetch_bytes<kFirstLevel>(block + tile.scales_offset, std::int64_t{8} * tile.block_size);
        if (tile.block_size <= kChunk) return prefetch_bytes<kFirstLevel>(block, tile.half_head_bytes);
        for (std::int64_t d = 0; d < tile.head_dim; ++d)
          prefetch_bytes<kFirstLevel>(block + (d * tile.block_size + offset) * kWordBytes, size * kWordBytes);
      });
}

// Into the second level: values are read when the scores of the whole range are done.
template <class Stored>
OCTAVO_INLINE void prefetch_values(const AttentionTile& tile, int first, int end) {
  const std::int64_t token_bytes = tile.head_dim * std::int64_t{sizeof(typename Stored::Word)};
  for_each_piece(
      tile, first, end - first, [&](const std::byte* block, int offset, int size, int) OCTAVO_INLINE_LAMBDA {
        prefetch_bytes<kSecondLevel>(block + tile.half_head_bytes + offset * token_bytes, size * token_bytes);
      });
}

// What is read while the positions from `first` on are scored, and a little later.
template <class Stored>
OCTAVO_INLINE void prefetch_chunk(const RangeJob& job, int first, int count) {
  const int keys = first + kKeysAhead;
  prefetch_keys<Stored>(job.tile, keys, smaller(keys + kChunk, job.end_position));
  prefetch_values<Stored>(job.tile, first, first + count);
}

// ---- keys and scores
// ------------------------------------------------------------------------------------------------

// Sixteen positions' keys of dimension 0: the first eight and the last eight. They are neighbours unless a
// block ends in between.
template <class Word>
struct KeyGroup {
  const Word *low, *high;
};

// A chunk of keys, and how far two dimensions lie apart.
template <class Word>
struct KeyChunk {
  KeyGroup<Word> groups[kGroupsPerChunk];
  std::int64_t stride;
  int num_groups;
};

template <class Stored, bool kSplit>
OCTAVO_INLINE F32x16 read_keys(const KeyGroup<typename Stored::Word>& group, std::int64_t index) {
  if constexpr (kSplit) return Stored::read(group.low + index, group.high + index);
  return Stored::read(group.low + index);
}

template <class Word>
KeyChunk<Word> contiguous_keys(const Word* keys, int count) {
  constexpr int kHalf = kLanes / 2;
  return {
      {{keys, keys + kHalf}, {keys + kLanes, keys + kLanes + kHalf}}, kChunk, (count + kLanes - 1) / kLanes};
}

// Block sizes that are no multiple of 8: copies the positions of the chunk next to each other, piece by
// piece.
template <class Word>
KeyChunk<Word> gather_keys(const AttentionTile& tile, int first, int count, Word* gathered) {
  for_each_piece(tile, first, count, [&](const std::byte* block, int offset, int size, int done) {
    const Word* source = reinterpret_cast<const Word*>(block) + offset;
    for (int d = 0; d < tile.head_dim; ++d) {
      for (int i = 0; i < size; ++i) gathered[d * kChunk + done + i] = source[d * tile.block_size + i];
    }
  });
  return contiguous_keys<Word>(gathered, count);
}

template <class Word>
KeyChunk<Word> locate_keys(const AttentionTile& tile, int first, int count, Word* gathered) {
  constexpr int kHalf = kLanes / 2;
  if (tile.block_size % kHalf != 0) return gather_keys(tile, first, count, gathered);
  const auto keys_at = [&](int position) {
    return reinterpret_cast<const Word*>(block_at(tile, position)) + position % tile.block_size;
  };
  KeyChunk<Word> chunk{{}, tile.block_size, (count + kLanes - 1) / kLanes};
  for (int group = 0; group < chunk.num_groups; ++group) {
    const int begin = group * kLanes;
    const Word* low = keys_at(first + begin);
    // Past the end there may be no block; those lanes are masked later, so anything will do.
    chunk.groups[group] = {low, begin + kHalf < count ? keys_at(first + begin + kHalf) : low};
  }
  return chunk;
}

template <class Stored, bool kSplit>
KeyChunk<float> convert_keys(const KeyChunk<typename Stored::Word>& keys, int count, int head_dim,
                             float* converted) {
  for (int d = 0; d < head_dim; ++d) {
    for (int group = 0; group < keys.num_groups; ++group) {
      store(converted + d * kChunk + group * kLanes,
            read_keys<Stored, kSplit>(keys.groups[group], d * keys.stride));
    }
  }
  return contiguous_keys<float>(converted, count);
}

template <class Stored, bool kSplit, int kQueries, int kGroups>
void score_tile(const KeyGroup<typename Stored::Word>* groups, std::int64_t stride, int head_dim,
                const float* queries, const float* scales, float* scores) {
  F32x16 sums[kQueries][kGroups];
  for (int i = 0; i < kQueries; ++i) {
    for (int group = 0; group < kGroups; ++group) sums[i][group] = zero();
  }
  for (int d = 0; d < head_dim; ++d) {
    F32x16 keys[kGroups];
    for (int group = 0; group < kGroups; ++group)
      keys[group] = read_keys<Stored, kSplit>(groups[group], d * stride);
    for (int i = 0; i < kQueries; ++i) {
      const F32x16 query = set1(queries[d * kQueries + i]);
      for (int group = 0; group < kGroups; ++group) sums[i][group] = fma(query, keys[group], sums[i][group]);
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int group = 0; group < kGroups; ++group) {
      store(scores + i * kAttentionRange + group * kLanes,
            mul(sums[i][group], load(scales + group * kLanes)));
    }
  }
}

template <class Stored, bool kSplit, int kQueries>
void score_panel(int num_queries, const KeyChunk<typename Stored::Word>& keys, int head_dim,
                 const float* queries, const float* scales, float* scores) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries) {
      return score_panel<Stored, kSplit, kQueries - 1>(num_queries, keys, head_dim, queries, scales, scores);
    }
  }
  int group = 0;
  for (; group + kScoreGroups <= keys.num_groups; group += kScoreGroups) {
    score_tile<Stored, kSplit, kQueries, kScoreGroups>(keys.groups + group, keys.stride, head_dim, queries,
                                                       scales + group * kLanes, scores + group * kLanes);
  }
  for (; group < keys.num_groups; ++group) {
    score_tile<Stored, kSplit, kQueries, 1>(keys.groups + group, keys.stride, head_dim, queries,
                                            scales + group * kLanes, scores + group * kLanes);
  }
}

// Scores of the queries that reach the chunk, `offset` positions into the range.
template <class Stored, bool kSplit>
void score_chunk(const RangeJob& job, const KeyChunk<typename Stored::Word>& keys, int offset) {
  for (int first = 0; first < job.num_queries(); first += kScoreQueries) {
    const int size = smaller(kScoreQueries, job.num_queries() - first);
    if (job.count(first + size - 1) <= offset) continue;
    const float* queries =
        job.workspace.packed_queries + static_cast<std::int64_t>(first) * job.tile.head_dim;
    score_panel<Stored, kSplit, kScoreQueries>(size, keys, job.tile.head_dim, queries,
                                               job.workspace.key_scales, job.scores(first) + offset);
  }
}

template <class Stored, bool kSplit>
void compute_scores_of(const RangeJob& job) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  const bool many_panels = job.num_queries() > kScoreQueries;  // then converting once pays
  Word* gathered = reinterpret_cast<Word*>(job.workspace.gathered);
  for (int offset = 0; offset < job.tile_count(); offset += kChunk) {
    const int first = job.first_position + offset, count = smaller(kChunk, job.tile_count() - offset);
    const KeyChunk<Word> keys = locate_keys(tile, first, count, gathered);
    prefetch_chunk<Stored>(job, first, count);
    load_scales<Stored>(tile, first, count, /*values=*/false, tile.score_scale, job.workspace.key_scales);
    if (many_panels) {
      const KeyChunk<float> converted =
          convert_keys<Stored, kSplit>(keys, count, tile.head_dim, job.workspace.converted);
      score_chunk<StoredF32, false>(job, converted, offset);
    } else {
      score_chunk<Stored, kSplit>(job, keys, offset);
    }
  }
}

template <class Stored>
void compute_scores(const RangeJob& job) {
  const bool is_split = job.tile.block_size % kLanes == kLanes / 2;
  if (is_split) return compute_scores_of<Stored, true>(job);
  compute_scores_of<Stored, false>(job);
}

// ---- softmax
// --------------------------------------------------------------------------------------------------------

// Lanes past `count` hold other rows' keys or nothing at all; -infinity makes their weights exact zeros.
OCTAVO_INLINE F32x16 load_scores(const float* scores, int i, int count) {
  const F32x16 group = load(scores + i);
  return i + kLanes <= count ? group : select_first(count - i, group, set1(kMinusInfinity));
}

// Scores to weights, in place. The sum is of the weights themselves; what is stored for the values is times
// their scales, if there are any.
template <bool kScaled>
void compute_weights(float* scores, int count, const float* value_scales, Partial partial) {
  F32x16 largest = set1(kMinusInfinity);
  for (int i = 0; i < count; i += kLanes) largest = max(load_scores(scores, i, count), largest);
  partial.max() = horizontal_max(largest);
  const F32x16 shift = set1(partial.max());
  F32x16 sum = zero();
  for (int i = 0; i < count; i += kLanes) {
    const F32x16 weights = exp(sub(load_scores(scores, i, count), shift));
    store(scores + i, kScaled ? mul(weights, load(value_scales + i)) : weights);
    sum = add(sum, weights);
  }
  partial.sum() = horizontal_sum(sum);
}

// ---- values
// ---------------------------------------------------------------------------------------------------------

template <class Stored, int kQueries, int kVectors>
void value_tile(const typename Stored::Word* const* rows, int dimension, int count, const float* weights,
                float* sums, std::int64_t sums_stride) {
  F32x16 totals[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) totals[i][v] = load(sums + i * sums_stride + v * kLanes);
  }
  for (int t = 0; t < count; ++t) {
    F32x16 value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = Stored::read(rows[t] + dimension + v * kLanes);
    for (int i = 0; i < kQueries; ++i) {
      const F32x16 weight = set1(weights[i * kAttentionRange + t]);
      for (int v = 0; v < kVectors; ++v) totals[i][v] = fma(weight, value[v], totals[i][v]);
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) store(sums + i * sums_stride + v * kLanes, totals[i][v]);
  }
}

template <class Stored, int kQueries>
void value_panel(int num_queries, const typename Stored::Word* const* rows, int count, const float* weights,
                 float* sums, std::int32_t head_dim) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries) {
      return value_panel<Stored, kQueries - 1>(num_queries, rows, count, weights, sums, head_dim);
    }
  }
  const std::int64_t sums_stride = attention_partial_floats(head_dim);
  const int dimensions = static_cast<int>(round_up(head_dim));
  constexpr int kWide = kValueVectors * kLanes;
  int d = 0;
  for (; d + kWide <= dimensions; d += kWide) {
    value_tile<Stored, kQueries, kValueVectors>(rows, d, count, weights, sums + d, sums_stride);
  }
  for (; d < dimensions; d += kLanes) {
    value_tile<Stored, kQueries, 1>(rows, d, count, weights, sums + d, sums_stride);
  }
}

// Adds the chunk's weighted values, which stand at rows[0, end - begin), for queries first..first + size - 1.
// Positions that all of them read go through the tile; the few behind, which only the later rows read, go
// query by query: another row's values are never touched, so not even an infinity in them can show.
template <class Stored>
void add_values(const RangeJob& job, const typename Stored::Word* const* rows, int begin, int end, int first,
                int size) {
  const auto add_positions = [&](int from, int to, int query, int num_queries) {
    if (from >= to) return;
    value_panel<Stored, kValueQueries>(num_queries, rows + (from - begin), to - from,
                                       job.scores(query) + from, job.partial(query).values(),
                                       job.tile.head_dim);
  };
  const int common = larger(begin, smaller(end, job.count(first)));
  add_positions(begin, common, first, size);
  for (int query = first; query < first + size; ++query) {
    add_positions(common, smaller(end, job.count(query)), query, 1);
  }
}

template <class Stored>
void add_values_to_all(const RangeJob& job, const typename Stored::Word* const* rows, int begin, int end) {
  for (int first = 0; first < job.num_queries(); first += kValueQueries) {
    const int size = smaller(kValueQueries, job.num_queries() - first);
    if (job.count(first + size - 1) > begin) add_values<Stored>(job, rows, begin, end, first, size);
  }
}

template <class Stored>
void convert_values(const typename Stored::Word* source, int head_dim, float* target) {
  int d = 0;
  for (; d + kLanes <= head_dim; d += kLanes) store(target + d, Stored::read(source + d));
  if (d == head_dim) return;
  typename Stored::Word words[kLanes] = {};  // a whole vector would reach past the last value of the pool
  for (int lane = 0; d + lane < head_dim; ++lane) words[lane] = source[d + lane];
  store(target + d, Stored::read(words));
}

template <class Stored>
void compute_values(const RangeJob& job) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  const std::int64_t padded = round_up(tile.head_dim);
  const bool convert = padded != tile.head_dim || job.num_queries() > 2 * kValueQueries;
  const Word* rows[kChunk];  // the value of each position of a chunk
  const float* converted_rows[kChunk];
  for (int i = 0; i < kChunk; ++i) converted_rows[i] = job.workspace.converted + i * padded;
  for (int begin = 0; begin < job.tile_count(); begin += kChunk) {
    const int end = smaller(begin + kChunk, job.tile_count());
    for_each_piece(tile, job.first_position + begin, end - begin,
                   [&](const std::byte* block, int offset, int size, int done) {
                     const Word* values = reinterpret_cast<const Word*>(block + tile.half_head_bytes);
                     for (int i = 0; i < size; ++i) rows[done + i] = values + (offset + i) * tile.head_dim;
                   });
    if (!convert) {
      add_values_to_all<Stored>(job, rows, begin, end);
      continue;
    }
    for (int i = 0; i < end - begin; ++i)
      convert_values<Stored>(rows[i], tile.head_dim, job.workspace.converted + i * padded);
    add_values_to_all<StoredF32>(job, converted_rows, begin, end);
  }
}

// ---- a range, and its place among the others
// --------------------------------------------------------------------------

template <class Stored>
void compute_stored_range(const RangeJob& job) {
  constexpr bool kScaled = Stored::kHasScales || Stored::kFactor != 1.0f;
  compute_scores<Stored>(job);
  if constexpr (kScaled) {
    load_scales<Stored>(job.tile, job.first_position, job.tile_count(), /*values=*/true, 1.0f,
                        job.workspace.value_scales);
  }
  for (int query = 0; query < job.num_queries(); ++query) {
    if (job.count(query) == 0) continue;
    compute_weights<kScaled>(job.scores(query), job.count(query), job.workspace.value_scales,
                             job.partial(query));
    for (int d = 0; d < job.tile.head_dim; d += kLanes) store(job.partial(query).values() + d, zero());
  }
  compute_values<Stored>(job);
}

void compute_range(const RangeJob& job) {
  with_stored(job.tile.type, [&](auto stored) { compute_stored_range<decltype(stored)>(job); });
}

// Before the first range, which begins at `first`.
void prepare(const AttentionTile& tile, int first, int end, const Workspace& workspace) {
  with_stored(tile.type, [&](auto stored) {
    prefetch_keys<decltype(stored)>(tile, first, smaller(first + kKeysAhead, end));
  });
  pack_queries(tile, workspace);
}

void merge_partial(Partial into, Partial later, int head_dim) {
  const float largest = into.max() > later.max() ? into.max() : later.max();
  const float keep = exp_of(into.max() - largest), take = exp_of(later.max() - largest);
  into.sum() = __builtin_fmaf(into.sum(), keep, later.sum() * take);
  for (int d = 0; d < head_dim; d += kLanes) {
    const F32x16 taken = mul(load(later.values() + d), set1(take));
    store(into.values() + d, fma(load(into.values() + d), set1(keep), taken));
  }
  into.max() = largest;
}

void write_out(const AttentionTile& tile, int query, Partial partial) {
  const int row = query / tile.group_size, head = query % tile.group_size;
  float* out = tile.out + row * tile.out_stride + static_cast<std::int64_t>(head) * tile.head_dim;
  for (int d = 0; d < tile.head_dim; ++d) out[d] = partial.values()[d] / partial.sum();
}

}  // namespace

std::int64_t attention_partial_floats(std::int32_t head_dim) { return kLanes + round_up(head_dim); }

std::int64_t attention_scratch_floats(std::int32_t num_queries, std::int32_t head_dim) {
  const std::int64_t partials = 2 * num_queries * attention_partial_floats(head_dim);
  const std::int64_t scores = static_cast<std::int64_t>(num_queries) * kAttentionRange;
  const std::int64_t queries = round_up(static_cast<std::int64_t>(num_queries) * head_dim);
  const std::int64_t scales = kChunk + kAttentionRange;
  return partials + scores + queries + 2 * kChunk * round_up(head_dim) + scales;
}

void attend_range(const AttentionTile& tile, std::int32_t range, float* scratch, float* partials) {
  const Workspace workspace(scratch, tile.num_rows * tile.group_size, tile.head_dim);
  const int first = range * kAttentionRange;
  const int end = smaller(first + kAttentionRange, tile.positions[tile.num_rows - 1] + 1);
  prepare(tile, first, end, workspace);
  compute_range({tile, workspace, first, end, partials});
}

void attend(const AttentionTile& tile, float* scratch) {
  const int num_queries = tile.num_rows * tile.group_size;
  const Workspace workspace(scratch, num_queries, tile.head_dim);
  const int last_position = tile.positions[tile.num_rows - 1];
  prepare(tile, 0, last_position + 1, workspace);
  const RangeJob first{tile, workspace, 0, last_position + 1, workspace.merged};
  compute_range(first);
  for (int range = 1; range <= last_position / kAttentionRange; ++range) {
    const RangeJob job{tile, workspace, range * kAttentionRange, last_position + 1, workspace.current};
    compute_range(job);
    for (int query = 0; query < num_queries; ++query) {
      if (job.count(query) > 0) merge_partial(first.partial(query), job.partial(query), tile.head_dim);
    }
  }
  for (int query = 0; query < num_queries; ++query) write_out(tile, query, first.partial(query));
}

void merge_ranges(const AttentionTile& tile, float* partials, std::int64_t range_stride) {
  const std::int64_t size = attention_partial_floats(tile.head_dim);
  for (int query = 0; query < tile.num_rows * tile.group_size; ++query) {
    const Partial merged{partials + query * size};
    const int last_range = tile.positions[query / tile.group_size] / kAttentionRange;
    for (int range = 1; range <= last_range; ++range) {
      merge_partial(merged, {partials + range * range_stride + query * size}, tile.head_dim);
    }
    write_out(tile, query, merged);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
