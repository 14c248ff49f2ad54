// Attention of one tile over ranges of positions: scores, softmax, value sums. Either each over at most 64
// positions at a time, so that converted keys and values stay in the first-level cache while every query that
// reads them uses them, or, in long prompts, all three for a few queries at a time (attention_panels.h).
//
// Order of each query's sums, the same in every tile, for every block size and instruction set:
//   score   one chain over the dimensions, ascending
//   softmax over a range: 16 lanes, each adding every 16th position ascending; then horizontal_sum
//   values  one chain over the positions of a range, ascending
//   ranges are merged in ascending order as in Milakov & Gimelshein 2018 (arXiv:1805.02867)
#include "kernels/cpu/simd/attention_panels.h"
#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

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

// All ranges of the job: target(range) says where a range's partials go, done(job) is called when those of
// the job's queries are there.
template <class Stored, class Target, class Done>
void walk_ranges(const AttentionJob& job, const Workspace& workspace, const Target& target,
                 const Done& done) {
  const AttentionTile& tile = job.tile;
  copy_queries(tile, workspace.queries);
  Ahead ahead(sizeof(typename Stored::Word), workspace.asking_steps);
  Visits visits = plan_visits(tile, job.first_range, workspace.visits[0]);
  ahead.follow_keys(tile, visits);
  if (!job.was_announced) ahead.ask_for_all();
  const AttentionTile* next_tile = nullptr;
  Visits next;
  for (int range = job.first_range; range < job.end_range; ++range) {
    const int first_position = range * kAttentionRange;
    const RangeJob range_job{tile, workspace, first_position, visits, target(range), ahead};
    find_bounds(tile, first_position, workspace.begins, workspace.counts);
    if (range + 1 < job.end_range) {
      next_tile = &tile;
      next = plan_visits(tile, range + 1, workspace.visits[(range + 1 - job.first_range) % 2]);
    } else if (job.next != nullptr) {
      next_tile = &job.next->tile;
      next = plan_visits(*next_tile, job.next->first_range, workspace.visits[2]);
    } else {
      next_tile = nullptr;
    }
    if (takes_panels(tile, visits)) {
      attend_by_panels<Stored>(range_job, next_tile, next, done);
    } else {
      ahead.follow_values(tile, visits);
      compute_scores<Stored>(range_job);
      compute_all_weights(range_job);
      ahead.follow_next(next_tile, next);
      compute_values<Stored>(range_job);
      done(range_job);
    }
    visits = next;
  }
}

template <class Target, class Done>
void walk_ranges(const AttentionJob& job, const Workspace& workspace, const Target& target,
                 const Done& done) {
  with_stored(job.tile.type,
              [&](auto stored) { walk_ranges<decltype(stored)>(job, workspace, target, done); });
}

// At most kLanes pairs of partials at once: into[i] becomes what into[i] and later[i] are together.
void merge_partials(const Partial* into, const Partial* later, int count, int value_dim) {
  alignas(64) float keeps[kLanes] = {}, takes[kLanes] = {};
  for (int i = 0; i < count; ++i) {
    const float largest = into[i].max() > later[i].max() ? into[i].max() : later[i].max();
    keeps[i] = into[i].max() - largest;
    takes[i] = later[i].max() - largest;
    into[i].max() = largest;
  }
  store(keeps, exp(load(keeps)));
  store(takes, exp(load(takes)));
  for (int i = 0; i < count; ++i) {
    into[i].sum() = __builtin_fmaf(into[i].sum(), keeps[i], later[i].sum() * takes[i]);
    const F32x16 keep = set1(keeps[i]), take = set1(takes[i]);
    for (int d = 0; d < value_dim; d += kLanes) {
      const F32x16 taken = mul(load(later[i].values() + d), take);
      store(into[i].values() + d, fma(load(into[i].values() + d), keep, taken));
    }
  }
}

void copy_partial(Partial from, Partial to, int value_dim) {
  to.max() = from.max();
  to.sum() = from.sum();
  for (int d = 0; d < value_dim; d += kLanes) store(to.values() + d, load(from.values() + d));
}

