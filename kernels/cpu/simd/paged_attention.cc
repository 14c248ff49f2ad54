// Attention of one tile over ranges of positions: scores, softmax, value sums, each over at most 64 positions
// at a time, so that converted keys and values stay in the first-level cache while every query that reads
// them uses them.
//
// Order of each query's sums, the same in every tile, for every block size and instruction set:
//   score   one chain over the dimensions, ascending
//   softmax over a range: 16 lanes, each adding every 16th position ascending; then horizontal_sum
//   values  one chain over the positions of a range, ascending
//   ranges are merged in ascending order as in Milakov & Gimelshein 2018 (arXiv:1805.02867)
#include "kernels/cpu/simd/attention_ahead.h"
#include "kernels/cpu/simd/attention_visits.h"
#include "kernels/cpu/simd/kernels.h"
#include "kernels/cpu/simd/stored.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Register tiles: queries x groups of 16 positions for the scores, queries x vectors of 16 dimensions for the
// values. They fill the registers of each instruction set and change no order. Few queries score more groups
// at once, so that there are enough independent sums to hide the latency of a multiply-add.
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kScoreQueries = 8, kScoreGroups = 2, kFewQueries = 4, kFewScoreGroups = 4;
constexpr int kValueQueries = 4, kValueVectors = 4;
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kScoreQueries = 6, kScoreGroups = 1, kFewQueries = 3, kFewScoreGroups = 2;
constexpr int kValueQueries = 3, kValueVectors = 2;
#else
constexpr int kScoreQueries = 2, kScoreGroups = 1, kFewQueries = 1, kFewScoreGroups = 1;
constexpr int kValueQueries = 2, kValueVectors = 2;
#endif

// Keys and values that more queries than this read are converted to floats first.
constexpr int kMostUnconverted = 8;

// Floats between two queries' scores: not a power of two, whose multiples would share a few lines of the
// cache.
constexpr int kScoreStride = kAttentionRange + kLanes;

// Dimensions of a query that stand together: a distance between queries that the compiler knows.
constexpr int kQueryPiece = 64;

constexpr std::int64_t round_up_to(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}
constexpr std::int64_t round_up(std::int64_t value) { return round_up_to(value, kLanes); }

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
  Workspace(std::uintptr_t scratch, std::int64_t num_rows, std::int64_t group_size, std::int64_t head_dim)
      : end(scratch) {
    const std::int64_t num_queries = num_rows * group_size;
    const std::int64_t partials = num_queries * attention_partial_floats(static_cast<std::int32_t>(head_dim));
    take(merged, partials);
    take(current, partials);
    take(scores, num_queries * kScoreStride);
    take(queries, num_queries * round_up_to(head_dim, kQueryPiece));
    take(begins, num_queries);
    take(counts, num_queries);
    take(gathered, kChunk * round_up(head_dim));
    take(converted, kChunk * round_up(head_dim));
    take(key_scales, kChunk);
    take(value_scales, kChunk);
    take(asking_steps, Ahead::most_asking_steps(head_dim));
    for (Visit*& list : visits) take(list, num_rows * kMostVisitsPerRow);
  }

  template <class Item>
  void take(Item*& start, std::int64_t count) {
    constexpr std::uintptr_t kLine = 64;
    start = reinterpret_cast<Item*>(end);
    end += (static_cast<std::uintptr_t>(count) * sizeof(Item) + kLine - 1) / kLine * kLine;
  }

  float* merged;         // partial of each query over all ranges so far
  float* current;        // partial of each query over one range
  float* scores;         // [num_queries][kScoreStride], later the weights
  float* queries;        // [pieces of the dimensions][num_queries][kQueryPiece]
  std::int32_t* begins;  // [num_queries] first position of the range that the query reads
  std::int32_t* counts;  // [num_queries] end of what it reads; 0: it reads nothing
  float* gathered;       // a visit's keys as stored, [head_dim][kChunk]
  float* converted;      // a visit's keys [head_dim][kChunk] or values [kChunk][padded head_dim] as floats
  float* key_scales;     // [kChunk], times the score scale
  float* value_scales;   // [kChunk]
  AskingSteps* asking_steps;  // of Ahead
  Visit* visits[3];  // of this range and the next, and, last because it may have more rows, of the next job
  std::uintptr_t end;
};

