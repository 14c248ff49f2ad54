// Products of several rows on tensor cores. A step of them is weights [16 outputs][16 columns] times
// activations [16 columns][8 rows], so that weights are the operand that stands in registers: a lane expands
// what it loaded itself, and nothing of them passes through shared memory. For that a chunk of 128 columns is
// dealt so that each of the four lanes that share a weight row has a whole group of 32 of its columns, in one
// load of 16 bytes with 4-bit weights. Which columns meet in one step is free, as long as activations are
// dealt alike: a lane's share of two steps is eight neighbouring columns of its group.
//
// A block is four warps of 16 or 32 outputs each; they share the activations of a chunk, which are brought
// into shared memory while the chunk before is multiplied. An integer q below 1024 is the float16 number
// 0x6400 + q less 1024, so that two conversions take a permutation and a sum.
//
// Numbers: an output is summed up in steps of 16 columns, in one order; of an activation's two parts the
// first comes first. Splits of the inner dimension are added in ascending order, whichever block does it.
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/matmul/matmul_epilogue.cuh"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr int kStages = 3;  // of activations in shared memory
constexpr int kTileWarps = kTileThreads / static_cast<int>(kWarp);
constexpr int kLanesOfRow = 4;                                // that share a weight row
constexpr int kOctets = static_cast<int>(kGroupColumns) / 8;  // of a lane's columns in a chunk
static_assert(kTileColumns == kLanesOfRow * kGroupColumns);

// A tile as it is compiled: input rows by eights, and outputs of a warp by sixteens.
template <TensorType kWeights, int kRowEights>
struct TileShape {
  static constexpr TensorType kType = kWeights;
  static constexpr int kEights = kRowEights, kRows = 8 * kRowEights;
  static constexpr int kSixteens = tile_outputs(kWeights, kRows) / (16 * kTileWarps);
  static constexpr int kOutputsOfWarp = 16 * kSixteens, kOutputs = kTileWarps * kOutputsOfWarp;
  static constexpr int kSums = kSixteens * kEights * 4;  // of a thread
  static constexpr int kSumPitch = kOutputs + 4;         // in shared memory, so that lanes meet in no bank
  static_assert(kRows * kSumPitch * sizeof(float) <= kStages * kRows * kTileColumns * sizeof(std::uint16_t));
  // Chunks of weights in registers: what is multiplied, and what is under way.
  static constexpr int kDepth = is_quantised(kWeights) && kSums < 32 ? 3 : 2;
  static constexpr int kBlocksAtOnce = kSums >= 64 ? 2 : kSums >= 32 ? 3 : 4;
};

// What a block works on. `place` of an output means its place in the block.
struct BlockPlace {
  int target, tile, split, outputs;
  std::int64_t first_row;  // input row

  // Weight row of a place; gate and up take turns by eights. Beyond the last row it is the last one again.
  __device__ std::int64_t weight_row(const ProductTargets& targets, int place) const {
    const std::int64_t last = targets.targets[target].planes.rows - 1, row = output(targets, place);
    return row < last ? row : last;
  }
  __device__ std::int64_t output(const ProductTargets& targets, int place) const {
    if (targets.is_gate_up == 0) return static_cast<std::int64_t>(tile) * outputs + place;
    return static_cast<std::int64_t>(tile) * (outputs / 2) + place / 16 * 8 + place % 8;
  }
  // Of the first or the second eight of sixteen places.
  __device__ const WeightPlanes& planes(const ProductTargets& targets, int half) const {
    return targets.targets[targets.is_gate_up == 0 ? target : half].planes;
  }
};

template <class Shape>
__device__ BlockPlace place_of_block(const ProductTargets& targets) {
  const int block = static_cast<int>(blockIdx.x), target = target_of_block(targets, block);
  const ProductTarget& chosen = targets.targets[target];
  const int local = block - chosen.first_block;
  return {target, local / chosen.splits, local % chosen.splits, Shape::kOutputs,
          static_cast<std::int64_t>(blockIdx.y) * Shape::kRows};
}