// Brings the job's queries into what they are over the ranges before, as many at once as merge_partials
// takes.
void merge_range(const RangeJob& job, float* merged) {
  const AttentionTile& tile = job.tile;
  const std::int64_t size = attention_partial_floats(tile.value_dim);
  Partial into[kLanes], later[kLanes];
  int num_pairs = 0;
  for (int query = job.first_query; query < job.end_query; ++query) {
    if (job.count(query) == 0) continue;
    const Partial target{merged + query * size};
    if (tile.rows[query / tile.group_size].first >= job.first_position) {  // its first range
      copy_partial(job.partial(query), target, tile.value_dim);
      continue;
    }
    into[num_pairs] = target;
    later[num_pairs++] = job.partial(query);
    if (num_pairs < kLanes) continue;
    merge_partials(into, later, num_pairs, tile.value_dim);
    num_pairs = 0;
  }
  merge_partials(into, later, num_pairs, tile.value_dim);
}

// The sink is one more score, without a value; it comes last, so that where a row's ranges begin and end is
// none of its business.
void add_sink(Partial partial, float sink, int value_dim) {
  const float largest = partial.max() > sink ? partial.max() : sink;
  const float keep = exp_of(partial.max() - largest);
  partial.sum() = __builtin_fmaf(partial.sum(), keep, exp_of(sink - largest));
  for (int d = 0; d < value_dim; d += kLanes)
    store(partial.values() + d, mul(load(partial.values() + d), set1(keep)));
}

void write_out(const AttentionTile& tile, int query, Partial partial) {
  const AttentionRow& row = tile.rows[query / tile.group_size];
  float* out = tile.out + row.row * tile.out_stride + std::int64_t{query % tile.group_size} * tile.value_dim;
  if (tile.sinks != nullptr) add_sink(partial, tile.sinks[query % tile.group_size], tile.value_dim);
  for (int d = 0; d < tile.value_dim; ++d) out[d] = partial.values()[d] / partial.sum();
}

Workspace workspace_for(const AttentionTile& tile, float* scratch) {
  return {reinterpret_cast<std::uintptr_t>(scratch), tile.num_rows, tile.group_size, tile.head_dim,
          tile.value_dim};
}

}  // namespace

std::int64_t attention_partial_floats(std::int32_t value_dim) { return kLanes + round_up(value_dim); }

std::int64_t attention_scratch_floats(std::int32_t num_rows, std::int32_t group_size, std::int32_t head_dim,
                                      std::int32_t value_dim) {
  return static_cast<std::int64_t>(Workspace(0, num_rows, group_size, head_dim, value_dim).end /
                                   sizeof(float));
}

void attend_ranges(const AttentionJob& job, float* scratch, float* partials, std::int64_t range_stride) {
  walk_ranges(
      job, workspace_for(job.tile, scratch),
      [&](int range) { return partials + (range - job.first_range) * range_stride; }, [](const RangeJob&) {});
}

void attend(const AttentionJob& job, float* scratch) {
  const AttentionTile& tile = job.tile;
  const Workspace workspace = workspace_for(tile, scratch);
  const std::int64_t size = attention_partial_floats(tile.value_dim);
  walk_ranges(
      job, workspace,
      [&](int range) { return range == tile.first_range ? workspace.merged : workspace.current; },
      [&](const RangeJob& range_job) {
        if (range_job.partials != workspace.merged) merge_range(range_job, workspace.merged);
      });
  for (int query = 0; query < tile.num_rows * tile.group_size; ++query)
    write_out(tile, query, {workspace.merged + query * size});
}

void merge_ranges(const AttentionTile& tile, float* partials, std::int64_t range_stride) {
  const std::int64_t size = attention_partial_floats(tile.value_dim);
  const auto row_of = [&](int query) -> const AttentionRow& { return tile.rows[query / tile.group_size]; };
  const auto first_of = [&](int query) { return row_of(query).first / kAttentionRange; };
  const auto last_of = [&](int query) { return row_of(query).position / kAttentionRange; };
  const auto partial = [&](int query, int range) {
    return Partial{partials + (range - tile.first_range) * range_stride + query * size};
  };
  const int num_queries = tile.num_rows * tile.group_size;
  for (int begin = 0; begin < num_queries; begin += kLanes) {
    const int end = smaller(begin + kLanes, num_queries);
    int last_range = 0;
    for (int query = begin; query < end; ++query) last_range = larger(last_range, last_of(query));
    for (int range = tile.first_range + 1; range <= last_range; ++range) {
      Partial into[kLanes], later[kLanes];
      int num_pairs = 0;
      for (int query = begin; query < end; ++query) {
        if (range <= first_of(query) || range > last_of(query)) continue;
        into[num_pairs] = partial(query, first_of(query));
        later[num_pairs++] = partial(query, range);
      }
      merge_partials(into, later, num_pairs, tile.value_dim);
    }
    for (int query = begin; query < end; ++query) write_out(tile, query, partial(query, first_of(query)));
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