// The tile while one range is computed.
struct RangeJob {
  const AttentionTile& tile;
  const Workspace& workspace;
  std::int32_t first_position;
  Visits visits;
  float* partials;
  Ahead& ahead;

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
  Partial partial(int query) const { return {partials + query * attention_partial_floats(tile.head_dim)}; }
  float* scores(int query) const {
    return workspace.scores + static_cast<std::int64_t>(query) * kScoreStride;
  }
};

// Lines to ask for beside each panel of queries of a visit, when all panels together ask for as much as the
// visit reads.
std::int64_t lines_per_panel(const AttentionTile& tile, const Visit& visit, int panel_queries) {
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
                            (values ? tile.block_size : 0);
      for (int i = 0; i < size; ++i) scales[done + i] = source[i] * factor;
    });
  } else {
    for (int i = 0; i < kChunk; i += kLanes) store(scales + i, set1(factor * Stored::kFactor));
  }
}

// ---- keys and scores
// ------------------------------------------------------------------------------------------------

// How the groups of 16 positions of a visit lie, whose dimensions are `stride` apart.
enum class KeyPlaces {
  kAdjacent,  // next to each other, kChunk apart: copies
  kApart,     // each in one block
  kSplit,     // each half in one block
};

// Sixteen positions' keys of dimension 0: the first eight and the last eight.
template <class Word>
struct KeyGroup {
  const Word *low, *high;
};

// A visit's keys.
template <class Word>
struct KeyChunk {
  KeyGroup<Word> groups[kGroupsPerChunk];
  std::int64_t stride;
};

// The groups that a register tile reads, at the dimension that it has come to.
template <class Stored, KeyPlaces kPlaces, int kGroups>
struct KeyReader {
  using Word = typename Stored::Word;
  static constexpr int kPointers = kPlaces == KeyPlaces::kAdjacent ? 1 : kGroups;

  KeyReader(const KeyChunk<Word>& keys, int group) : stride(keys.stride) {
    OCTAVO_UNROLL
    for (int g = 0; g < kPointers; ++g) {
      low[g] = keys.groups[group + g].low;
      high[g] = keys.groups[group + g].high;
    }
  }
  F32x16 read(int g) const {
    if constexpr (kPlaces == KeyPlaces::kAdjacent) return Stored::read(low[0] + g * kLanes);
    if constexpr (kPlaces == KeyPlaces::kSplit) return Stored::read(low[g], high[g]);
    return Stored::read(low[g]);
  }
  void advance() {
    OCTAVO_UNROLL
    for (int g = 0; g < kPointers; ++g) {
      low[g] += kPlaces == KeyPlaces::kAdjacent ? kChunk : stride;
      high[g] += stride;
    }
  }

  std::int64_t stride;
  const Word *low[kPointers], *high[kPointers];
};

template <class Word>
KeyChunk<Word> adjacent_keys(const Word* keys) {
  KeyChunk<Word> chunk{{}, kChunk};
  for (int group = 0; group < kGroupsPerChunk; ++group)
    chunk.groups[group] = {keys + group * kLanes, nullptr};
  return chunk;
}

// Copies the positions of the visit next to each other, piece by piece.
template <class Word>
KeyChunk<Word> gather_keys(const AttentionTile& tile, const Visit& visit, Word* gathered) {
  for_each_piece(tile, visit, [&](const std::byte* block, int offset, int size, int done) {
    const Word* source = reinterpret_cast<const Word*>(block) + offset;
    for (int d = 0; d < tile.head_dim; ++d) {
      for (int i = 0; i < size; ++i) gathered[d * kChunk + done + i] = source[d * tile.block_size + i];
    }
  });
  return adjacent_keys<Word>(gathered);
}

