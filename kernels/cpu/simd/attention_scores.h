// Scores of a tile's queries with the keys of a range, each one chain over the dimensions, ascending.
#pragma once

#include "kernels/cpu/simd/attention_workspace.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

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

// Scores of the job's queries with a visit's keys; scales: of its first position.
template <class Stored, KeyPlaces kPlaces, bool kAsks>
void score_visit(const RangeJob& job, const Visit& visit, const KeyChunk<typename Stored::Word>& keys,
                 const float* scales, std::int64_t num_lines_per_panel) {
  const int offset = visit.first_position - job.first_position;
  const int end_query = smaller(visit.end_query, job.end_query);
  for (int first = larger(visit.first_query, job.first_query); first < end_query; first += kScoreQueries) {
    const int end = smaller(first + kScoreQueries, end_query);
    if (!visit.is_whole && job.largest_count(first, end) <= offset) continue;
    job.ahead.ask(num_lines_per_panel);
    const ScoreTask<Stored> task{.keys = keys,
                                 .num_groups = num_groups(visit),
                                 .head_dim = job.tile.head_dim,
                                 .queries = job.workspace.queries + std::int64_t{first} * kQueryPiece,
                                 .piece_stride = std::int64_t{job.num_queries()} * kQueryPiece,
                                 .scales = scales,
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
    float* scales = job.workspace.key_scales;
    load_scales<Stored>(tile, visit, /*values=*/false, tile.score_scale, scales);
    if (visit.end_query - visit.first_query > kMostUnconverted) {
      const KeyChunk<float> converted =
          convert_keys<Stored, kPlaces>(keys, num_groups(visit), tile.head_dim, job.workspace.keys);
      score_visit<StoredF32, KeyPlaces::kAdjacent, /*kAsks=*/false>(
          job, visit, converted, scales, lines_per_panel(tile, visit, kScoreQueries));
    } else {
      score_visit<Stored, kPlaces, /*kAsks=*/true>(job, visit, keys, scales, /*num_lines_per_panel=*/0);
    }
  }
}

template <KeyPlaces kPlaces>
struct KeyPlacesTag {
  static constexpr KeyPlaces kValue = kPlaces;
};

// Calls function(KeyPlacesTag) with how groups of 16 positions lie in blocks of this size.
template <class Function>
OCTAVO_INLINE void with_key_places(int block_size, const Function& function) {
  if (block_size % kLanes == 0) return function(KeyPlacesTag<KeyPlaces::kApart>{});
  if (block_size % kLanes == kLanes / 2) return function(KeyPlacesTag<KeyPlaces::kSplit>{});
  function(KeyPlacesTag<KeyPlaces::kAdjacent>{});
}

template <class Stored>
void compute_scores(const RangeJob& job) {
  with_key_places(job.tile.block_size,
                  [&](auto places) { compute_scores_of<Stored, decltype(places)::kValue>(job); });
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
