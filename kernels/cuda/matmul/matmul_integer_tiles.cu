// Products of several rows with quantised weights on tensor cores, in integers. A step is weights [16
// outputs][32 columns] times a plane of activations [32 columns][8 rows], signed bytes both: two of them, of
// the high and the low bytes, give the exact sums of a group, which two scales make a float of. Weights are
// the operand that stands in registers: of each pair of groups the four lanes that share a weight row load
// what each of them multiplies (weight_planes.h), and nothing of them passes through shared memory.
//
// A block is four warps of 16 or 32 outputs each; they share the activations of a pair of groups, which are
// brought into shared memory while the pairs before are multiplied.
//
// Numbers: those of matmul_vector.cu, bit for bit, in the order of Sections. Sums of bytes begin with
// 0x4b400000, the float 1.5 * 2^23: a sum below 2^22 is the float of the same bits less that number, which
// takes one subtraction where a conversion takes four times its time. 256 * high + low is rounded once, as
// the integer would be.
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/matmul/tile_sums.cuh"
#include "kernels/cuda/runtime/hardware.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr int kPieces = 4;  // of a row's group: high 0..15, high 16..31, low 0..15, low 16..31
constexpr int kBias = 0x4b400000;
constexpr float kFloatBias = 12582912.0f;
// The largest sum of a group's bytes: 32 * 128 * 128.
static_assert(kGroupColumns * 128 * 128 < 1 << 22);

__device__ inline float float_of_biased(int sum) { return __int_as_float(sum) - kFloatBias; }
// Below 2^22.
__device__ inline float float_of_small(int integer) { return float_of_biased(integer + kBias); }

// A tile as it is compiled: input rows by eights, and outputs of a warp by sixteens.
template <TensorType kWeights, int kRowEights>
struct IntegerTile {
  static constexpr TensorType kType = kWeights;
  static constexpr QuantTraits kTraits = quant_traits(kWeights);
  static constexpr int kEights = kRowEights, kRows = 8 * kRowEights;
  static constexpr int kSixteens = tile_outputs(true, kRows) / (16 * kTileWarps);
  static constexpr int kOutputsOfWarp = 16 * kSixteens, kOutputs = kTileWarps * kOutputsOfWarp;
  static constexpr int kSums = kSixteens * kEights * 4;           // of a thread
  static constexpr int kDepth = kSums < 32 ? 3 : 2, kStages = 4;  // in pairs
  // A stage: [group][piece][row] of 16 bytes, scales [group][row], sums [group][row].
  static constexpr int kIntegerBytes = kPairGroups * kPieces * kRows * 16;
  static constexpr int kScaleBytes = kPairGroups * kRows * 4, kSumBytes = kPairGroups * kRows * 8;
  static constexpr int kStageBytes = kIntegerBytes + kScaleBytes + (kTraits.has_minimum ? kSumBytes : 0);
};

template <class Shape>
constexpr std::size_t kSharedBytes = Shape::kStages* Shape::kStageBytes > TileSums<Shape>::kSharedNumbers * 4
                                         ? Shape::kStages* Shape::kStageBytes
                                         : TileSums<Shape>::kSharedNumbers * 4;

// A pair's activations in shared memory.
template <class Shape>
class PairRows {
 public:
  __device__ PairRows(const PreparedRows& rows, std::int64_t first_row, std::byte* shared)
      : rows_(rows), first_row_(first_row), shared_(shared) {}