template <class Word, KeyPlaces kPlaces>
KeyChunk<Word> locate_keys(const AttentionTile& tile, const Visit& visit, Word* gathered) {
  if constexpr (kPlaces == KeyPlaces::kAdjacent) return gather_keys(tile, visit, gathered);
  constexpr int kHalf = kLanes / 2;
  const auto keys_at = [&](int done) {
    const int position = visit.first_position + done;
    return reinterpret_cast<const Word*>(block_at(tile, visit, position)) + position % tile.block_size;
  };
  KeyChunk<Word> chunk{{}, tile.block_size};
  for (int group = 0; group < num_groups(visit); ++group) {
    const int begin = group * kLanes;
    const Word* low = keys_at(begin);
    const bool splits = kPlaces == KeyPlaces::kSplit && begin + kHalf < visit.count;
    // Past the end there may be no block; those lanes are masked later, so anything will do.
    chunk.groups[group] = {low, splits ? keys_at(begin + kHalf) : low};
  }
  return chunk;
}

template <class Stored, KeyPlaces kPlaces>
KeyChunk<float> convert_keys(const KeyChunk<typename Stored::Word>& keys, int num_groups, int head_dim,
                             float* converted) {
  for (int group = 0; group < num_groups; ++group) {
    KeyReader<Stored, kPlaces, 1> reader(keys, group);
    for (int d = 0; d < head_dim; ++d, reader.advance())
      store(converted + d * kChunk + group * kLanes, reader.read(0));
  }
  return adjacent_keys<float>(converted);
}

// Some queries with a visit's keys.
template <class Stored>
struct ScoreTask {
  const KeyChunk<typename Stored::Word>& keys;
  int num_groups;
  int head_dim;
  const float* queries;       // the first piece of the first query
  std::int64_t piece_stride;  // floats from one piece to the next
  const float* scales;        // of the first group
  float* scores;              // of the first query and group
};

// One register tile. kAsks: asks for lines ahead meanwhile.
template <class Stored, KeyPlaces kPlaces, int kQueries, int kGroups, bool kAsks>
void score_tile(const ScoreTask<Stored>& task, int group, Ahead& ahead) {
  constexpr int kLines = larger(1, static_cast<int>(sizeof(typename Stored::Word)) * kGroups / 4);
  KeyReader<Stored, kPlaces, kGroups> reader(task.keys, group);
  F32x16 sums[kQueries][kGroups];
  OCTAVO_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    OCTAVO_UNROLL
    for (int g = 0; g < kGroups; ++g) sums[i][g] = zero();
  }
  const AskingSteps* steps = kAsks ? ahead.plan_steps(task.head_dim, kLines, kQueryPiece) : nullptr;
  for (int begin = 0; begin < task.head_dim;) {
    const float* queries = task.queries + begin / kQueryPiece * task.piece_stride + begin % kQueryPiece;
    const int size = kAsks ? steps->num_steps : smaller(kQueryPiece, task.head_dim - begin);
    const std::byte* line = kAsks ? steps->line : nullptr;
    const std::int64_t step_bytes = kAsks ? steps->step_bytes : 0;
    for (int d = 0; d < size; ++d, reader.advance()) {
      if constexpr (kAsks) {
        OCTAVO_UNROLL
        for (int i = 0; i < kLines; ++i) ask_for_line(line + i * kLineBytes);
        line += step_bytes;
      }
      F32x16 keys[kGroups];
      OCTAVO_UNROLL
      for (int g = 0; g < kGroups; ++g) keys[g] = reader.read(g);
      OCTAVO_UNROLL
      for (int i = 0; i < kQueries; ++i) {
        const F32x16 query = set1(queries[i * kQueryPiece + d]);
        OCTAVO_UNROLL
        for (int g = 0; g < kGroups; ++g) sums[i][g] = fma(query, keys[g], sums[i][g]);
      }
    }
    begin += size;
    ++steps;
  }
  OCTAVO_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    OCTAVO_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const int offset = (group + g) * kLanes;
      store(task.scores + i * kScoreStride + offset, mul(sums[i][g], load(task.scales + offset)));
    }
  }
}

// All groups from `group` on, kGroups of them at once as long as there are so many.
template <class Stored, KeyPlaces kPlaces, int kQueries, int kGroups, bool kAsks>
void score_groups(const ScoreTask<Stored>& task, int group, Ahead& ahead) {
  for (; group + kGroups <= task.num_groups; group += kGroups)
    score_tile<Stored, kPlaces, kQueries, kGroups, kAsks>(task, group, ahead);
  if constexpr (kGroups > 1) {
    if (group < task.num_groups)
      score_groups<Stored, kPlaces, kQueries, kGroups / 2, kAsks>(task, group, ahead);
  }
}

