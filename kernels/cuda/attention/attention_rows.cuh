// 16 rows of attention by one warp, with the online softmax of Dao 2023 (arXiv:2307.08691): scores are Q
// times the keys of a slice; the weights go from the accumulators of that product into the operands of the
// next without leaving the registers.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_slice.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/power_of_two.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/cuda/runtime/soft_cap.cuh"

namespace octavo::kernels::cuda {

inline constexpr float kNothing = -INFINITY;  // the largest of no scores

template <bool kIsHalf>
__device__ inline void multiply_step(float (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  if constexpr (kIsHalf) {
    multiply_step_f16(c, a, b);
  } else {
    multiply_step_bf16(c, a, b);
  }
}

// 16 rows of a warp: queries in shared memory, sums in registers. Of the lane's two rows (g and g + 8)
// `position` is the last position that they see, -1 without such a row. A prefill kernel that may cap scores
// needs 20 registers more than one that cannot, a split one none, so that prefill alone has two kernels.
template <KvType kType, int kHeadDim, bool kIsPrefill, bool kMayCap>
struct WarpRows {
  using Layout = Shape<kType, kHeadDim, kIsPrefill>;
  static constexpr bool kIsHalf = Layout::Stored::kIsHalf;

  const AttentionArguments& arguments;
  // Of the warp's first row; the next part follows `part_numbers` later
  const std::uint16_t* queries = nullptr;
  int part_numbers = 0;
  int row_steps = 0;  // of 16 dimensions
  int position[2] = {};
  float factor[2] = {};                     // of the queries, a power of two
  float largest[2] = {kNothing, kNothing};  // score
  float sum[2] = {0.0f, 0.0f};              // of the weights in this lane's columns
  float values[kHeadDim / 8][4] = {};

  // Slices `first`, first + 1 .. of the tokens from position `begin` on; those from `num_slices` on are not
  // there.
  __device__ void attend(const Slice<Layout> (&slices)[Layout::kUpdate], int num_slices, int begin) {
    float scores[Layout::kUpdate][2][4] = {};
    multiply_keys(slices, scores);
    bool is_seen[Layout::kUpdate][2][4];
    scale_and_mask(slices, num_slices, begin, scores, is_seen);
    if (kMayCap && arguments.score_soft_cap != 0.0f) cap(scores);
    weigh(scores, is_seen);
    multiply_values(slices, is_seen, scores);
  }

 private:
  __device__ void multiply_keys(const Slice<Layout> (&slices)[Layout::kUpdate],
                                float (&scores)[Layout::kUpdate][2][4]) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const std::uint16_t* const query_row = queries + lane % 16 * Layout::kPitch + lane / 16 * 8;
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      if (step >= row_steps) break;
      std::uint32_t query[Layout::kParts][4];
#pragma unroll
      for (int part = 0; part < Layout::kParts; ++part) {
        load_matrices_x4(query[part], query_row + part * part_numbers + step * 16);
      }
#pragma unroll
      for (int u = 0; u < Layout::kUpdate; ++u) {
#pragma unroll
        for (int plane = 0; plane < Layout::kPlanes; ++plane) {
          std::uint32_t keys[4];
          load_matrices_x4_transposed(
              keys, slices[u].keys(plane, step * 16 + lane / 8 % 2 * 8 + lane % 8, lane / 16));
          const std::uint32_t low[2] = {keys[0], keys[1]}, high[2] = {keys[2], keys[3]};
#pragma unroll
          for (int part = 0; part < Layout::kParts; ++part) {
            multiply_step<kIsHalf>(scores[u][0], query[part], low);
            multiply_step<kIsHalf>(scores[u][1], query[part], high);
          }
        }
      }
    }
  }

  // In powers of two, as exp2f wants them.
  __device__ void scale_and_mask(const Slice<Layout> (&slices)[Layout::kUpdate], int num_slices, int begin,
                                 float (&scores)[Layout::kUpdate][2][4],
                                 bool (&is_seen)[Layout::kUpdate][2][4]) const {
#pragma unroll
    for (int u = 0; u < Layout::kUpdate; ++u) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int token = half * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
          // One comparison for both ends of the window: a position that is yet to come is far below.
          const auto back = static_cast<std::uint32_t>(position[i / 2] - (begin + u * kSliceTokens + token));
          is_seen[u][half][i] = u < num_slices && back < arguments.window;
          float score = scores[u][half][i] * factor[i / 2];
          if constexpr (kType == KvType::kInt8) score *= slices[u].key_scales()[token];
          scores[u][half][i] = score;
        }
      }
    }
  }

  __device__ void cap(float (&scores)[Layout::kUpdate][2][4]) const {
#pragma unroll
    for (int u = 0; u < Layout::kUpdate; ++u) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          scores[u][half][i] = soft_capped(scores[u][half][i], arguments.score_soft_cap);
        }
      }
    }
  }

  // Scores become weights relative to the largest score so far; what was summed up before is brought to the
  // same.
  __device__ void weigh(float (&scores)[Layout::kUpdate][2][4],
                        const bool (&is_seen)[Layout::kUpdate][2][4]) {
    float shrink[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = largest[row];
#pragma unroll
      for (int u = 0; u < Layout::kUpdate; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (is_seen[u][i / 2][2 * row + i % 2]) most = fmaxf(most, scores[u][i / 2][2 * row + i % 2]);
        }
      }
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      shrink[row] = most == largest[row] ? 1.0f : exp2f(largest[row] - most);
      largest[row] = most;
      sum[row] *= shrink[row];
#pragma unroll
      for (int u = 0; u < Layout::kUpdate; ++u) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float& score = scores[u][i / 2][2 * row + i % 2];
          score = is_seen[u][i / 2][2 * row + i % 2] ? exp2f(score - most) : 0.0f;
          sum[row] += score;
        }
      }
    }
    if (__any_sync(kAllLanes, shrink[0] != 1.0f || shrink[1] != 1.0f) == 0) return;
