// Products of several rows with float16 and bfloat16 weights on tensor cores. A step of them is weights [16
// outputs][16 columns] times activations [16 columns][8 rows], so that weights are the operand that stands in
// registers: nothing of them passes through shared memory. For that a chunk of 128 columns is dealt so that
// each of the four lanes that share a weight row has a whole group of 32 of its columns. Which columns meet
// in one step is free, as long as activations are dealt alike: a lane's share of two steps is eight
// neighbouring columns of its group.
//
// A block is four warps of 16 outputs each; they share the activations of a chunk, which are brought into
// shared memory while the chunk before is multiplied.
//
// Numbers: an output is summed up in steps of 16 columns, in one order. Splits of the inner dimension are
// added in ascending order, whichever block does it. Of an activation in two parts each is a row of a tile,
// and their sums are added where the result is stored.
#include <cstdint>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/tile_sums.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr int kFloatStages = 3;                               // of activations in shared memory
constexpr int kLanesOfRow = 4;                                // that share a weight row
constexpr int kOctets = static_cast<int>(kGroupColumns) / 8;  // of a lane's columns in a chunk
static_assert(kTileColumns == kLanesOfRow * kGroupColumns);

// A tile as it is compiled: input rows by eights, and outputs of a warp by sixteens.
template <TensorType kWeights, int kRowEights>
struct TileShape {
  static constexpr TensorType kType = kWeights;
  static constexpr int kEights = kRowEights, kRows = 8 * kRowEights;
  static constexpr int kSixteens = tile_outputs(false, kRows) / (16 * kTileWarps);
  static constexpr int kOutputsOfWarp = 16 * kSixteens, kOutputs = kTileWarps * kOutputsOfWarp;
  static constexpr int kSums = kSixteens * kEights * 4;     // of a thread
  static constexpr int kDepth = 2, kStages = kFloatStages;  // in chunks
  static constexpr int kBlocksAtOnce = kSums >= 32 ? 3 : 4;
};

// A lane's group of one weight row.
class LaneGroup {
 public:
  __device__ void load(const WeightPlanes& planes, std::int64_t row, std::int64_t group) {
    const auto* const numbers = reinterpret_cast<const std::uint16_t*>(planes.low);
    const auto* const octets = reinterpret_cast<const uint4*>(numbers + (row + group) * kGroupColumns);
#pragma unroll
    for (int i = 0; i < kOctets; ++i) octets_[i] = load_streamed(octets + i);
  }
  // As the operand of tensor cores: eight columns as pairs of numbers.
  __device__ void octet(int index, std::uint32_t (&pairs)[4]) const {
    pairs[0] = octets_[index].x, pairs[1] = octets_[index].y;
    pairs[2] = octets_[index].z, pairs[3] = octets_[index].w;
  }

 private:
  uint4 octets_[kOctets];
};

// A chunk's activations in shared memory: [stage][octet][row][lane of a row], eight numbers at each place.
// Lanes are turned by the octet, so that neither copies nor loads of a warp meet in a bank.
template <class Shape>
class ChunkRows {
 public:
  static constexpr int kPlaces = kOctets * Shape::kRows * kLanesOfRow;

  // Of a thread, which copies the same octet and lane of every eighth row. Eight threads take 64 bytes of
  // two.
  __device__ ChunkRows(const PreparedRows& rows, std::int64_t first_row, uint4* shared)
      : shared_(shared),
        stride_(rows.stride),
        num_rows_(static_cast<int>(rows.num_rows * rows.num_parts - first_row)) {
    const int thread = static_cast<int>(threadIdx.x), octet = thread % kOctets,
              lane = thread / (2 * kOctets) % kLanesOfRow;
    row_ = thread / static_cast<int>(kWarp) * 2 + thread / kOctets % 2;
    column_ = lane * static_cast<int>(kGroupColumns) + octet * 8;
    place_ = place_of(octet, row_, lane);
    source_ =
        (Shape::kType == TensorType::kBF16 ? rows.bfloats : rows.halves) + first_row * rows.stride + column_;
  }

  __device__ const uint4* of_stage(int stage) const { return shared_ + stage * kPlaces; }
  __device__ static int place_of(int octet, int row, int lane) {
    return (octet * Shape::kRows + row) * kLanesOfRow + (lane + octet) % kLanesOfRow;
  }

  // Begins to bring in a chunk; zeros beyond the last row and column.
  __device__ void copy(int chunk, int stage) const {
    const bool has_column = chunk * kTileColumns + column_ < stride_;
    const std::uint16_t* const numbers = source_ + static_cast<std::int64_t>(chunk) * kTileColumns;
    uint4* const target = shared_ + stage * kPlaces + place_;
#pragma unroll
    for (int eight = 0; eight < Shape::kEights; ++eight) {
      const int row = eight * 8 + row_;
      const bool is_there = has_column && row < num_rows_;
      copy_async_16(target + eight * 8 * kLanesOfRow, is_there ? numbers + row * stride_ : source_, is_there);
    }
  }