template <class Stored, KeyPlaces kPlaces, int kQueries, bool kAsks>
void score_panel(int num_queries, const ScoreTask<Stored>& task, Ahead& ahead) {
  if constexpr (kQueries > 1) {
    if (num_queries < kQueries)
      return score_panel<Stored, kPlaces, kQueries - 1, kAsks>(num_queries, task, ahead);
  }
  constexpr int kGroups = kQueries <= kFewQueries ? kFewScoreGroups : kScoreGroups;
  score_groups<Stored, kPlaces, kQueries, kGroups, kAsks>(task, 0, ahead);
}

template <class Stored, KeyPlaces kPlaces, bool kAsks>
void score_visit(const RangeJob& job, const Visit& visit, const KeyChunk<typename Stored::Word>& keys) {
  const int offset = visit.first_position - job.first_position;
  const std::int64_t num_lines = kAsks ? 0 : lines_per_panel(job.tile, visit, kScoreQueries);
  for (int first = visit.first_query; first < visit.end_query; first += kScoreQueries) {
    const int end = smaller(first + kScoreQueries, visit.end_query);
    if (!visit.is_whole && job.largest_count(first, end) <= offset) continue;
    job.ahead.ask(num_lines);
    const ScoreTask<Stored> task{.keys = keys,
                                 .num_groups = num_groups(visit),
                                 .head_dim = job.tile.head_dim,
                                 .queries = job.workspace.queries + std::int64_t{first} * kQueryPiece,
                                 .piece_stride = std::int64_t{job.num_queries()} * kQueryPiece,
                                 .scales = job.workspace.key_scales,
                                 .scores = job.scores(first) + offset};
    score_panel<Stored, kPlaces, kScoreQueries, kAsks>(end - first, task, job.ahead);
  }
}

template <class Stored, KeyPlaces kPlaces>
void compute_scores_of(const RangeJob& job) {
  using Word = typename Stored::Word;
  const AttentionTile& tile = job.tile;
  Word* gathered = reinterpret_cast<Word*>(job.workspace.gathered);
  for (int i = 0; i < job.visits.size; ++i) {
    const Visit& visit = job.visits.start[i];
    const KeyChunk<Word> keys = locate_keys<Word, kPlaces>(tile, visit, gathered);
    load_scales<Stored>(tile, visit, /*values=*/false, tile.score_scale, job.workspace.key_scales);
    if (visit.end_query - visit.first_query > kMostUnconverted) {
      const KeyChunk<float> converted =
          convert_keys<Stored, kPlaces>(keys, num_groups(visit), tile.head_dim, job.workspace.converted);
      score_visit<StoredF32, KeyPlaces::kAdjacent, /*kAsks=*/false>(job, visit, converted);
    } else {
      score_visit<Stored, kPlaces, /*kAsks=*/true>(job, visit, keys);
    }
  }
}

template <class Stored>
void compute_scores(const RangeJob& job) {
  const int block_size = job.tile.block_size;
  if (block_size % kLanes == 0) return compute_scores_of<Stored, KeyPlaces::kApart>(job);
  if (block_size % kLanes == kLanes / 2) return compute_scores_of<Stored, KeyPlaces::kSplit>(job);
  compute_scores_of<Stored, KeyPlaces::kAdjacent>(job);
}

// ---- softmax
// --------------------------------------------------------------------------------------------------------

// Calls function(i, scores[i, i + 16)) for the groups of 16 scores from that of `begin` on. Lanes outside of
// begin..count - 1 hold other rows' keys or nothing at all; -infinity makes their weights exact zeros.
template <class Function>
OCTAVO_INLINE void for_each_group(const float* scores, int begin, int count, const Function& function) {
  int i = begin / kLanes * kLanes;
  if (i < begin) {
    const F32x16 group = select_first(begin - i, set1(kMinusInfinity), load(scores + i));
    function(i, select_first(smaller(count - i, kLanes), group, set1(kMinusInfinity)));
    i += kLanes;
  }
  for (; i + kLanes <= count; i += kLanes) function(i, load(scores + i));
  if (i < count) function(i, select_first(count - i, load(scores + i), set1(kMinusInfinity)));
}

