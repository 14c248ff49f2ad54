// From a row to the cut of a draw: the floor, the bins, the search in the bin that matters.
#include "kernels/cuda/sampling/sample_bins.cuh"
#include "kernels/cuda/sampling/sample_find.cuh"
#include "kernels/cuda/sampling/sample_kernels.h"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kFloorThreads = 512, kBinThreads = 256, kCutThreads = 512;
constexpr unsigned kMaximaAtOnce = 32;
constexpr std::uint32_t kLowestKey = 0x007fffffu;  // of minus infinity

// Bins are equal intervals of [floor, best]; without a floor, of so many below the best, the rest in the last
// bin. Any monotone rule is right: this one spreads a language model's logits.
constexpr double kUsualRange = 40.0;

struct BinRule {
  double best, floor, scale;

  __device__ explicit BinRule(const DrawState& state) : best(state.best), floor(state.floor) {
    const double range = floor > -INFINITY ? best - floor : kUsualRange;
    scale = range > 1e-30 ? kSampleBins / range : 0.0;
  }
  __device__ bool has_bin(float logit) const { return logit > -INFINITY && logit >= floor; }
  __device__ std::uint32_t bin_of(float logit) const {
    return static_cast<std::uint32_t>(fmin((best - logit) * scale, static_cast<double>(kSampleBins - 1)));
  }
  // No logit of the bin has a lower or higher key.
  __device__ std::uint32_t low_key(std::uint32_t bin) const {
    if (scale == 0.0 || bin == kSampleBins - 1) return floor > -INFINITY ? widened(floor, -1) : kLowestKey;
    return widened(best - (bin + 1) / scale - slack(bin), -1);
  }
  __device__ std::uint32_t high_key(std::uint32_t bin) const {
    const std::uint32_t highest = key_of(static_cast<float>(best));
    if (scale == 0.0) return highest;
    const std::uint32_t key = widened(best - bin / scale + slack(bin), 1);
    return key < highest ? key : highest;
  }

 private:
  // Of the rounding of differences and products.
  __device__ double slack(std::uint32_t bin) const { return 0x1p-40 * (fabs(best) + (bin + 1) / scale); }
  __device__ static std::uint32_t widened(double value, int direction) {
    const std::uint32_t key = key_of(static_cast<float>(value));
    if (direction > 0) return key + 1;
    return key > kLowestKey ? key - 1 : kLowestKey;
  }
};

// top_k: so many pieces have a maximum of at least the floor, and so at least as many tokens a logit.
__global__ void __launch_bounds__(kFloorThreads)
    floor_kernel(SampleInput input, const DeviceDraw* draws, DrawState* states) {
  __shared__ SharedBins bins;
  __shared__ ReachedBin result;
  const DeviceDraw draw = draws[blockIdx.x];
  const SampleRow row = row_of(input, draw.row);
  if (draw.is_greedy() || !row.is_valid()) return;
  float best = -INFINITY;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < row.num_pieces; i += kFloorThreads)
    best = fmaxf(best, row.maxima[i]);
  best = block_max(best);
  double floor = draw.min_p > 0.0 || draw.weighs_all() ? best + draw.reach : -INFINITY;
  if (draw.top_k > 0 && draw.top_k <= row.num_pieces) {
    const ReachedKey found =
        find_key(bins, result, kLowestKey, key_of(best), {},
                 {.count = static_cast<std::uint32_t>(draw.top_k)}, [&](std::uint32_t, auto add) {
                   for (std::int32_t base = 0; base < row.num_pieces; base += kFloorThreads) {
                     const std::int32_t i = base + static_cast<std::int32_t>(threadIdx.x);
                     const bool is_piece = i < row.num_pieces;
                     add(is_piece, is_piece ? key_of(row.maxima[i]) : 0u, 0.0);
                   }
                 });
    if (found.is_reached) floor = fmax(floor, static_cast<double>(value_of(found.key)));
  }
  if (threadIdx.x == 0) states[blockIdx.x] = {.floor = floor, .best = best, .cut = {.key = 0, .id = INT_MAX}};
}

