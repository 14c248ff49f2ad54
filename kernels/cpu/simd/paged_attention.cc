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
        end(converted + kChunk * round_up(head_dim)) {}

  float* merged;          // partial of each query over all ranges so far
  float* current;         // partial of each query over one range
  float* scores;          // [num_queries][kAttentionRange], later the weights
  float* packed_queries;  // panels of kScoreQueries queries, each [head_dim][queries of the panel]
  float* gathered;        // a chunk of keys as stored, [head_dim][kChunk]
  float* converted;       // a chunk of keys [head_dim][kChunk] or values [kChunk][padded head_dim] as floats
  float* end;
};

// The tile while one range is computed.
struct RangeJob {
  const AttentionTile& tile;
  const Workspace& workspace;
  std::int32_t first_position;
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

// ---- keys and scores
// ------------------------------------------------------------------------------------------------

template <class Word>
const Word* key_block(const AttentionTile& tile, int position) {
  return reinterpret_cast<const Word*>(tile.kv +
                                       tile.block_table[position / tile.block_size] * tile.block_bytes);
}

// A chunk of keys: where each group of 16 positions starts, and how far two dimensions lie apart.
template <class Word>
struct KeyChunk {
  const Word* groups[kGroupsPerChunk];
  std::int64_t stride;
  int num_groups;
};

// Block sizes that are no multiple of 16: copies the positions of the chunk next to each other, piece by
// piece.
template <class Word>
KeyChunk<Word> gather_keys(const AttentionTile& tile, int first, int count, Word* gathered) {
  for (int done = 0; done < count;) {
    const int offset = (first + done) % tile.block_size;
    const int size = smaller(tile.block_size - offset, count - done);
    const Word* source = key_block<Word>(tile, first + done) + offset;
    for (int d = 0; d < tile.head_dim; ++d) {
      for (int i = 0; i < size; ++i) gathered[d * kChunk + done + i] = source[d * tile.block_size + i];
    }
    done += size;
  }
  return {{gathered, gathered + kLanes}, kChunk, (count + kLanes - 1) / kLanes};
}

template <class Word>
KeyChunk<Word> locate_keys(const AttentionTile& tile, int first, int count, Word* gathered) {
  if (tile.block_size % kLanes != 0) return gather_keys(tile, first, count, gathered);
  KeyChunk<Word> chunk{{}, tile.block_size, (count + kLanes - 1) / kLanes};
  for (int group = 0; group < chunk.num_groups; ++group) {
    const int position = first + group * kLanes;
    chunk.groups[group] = key_block<Word>(tile, position) + position % tile.block_size;
  }
  return chunk;
}

template <class Stored>
KeyChunk<float> convert_keys(const KeyChunk<typename Stored::Word>& keys, int head_dim, float* converted) {
  for (int d = 0; d < head_dim; ++d) {
    for (int group = 0; group < keys.num_groups; ++group) {
      store(converted + d * kChunk + group * kLanes, Stored::read(keys.groups[group] + d * keys.stride));
    }
  }
  return {{converted, converted + kLanes}, kChunk, keys.num_groups};
}

template <class Stored, int kQueries, int kGroups>
void score_tile(const typename Stored::Word* const* groups, std::int64_t stride, const AttentionTile& tile,
                const float* queries, float* scores) {
  F32x16 sums[kQueries][kGroups];
  for (int i = 0; i < kQueries; ++i) {
    for (int group = 0; group < kGroups; ++group) sums[i][group] = zero();
  }
  for (int d = 0; d < tile.head_dim; ++d) {
    F32x16 keys[kGroups];
    for (int group = 0; group < kGroups; ++group) keys[group] = Stored::read(groups[group] + d * stride);
    for (int i = 0; i < kQueries; ++i) {
      const F32x16 query = set1(queries[d * kQueries + i]);
      for (int group = 0; group < kGroups; ++group) sums[i][group] = fma(query, keys[group], sums[i][group]);
    }
  }
  const F32x16 scale = set1(tile.score_scale);
  for (int i = 0; i < kQueries; ++i) {
    for (int group = 0; group < kGroups; ++group) {
      store(scores + i * kAttentionRange + group * kLanes, mul(sums[i][group], scale));
    }
  }
}

template <class Stored, int kQueries>
void score_panel(int num_queries, const KeyChunk<typename Stored::Word>& keys, const AttentionTile& tile,
                 const float* queries, float* scores) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries)
      return score_panel<Stored, kQueries - 1>(num_queries, keys, tile, queries, scores);
  }
  int group = 0;
  for (; group + kScoreGroups <= keys.num_groups; group += kScoreGroups) {
    score_tile<Stored, kQueries, kScoreGroups>(keys.groups + group, keys.stride, tile, queries,
                                               scores + group * kLanes);
  }
  for (; group < keys.num_groups; ++group) {
    score_tile<Stored, kQueries, 1>(keys.groups + group, keys.stride, tile, queries, scores + group * kLanes);
  }
}