#pragma unroll
    for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[j][i] *= shrink[i / 2];
    }
  }

  __device__ static std::uint32_t pair_of(std::uint32_t low, std::uint32_t high) { return high << 16 | low; }

  __device__ void multiply_values(const Slice<Layout> (&slices)[Layout::kUpdate],
                                  const bool (&is_seen)[Layout::kUpdate][2][4],
                                  const float (&weights)[Layout::kUpdate][2][4]) {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
#pragma unroll
    for (int u = 0; u < Layout::kUpdate; ++u) {
      std::uint32_t weight[2][4];  // high and low parts
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        std::uint32_t high[2], low[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float number = weights[u][i / 2][i % 2 * 2 + k];
          if constexpr (kType == KvType::kInt8) {
            const float scale = slices[u].value_scales()[i / 2 * 8 + lane % 4 * 2 + k];
            number = is_seen[u][i / 2][i % 2 * 2 + k] ? number * scale : 0.0f;
          }
          split_number<kIsHalf>(number, high[k], low[k]);
        }
        weight[0][i] = pair_of(high[0], high[1]);
        weight[1][i] = pair_of(low[0], low[1]);
      }
#pragma unroll
      for (int step = 0; step < kHeadDim / 16; ++step) {
        if (step >= row_steps) break;
#pragma unroll
        for (int plane = 0; plane < Layout::kPlanes; ++plane) {
          std::uint32_t matrices[4];
          load_matrices_x4_transposed(
              matrices, slices[u].values(plane, lane / 8 % 2 * 8 + lane % 8) + step * 16 + lane / 16 * 8);
          const std::uint32_t left[2] = {matrices[0], matrices[1]}, right[2] = {matrices[2], matrices[3]};
#pragma unroll
          for (int part = 0; part < Layout::kParts; ++part) {
            multiply_step<kIsHalf>(values[2 * step], weight[part], left);
            multiply_step<kIsHalf>(values[2 * step + 1], weight[part], right);
          }
        }
      }
    }
  }
};

// Where the rows of a tile stand.
struct TileRows {
  const AttentionArguments& arguments;
  const AttentionTile& tile;
  int kv_head;

  __device__ bool is_there(int row) const { return row < tile.num_rows; }
  __device__ int token(int row) const { return (tile.first + row) / arguments.group; }
  __device__ std::int64_t head(int row) const {
    return kv_head * arguments.group + (tile.first + row) % arguments.group;
  }
  __device__ int position(int row) const { return is_there(row) ? tile.first_position + token(row) : -1; }
  // The first position that a row sees; the first row's is the tile's. REQUIRES: is_there(row)
  __device__ int first_seen(int row) const {
    const int last = tile.first_position + token(row), window = static_cast<int>(arguments.window - 1);
    return last > window ? last - window : 0;
  }
  __device__ const float* query(int row) const {
    return arguments.q + (tile.query_start + token(row)) * arguments.q_stride +
           head(row) * arguments.places.head_dim;
  }
  __device__ float* out(int row) const {
    return arguments.out + (tile.query_start + token(row)) * arguments.out_stride +
           head(row) * arguments.places.head_dim;
  }
};

// Queries times the score's scale, in powers of two, as parts [parts][rows][pitch]; a warp for each row.
template <class Layout, int kHeadDim>
__device__ void load_queries(const TileRows& rows, int num_rows, std::uint16_t* numbers, float* factors) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), num_warps = static_cast<int>(blockDim.x / kWarp);
  const int head_dim = rows.arguments.places.head_dim;
  for (int row = static_cast<int>(threadIdx.x / kWarp); row < num_rows; row += num_warps) {
    float values[kHeadDim / 32], most = 0.0f;
#pragma unroll
    for (int i = 0; i < kHeadDim / 32; ++i) {
      const int dimension = lane + i * 32;
      const bool is_there = rows.is_there(row) && dimension < head_dim;
      values[i] = is_there ? rows.query(row)[dimension] * rows.arguments.score_scale : 0.0f;
      most = fmaxf(most, fabsf(values[i]));
    }
    const PowerOfTwo scale = half_scale(warp_max(most));
    if (lane == 0) factors[row] = scale.inverse;
#pragma unroll
    for (int i = 0; i < kHeadDim / 32; ++i) {
      std::uint32_t parts[2];
      split_number<Layout::Stored::kIsHalf>(values[i] * scale.value, parts[0], parts[1]);
#pragma unroll
      for (int part = 0; part < Layout::kParts; ++part) {
        numbers[(part * num_rows + row) * Layout::kPitch + lane + i * 32] =
            static_cast<std::uint16_t>(parts[part]);
      }
    }
  }
}

// The sum of a row's weights over the four lanes that share it.
__device__ inline float sum_of_row(float sum) {
  sum += __shfl_xor_sync(kAllLanes, sum, 1);
  return sum + __shfl_xor_sync(kAllLanes, sum, 2);
}

}  // namespace octavo::kernels::cuda
