// Products of many rows on tensor cores. A block of four warps computes 16 or 64 input rows times 64 outputs,
// in steps of 64 columns; shared memory holds two steps, so that one is brought in while the other is
// multiplied. Quantised weights are asked for two steps ahead into registers, a group of 32 columns for each
// thread, and stand in shared memory as float16: an integer q below 1024 is the float16 number 0x6400 + q
// less 1024, so that two conversions take a permutation and a sum.
//
// Numbers: an output is summed up in steps of 16 columns, ascending; of an activation's two parts the first
// comes first. Splits of the inner dimension are added in ascending order, whichever block does it.
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

// Numbers from row to row in shared memory: 144 bytes, so that eight rows' 16 bytes meet eight different
// groups of banks.
constexpr int kPitch = kTileColumns + 8;
constexpr int kWeightNumbers = kTileOutputs * kPitch;
constexpr int kStages = 2;

struct NoGroup {};

// How the four warps share a tile, and what each thread sums up.
template <int kTileRows>
struct WarpTile {
  static constexpr int kWarpsOfRows = kTileRows == 16 ? 1 : 2;
  static constexpr int kWarpsOfOutputs = 4 / kWarpsOfRows;
  static constexpr int kRowSteps = kTileRows / kWarpsOfRows / 16;
  static constexpr int kOutputSteps = kTileOutputs / kWarpsOfOutputs / 8;
  float sums[kRowSteps][kOutputSteps][4];

  __device__ static int first_row() {
    return static_cast<int>(threadIdx.x / kWarp) / kWarpsOfOutputs * kRowSteps * 16;
  }
  __device__ static int first_output() {
    return static_cast<int>(threadIdx.x / kWarp) % kWarpsOfOutputs * kOutputSteps * 8;
  }
};

// What a block works on. `column` of a tile means its place in shared memory, 0 .. 63.
struct BlockPlace {
  int target, tile, split;
  std::int64_t first_row;  // input row

  // Weight row of a column; gate and up take turns by eights. Beyond the last row it is the last one again.
  __device__ std::int64_t weight_row(const ProductTargets& targets, int column) const {
    const std::int64_t last = targets.targets[target].planes.rows - 1, row = output(targets, column);
    return row < last ? row : last;
  }
  __device__ std::int64_t output(const ProductTargets& targets, int column) const {
    if (targets.is_gate_up == 0) return static_cast<std::int64_t>(tile) * kTileOutputs + column;
    return static_cast<std::int64_t>(tile) * (kTileOutputs / 2) + column / 16 * 8 + column % 8;
  }
  __device__ const WeightPlanes& planes(const ProductTargets& targets, int column) const {
    return targets.targets[targets.is_gate_up == 0 ? target : column / 8 % 2].planes;
  }
};

template <int kTileRows>
__device__ BlockPlace place_of_block(const ProductTargets& targets) {
  const int block = static_cast<int>(blockIdx.x), target = target_of_block(targets, block);
  const ProductTarget& chosen = targets.targets[target];
  const int local = block - chosen.first_block;
  return {target, local / chosen.splits, local % chosen.splits,
          static_cast<std::int64_t>(blockIdx.y) * kTileRows};
}

// Shared memory of one step: activations [parts][kTileRows][kPitch], then weights [64][kPitch].
template <TensorType kType, int kTileRows>
struct Step {
  const ProductTargets& targets;
  const PreparedRows& rows;
  const BlockPlace& place;
  std::uint16_t* shared;

  __device__ std::uint16_t* activations(int stage) const {
    return shared + stage * (rows.num_parts * kTileRows * kPitch + kWeightNumbers);
  }
  __device__ std::uint16_t* weights(int stage) const {
    return activations(stage) + rows.num_parts * kTileRows * kPitch;
  }