__device__ inline std::uint32_t twice(float value) {
  const std::uint32_t bits = __half_as_ushort(__float2half_rn(value));
  return bits << 16 | bits;
}

// A lane's group of one weight row, as it was loaded.
template <TensorType kType>
class LaneGroup {
 public:
  // `row`: of its first group among the matrix's.
  __device__ void load(const WeightPlanes& planes, std::int64_t row, std::int64_t group) {
    raw_ = load_group_at<kType>(planes, row, group);
  }

  // As the operand of tensor cores.
  class Operand {
   public:
    __device__ explicit Operand(const LaneGroup& group) {
      const GroupScales scales = scales_of_group<kType>(group.raw_);
      unpack_group<kType>(group.raw_, words_);
#pragma unroll
      for (int i = 0; i < 2; ++i) scale_[i] = twice(scales.scale[i]), minimum_[i] = twice(-scales.minimum[i]);
    }
    // Eight columns as pairs of float16 numbers.
    __device__ void octet(int index, std::uint32_t (&pairs)[4]) const {
      constexpr QuantTraits kTraits = quant_traits(kType);
      constexpr bool kIsSigned = kTraits.is_signed();
      // 0x6400 is 1024; its numbers to 2047 are the integers.
      constexpr std::uint32_t kBase = 0xe400u + (kIsSigned ? 128 : kTraits.offset),
                              kBases = kBase << 16 | kBase;
      constexpr std::uint32_t kOnes = 0x3c003c00u;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t word = words_[2 * index + i / 2] ^ (kIsSigned ? 0x80808080u : 0u);
        const std::uint32_t raised = __byte_perm(word, 0x64646464u, i % 2 == 0 ? 0x4140u : 0x4342u);
        pairs[i] =
            fma_half_pairs(fma_half_pairs(raised, kOnes, kBases), scale_[index / 2], minimum_[index / 2]);
      }
    }

   private:
    std::uint32_t words_[8], scale_[2], minimum_[2];
  };

 private:
  RawGroup<kType> raw_;
};

// Weights that are 16-bit numbers already.
template <TensorType kType>
requires(!is_quantised(kType)) class LaneGroup<kType> {
 public:
  __device__ void load(const WeightPlanes& planes, std::int64_t row, std::int64_t group) {
    const auto* const numbers = reinterpret_cast<const std::uint16_t*>(planes.low);
    const auto* const octets = reinterpret_cast<const uint4*>(numbers + (row + group) * kGroupColumns);
#pragma unroll
    for (int i = 0; i < kOctets; ++i) octets_[i] = load_streamed(octets + i);
  }
  class Operand {
   public:
    __device__ explicit Operand(const LaneGroup& group) : group_(group) {}
    __device__ void octet(int index, std::uint32_t (&pairs)[4]) const {
      pairs[0] = group_.octets_[index].x, pairs[1] = group_.octets_[index].y;
      pairs[2] = group_.octets_[index].z, pairs[3] = group_.octets_[index].w;
    }

   private:
    const LaneGroup& group_;
  };

 private:
  uint4 octets_[kOctets];
};

// A chunk's activations in shared memory: [stage][part][octet][row][lane of a row], eight numbers at each
// place. Lanes are turned by the octet, so that neither copies nor loads of a warp meet in a bank.
template <class Shape>
class ChunkRows {
 public:
  static constexpr int kPlaces = kOctets * Shape::kRows * kLanesOfRow;

  // Of a thread, which copies the same octet and lane of every eighth row. Eight threads take 64 bytes of
  // two.
  __device__ ChunkRows(const PreparedRows& rows, std::int64_t first_row, uint4* shared)
      : shared_(shared),
        part_stride_(rows.part_stride),
        stride_(rows.stride),
        num_parts_(rows.num_parts),
        num_rows_(static_cast<int>(rows.num_rows - first_row)) {
    const int thread = static_cast<int>(threadIdx.x), octet = thread % kOctets,
              lane = thread / (2 * kOctets) % kLanesOfRow;
    row_ = thread / static_cast<int>(kWarp) * 2 + thread / kOctets % 2;
    column_ = lane * static_cast<int>(kGroupColumns) + octet * 8;
    place_ = place_of(octet, row_, lane);
    source_ =
        (Shape::kType == TensorType::kBF16 ? rows.bfloats : rows.halves) + first_row * rows.stride + column_;
  }