  // Begins to bring in a pair; zeros beyond the last row. A warp copies a piece: eight rows side by side, so
  // that its threads meet in no bank, and both groups, so that they read whole sectors.
  __device__ void copy(std::int64_t pair, int stage) const {
    constexpr int kEightsAtOnce = static_cast<int>(kWarp) / 8 / static_cast<int>(kPairGroups);
    const int thread = static_cast<int>(threadIdx.x), piece = thread / static_cast<int>(kWarp),
              group = thread / 8 % static_cast<int>(kPairGroups);
    const std::int64_t groups = rows_.stride / kGroupColumns, left = rows_.num_rows - first_row_;
    std::byte* const target = shared_ + stage * Shape::kStageBytes;
    auto* const integers = reinterpret_cast<uint4*>(target) + (group * kPieces + piece) * Shape::kRows;
    const uint4* const source =
        rows_.integers + (first_row_ * kPieces + piece) * groups + pair * kPairGroups + group;
#pragma unroll
    for (int first = 0; first < Shape::kEights; first += kEightsAtOnce) {
      const int eight = first + thread / 16 % kEightsAtOnce, row = eight * 8 + thread % 8;
      if (eight >= Shape::kEights) break;
      const bool is_there = row < left;
      copy_async_16(integers + row, source + (is_there ? row * kPieces * groups : 0), is_there);
    }
    copy_numbers<float>(rows_.integer_scales, pair, thread, target + Shape::kIntegerBytes);
    if constexpr (Shape::kTraits.has_minimum) {
      copy_numbers<int2>(rows_.integer_sums, pair, thread,
                         target + Shape::kIntegerBytes + Shape::kScaleBytes);
    }
  }

  // Both planes of eight rows' group, as operands: the lane's row gives an address of each matrix.
  __device__ void load(int stage, int group, int eight, std::uint32_t (&high)[2],
                       std::uint32_t (&low)[2]) const {
    const int lane = TileSums<Shape>::lane();
    const auto* const integers = reinterpret_cast<const uint4*>(shared_ + stage * Shape::kStageBytes);
    std::uint32_t words[4];
    load_matrices_x4(words, integers + (group * kPieces + lane / 8) * Shape::kRows + eight * 8 + lane % 8);
    high[0] = words[0], high[1] = words[1], low[0] = words[2], low[1] = words[3];
  }
  // Of the lane's two columns of sums, which are rows.
  __device__ float2 scales(int stage, int group, int eight) const {
    const auto* const numbers =
        reinterpret_cast<const float*>(shared_ + stage * Shape::kStageBytes + Shape::kIntegerBytes);
    return *reinterpret_cast<const float2*>(numbers + group * Shape::kRows + column(eight));
  }
  __device__ int4 sums(int stage, int group, int eight) const {
    const auto* const numbers = reinterpret_cast<const int2*>(shared_ + stage * Shape::kStageBytes +
                                                              Shape::kIntegerBytes + Shape::kScaleBytes);
    return *reinterpret_cast<const int4*>(numbers + group * Shape::kRows + column(eight));
  }

 private:
  __device__ static int column(int eight) { return eight * 8 + TileSums<Shape>::lane() % 4 * 2; }

  template <class Number>
  __device__ void copy_numbers(const Number* numbers, std::int64_t pair, int thread,
                               std::byte* target) const {
    constexpr int kAtOnce = 16 / static_cast<int>(sizeof(Number)), kCopies = Shape::kRows / kAtOnce;
    static_assert(kPairGroups * kCopies <= kTileThreads);
    if (thread >= static_cast<int>(kPairGroups) * kCopies) return;
    const int group = thread / kCopies, row = thread % kCopies * kAtOnce;
    const bool is_there = first_row_ + row < rows_.num_rows;
    const std::int64_t first = (pair * kPairGroups + group) * rows_.scale_stride + first_row_;
    copy_async_16(reinterpret_cast<uint4*>(target) + thread, numbers + first + (is_there ? row : 0),
                  is_there);
  }

  const PreparedRows& rows_;
  std::int64_t first_row_;
  std::byte* shared_;
};

// What a warp computes, and what each of its threads sums up.
template <class Shape>
class IntegerWarpTile {
 public:
  using Weights = RawPair<Shape::kType, 4>[Shape::kSixteens][2];  // of a pair