// Scores of the queries that reach the chunk, `offset` positions into the range.
template <class Stored>
void score_chunk(const RangeJob& job, const KeyChunk<typename Stored::Word>& keys, int offset) {
  for (int first = 0; first < job.num_queries(); first += kScoreQueries) {
    const int size = smaller(kScoreQueries, job.num_queries() - first);
    if (job.count(first + size - 1) <= offset) continue;
    const float* queries =
        job.workspace.packed_queries + static_cast<std::int64_t>(first) * job.tile.head_dim;
    score_panel<Stored, kScoreQueries>(size, keys, job.tile, queries, job.scores(first) + offset);
  }
}

template <class Stored>
void compute_scores(const RangeJob& job) {
  using Word = typename Stored::Word;
  const bool many_panels = job.num_queries() > kScoreQueries;  // then converting once pays
  Word* gathered = reinterpret_cast<Word*>(job.workspace.gathered);
  for (int offset = 0; offset < job.tile_count(); offset += kChunk) {
    const int count = smaller(kChunk, job.tile_count() - offset);
    const KeyChunk<Word> keys = locate_keys(job.tile, job.first_position + offset, count, gathered);
    if (many_panels) {
      score_chunk<StoredF32>(job, convert_keys<Stored>(keys, job.tile.head_dim, job.workspace.converted),
                             offset);
    } else {
      score_chunk<Stored>(job, keys, offset);
    }
  }
}

// ---- softmax
// --------------------------------------------------------------------------------------------------------

// Lanes past `count` hold other rows' keys or nothing at all; -infinity makes their weights exact zeros.
OCTAVO_INLINE F32x16 load_scores(const float* scores, int i, int count) {
  const F32x16 group = load(scores + i);
  return i + kLanes <= count ? group : select_first(count - i, group, set1(kMinusInfinity));
}

// Scores to weights, in place.
void compute_weights(float* scores, int count, Partial partial) {
  F32x16 largest = set1(kMinusInfinity);
  for (int i = 0; i < count; i += kLanes) largest = max(load_scores(scores, i, count), largest);
  partial.max() = horizontal_max(largest);
  const F32x16 shift = set1(partial.max());
  F32x16 sum = zero();
  for (int i = 0; i < count; i += kLanes) {
    const F32x16 weights = exp(sub(load_scores(scores, i, count), shift));
    store(scores + i, weights);
    sum = add(sum, weights);
  }
  partial.sum() = horizontal_sum(sum);
}

// ---- values
// ---------------------------------------------------------------------------------------------------------

// Values of neighbouring positions in one piece of memory.
template <class Word>
struct ValueRun {
  const Word* start;
  std::int64_t stride;
  int begin, end;  // positions, relative to the range
};

template <class Stored, int kQueries, int kVectors>
void value_tile(const typename Stored::Word* values, std::int64_t stride, int count, const float* weights,
                float* sums, std::int64_t sums_stride) {
  F32x16 totals[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) totals[i][v] = load(sums + i * sums_stride + v * kLanes);
  }
  for (int t = 0; t < count; ++t) {
    F32x16 value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = Stored::read(values + t * stride + v * kLanes);
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
void value_panel(int num_queries, const typename Stored::Word* values, std::int64_t stride, int count,
                 const float* weights, float* sums, std::int32_t head_dim) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries) {
      return value_panel<Stored, kQueries - 1>(num_queries, values, stride, count, weights, sums, head_dim);
    }
  }
  const std::int64_t sums_stride = attention_partial_floats(head_dim);
  const int dimensions = static_cast<int>(round_up(head_dim));
  constexpr int kWide = kValueVectors * kLanes;
  int d = 0;
  for (; d + kWide <= dimensions; d += kWide) {
    value_tile<Stored, kQueries, kValueVectors>(values + d, stride, count, weights, sums + d, sums_stride);
  }
  for (; d < dimensions; d += kLanes) {
    value_tile<Stored, kQueries, 1>(values + d, stride, count, weights, sums + d, sums_stride);
  }
}