  __device__ int num_parts() const { return num_parts_; }
  __device__ const uint4* part(int stage, int part) const {
    return shared_ + (stage * num_parts_ + part) * kPlaces;
  }
  __device__ static int place_of(int octet, int row, int lane) {
    return (octet * Shape::kRows + row) * kLanesOfRow + (lane + octet) % kLanesOfRow;
  }

  // Begins to bring in a chunk; zeros beyond the last row and column.
  __device__ void copy(int chunk, int stage) const {
    const bool has_column = chunk * kTileColumns + column_ < stride_;
#pragma unroll 1
    for (int part = 0; part < num_parts_; ++part) {
      const std::uint16_t* const numbers =
          source_ + part * part_stride_ + static_cast<std::int64_t>(chunk) * kTileColumns;
      uint4* const target = shared_ + (stage * num_parts_ + part) * kPlaces + place_;
#pragma unroll
      for (int eight = 0; eight < Shape::kEights; ++eight) {
        const int row = eight * 8 + row_;
        const bool is_there = has_column && row < num_rows_;
        copy_async_16(target + eight * 8 * kLanesOfRow, is_there ? numbers + row * stride_ : source_,
                      is_there);
      }
    }
  }

 private:
  uint4* shared_;
  const std::uint16_t* source_;  // of row 0 and chunk 0
  std::int64_t part_stride_, stride_;
  int num_parts_, num_rows_;
  int row_, column_, place_;  // of the first of what this thread copies
};
static_assert(kTileThreads == 8 * kOctets * kLanesOfRow, "a thread for each place of eight rows");

// What a warp computes, and what each of its threads sums up.
template <class Shape>
class WarpTile {
 public:
  using Groups = LaneGroup<Shape::kType>[Shape::kSixteens][2];

