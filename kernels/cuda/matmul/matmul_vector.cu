// Products of few rows (one, quantised weights up to four, float32 ones up to eight): a warp reads two rows
// of weights once, its lanes side by side, and meets every input row with them. Memory sets the pace: 4.5
// bits of a Q4_0 weight cost about one instruction with 16-bit activations (a share of unpacking, and a
// quarter of each of two __dp4a), where conversion to float and a multiply-add would cost four.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/matmul/input_row.cuh"
#include "kernels/cuda/matmul/matmul_epilogue.cuh"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kVectorThreads = kVectorWarps * kWarp;

// Where a kernel finds its rows: prepared, in the device's memory; or each block prepares its own, of which
// there is one, in shared memory, and takes outputs in turn. One kernel for both would take loads from either
// memory, which cost those of several rows up to 60 registers and spilled.
enum class RowsAre : std::uint8_t { kPrepared, kOwn };

template <RowsAre kRowsAre, class T>
__device__ inline T load(const T* address) {
  if constexpr (kRowsAre == RowsAre::kPrepared) {
    return __ldg(address);
  } else {
    return *address;
  }
}

// What a warp computes: two neighbouring outputs of one matrix, or the same output of gate and up.
struct WarpOutputs {
  int target[kVectorOutputs];
  std::int64_t row[kVectorOutputs];  // weight row, the last one again where there is none
  std::int64_t first;                // output
};

__device__ WarpOutputs outputs_of_warp(const ProductTargets& targets, int block) {
  const int target = target_of_block(targets, block);
  const std::int64_t warp =
      static_cast<std::int64_t>(block - targets.targets[target].first_block) * kVectorWarps +
      threadIdx.x / kWarp;
  const std::int64_t last = targets.targets[target].planes.rows - 1;
  const bool is_gate_up = targets.is_gate_up != 0;
  WarpOutputs outputs{};
  outputs.first = is_gate_up ? warp : warp * kVectorOutputs;
  for (int i = 0; i < kVectorOutputs; ++i) {
    const std::int64_t row = outputs.first + (is_gate_up ? 0 : i);
    outputs.target[i] = is_gate_up ? i : target;
    outputs.row[i] = row < last ? row : last;
  }
  return outputs;
}

// Brings the beginning of the warp's weights into the second-level cache while its inputs are still computed.
template <TensorType kType>
__device__ void prefetch_weights(const ProductTargets& targets, const WarpOutputs& outputs) {
  constexpr std::int64_t kLine = 128;
  constexpr int kBits = is_quantised(kType)         ? quant_traits(kType).low_bits
                        : kType == TensorType::kF32 ? 32
                                                    : 16;
  const std::int64_t offset = threadIdx.x % kWarp * kLine;
#pragma unroll
  for (int i = 0; i < kVectorOutputs; ++i) {
    const WeightPlanes& planes = targets.targets[outputs.target[i]].planes;
    const std::int64_t row_bytes = planes.stride / 8 * kBits;
    if (offset < row_bytes) prefetch_line(planes.low + outputs.row[i] * row_bytes + offset);
  }
}

__device__ void store_row(const ProductTargets& targets, const WarpOutputs& outputs, int row, float first,
                          float second) {
  const ProductTarget& target = targets.targets[outputs.target[0]];
  if (outputs.first >= target.planes.rows) return;
  if (targets.is_gate_up != 0) return store_gate_up(targets, row, outputs.first, first, second);
  store_output(target, row, outputs.first, first);
  if (outputs.first + 1 < target.planes.rows) store_output(target, row, outputs.first + 1, second);
}

template <int kRows>
__device__ void store_sums(const ProductTargets& targets, const WarpOutputs& outputs, int num_rows,
                           float (&sums)[kVectorOutputs][kRows]) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float first = warp_sum(sums[0][r]), second = warp_sum(sums[1][r]);
    if (lane == r && r < num_rows) store_row(targets, outputs, r, first, second);
  }
}

// Numbers in shared memory that a warp puts the sums of pairs and of sections in.
template <int kRows>
__host__ __device__ constexpr std::int64_t numbers_of_warp(const Sections& sections) {
  return kVectorOutputs * kRows * (sections.pairs + kMostSections);
}