  // Begins to copy what needs no conversion.
  __device__ void copy(int step, int stage) const {
    constexpr int kPieces = kTileColumns / 8;  // of 16 bytes, in a row
    const std::int64_t first_column = static_cast<std::int64_t>(step) * kTileColumns;
    const std::uint16_t* const source = kType == TensorType::kBF16 ? rows.bfloats : rows.halves;
    std::uint16_t* const target = activations(stage);
    for (int i = static_cast<int>(threadIdx.x); i < rows.num_parts * kTileRows * kPieces; i += kTileThreads) {
      const int line = i / kPieces, piece = i % kPieces;
      const std::int64_t row = place.first_row + line % kTileRows, part = line / kTileRows;
      const bool is_there = row < rows.num_rows;
      const std::int64_t index =
          part * rows.part_stride + (is_there ? row : 0) * rows.stride + first_column + piece * 8;
      copy_async_16(target + line * kPitch + piece * 8, source + index, is_there);
    }
    if constexpr (!is_quantised(kType)) {
      for (int i = static_cast<int>(threadIdx.x); i < kTileOutputs * kPieces; i += kTileThreads) {
        const int column = i / kPieces, piece = i % kPieces;
        const WeightPlanes& planes = place.planes(targets, column);
        const auto* const numbers = reinterpret_cast<const std::uint16_t*>(planes.low);
        copy_async_16(weights(stage) + column * kPitch + piece * 8,
                      numbers + place.weight_row(targets, column) * planes.stride + first_column + piece * 8);
      }
    }
  }

  // This thread's group of a step: 64 weight rows times two groups.
  __device__ auto load(int step) const {
    if constexpr (is_quantised(kType)) {
      const int column = static_cast<int>(threadIdx.x) / 2;
      return load_group<kType>(place.planes(targets, column), place.weight_row(targets, column),
                               static_cast<std::int64_t>(step) * 2 + threadIdx.x % 2);
    } else {
      return NoGroup{};
    }
  }

  // Brings weights into the second-level cache long before load() or copy() asks for them: what a block holds
  // in registers and shared memory bridges that cache's latency, not the memory's. Once for each line of 128
  // bytes and weight row.
  __device__ void prefetch(int step, int end) const {
    constexpr int kStepBytes = is_quantised(kType) ? 2 * 4 * quant_traits(kType).low_bits
                                                   : kTileColumns * static_cast<int>(sizeof(std::uint16_t));
    constexpr int kDistance = kStepBytes >= 128 ? 4 : 8;
    const int column = static_cast<int>(threadIdx.x) / 2;
    if (threadIdx.x % 2 != 0 || step + kDistance >= end || (step + kDistance) * kStepBytes % 128 != 0) return;
    const WeightPlanes& planes = place.planes(targets, column);
    const std::int64_t row_bytes = planes.stride / kTileColumns * kStepBytes;
    prefetch_line(planes.low + place.weight_row(targets, column) * row_bytes +
                  (step + kDistance) * kStepBytes);
  }

  template <class Raw>
  __device__ void store(const Raw& raw, int stage) const {
    if constexpr (is_quantised(kType)) {
      constexpr QuantTraits kTraits = quant_traits(kType);
      constexpr bool kIsSigned = kTraits.is_signed();
      // 0x6400 is 1024; its numbers to 2047 are the integers.
      constexpr std::uint32_t kBase = 0xe400u + (kIsSigned ? 128 : kTraits.offset),
                              kBases = kBase << 16 | kBase;
      constexpr std::uint32_t kOnes = 0x3c003c00u;
      const GroupScales scales = scales_of_group<kType>(raw);
      std::uint32_t words[8];
      unpack_group<kType>(raw, words);
      auto* const target =
          reinterpret_cast<uint4*>(weights(stage) + threadIdx.x / 2 * kPitch + threadIdx.x % 2 * 32);
#pragma unroll
      for (int quarter = 0; quarter < 4; ++quarter) {
        const std::uint32_t scale = twice(scales.scale[quarter / 2]),
                            minimum = twice(-scales.minimum[quarter / 2]);
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t word = words[2 * quarter + i / 2] ^ (kIsSigned ? 0x80808080u : 0u);
          const std::uint32_t raised = __byte_perm(word, 0x64646464u, i % 2 == 0 ? 0x4140u : 0x4342u);
          pairs[i] = fma_half_pairs(fma_half_pairs(raised, kOnes, kBases), scale, minimum);
        }
        target[quarter] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
      }
    }
  }

  __device__ void multiply(int stage, WarpTile<kTileRows>& tile) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const std::uint16_t* const weight_row =
        weights(stage) + (tile.first_output() + lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8;
    const std::uint16_t* const row =
        activations(stage) + (tile.first_row() + lane % 16) * kPitch + lane / 16 * 8;
#pragma unroll
    for (int column = 0; column < kTileColumns; column += 16) {
      std::uint32_t b[WarpTile<kTileRows>::kOutputSteps][2];
#pragma unroll
      for (int j = 0; j < WarpTile<kTileRows>::kOutputSteps; j += 2) {
        std::uint32_t matrices[4];
        load_matrices_x4(matrices, weight_row + j * 8 * kPitch + column);
        b[j][0] = matrices[0], b[j][1] = matrices[1], b[j + 1][0] = matrices[2], b[j + 1][1] = matrices[3];
      }
      for (int part = 0; part < rows.num_parts; ++part) {
#pragma unroll
        for (int i = 0; i < WarpTile<kTileRows>::kRowSteps; ++i) {
          std::uint32_t a[4];
          load_matrices_x4(a, row + (part * kTileRows + i * 16) * kPitch + column);
#pragma unroll
          for (int j = 0; j < WarpTile<kTileRows>::kOutputSteps; ++j) {
            if constexpr (kType == TensorType::kBF16) {
              multiply_step_bf16(tile.sums[i][j], a, b[j]);
            } else {
              multiply_step_f16(tile.sums[i][j], a, b[j]);
            }
          }
        }
      }
    }
  }

 private:
  __device__ static std::uint32_t twice(float value) {
    const std::uint32_t bits = __half_as_ushort(__float2half_rn(value));
    return bits << 16 | bits;
  }
};