// A block to kSamplePieces pieces of a draw's row; see weighs_all().
__global__ void __launch_bounds__(kBinThreads, 4)
    bin_kernel(SampleInput input, const DeviceDraw* draws, SampleScratch scratch) {
  __shared__ SharedBins bins;
  const DeviceDraw draw = draws[blockIdx.y];
  const SampleRow row = row_of(input, draw.row);
  if (draw.is_greedy() || !draw.has_cut() || !row.is_valid()) return;
  const DrawState& state = scratch.states[blockIdx.y];
  const BinRule rule(state);
  double* const piece_sums = scratch.piece_sums + std::int64_t{blockIdx.y} * row.num_pieces;
  bins.clear();
  __syncthreads();
  const auto first = static_cast<std::int32_t>(blockIdx.x) * kSamplePieces;
  // The floor is rounded down: a piece too many does no harm.
  const float least = draw.weighs_all() ? -INFINITY : value_of(rule.low_key(kSampleBins - 1));
  visit_pieces<kSamplePieces * kWarp / kBinThreads>(
      row, first, std::min(first + kSamplePieces, row.num_pieces), least, [&](std::int32_t piece) {
        double sum = 0.0;
        for (unsigned i = 0; i < kEntriesPerLane; ++i) {
          const float logit = row.at(row.id_of(piece, i));
          const double weight = weight_of(logit, state.best, draw.inverse_temperature);
          sum += weight;
          const bool is_member = rule.has_bin(logit) && weight >= draw.min_p;
          bins.add(is_member, is_member ? rule.bin_of(logit) : 0u, weight);
        }
        sum = warp_sum(sum);
        if (draw.weighs_all() && threadIdx.x % kWarp == 0) piece_sums[piece] = sum;
      });
  __syncthreads();
  SampleBins& all = scratch.bins[blockIdx.y];
  for (unsigned bin = threadIdx.x; bin < kSampleBins; bin += kBinThreads) {
    if (bins.counts[bin] == 0) continue;
    atomicAdd(&all.counts[bin], bins.counts[bin]);
    if (bins.highs[bin] != 0) atomicAdd(&all.masses[bin].high, bins.highs[bin]);
    if (bins.lows[bin] != 0) atomicAdd(&all.masses[bin].low, bins.lows[bin]);
  }
}

__device__ double block_sum_of(const double* values, std::int32_t count) {
  __shared__ double parts[kWarp];
  double sum = 0.0;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < count; i += kCutThreads) sum += values[i];
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = sum;
  __syncthreads();
  return warp_sum(threadIdx.x % kWarp < kCutThreads / kWarp ? parts[threadIdx.x % kWarp] : 0.0);
}

// The search of one draw, by a block.
struct CutSearch {
  SharedBins& bins;
  ReachedBin& result;
  const SampleRow& row;
  const DeviceDraw& draw;
  const DrawState& state;
  const SampleBins& all;
  double* piece_sums;

  struct End {
    SampleCut cut;
    double weight;  // of all that is kept
  };
  // Of what `cut` keeps, the start of the ranking that reaches the limit; all of it if that does not.
  __device__ End find(const SampleLimit& limit, const SampleCut& cut) const {
    for (unsigned bin = threadIdx.x; bin < kSampleBins; bin += kCutThreads)
      bins.set(bin, {all.counts[bin], all.masses[bin]});
    const ReachedBin found = find_reached_by_block(bins, {}, limit, result);
    if (!found.is_reached) return {cut, found.total.weight()};
    const BinRule rule(state);
    const auto add_all = [&](std::uint32_t low, auto add) {
      visit_pieces<kMaximaAtOnce>(row, 0, row.num_pieces, value_of(low), [&](std::int32_t piece) {
        for (unsigned i = 0; i < kEntriesPerLane; ++i) {
          const std::int32_t id = row.id_of(piece, i);
          const float logit = row.at(id);
          const std::uint32_t key = key_of(logit);
          bool is_member = rule.has_bin(logit) && is_kept(cut, key, id) && rule.bin_of(logit) == found.bin;
          double weight = 0.0;
          if (is_member) {
            weight = weight_of(logit, state.best, draw.inverse_temperature);
            is_member = weight >= draw.min_p;
          }
          add(is_member, key, weight);
        }
      });
    };
    const ReachedKey last = find_key(bins, result, rule.low_key(found.bin), rule.high_key(found.bin),
                                     found.before, limit, add_all);
    // Of a bin that two cuts go through, more was counted than the other cut keeps.
    if (!last.is_reached) return {cut, found.total.weight()};
    const double weight = weight_of(value_of(last.key), state.best, draw.inverse_temperature);
    const std::uint32_t equal = num_equal_kept(limit, last, weight);
    const double sum = last.before.weight() + equal * weight;
    if (equal < last.count) return {{last.key, id_of_equal(last.key, equal)}, sum};
    return {{last.key, last.key == cut.key ? cut.id : INT_MAX}, sum};
  }