// Sums of pairs, [output][row][pair], to results, in the order of Sections: a lane to a section.
template <int kRows>
__device__ void store_sums_of_pairs(const ProductTargets& targets, const WarpOutputs& outputs, int num_rows,
                                    const Sections& sections, float* sums) {
  constexpr int kChains = kVectorOutputs * kRows;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  float* const of_sections = sums + kChains * sections.pairs;
  __syncwarp();
  for (int i = lane; i < kChains * kMostSections; i += static_cast<int>(kWarp)) {
    const std::int64_t chain = i / kMostSections, first = i % kMostSections * sections.length,
                       end = first + sections.length < sections.pairs ? first + sections.length
                                                                      : sections.pairs;
    if (chain % kRows >= num_rows) continue;
    float sum = 0.0f;
    for (std::int64_t pair = first; pair < end; ++pair) sum += sums[chain * sections.pairs + pair];
    of_sections[i] = sum;
  }
  __syncwarp();
  if (lane >= num_rows) return;
  float totals[kVectorOutputs] = {};
#pragma unroll
  for (int i = 0; i < kVectorOutputs; ++i) {
    for (int section = 0; section < sections.count; ++section)
      totals[i] += of_sections[(i * kRows + lane) * kMostSections + section];
  }
  store_row(targets, outputs, lane, totals[0], totals[1]);
}

// Sum of the products of 16 columns' integers, exact.
__device__ inline int dot_of_sixteen(const std::uint32_t* words, const uint4& high, const uint4& low) {
  int high_sum = dot_of_four(words[0], high.x, 0), low_sum = dot_of_four(words[0], low.x, 0);
  high_sum = dot_of_four(words[1], high.y, high_sum), low_sum = dot_of_four(words[1], low.y, low_sum);
  high_sum = dot_of_four(words[2], high.z, high_sum), low_sum = dot_of_four(words[2], low.z, low_sum);
  high_sum = dot_of_four(words[3], high.w, high_sum), low_sum = dot_of_four(words[3], low.w, low_sum);
  return 256 * high_sum + low_sum;
}

// One row's share of a group.
struct IntegerGroup {
  uint4 high[2], low[2];
  float scale;
  int2 sums;
};

template <RowsAre kRowsAre>
__device__ inline IntegerGroup load_integers(const PreparedRows& rows, std::int64_t row, std::int64_t group) {
  const std::int64_t groups = rows.stride / kGroupColumns;
  const uint4* const pieces = rows.integers + row * 4 * groups + group;
  return {{load<kRowsAre>(pieces), load<kRowsAre>(pieces + groups)},
          {load<kRowsAre>(pieces + 2 * groups), load<kRowsAre>(pieces + 3 * groups)},
          load<kRowsAre>(rows.integer_scales + group * rows.scale_stride + row),
          load<kRowsAre>(rows.integer_sums + group * rows.scale_stride + row)};
}

template <TensorType kType>
__device__ inline float add_group(const std::uint32_t (&words)[8], const GroupScales& weights,
                                  const IntegerGroup& row, float sum) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  const int dot[2] = {dot_of_sixteen(words, row.high[0], row.low[0]) - kTraits.offset * row.sums.x,
                      dot_of_sixteen(words + 4, row.high[1], row.low[1]) - kTraits.offset * row.sums.y};
  if constexpr (kTraits.scale_columns == 32) {
    sum = fmaf(weights.scale[0] * row.scale, static_cast<float>(dot[0] + dot[1]), sum);
    if constexpr (kTraits.has_minimum) {
      sum = fmaf(-weights.minimum[0], row.scale * static_cast<float>(row.sums.x + row.sums.y), sum);
    }
  } else {
    sum = fmaf(weights.scale[0] * row.scale, static_cast<float>(dot[0]), sum);
    sum = fmaf(weights.scale[1] * row.scale, static_cast<float>(dot[1]), sum);
    if constexpr (kTraits.has_minimum) {
      sum = fmaf(-weights.minimum[0], row.scale * static_cast<float>(row.sums.x), sum);
      sum = fmaf(-weights.minimum[1], row.scale * static_cast<float>(row.sums.y), sum);
    }
  }
  return sum;
}