float largest_score(const float* scores, int begin, int count) {
  F32x16 largest = set1(kMinusInfinity);
  for_each_group(scores, begin, count,
                 [&](int, F32x16 group) OCTAVO_INLINE_LAMBDA { largest = max(group, largest); });
  return horizontal_max(largest);
}

void cap_scores(float* scores, int begin, int count, float cap) {
  for (int i = begin / kLanes * kLanes; i < count; i += kLanes)
    store(scores + i, soft_capped(load(scores + i), cap));
}

// Scores to weights, in place.
void compute_weights(float* scores, int begin, int count, Partial partial) {
  const F32x16 shift = set1(partial.max());
  F32x16 sum = zero();
  for_each_group(scores, begin, count, [&](int i, F32x16 group) OCTAVO_INLINE_LAMBDA {
    const F32x16 weights = exp_not_positive(sub(group, shift));
    store(scores + i, weights);
    sum = add(sum, weights);
  });
  partial.sum() = horizontal_sum(sum);
}

// The largest score of a query is looked for while the weights of the one before are computed.
void compute_all_weights(const RangeJob& job) {
  const int num_queries = job.num_queries();
  const float cap = job.tile.score_soft_cap;
  const auto find_largest = [&](int query) {
    if (query >= num_queries || job.count(query) == 0) return;
    const int begin = job.begin(query), count = job.count(query);
    if (cap != 0.0f) cap_scores(job.scores(query), begin, count, cap);
    job.partial(query).max() = largest_score(job.scores(query), begin, count);
  };
  find_largest(0);
  for (int query = 0; query < num_queries; ++query) {
    find_largest(query + 1);
    if (job.count(query) > 0)
      compute_weights(job.scores(query), job.begin(query), job.count(query), job.partial(query));
  }
}

// ---- values
// ---------------------------------------------------------------------------------------------------------

// Some queries with positions next to each other.
template <class Stored>
struct ValueTask {
  const typename Stored::Word* const* rows;  // the value of each position
  int count;                                 // positions
  const float* weights;                      // of the first query and position
  float* sums;                               // of the first query
  std::int32_t head_dim;
};