  __device__ static bool is_kept(const SampleCut& cut, std::uint32_t key, std::int32_t id) {
    return key > cut.key || (key == cut.key && id <= cut.id);
  }

 private:
  // Of the tokens of the last key.
  __device__ static std::uint32_t num_equal_kept(const SampleLimit& limit, const ReachedKey& last,
                                                 double weight) {
    if (limit.count > 0) return limit.count - last.before.count;
    const double missing = limit.weight - last.before.weight();
    if (!(missing > weight)) return 1;  // also where both are 0
    const double needed = ceil(missing / weight);
    return needed < last.count ? static_cast<std::uint32_t>(needed) : last.count;
  }

  // The number-th token of the key. piece_sums, which hold nothing that is still needed, take the numbers of
  // each piece.
  __device__ std::int32_t id_of_equal(std::uint32_t key, std::uint32_t number) const {
    visit_pieces<kMaximaAtOnce>(row, 0, row.num_pieces, -INFINITY, [&](std::int32_t piece) {
      int count = 0;
      for (unsigned i = 0; i < kEntriesPerLane; ++i) {
        const float logit = row.at(row.id_of(piece, i));
        count += __popc(__ballot_sync(kAllLanes, logit > -INFINITY && key_of(logit) == key));
      }
      if (threadIdx.x % kWarp == 0) piece_sums[piece] = count;
    });
    __syncthreads();
    const double target = number - 0.5;
    const SamplePlace place = find_piece(piece_sums, row.num_pieces, [&](double) { return target; });
    const auto begin = place.piece * static_cast<std::int32_t>(kLogitsPiece);
    const auto id = begin + 2 * static_cast<std::int32_t>(threadIdx.x % kWarp);
    const auto is_equal = [&](std::int32_t each) { return key_of(row.at(each)) == key ? 1.0 : 0.0; };
    return begin +
           find_entry(is_equal(id), is_equal(id + 1), place.before, target);  // each warp finds the same
  }
};

__global__ void __launch_bounds__(kCutThreads)
    cut_kernel(SampleInput input, const DeviceDraw* draws, SampleScratch scratch) {
  __shared__ SharedBins bins;
  __shared__ ReachedBin result;
  const DeviceDraw draw = draws[blockIdx.x];
  const SampleRow row = row_of(input, draw.row);
  if (draw.is_greedy() || !draw.has_cut() || !row.is_valid()) return;
  const DrawState state = scratch.states[blockIdx.x];
  SampleBins& all = scratch.bins[blockIdx.x];
  double* const piece_sums = scratch.piece_sums + std::int64_t{blockIdx.x} * row.num_pieces;
  const CutSearch search{bins, result, row, draw, state, all, piece_sums};
  // By a number that nothing reaches: what there is in all.
  const SampleLimit number{.count = draw.top_k > 0 ? static_cast<std::uint32_t>(draw.top_k) : UINT_MAX};
  CutSearch::End end = search.find(number, state.cut);
  if (draw.top_p < 1.0) {
    const double sum = draw.weighs_all() ? block_sum_of(piece_sums, row.num_pieces) : end.weight;
    __syncthreads();  // piece_sums may be written again
    end = search.find({.weight = draw.top_p * sum}, end.cut);
  }
  __syncthreads();
  if (threadIdx.x == 0) scratch.states[blockIdx.x].cut = end.cut;
  for (unsigned bin = threadIdx.x; bin < kSampleBins; bin += kCutThreads) {
    all.counts[bin] = 0;
    all.masses[bin] = {0, 0};
  }
}

}  // namespace

void find_floors(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                 const SampleScratch& scratch) {
  launch(floor_kernel, {.grid = dim3(static_cast<unsigned>(num_draws)), .block = dim3(kFloorThreads)}, stream,
         input, draws, scratch.states);
}

void fill_bins(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch) {
  const dim3 grid(num_pieces(num_logits_pieces(input.vocabulary), kSamplePieces),
                  static_cast<unsigned>(num_draws));
  launch(bin_kernel, {.grid = grid, .block = dim3(kBinThreads)}, stream, input, draws, scratch);
}

void find_cuts(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch) {
  launch(cut_kernel, {.grid = dim3(static_cast<unsigned>(num_draws)), .block = dim3(kCutThreads)}, stream,
         input, draws, scratch);
}

}  // namespace octavo::kernels::cuda