// Of a row that a block prepares itself.
__host__ __device__ constexpr std::int64_t integer_bytes(std::int64_t stride) {
  return 2 * stride + stride / kGroupColumns * std::int64_t{sizeof(float) + sizeof(int2)};
}

// `shared`: integer_bytes().
__device__ PreparedRows prepare_integers(const RowSource& source, PreparedRows rows, std::byte* shared) {
  const std::int64_t groups = rows.stride / kGroupColumns;
  rows.scale_stride = 1;
  rows.integers = reinterpret_cast<uint4*>(shared);
  rows.integer_sums = reinterpret_cast<int2*>(shared + 2 * rows.stride);
  rows.integer_scales = reinterpret_cast<float*>(rows.integer_sums + groups);
  const std::int64_t lane = threadIdx.x % kWarp;
  const InputRow row = InputRow::of<kVectorThreads>(source, 0);
  for (std::int64_t first = threadIdx.x - lane; first < rows.stride / kQuad; first += kVectorThreads) {
    float values[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) values[i] = row.at((first + lane) * kQuad + i);
    store_integers(rows, 0, first + lane, values);
  }
  __syncthreads();
  return rows;
}

template <TensorType kType, int kRows, RowsAre kRowsAre>
__device__ inline void multiply_quantised(const ProductTargets& targets, const WarpOutputs& outputs,
                                          const PreparedRows& rows, const Sections& sections, float* sums) {
  // With one row there are registers for several pairs, whose loads are then under way together.
#pragma unroll(kRows == 1 ? 2 : 1)
  for (std::int64_t pair = threadIdx.x % kWarp; pair < sections.pairs; pair += kWarp) {
    RawPair<kType> raw[kVectorOutputs];
#pragma unroll
    for (int i = 0; i < kVectorOutputs; ++i) {
      raw[i] =
          load_pair<kType>(targets.targets[outputs.target[i]].planes, outputs.row[i] * sections.pairs, pair);
    }
    float chains[kVectorOutputs][kRows] = {};
#pragma unroll
    for (int group = 0; group < kPairGroups; ++group) {
      std::uint32_t words[kVectorOutputs][8];
      GroupScales scales[kVectorOutputs];
#pragma unroll
      for (int i = 0; i < kVectorOutputs; ++i) {
        unpack_group<kType>(raw[i], group, words[i]);
        scales[i] = scales_of_group(raw[i], group);
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r >= rows.num_rows) break;
        const IntegerGroup integers = load_integers<kRowsAre>(rows, r, pair * kPairGroups + group);
#pragma unroll
        for (int i = 0; i < kVectorOutputs; ++i) {
          chains[i][r] = add_group<kType>(words[i], scales[i], integers, chains[i][r]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kVectorOutputs; ++i) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        if (r < rows.num_rows) sums[(i * kRows + r) * sections.pairs + pair] = chains[i][r];
      }
    }
  }
  store_sums_of_pairs<kRows>(targets, outputs, rows.num_rows, sections, sums);
}

// A block's own row stands behind its warps' sums.
template <TensorType kType, int kRows, RowsAre kRowsAre>
__global__ void __launch_bounds__(kVectorWarps* kWarp)
    vector_quantised(const __grid_constant__ ProductTargets targets,
                     const __grid_constant__ PreparedRows rows, const __grid_constant__ RowSource source,
                     int num_blocks) {
  let_next_begin();
  const WarpOutputs outputs = outputs_of_warp(targets, static_cast<int>(blockIdx.x));
  prefetch_weights<kType>(targets, outputs);
  await_inputs();
  const Sections sections = sections_of(rows.stride);
  const std::int64_t numbers = numbers_of_warp<kRows>(sections);
  float* const sums = dynamic_shared<float>() + threadIdx.x / kWarp * numbers;
  if constexpr (kRowsAre == RowsAre::kPrepared) {
    multiply_quantised<kType, kRows, kRowsAre>(targets, outputs, rows, sections, sums);
  } else {
    auto* const behind = reinterpret_cast<std::byte*>(dynamic_shared<float>() + kVectorWarps * numbers);
    const PreparedRows own = prepare_integers(source, rows, behind);
    for (int block = static_cast<int>(blockIdx.x); block < num_blocks; block += static_cast<int>(gridDim.x))
      multiply_quantised<kType, kRows, kRowsAre>(targets, outputs_of_warp(targets, block), own, sections,
                                                 sums);
  }
}