  __device__ IntegerWarpTile(const ProductTargets& targets, const BlockPlace& place, std::int64_t pairs)
      : targets_(targets), place_(place), totals_(targets, place) {
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        rows_[i][half] = place.weight_row(targets, Totals::place_of(i, half)) * pairs;
    }
  }

  __device__ void load(std::int64_t pair, Weights& loaded) const {
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        loaded[i][half] = load_pair<Shape::kType, 4>(place_.planes(targets_, half), rows_[i][half], pair,
                                                     Totals::lane() % 4);
      }
    }
  }

  __device__ void multiply(const Weights& loaded, const PairRows<Shape>& activations, int stage) {
    GroupWeights weights[Shape::kSixteens][kPairGroups];
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int group = 0; group < kPairGroups; ++group) weights[i][group] = weights_of(loaded[i], group);
    }
#pragma unroll
    for (int j = 0; j < Shape::kEights; ++j) {
      GroupRows rows[kPairGroups];
#pragma unroll
      for (int group = 0; group < kPairGroups; ++group) rows[group] = rows_of(activations, stage, group, j);
#pragma unroll
      for (int i = 0; i < Shape::kSixteens; ++i) {
        float chains[4] = {};
#pragma unroll
        for (int group = 0; group < kPairGroups; ++group) add_group(weights[i][group], rows[group], chains);
#pragma unroll
        for (int k = 0; k < 4; ++k) section_[i][j][k] += chains[k];
      }
    }
  }

  __device__ void end_section() {
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kEights; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) totals_.sums[i][j][k] += section_[i][j][k], section_[i][j][k] = 0.0f;
      }
    }
  }

  __device__ TileSums<Shape>& totals() { return totals_; }

 private:
  using Totals = TileSums<Shape>;
  static constexpr QuantTraits kTraits = Shape::kTraits;
  static constexpr bool kHasHalves = kTraits.scale_columns == 16;

  // A lane's share of a group of 16 weight rows, and the scales of the two rows that it sums up.
  struct GroupWeights {
    std::uint32_t operand[4];
    GroupScales scales[2];
  };
  struct GroupRows {
    std::uint32_t high[2], low[2];
    float scales[2];       // of the two rows that the lane sums up
    float minimums[2][2];  // [row][half]; of a whole group the first
  };

  __device__ static GroupWeights weights_of(const RawPair<Shape::kType, 4> (&loaded)[2], int group) {
    GroupWeights weights;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[2];
      unpack_share(loaded[half], group, Totals::lane() % 4, words);
      weights.operand[half] = words[0], weights.operand[2 + half] = words[1];
      weights.scales[half] = scales_of_group(loaded[half], group);
    }
    return weights;
  }

  __device__ static GroupRows rows_of(const PairRows<Shape>& activations, int stage, int group, int eight) {
    GroupRows rows{};
    activations.load(stage, group, eight, rows.high, rows.low);
    const float2 scales = activations.scales(stage, group, eight);
    rows.scales[0] = scales.x, rows.scales[1] = scales.y;
    if constexpr (kTraits.has_minimum) {
      const int4 sums = activations.sums(stage, group, eight);
      const int of_rows[2][2] = {{sums.x, sums.y}, {sums.z, sums.w}};
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int(&of_row)[2] = of_rows[row];
        const int first = kHasHalves ? of_row[0] : of_row[0] + of_row[1];
        rows.minimums[row][0] = rows.scales[row] * float_of_small(first);
        if constexpr (kHasHalves) rows.minimums[row][1] = rows.scales[row] * float_of_small(of_row[1]);
      }
    }
    return rows;
  }

  // As add_group() of matmul_vector.cu does, in the same order.
  __device__ static void add_group(const GroupWeights& weights, const GroupRows& rows, float (&chains)[4]) {
    constexpr int kBegin[4] = {kBias, kBias, kBias, kBias};
#pragma unroll
    for (int half = 0; half < (kHasHalves ? 2 : 1); ++half) {
      int high[4], low[4];
      if constexpr (kHasHalves) {
        const std::uint32_t upper = weights.operand[2 * half], lower = weights.operand[2 * half + 1];
        multiply_step_s8_k16(high, upper, lower, rows.high[half], kBegin);
        multiply_step_s8_k16(low, upper, lower, rows.low[half], kBegin);
      } else {
        multiply_step_s8_k32(high, weights.operand, rows.high, kBegin);
        multiply_step_s8_k32(low, weights.operand, rows.low, kBegin);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float dot = fmaf(256.0f, float_of_biased(high[k]), float_of_biased(low[k]));
        chains[k] = fmaf(weights.scales[k / 2].scale[half] * rows.scales[k % 2], dot, chains[k]);
      }
    }
    if constexpr (kTraits.has_minimum) {
#pragma unroll
      for (int half = 0; half < (kHasHalves ? 2 : 1); ++half) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
          chains[k] = fmaf(-weights.scales[k / 2].minimum[half], rows.minimums[k % 2][half], chains[k]);
      }
    }
  }

  const ProductTargets& targets_;
  const BlockPlace& place_;
  std::int64_t rows_[Shape::kSixteens][2];  // of the lane's: the first pair among the matrix's
  float section_[Shape::kSixteens][Shape::kEights][4] = {};
  Totals totals_;
};