// Adds the run's weighted values for queries first..first + size - 1. Positions that all of them read go
// through the tile; the few behind, which only the later rows read, go query by query: another row's values
// are never touched, so not even an infinity in them can show.
template <class Stored>
void add_run(const RangeJob& job, const ValueRun<typename Stored::Word>& run, int first, int size) {
  const auto add_positions = [&](int begin, int end, int query, int num_queries) {
    if (begin >= end) return;
    value_panel<Stored, kValueQueries>(num_queries, run.start + (begin - run.begin) * run.stride, run.stride,
                                       end - begin, job.scores(query) + begin, job.partial(query).values(),
                                       job.tile.head_dim);
  };
  const int common = larger(run.begin, smaller(run.end, job.count(first)));
  add_positions(run.begin, common, first, size);
  for (int query = first; query < first + size; ++query) {
    add_positions(common, smaller(run.end, job.count(query)), query, 1);
  }
}

template <class Stored>
void add_run_to_all(const RangeJob& job, const ValueRun<typename Stored::Word>& run) {
  for (int first = 0; first < job.num_queries(); first += kValueQueries) {
    const int size = smaller(kValueQueries, job.num_queries() - first);
    if (job.count(first + size - 1) > run.begin) add_run<Stored>(job, run, first, size);
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
  for (int offset = 0; offset < job.tile_count(); offset += kChunk) {
    const int chunk_end = smaller(offset + kChunk, job.tile_count());
    for (int begin = offset; begin < chunk_end;) {
      const int position = job.first_position + begin, in_block = position % tile.block_size;
      const int end = smaller(chunk_end, begin + tile.block_size - in_block);
      const Word* block = reinterpret_cast<const Word*>(
          reinterpret_cast<const std::byte*>(key_block<Word>(tile, position)) + tile.half_head_bytes);
      const Word* start = block + static_cast<std::int64_t>(in_block) * tile.head_dim;
      if (!convert) add_run_to_all<Stored>(job, {start, tile.head_dim, begin, end});
      for (int i = begin; convert && i < end; ++i) {
        convert_values<Stored>(start + static_cast<std::int64_t>(i - begin) * tile.head_dim, tile.head_dim,
                               job.workspace.converted + (i - offset) * padded);
      }
      begin = end;
    }
    if (convert) add_run_to_all<StoredF32>(job, {job.workspace.converted, padded, offset, chunk_end});
  }
}

// ---- a range, and its place among the others
// --------------------------------------------------------------------------

void compute_range(const RangeJob& job) {
  with_stored(job.tile.type, [&](auto stored) { compute_scores<decltype(stored)>(job); });
  for (int query = 0; query < job.num_queries(); ++query) {
    if (job.count(query) == 0) continue;
    compute_weights(job.scores(query), job.count(query), job.partial(query));
    for (int d = 0; d < job.tile.head_dim; d += kLanes) store(job.partial(query).values() + d, zero());
  }
  with_stored(job.tile.type, [&](auto stored) { compute_values<decltype(stored)>(job); });
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
  return partials + scores + queries + 2 * kChunk * round_up(head_dim);
}

void attend_range(const AttentionTile& tile, std::int32_t range, float* scratch, float* partials) {
  const Workspace workspace(scratch, tile.num_rows * tile.group_size, tile.head_dim);
  pack_queries(tile, workspace);
  compute_range({tile, workspace, range * kAttentionRange, partials});
}

void attend(const AttentionTile& tile, float* scratch) {
  const int num_queries = tile.num_rows * tile.group_size;
  const Workspace workspace(scratch, num_queries, tile.head_dim);
  pack_queries(tile, workspace);
  const RangeJob first{tile, workspace, 0, workspace.merged};
  compute_range(first);
  const int last_range = tile.positions[tile.num_rows - 1] / kAttentionRange;
  for (int range = 1; range <= last_range; ++range) {
    const RangeJob job{tile, workspace, range * kAttentionRange, workspace.current};
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