// Eight weights as floats.
template <TensorType kType>
__device__ inline void load_numbers(const WeightPlanes& planes, std::int64_t row, std::int64_t piece,
                                    float (&out)[8]) {
  const std::int64_t first = row * planes.stride + piece * 8;
  if constexpr (kType == TensorType::kF32) {
    const auto* const numbers =
        reinterpret_cast<const float4*>(reinterpret_cast<const float*>(planes.low) + first);
    const float4 low = __ldg(numbers), high = __ldg(numbers + 1);
    out[0] = low.x, out[1] = low.y, out[2] = low.z, out[3] = low.w;
    out[4] = high.x, out[5] = high.y, out[6] = high.z, out[7] = high.w;
  } else {
    const uint4 words =
        __ldg(reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint16_t*>(planes.low) + first));
    const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kType == TensorType::kF16) {
        out[2 * i] = half_of_word(pairs[i]), out[2 * i + 1] = half_of_word(pairs[i] >> 16);
      } else {
        out[2 * i] = __uint_as_float(pairs[i] << 16),
                out[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
      }
    }
  }
}

// `shared`: [stride].
__device__ PreparedRows prepare_floats(const RowSource& source, PreparedRows rows, float* shared) {
  rows.floats = shared;
  const InputRow row = InputRow::of<kVectorThreads>(source, 0);
  for (std::int64_t column = threadIdx.x; column < rows.stride; column += kVectorThreads)
    shared[column] = row.at(column);
  __syncthreads();
  return rows;
}

template <TensorType kType, int kRows, RowsAre kRowsAre>
__device__ inline void multiply_numbers(const ProductTargets& targets, const WarpOutputs& outputs,
                                        const PreparedRows& rows) {
  float sums[kVectorOutputs][kRows] = {};
#pragma unroll(kRows == 1 ? 4 : 1)
  for (std::int64_t piece = threadIdx.x % kWarp; piece < rows.stride / 8; piece += kWarp) {
    float weights[kVectorOutputs][8];
#pragma unroll
    for (int i = 0; i < kVectorOutputs; ++i) {
      load_numbers<kType>(targets.targets[outputs.target[i]].planes, outputs.row[i], piece, weights[i]);
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (r >= rows.num_rows) break;
      const auto* const activations =
          reinterpret_cast<const float4*>(rows.floats + r * rows.stride + piece * 8);
      const float4 low = load<kRowsAre>(activations), high = load<kRowsAre>(activations + 1);
      const float values[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int i = 0; i < kVectorOutputs; ++i) {
#pragma unroll
        for (int k = 0; k < 8; ++k) sums[i][r] = fmaf(weights[i][k], values[k], sums[i][r]);
      }
    }
  }
  store_sums<kRows>(targets, outputs, rows.num_rows, sums);
}

template <TensorType kType, int kRows, RowsAre kRowsAre>
__global__ void __launch_bounds__(kVectorWarps* kWarp)
    vector_numbers(const __grid_constant__ ProductTargets targets, const __grid_constant__ PreparedRows rows,
                   const __grid_constant__ RowSource source, int num_blocks) {
  let_next_begin();
  const WarpOutputs outputs = outputs_of_warp(targets, static_cast<int>(blockIdx.x));
  prefetch_weights<kType>(targets, outputs);
  await_inputs();
  if constexpr (kRowsAre == RowsAre::kPrepared) {
    multiply_numbers<kType, kRows, kRowsAre>(targets, outputs, rows);
  } else {
    const PreparedRows own = prepare_floats(source, rows, dynamic_shared<float>());
    for (int block = static_cast<int>(blockIdx.x); block < num_blocks; block += static_cast<int>(gridDim.x))
      multiply_numbers<kType, kRows, kRowsAre>(targets, outputs_of_warp(targets, block), own);
  }
}

struct VectorKernel {
  void (*kernel)(const ProductTargets, const PreparedRows, const RowSource, int) = nullptr;
  int rows = 0;  // that it is compiled for
};