// Adds the sums of all splits. True for the block that has them; the others are done.
template <int kTileRows>
__device__ bool sum_of_splits(const ProductTargets& targets, const BlockPlace& place,
                              const SplitScratch& scratch, WarpTile<kTileRows>& tile) {
  const ProductTarget& target = targets.targets[place.target];
  if (target.splits == 1) return true;
  constexpr int kSums = kTileRows * kTileOutputs / kTileThreads;
  auto& sums = reinterpret_cast<float(&)[kSums]>(tile.sums);
  const std::int64_t tile_index = static_cast<std::int64_t>(blockIdx.y) * target.num_tiles + place.tile;
  const std::int64_t first = target.first_partial + tile_index * target.splits;
  float* const partials = scratch.partials + first * kSums * kTileThreads + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kSums; ++i) partials[(place.split * kSums + i) * kTileThreads] = sums[i];
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
  for (int i = 0; i < kSums; ++i) sums[i] = 0.0f;
  for (int split = 0; split < target.splits; ++split) {
#pragma unroll
    for (int i = 0; i < kSums; ++i) sums[i] += __ldcg(partials + (split * kSums + i) * kTileThreads);
  }
  return true;
}

template <TensorType kType, int kTileRows>
__device__ void store_tile(const ProductTargets& targets, const PreparedRows& rows, const BlockPlace& place,
                           const WarpTile<kTileRows>& tile) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const std::int64_t num_outputs = targets.targets[place.target].planes.rows;
  const bool is_gate_up = targets.is_gate_up != 0;
#pragma unroll
  for (int i = 0; i < WarpTile<kTileRows>::kRowSteps; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = place.first_row + tile.first_row() + i * 16 + half * 8 + lane / 4;
      if (row >= rows.num_rows) continue;
      const float factor = kType == TensorType::kBF16 ? 1.0f : rows.half_factors[row];
#pragma unroll
      for (int j = 0; j < WarpTile<kTileRows>::kOutputSteps; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::int64_t output = place.output(targets, tile.first_output() + j * 8 + lane % 4 * 2 + k);
          if (output >= num_outputs) continue;
          const float sum = tile.sums[i][j][2 * half + k] * factor;
          if (!is_gate_up) {
            store_output(targets.targets[place.target], row, output, sum);
          } else if (j % 2 == 0) {
            store_gate_up(targets, row, output, sum, tile.sums[i][j + 1][2 * half + k] * factor);
          }
        }
      }
    }
  }
}