 private:
  uint4* shared_;
  const std::uint16_t* source_;  // of row 0 and chunk 0
  std::int64_t stride_;
  int num_rows_;
  int row_, column_, place_;  // of the first of what this thread copies
};
static_assert(kTileThreads == 8 * kOctets * kLanesOfRow, "a thread for each place of eight rows");

// What a warp computes, and what each of its threads sums up.
template <class Shape>
class WarpTile {
 public:
  using Weights = LaneGroup[Shape::kSixteens][2];  // of a chunk

  // `groups`: of a weight row.
  __device__ WarpTile(const ProductTargets& targets, const BlockPlace& place, std::int64_t groups)
      : targets_(targets), place_(place), groups_(groups), sums_(targets, place) {
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        rows_[i][half] = place.weight_row(targets, TileSums<Shape>::place_of(i, half)) * groups;
    }
  }

  // Behind the last group it is the last one again, which meets zeros.
  __device__ void load(int chunk, Weights& loaded) const {
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

  // An octet of columns is two steps.
  __device__ void multiply(const Weights& loaded, const ChunkRows<Shape>& activations, int stage) {
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      std::uint32_t weights[Shape::kSixteens][2][4];
#pragma unroll
      for (int i = 0; i < Shape::kSixteens; ++i) {
        std::uint32_t upper[4], lower[4];
        loaded[i][0].octet(octet, upper), loaded[i][1].octet(octet, lower);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          weights[i][step][0] = upper[2 * step], weights[i][step][1] = lower[2 * step];
          weights[i][step][2] = upper[2 * step + 1], weights[i][step][3] = lower[2 * step + 1];
        }
      }
      const uint4* const mine =
          activations.of_stage(stage) + ChunkRows<Shape>::place_of(octet, lane() / 4, lane() % 4);
#pragma unroll
      for (int j = 0; j < Shape::kEights; ++j) {
        const uint4 numbers = mine[j * 8 * kLanesOfRow];
        const std::uint32_t steps[2][2] = {{numbers.x, numbers.y}, {numbers.z, numbers.w}};
#pragma unroll
        for (int step = 0; step < 2; ++step) {
#pragma unroll
          for (int i = 0; i < Shape::kSixteens; ++i) {
            if constexpr (Shape::kType == TensorType::kBF16) {
              multiply_step_bf16(sums_.sums[i][j], weights[i][step], steps[step]);
            } else {
              multiply_step_f16(sums_.sums[i][j], weights[i][step], steps[step]);
            }
          }
        }
      }
    }
  }

  __device__ TileSums<Shape>& sums() { return sums_; }

 private:
  __device__ static int lane() { return TileSums<Shape>::lane(); }

  const ProductTargets& targets_;
  const BlockPlace& place_;
  std::int64_t groups_;
  std::int64_t rows_[Shape::kSixteens][2];  // of the lane's: the first group among the matrix's
  TileSums<Shape> sums_;
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

  multiply_slices<Shape>(tile, activations, begin, end, [](int) {});
  static_assert(TileSums<Shape>::kSharedNumbers * sizeof(float) <=
                Shape::kStages * Shape::kRows * kTileColumns * sizeof(std::uint16_t));
  const float* const factors = kType == TensorType::kBF16 ? nullptr : rows.half_factors;
  if (tile.sums().sum_of_splits(scratch))
    tile.sums().store(rows, factors, rows.num_parts, dynamic_shared<float>());
}

using TilesKernel = void (*)(const ProductTargets, const PreparedRows, const SplitScratch);

template <TensorType kType>
TilesKernel tiles_kernel(int tile_rows) {
  if (tile_rows <= 16) return tile_rows == 8 ? multiply_tiles<kType, 1> : multiply_tiles<kType, 2>;
  return tile_rows == 32 ? multiply_tiles<kType, 4> : multiply_tiles<kType, 8>;
}

}  // namespace

void launch_float_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                        const PreparedRows& rows, const SplitScratch& scratch) {
  ProductTargets dealt = targets;
  const unsigned row_tiles = num_pieces(std::int64_t{rows.num_rows} * rows.num_parts, tile_rows);
  const std::int32_t num_blocks =
      deal_tiles(dealt, tile_outputs(false, tile_rows), static_cast<std::int32_t>(row_tiles));
  const int numbers = kFloatStages * tile_rows * kTileColumns;
  launch(type == TensorType::kF16 ? tiles_kernel<TensorType::kF16>(tile_rows)
                                  : tiles_kernel<TensorType::kBF16>(tile_rows),
         {.grid = dim3(static_cast<unsigned>(num_blocks), row_tiles),
          .block = dim3(kTileThreads),
          .shared_bytes = static_cast<std::size_t>(numbers) * sizeof(std::uint16_t),
          .awaits_inputs = true},
         stream, dealt, rows, scratch);
}

}  // namespace octavo::kernels::cuda