template <TensorType kType, int kRows, RowsAre kRowsAre = RowsAre::kPrepared>
VectorKernel vector_kernel() {
  if constexpr (is_quantised(kType)) {
    return {vector_quantised<kType, kRows, kRowsAre>, kRows};
  } else {
    return {vector_numbers<kType, kRows, kRowsAre>, kRows};
  }
}

// For as many rows as plan_product() gives this way.
template <TensorType kType>
VectorKernel vector_kernel_for(int num_rows, RowsAre rows_are) {
  if (rows_are == RowsAre::kOwn) return vector_kernel<kType, 1, RowsAre::kOwn>();
  if (num_rows == 1) return vector_kernel<kType, 1>();
  if constexpr (is_quantised(kType)) {
    return num_rows == 2 ? vector_kernel<kType, 2>() : vector_kernel<kType, kMostVectorRowsQuantised>();
  } else if constexpr (kType == TensorType::kF32) {
    return num_rows <= 4 ? vector_kernel<kType, 4>() : vector_kernel<kType, kVectorRows>();
  } else {
    return {};
  }
}

VectorKernel vector_kernel_for(TensorType type, int num_rows, RowsAre rows_are) {
  switch (type) {
    case TensorType::kF32: return vector_kernel_for<TensorType::kF32>(num_rows, rows_are);
    case TensorType::kF16: return vector_kernel_for<TensorType::kF16>(num_rows, rows_are);
    case TensorType::kBF16: return vector_kernel_for<TensorType::kBF16>(num_rows, rows_are);
    default: break;
  }
  VectorKernel kernel;
  with_quantised_type(type, [&](auto constant) {
    kernel = vector_kernel_for<decltype(constant)::value>(num_rows, rows_are);
  });
  return kernel;
}

// `source` without data: the rows are prepared. REQUIRES: else one row
void launch_blocks(Stream& stream, TensorType type, const ProductTargets& targets, const PreparedRows& rows,
                   const RowSource& source, std::int64_t most_blocks) {
  const std::int64_t outputs_of_block = kVectorWarps * (targets.is_gate_up != 0 ? 1 : kVectorOutputs);
  ProductTargets dealt = targets;
  std::int32_t num_blocks = 0;
  for (int i = 0; i < (targets.is_gate_up != 0 ? 1 : targets.count); ++i) {
    dealt.targets[i].first_block = num_blocks;
    num_blocks += static_cast<std::int32_t>(num_pieces(targets.targets[i].planes.rows, outputs_of_block));
  }
  const bool has_own_row = source.data != nullptr;
  const VectorKernel chosen =
      vector_kernel_for(type, rows.num_rows, has_own_row ? RowsAre::kOwn : RowsAre::kPrepared);
  const std::int64_t shared_bytes =
      has_own_row ? own_row_bytes(type, rows.stride) : vector_bytes(type, rows.num_rows, rows.stride);
  launch(chosen.kernel,
         {.grid = dim3(static_cast<unsigned>(std::min<std::int64_t>(num_blocks, most_blocks))),
          .block = dim3(kVectorThreads),
          .shared_bytes = static_cast<std::size_t>(shared_bytes),
          .awaits_inputs = true},
         stream, dealt, rows, source, num_blocks);
}

}  // namespace

// Of the sums of a block's warps.
std::int64_t vector_bytes(TensorType type, std::int32_t rows, std::int64_t stride) {
  if (!is_quantised(type)) return 0;
  return kVectorWarps * numbers_of_warp<1>(sections_of(stride)) *
         vector_kernel_for(type, rows, RowsAre::kPrepared).rows * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t own_row_bytes(TensorType type, std::int64_t stride) {
  if (!is_quantised(type)) return stride * std::int64_t{sizeof(float)};
  return vector_bytes(type, 1, stride) + integer_bytes(stride);
}

void launch_vector(Stream& stream, TensorType type, const ProductTargets& targets, const PreparedRows& rows) {
  launch_blocks(stream, type, targets, rows, {}, std::numeric_limits<std::int32_t>::max());
}

void launch_vector_with_own_row(Stream& stream, TensorType type, const ProductTargets& targets,
                                const PreparedRows& rows, const RowSource& source, std::int64_t most_blocks) {
  launch_blocks(stream, type, targets, rows, source, most_blocks);
}

}  // namespace octavo::kernels::cuda