// One register tile. kAsks: asks for lines ahead meanwhile.
template <class Stored, int kQueries, int kVectors, bool kAsks>
void value_tile(const ValueTask<Stored>& task, int dimension, Ahead& ahead) {
  constexpr int kLines = larger(1, static_cast<int>(sizeof(typename Stored::Word)) * kVectors / 4);
  const std::int64_t sums_stride = attention_partial_floats(task.head_dim);
  float* sums = task.sums + dimension;
  F32x16 totals[kQueries][kVectors];
  OCTAVO_UNROLL
  for (int i = 0; i < kQueries; ++i) {
    OCTAVO_UNROLL
    for (int v = 0; v < kVectors; ++v) totals[i][v] = load(sums + i * sums_stride + v * kLanes);
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
  const int dimensions = static_cast<int>(round_up(task.head_dim));
  constexpr int kWide = kValueVectors * kLanes;
  int d = 0;
  for (; d + kWide <= dimensions; d += kWide)
    value_tile<Stored, kQueries, kValueVectors, kAsks>(task, d, ahead);
  for (; d < dimensions; d += kLanes) value_tile<Stored, kQueries, 1, kAsks>(task, d, ahead);
}

// Adds a visit's weighted values for queries first..end - 1. Positions that all of them read go through the
// tile; the few before and behind, which only some read, go query by query: another row's values are never
// touched, so not even an infinity in them can show.
template <class Stored, bool kAsks>
void add_values(const RangeJob& job, const Visit& visit, const typename Stored::Word* const* rows, int first,
                int end) {
  const int begin = visit.first_position - job.first_position;
  const auto add_positions = [&](int from, int to, int query, int num_queries) {
    if (from >= to) return;
    const ValueTask<Stored> task{rows + (from - begin), to - from, job.scores(query) + from,
                                 job.partial(query).values(), job.tile.head_dim};
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
    add_values<Stored, kAsks>(job, visit, rows, first, end);
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

// Of types with scales or a factor: weights times that of their position's value. (The sum of the weights is
// without them.)
template <class Stored>
void scale_weights(const RangeJob& job, const Visit& visit) {
  float* scales = job.workspace.value_scales;
  load_scales<Stored>(job.tile, visit, /*values=*/true, 1.0f, scales);
  for (int query = visit.first_query; query < visit.end_query; ++query) {
    float* weights = job.scores(query) + (visit.first_position - job.first_position);
    for (int i = 0; i < visit.count; i += kLanes)
      store(weights + i, mul(load(weights + i), load(scales + i)));
  }
}

template <class Stored>
void compute_values(const RangeJob& job) {
  using Word = typename Stored::Word;
  constexpr bool kScaled = Stored::kHasScales || Stored::kFactor != 1.0f;
  const AttentionTile& tile = job.tile;
  const std::int64_t padded = round_up(tile.head_dim);
  const Word* rows[kChunk];  // the value of each position of a visit
  const float* converted_rows[kChunk];
  for (int i = 0; i < kChunk; ++i) converted_rows[i] = job.workspace.converted + i * padded;
  for (int v = 0; v < job.visits.size; ++v) {
    const Visit& visit = job.visits.start[v];
    for_each_piece(tile, visit, [&](const std::byte* block, int offset, int size, int done) {
      const Word* values = reinterpret_cast<const Word*>(block + tile.half_head_bytes);
      for (int i = 0; i < size; ++i) rows[done + i] = values + (offset + i) * tile.head_dim;
    });
    if constexpr (kScaled) scale_weights<Stored>(job, visit);
    if (padded == tile.head_dim && visit.end_query - visit.first_query <= kMostUnconverted) {
      add_values_to_all<Stored, /*kAsks=*/true>(job, visit, rows);
      continue;
    }
    for (int i = 0; i < visit.count; ++i)
      convert_values<Stored>(rows[i], tile.head_dim, job.workspace.converted + i * padded);
    add_values_to_all<StoredF32, /*kAsks=*/false>(job, visit, converted_rows);
  }
}

// ---- ranges, one after the other
// --------------------------------------------------------------------------------------------------

void find_bounds(const AttentionTile& tile, int first_position, std::int32_t* begins, std::int32_t* counts) {
  for (int row = 0; row < tile.num_rows; ++row) {
    const int begin = larger(0, tile.rows[row].first - first_position);
    const int reached = smaller(tile.rows[row].position + 1 - first_position, kAttentionRange);
    const bool reads = begin < reached;
    for (int query = row * tile.group_size; query < (row + 1) * tile.group_size; ++query) {
      begins[query] = reads ? begin : 0;
      counts[query] = reads ? reached : 0;
    }
  }
}

void copy_queries(const AttentionTile& tile, float* target) {
  const int num_queries = tile.num_rows * tile.group_size;
  for (int query = 0; query < num_queries; ++query) {
    const std::int64_t row = tile.rows[query / tile.group_size].row;
    const float* source =
        tile.q + row * tile.q_stride + std::int64_t{query % tile.group_size} * tile.head_dim;
    for (int begin = 0; begin < tile.head_dim; begin += kQueryPiece) {
      float* piece = target + (std::int64_t{begin} * num_queries + std::int64_t{query} * kQueryPiece);
      const int size = smaller(kQueryPiece, tile.head_dim - begin);
      for (int d = 0; d < size; ++d) piece[d] = source[begin + d];
    }
  }
}

void clear_sums(const RangeJob& job) {
  for (int query = 0; query < job.num_queries(); ++query) {
    if (job.count(query) == 0) continue;
    for (int d = 0; d < job.tile.head_dim; d += kLanes) store(job.partial(query).values() + d, zero());
  }
}

// All ranges of the job: target(range) says where a range's partials go, done(range) is called when they are
// there.
template <class Stored, class Target, class Done>
void walk_ranges(const AttentionJob& job, const Workspace& workspace, const Target& target,
                 const Done& done) {
  const AttentionTile& tile = job.tile;
  copy_queries(tile, workspace.queries);
  Ahead ahead(sizeof(typename Stored::Word), workspace.asking_steps);
  Visits visits = plan_visits(tile, job.first_range, workspace.visits[0]);
  ahead.follow_keys(tile, visits);
  if (!job.was_announced) ahead.ask_for_all();
  for (int range = job.first_range; range < job.end_range; ++range) {
    const int first_position = range * kAttentionRange;
    const RangeJob range_job{tile, workspace, first_position, visits, target(range), ahead};
    find_bounds(tile, first_position, workspace.begins, workspace.counts);
    ahead.follow_values(tile, visits);
    compute_scores<Stored>(range_job);
    compute_all_weights(range_job);
    clear_sums(range_job);
    if (range + 1 < job.end_range) {
      visits = plan_visits(tile, range + 1, workspace.visits[(range + 1 - job.first_range) % 2]);
      ahead.follow_keys(tile, visits);
    } else if (job.next != nullptr) {
      ahead.follow_keys(job.next->tile,
                        plan_visits(job.next->tile, job.next->first_range, workspace.visits[2]));
    } else {
      ahead.stop();
    }
    compute_values<Stored>(range_job);
    done(range_job);
  }
}

template <class Target, class Done>
void walk_ranges(const AttentionJob& job, const Workspace& workspace, const Target& target,
                 const Done& done) {
  with_stored(job.tile.type,
              [&](auto stored) { walk_ranges<decltype(stored)>(job, workspace, target, done); });
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

void copy_partial(Partial from, Partial to, int head_dim) {
  to.max() = from.max();
  to.sum() = from.sum();
  for (int d = 0; d < head_dim; d += kLanes) store(to.values() + d, load(from.values() + d));
}

void write_out(const AttentionTile& tile, int query, Partial partial) {
  const AttentionRow& row = tile.rows[query / tile.group_size];
  float* out = tile.out + row.row * tile.out_stride + std::int64_t{query % tile.group_size} * tile.head_dim;
  for (int d = 0; d < tile.head_dim; ++d) out[d] = partial.values()[d] / partial.sum();
}

Workspace workspace_for(const AttentionTile& tile, float* scratch) {
  return {reinterpret_cast<std::uintptr_t>(scratch), tile.num_rows, tile.group_size, tile.head_dim};
}

}  // namespace

std::int64_t attention_partial_floats(std::int32_t head_dim) { return kLanes + round_up(head_dim); }

std::int64_t attention_scratch_floats(std::int32_t num_rows, std::int32_t group_size, std::int32_t head_dim) {
  return static_cast<std::int64_t>(Workspace(0, num_rows, group_size, head_dim).end / sizeof(float));
}

void attend_ranges(const AttentionJob& job, float* scratch, float* partials, std::int64_t range_stride) {
  walk_ranges(
      job, workspace_for(job.tile, scratch),
      [&](int range) { return partials + (range - job.first_range) * range_stride; }, [](const RangeJob&) {});
}

void attend(const AttentionJob& job, float* scratch) {
  const AttentionTile& tile = job.tile;
  const Workspace workspace = workspace_for(tile, scratch);
  const std::int64_t size = attention_partial_floats(tile.head_dim);
  walk_ranges(
      job, workspace,
      [&](int range) { return range == tile.first_range ? workspace.merged : workspace.current; },
      [&](const RangeJob& range_job) {
        if (range_job.partials == workspace.merged) return;
        for (int query = 0; query < range_job.num_queries(); ++query) {
          if (range_job.count(query) == 0) continue;
          const Partial merged{workspace.merged + query * size};
          if (tile.rows[query / tile.group_size].first >= range_job.first_position) {  // its first range
            copy_partial(range_job.partial(query), merged, tile.head_dim);
          } else {
            merge_partial(merged, range_job.partial(query), tile.head_dim);
          }
        }
      });
  for (int query = 0; query < tile.num_rows * tile.group_size; ++query)
    write_out(tile, query, {workspace.merged + query * size});
}

void merge_ranges(const AttentionTile& tile, float* partials, std::int64_t range_stride) {
  const std::int64_t size = attention_partial_floats(tile.head_dim);
  for (int query = 0; query < tile.num_rows * tile.group_size; ++query) {
    const AttentionRow& row = tile.rows[query / tile.group_size];
    const auto partial = [&](int range) {
      return Partial{partials + (range - tile.first_range) * range_stride + query * size};
    };
    const int first_range = row.first / kAttentionRange, last_range = row.position / kAttentionRange;
    const Partial merged = partial(first_range);
    for (int range = first_range + 1; range <= last_range; ++range)
      merge_partial(merged, partial(range), tile.head_dim);
    write_out(tile, query, merged);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