  // `groups`: of a weight row.
  __device__ WarpTile(const ProductTargets& targets, const BlockPlace& place, std::int64_t groups)
      : targets_(targets), place_(place), groups_(groups) {
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        rows_[i][half] = place.weight_row(targets, place_of(i, half)) * groups;
    }
  }

  // Behind the last group it is the last one again, which meets zeros.
  __device__ void load(int chunk, Groups& loaded) const {
    const std::int64_t group = static_cast<std::int64_t>(chunk) * kLanesOfRow + lane() % 4;
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        loaded[i][half].load(place_.planes(targets_, half), rows_[i][half],
                             group < groups_ ? group : groups_ - 1);
      }
    }
  }

  __device__ void multiply(const Groups& loaded, const ChunkRows<Shape>& activations, int stage) {
#pragma unroll 1
    for (int part = 0; part < activations.num_parts(); ++part)
      multiply_part(loaded, activations.part(stage, part));
  }

  // Adds the sums of all splits. True for the block that has them; the others are done.
  __device__ bool sum_of_splits(const SplitScratch& scratch) {
    const ProductTarget& target = targets_.targets[place_.target];
    if (target.splits == 1) return true;
    auto& mine = reinterpret_cast<float(&)[Shape::kSums]>(sums_);
    const std::int64_t tile_index = static_cast<std::int64_t>(blockIdx.y) * target.num_tiles + place_.tile;
    const std::int64_t first = target.first_partial + tile_index * target.splits;
    float* const partials = scratch.partials + first * Shape::kSums * kTileThreads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < Shape::kSums; ++i)
      partials[(place_.split * Shape::kSums + i) * kTileThreads] = mine[i];
    __threadfence();
    __syncthreads();
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      const std::uint32_t arrived = atomicAdd(scratch.counters + first, 1u);
      is_last = arrived + 1 == static_cast<std::uint32_t>(target.splits);
      if (is_last) scratch.counters[first] = 0;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < Shape::kSums; ++i) mine[i] = 0.0f;
    for (int split = 0; split < target.splits; ++split) {
#pragma unroll
      for (int i = 0; i < Shape::kSums; ++i)
        mine[i] += __ldcg(partials + (split * Shape::kSums + i) * kTileThreads);
    }
    return true;
  }

  // Through shared memory, so that what becomes of a sum is one short loop: written out for each of a
  // thread's sums it would be more code than the instruction cache holds, run once, and take longer than the
  // product itself.
  __device__ void store(const PreparedRows& rows, float* shared) const {
    __syncthreads();  // every warp has done with the activations
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kEights; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int row = j * 8 + lane() % 4 * 2 + k % 2;
          shared[row * Shape::kSumPitch + place_of(i, k / 2)] = sums_[i][j][k];
        }
      }
    }
    __syncthreads();
    const int num_pairs = Shape::kRows * Shape::kOutputs / 2;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < num_pairs; i += kTileThreads) {
      const int row = i / (Shape::kOutputs / 2), pair = i % (Shape::kOutputs / 2);
      store_pair(rows, row, pair / 8 * 16 + pair % 8, shared + row * Shape::kSumPitch);
    }
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWarp); }
  // Of the lane's weight row: `half` 0 or 1 of sixteen outputs.
  __device__ static int place_of(int sixteen, int half) {
    return static_cast<int>(threadIdx.x / kWarp) * Shape::kOutputsOfWarp + sixteen * 16 + half * 8 +
           lane() / 4;
  }

  using Operand = typename LaneGroup<Shape::kType>::Operand;

  // An octet of columns is two steps.
  __device__ void multiply_part(const Groups& loaded, const uint4* chunk) {
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      std::uint32_t weights[Shape::kSixteens][2][4];
#pragma unroll
      for (int i = 0; i < Shape::kSixteens; ++i) {
        std::uint32_t upper[4], lower[4];
        Operand(loaded[i][0]).octet(octet, upper), Operand(loaded[i][1]).octet(octet, lower);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          weights[i][step][0] = upper[2 * step], weights[i][step][1] = lower[2 * step];
          weights[i][step][2] = upper[2 * step + 1], weights[i][step][3] = lower[2 * step + 1];
        }
      }
      const uint4* const mine = chunk + ChunkRows<Shape>::place_of(octet, lane() / 4, lane() % 4);
#pragma unroll
      for (int j = 0; j < Shape::kEights; ++j) {
        const uint4 numbers = mine[j * 8 * kLanesOfRow];
        const std::uint32_t steps[2][2] = {{numbers.x, numbers.y}, {numbers.z, numbers.w}};
#pragma unroll
        for (int step = 0; step < 2; ++step) {
#pragma unroll
          for (int i = 0; i < Shape::kSixteens; ++i) {
            if constexpr (Shape::kType == TensorType::kBF16) {
              multiply_step_bf16(sums_[i][j], weights[i][step], steps[step]);
            } else {
              multiply_step_f16(sums_[i][j], weights[i][step], steps[step]);
            }
          }
        }
      }
    }
  }

  // Two outputs that stand eight places apart, which are gate and up of one.
  __device__ void store_pair(const PreparedRows& rows, int row_of_tile, int place, const float* sums) const {
    const std::int64_t row = place_.first_row + row_of_tile, first = place_.output(targets_, place);
    if (row >= rows.num_rows) return;
    const ProductTarget& target = targets_.targets[place_.target];
    const float factor = Shape::kType == TensorType::kBF16 ? 1.0f : rows.half_factors[row];
    const float upper = sums[place] * factor, lower = sums[place + 8] * factor;
    if (targets_.is_gate_up != 0) {
      if (first < target.planes.rows) store_gate_up(targets_, row, first, upper, lower);
      return;
    }
    if (first < target.planes.rows) store_output(target, row, first, upper);
    if (first + 8 < target.planes.rows) store_output(target, row, first + 8, lower);
  }

  const ProductTargets& targets_;
  const BlockPlace& place_;
  std::int64_t groups_;
  std::int64_t rows_[Shape::kSixteens][2];  // of the lane's: the first group among the matrix's
  float sums_[Shape::kSixteens][Shape::kEights][4] = {};
};