template <TensorType kType, int kRowEights>
__global__ void __launch_bounds__(kTileThreads, integer_tiles_at_once(8 * kRowEights))
    multiply_integer_tiles(const __grid_constant__ ProductTargets targets,
                           const __grid_constant__ PreparedRows rows, const SplitScratch scratch) {
  using Shape = IntegerTile<kType, kRowEights>;
  let_next_begin();
  const BlockPlace place = place_of_block<Shape>(targets);
  const Sections sections = sections_of(rows.stride);
  const bool is_split = targets.targets[place.target].splits > 1;
  const std::int64_t begin = is_split ? place.split * sections.length : 0;
  const std::int64_t end =
      is_split && begin + sections.length < sections.pairs ? begin + sections.length : sections.pairs;
  const PairRows<Shape> activations(rows, place.first_row, dynamic_shared<std::byte>());
  IntegerWarpTile<Shape> tile(targets, place, sections.pairs);

  std::int64_t section_end = begin + sections.length;
  multiply_slices<Shape>(tile, activations, begin, end, [&](std::int64_t pair) {
    if (pair == section_end) tile.end_section(), section_end += sections.length;
  });
  tile.end_section();
  if (tile.totals().sum_of_splits(scratch)) tile.totals().store(rows, nullptr, 1, dynamic_shared<float>());
}

struct IntegerTilesKernel {
  void (*kernel)(const ProductTargets, const PreparedRows, const SplitScratch) = nullptr;
  std::size_t shared_bytes = 0;
};

template <TensorType kType, int kRowEights>
IntegerTilesKernel integer_tiles_kernel_of() {
  return {multiply_integer_tiles<kType, kRowEights>, kSharedBytes<IntegerTile<kType, kRowEights>>};
}

template <TensorType kType>
IntegerTilesKernel integer_tiles_kernel(int tile_rows) {
  if (tile_rows <= 16)
    return tile_rows == 8 ? integer_tiles_kernel_of<kType, 1>() : integer_tiles_kernel_of<kType, 2>();
  return tile_rows == 32 ? integer_tiles_kernel_of<kType, 4>() : integer_tiles_kernel_of<kType, 8>();
}

}  // namespace

void launch_integer_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                          const PreparedRows& rows, const SplitScratch& scratch) {
  IntegerTilesKernel chosen;
  with_quantised_type(
      type, [&](auto constant) { chosen = integer_tiles_kernel<decltype(constant)::value>(tile_rows); });
  ProductTargets dealt = targets;
  const unsigned row_tiles = num_pieces(rows.num_rows, tile_rows);
  const std::int32_t num_blocks =
      deal_tiles(dealt, tile_outputs(true, tile_rows), static_cast<std::int32_t>(row_tiles));
  launch(chosen.kernel,
         {.grid = dim3(static_cast<unsigned>(num_blocks), row_tiles),
          .block = dim3(kTileThreads),
          .shared_bytes = chosen.shared_bytes,
          .awaits_inputs = true},
         stream, dealt, rows, scratch);
}

}  // namespace octavo::kernels::cuda