template <TensorType kType, int kTileRows>
__global__ void __launch_bounds__(kTileThreads)
    multiply_tiles(const __grid_constant__ ProductTargets targets, const __grid_constant__ PreparedRows rows,
                   const SplitScratch scratch) {
  const BlockPlace place = place_of_block<kTileRows>(targets);
  const Step<kType, kTileRows> step{targets, rows, place, dynamic_shared<std::uint16_t>()};
  const int num_steps = static_cast<int>(rows.stride / kTileColumns),
            splits = targets.targets[place.target].splits;
  const int begin = place.split * num_steps / splits, end = (place.split + 1) * num_steps / splits;
  WarpTile<kTileRows> tile{};

  step.copy(begin, 0);
  copy_async_commit();
  auto even = step.load(begin), odd = step.load(begin + 1 < end ? begin + 1 : begin);
  // Behind the barrier every warp has done with the other stage, which is filled next.
  const auto advance = [&](int index, auto& raw) {
    const int stage = (index - begin) % kStages;
    step.prefetch(index, end);
    step.store(raw, stage);
    if (index + 2 < end) raw = step.load(index + 2);
    copy_async_wait<0>();
    __syncthreads();
    if (index + 1 < end) step.copy(index + 1, 1 - stage);
    copy_async_commit();
    step.multiply(stage, tile);
  };
  for (int index = begin; index < end; index += 2) {
    advance(index, even);
    if (index + 1 < end) advance(index + 1, odd);
  }
  if (sum_of_splits<kTileRows>(targets, place, scratch, tile)) {
    store_tile<kType, kTileRows>(targets, rows, place, tile);
  }
}

using TilesKernel = void (*)(const ProductTargets, const PreparedRows, const SplitScratch);

template <TensorType kType>
TilesKernel tiles_kernel(int tile_rows) {
  return tile_rows == 16 ? multiply_tiles<kType, 16> : multiply_tiles<kType, 64>;
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

__global__ void finish_products(const FinishArguments arguments) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= arguments.num_rows * arguments.count) return;
  const std::int64_t row = index / arguments.count, output = index % arguments.count;
  const float factor = arguments.factors == nullptr ? 1.0f : arguments.factors[row];
  float value = arguments.product[index] * factor;
  if (arguments.bias != nullptr) value += arguments.bias[output];
  if (arguments.up != nullptr) {
    float up = arguments.up[index] * (arguments.up_factors == nullptr ? 1.0f : arguments.up_factors[row]);
    if (arguments.up_bias != nullptr) up += arguments.up_bias[output];
    value = activated(arguments.epilogue, value) * up;
  }
  float* const out = arguments.out + row * arguments.out_stride + output;
  store_with(arguments.up != nullptr ? Epilogue::kStore : arguments.epilogue, out, value);
}

constexpr unsigned kThreads = 256;

}  // namespace

void launch_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                  const PreparedRows& rows, const SplitScratch& scratch) {
  ProductTargets dealt = targets;
  std::int32_t num_blocks = 0, num_partials = 0;
  const auto row_tiles = static_cast<std::int32_t>(num_pieces(rows.num_rows, tile_rows));
  for (int i = 0; i < (targets.is_gate_up != 0 ? 1 : targets.count); ++i) {
    ProductTarget& target = dealt.targets[i];
    const std::int64_t outputs_of_tile = targets.is_gate_up != 0 ? kTileOutputs / 2 : kTileOutputs;
    target.num_tiles = static_cast<std::int32_t>(num_pieces(target.planes.rows, outputs_of_tile));
    target.first_block = num_blocks;
    target.first_partial = num_partials;
    num_blocks += target.num_tiles * target.splits;
    if (target.splits > 1) num_partials += target.num_tiles * target.splits * row_tiles;
  }
  const std::size_t numbers = static_cast<std::size_t>(kStages) *
                              static_cast<std::size_t>(rows.num_parts * tile_rows * kPitch + kWeightNumbers);
  const LaunchShape shape{dim3(static_cast<unsigned>(num_blocks), static_cast<unsigned>(row_tiles)),
                          dim3(kTileThreads), numbers * sizeof(std::uint16_t)};
  launch(tiles_kernel(type, tile_rows), shape, stream, dealt, rows, scratch);
}

void launch_expand(Stream& stream, const WeightPlanes& planes, std::int64_t first, std::int64_t count,
                   std::uint16_t* out) {
  const unsigned num_blocks = num_pieces(count * (planes.stride / kGroupColumns), kThreads);
  with_quantised_type(planes.type, [&](auto constant) {
    launch(expand_rows<decltype(constant)::value>, {dim3(num_blocks), dim3(kThreads)}, stream, planes, first,
           count, out);
  });
}

void launch_finish(Stream& stream, const FinishArguments& arguments) {
  const unsigned num_blocks = num_pieces(arguments.num_rows * arguments.count, kThreads);
  launch(finish_products, {dim3(num_blocks), dim3(kThreads)}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