template <TensorType kType, int kRowEights>
__global__ void __launch_bounds__(kTileThreads, (TileShape<kType, kRowEights>::kBlocksAtOnce))
    multiply_tiles(const __grid_constant__ ProductTargets targets, const __grid_constant__ PreparedRows rows,
                   const SplitScratch scratch) {
  using Shape = TileShape<kType, kRowEights>;
  let_next_begin();
  const BlockPlace place = place_of_block<Shape>(targets);
  const int num_chunks = static_cast<int>((rows.stride + kTileColumns - 1) / kTileColumns),
            splits = targets.targets[place.target].splits;
  const int begin = place.split * num_chunks / splits, end = (place.split + 1) * num_chunks / splits;
  const ChunkRows<Shape> activations(rows, place.first_row, dynamic_shared<uint4>());
  WarpTile<Shape> tile(targets, place, rows.stride / kGroupColumns);

  typename WarpTile<Shape>::Groups loaded[Shape::kDepth];
#pragma unroll
  for (int i = 0; i + 1 < Shape::kDepth; ++i) {
    if (begin + i < end) tile.load(begin + i, loaded[i]);  // weights are nobody's result
  }
  await_inputs();
  for (int i = 0; i + 1 < kStages; ++i) {
    if (begin + i < end) activations.copy(begin + i, i);
    copy_async_commit();
  }
  // Behind the barrier every warp has done with the oldest stage, which is filled next.
  int stage = 0;
  for (int first = begin; first < end; first += Shape::kDepth) {
#pragma unroll
    for (int i = 0; i < Shape::kDepth; ++i) {
      const int chunk = first + i, to_load = chunk + Shape::kDepth - 1, to_copy = chunk + kStages - 1;
      if (chunk >= end) break;
      if (to_load < end) tile.load(to_load, loaded[(i + Shape::kDepth - 1) % Shape::kDepth]);
      copy_async_wait<kStages - 2>();
      __syncthreads();
      if (to_copy < end) activations.copy(to_copy, stage == 0 ? kStages - 1 : stage - 1);
      copy_async_commit();
      tile.multiply(loaded[i], activations, stage);
      stage = stage + 1 == kStages ? 0 : stage + 1;
    }
  }
  copy_async_wait<0>();
  if (tile.sum_of_splits(scratch)) tile.store(rows, dynamic_shared<float>());
}

using TilesKernel = void (*)(const ProductTargets, const PreparedRows, const SplitScratch);

template <TensorType kType>
TilesKernel tiles_kernel(int tile_rows) {
  if (tile_rows <= 16) return tile_rows == 8 ? multiply_tiles<kType, 1> : multiply_tiles<kType, 2>;
  return tile_rows == 32 ? multiply_tiles<kType, 4> : multiply_tiles<kType, 8>;
}

TilesKernel tiles_kernel(TensorType type, int tile_rows) {
  if (type == TensorType::kF16) return tiles_kernel<TensorType::kF16>(tile_rows);
  if (type == TensorType::kBF16) return tiles_kernel<TensorType::kBF16>(tile_rows);
  TilesKernel kernel = nullptr;
  with_quantised_type(type,
                      [&](auto constant) { kernel = tiles_kernel<decltype(constant)::value>(tile_rows); });
  return kernel;
}

// ---- weights expanded for the library

template <TensorType kType>
__global__ void expand_rows(const WeightPlanes planes, std::int64_t first, std::int64_t count,
                            std::uint16_t* out) {
  let_next_begin();
  await_inputs();
  const std::int64_t groups = planes.stride / kGroupColumns;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count * groups) return;
  float numbers[kGroupColumns];
  expand_quantised_group<kType>(planes, first + index / groups, index % groups, numbers);
  auto* const target = reinterpret_cast<uint4*>(out + index * kGroupColumns);
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) {
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* const pair = numbers + quarter * 8 + i * 2;
      pairs[i] = static_cast<std::uint32_t>(__half_as_ushort(__float2half_rn(pair[1]))) << 16 |
                 __half_as_ushort(__float2half_rn(pair[0]));
    }
    target[quarter] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

constexpr unsigned kThreads = 256;
constexpr int kFinished = 4;  // outputs of a thread

// A block to a piece of a row.
__global__ void __launch_bounds__(kThreads) finish_products(const FinishArguments arguments) {
  let_next_begin();
  await_inputs();
  const std::int64_t row = blockIdx.y, first = std::int64_t{blockIdx.x} * kFinished * kThreads + threadIdx.x;
  const float factor = arguments.factors == nullptr ? 1.0f : arguments.factors[row];
  const float up_factor = arguments.up_factors == nullptr ? 1.0f : arguments.up_factors[row];
#pragma unroll
  for (int i = 0; i < kFinished; ++i) {
    const std::int64_t output = first + i * std::int64_t{kThreads}, index = row * arguments.count + output;
    if (output >= arguments.count) return;
    float value = arguments.product[index] * factor;
    if (arguments.bias != nullptr) value += arguments.bias[output];
    if (arguments.up != nullptr) {
      float up = arguments.up[index] * up_factor;
      if (arguments.up_bias != nullptr) up += arguments.up_bias[output];
      value = activated(arguments.epilogue, value) * up;
    }
    float* const out = arguments.out + row * arguments.out_stride + output;
    store_with(arguments.up != nullptr ? Epilogue::kStore : arguments.epilogue, out, value);
  }
}

}  // namespace

void launch_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                  const PreparedRows& rows, const SplitScratch& scratch) {
  ProductTargets dealt = targets;
  std::int32_t num_blocks = 0, num_partials = 0;
  const auto row_tiles = static_cast<std::int32_t>(num_pieces(rows.num_rows, tile_rows));
  const std::int64_t outputs_of_tile = tile_outputs(type, tile_rows) / (targets.is_gate_up != 0 ? 2 : 1);
  for (int i = 0; i < (targets.is_gate_up != 0 ? 1 : targets.count); ++i) {
    ProductTarget& target = dealt.targets[i];
    target.num_tiles = static_cast<std::int32_t>(num_pieces(target.planes.rows, outputs_of_tile));
    target.first_block = num_blocks;
    target.first_partial = num_partials;
    num_blocks += target.num_tiles * target.splits;
    if (target.splits > 1) num_partials += target.num_tiles * target.splits * row_tiles;
  }
  const int numbers = kStages * rows.num_parts * tile_rows * kTileColumns;
  launch(tiles_kernel(type, tile_rows),
         {.grid = dim3(static_cast<unsigned>(num_blocks), static_cast<unsigned>(row_tiles)),
          .block = dim3(kTileThreads),
          .shared_bytes = static_cast<std::size_t>(numbers) * sizeof(std::uint16_t),
          .awaits_inputs = true},
         stream, dealt, rows, scratch);
}

void launch_expand(Stream& stream, const WeightPlanes& planes, std::int64_t first, std::int64_t count,
                   std::uint16_t* out) {
  const unsigned num_blocks = num_pieces(count * (planes.stride / kGroupColumns), kThreads);
  with_quantised_type(planes.type, [&](auto constant) {
    launch(expand_rows<decltype(constant)::value>,
           {.grid = dim3(num_blocks), .block = dim3(kThreads), .awaits_inputs = true}, stream, planes, first,
           count, out);
  });
}

void launch_finish(Stream& stream, const FinishArguments& arguments) {
  const dim3 grid(num_pieces(arguments.count, kFinished * kThreads),
                  static_cast<unsigned>(arguments.num_rows));
  launch(finish_products, {.grid = grid, .block = dim3(kThreads), .awaits_inputs = true}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
