// 16 or 32 rows of attention by one warp, with the online softmax of Dao 2023 (arXiv:2307.08691): scores are
// Q times the keys of a slice; the weights go from the accumulators of that product into the operands of the
// next without leaving the registers.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_slice.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/power_of_two.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/cuda/runtime/soft_cap.cuh"

namespace octavo::kernels::cuda {

inline constexpr float kNothing = -INFINITY;  // the score of what is not seen, and the largest of none

template <bool kIsHalf>
__device__ inline void multiply_step(float (&c)[4], const std::uint32_t (&a)[4],
                                     const std::uint32_t (&b)[2]) {
  if constexpr (kIsHalf) {
    multiply_step_f16(c, a, b);
  } else {
    multiply_step_bf16(c, a, b);
  }
}

// A row's weights are relative to a score that follows its largest one only where that is greater by more
// than this power of two: sums are brought to another scale a few times in a context, and weights stay below
// 2^8.
inline constexpr float kMostAboveBase = 8.0f;

// Rows of a warp: queries in shared memory, sums in registers. Tile i has of a lane the rows 16 * i + g (2 *
// i in the arrays) and 16 * i + g + 8 (2 * i + 1).
template <class Layout>
struct WarpRows {
  static constexpr bool kIsHalf = Layout::Stored::kIsHalf;
  static constexpr int kTiles = Layout::kRowTiles, kUpdate = Layout::kUpdate, kParts = Layout::kParts;
  static constexpr int kSteps = Layout::kHeadDim / 16, kStepsOfGroup = kGroupDimensions / 16;
  using Scores = float[kTiles][kUpdate][2][4];

  const AttentionArguments& arguments;
  // Of the warp's first row; the next part follows `part_numbers` later
  const std::uint16_t* queries = nullptr;
  int part_numbers = 0;
  int lowest = -1, highest = -1;  // of the last positions that rows of the warp see; -1: there is no row
  int position[2 * kTiles] = {};  // the last that a row sees, -1 without such a row
  float factor[2 * kTiles] = {};  // of the queries, a power of two
  float base[2 * kTiles] = {};    // score that weights are relative to
  float sum[2 * kTiles] = {};     // of the weights in this lane's columns
  float values[kTiles][kSteps * 2][4] = {};

  // Slices `first`, first + 1 .. of the tokens from position `begin` on; those from `num_slices` on are not
  // there.
  __device__ void attend(const Slice<Layout> (&slices)[kUpdate], int num_slices, int begin) {
    if (begin > highest) return;
    Scores scores = {};
    multiply_keys(slices, scores);
    scale(slices, scores);
    if (needs_mask(num_slices, begin)) mask(num_slices, begin, scores);
    weigh(scores);
    multiply_values(slices, scores);
  }

 private:
  // Where scores are scaled before their largest is looked for; elsewhere on their way into the exponent.
  static constexpr bool kScalesFirst = Layout::kMayCap || has_kv_scales(Layout::kType);

  // Heads of up to 64 and of up to 128 numbers fill the groups of their kernel, others three or four.
  __device__ bool is_beyond_head(int step) const {
    if constexpr (kSteps <= 8) return false;
    return step == 3 * kStepsOfGroup && arguments.places.head_dim <= 3 * kGroupDimensions;
  }

  __device__ void multiply_keys(const Slice<Layout> (&slices)[kUpdate], Scores& scores) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    const std::uint16_t* const query_row = queries + lane % 16 * Layout::kPitch + lane / 16 * 8;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (is_beyond_head(step)) break;
      std::uint32_t query[kParts][kTiles][4];
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          load_matrices_x4(query[part][tile],
                           query_row + part * part_numbers + tile * 16 * Layout::kPitch + step * 16);
        }
      }
#pragma unroll
      for (int u = 0; u < kUpdate; ++u) {
#pragma unroll
        for (int plane = 0; plane < Layout::kPlanes; ++plane) {
          std::uint32_t keys[2][2];
          slices[u].read_keys(plane, step, keys[0], keys[1]);
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
              for (int half = 0; half < 2; ++half)
                multiply_step<kIsHalf>(scores[tile][u][half], query[part][tile], keys[half]);
            }
          }
        }
      }
    }
  }

  // Calls `change` with each score, its row and its token, counted from the first slice on.
  template <class Change>
  __device__ static void for_each(Scores& scores, Change&& change) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int u = 0; u < kUpdate; ++u) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            change(scores[tile][u][half][i], 2 * tile + i / 2, u, token_of(half, i % 2));
        }
      }
    }
  }

  // Of a slice, in this lane's column of a score or row of a weight.
  __device__ static int token_of(int half, int k) {
    return Layout::token_of(half, static_cast<int>(threadIdx.x % 4) * 2 + k);
  }

  __device__ void scale(const Slice<Layout> (&slices)[kUpdate], Scores& scores) const {
    if constexpr (kScalesFirst) {
      for_each(scores, [&](float& score, int row, int u, int token) {
        score *= factor[row];
        if constexpr (has_kv_scales(Layout::kType)) score *= slices[u].key_scales()[token];
      });
    }
    if constexpr (Layout::kMayCap) {
      const float cap = arguments.score_soft_cap;
      if (cap == 0.0f) return;
      for_each(scores, [cap](float& score, int, int, int) { score = soft_capped(score, cap); });
    }
  }

  // Whether a row that is there does not see all of the slices. One comparison for the window, within which
  // no position is yet to come.
  __device__ bool needs_mask(int num_slices, int begin) const {
    return num_slices < kUpdate || begin + kUpdate * kSliceTokens - 1 > lowest ||
           static_cast<std::uint32_t>(highest - begin) >= arguments.window;
  }

  __device__ void mask(int num_slices, int begin, Scores& scores) const {
    for_each(scores, [&](float& score, int row, int u, int token) {
      // One comparison for both ends of the window: a position that is yet to come is far below.
      const auto back = static_cast<std::uint32_t>(position[row] - (begin + u * kSliceTokens + token));
      if (u >= num_slices || back >= arguments.window) score = kNothing;
    });
  }

  // Scores become weights relative to the row's base; what was summed up before is brought to the same.
  __device__ void weigh(Scores& scores) {
    float shrink[2 * kTiles];
    bool any_shrinks = false;
#pragma unroll
    for (int row = 0; row < 2 * kTiles; ++row) {
      shrink[row] = weigh_row(scores[row / 2], row, row % 2);
      any_shrinks = any_shrinks || shrink[row] != 1.0f;
    }
    if (__any_sync(kAllLanes, any_shrinks) == 0) return;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int j = 0; j < kSteps * 2; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) values[tile][j][i] *= shrink[2 * tile + i / 2];
      }
    }
  }

  // Gives what the row's sums are to be multiplied with. `upper`: 1 for the row g + 8 of its tile.
  __device__ float weigh_row(float (&scores)[kUpdate][2][4], int row, int upper) {
    const float to_power = kScalesFirst ? 1.0f : factor[row];
    float most = kNothing;
#pragma unroll
    for (int u = 0; u < kUpdate; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) most = fmaxf(most, scores[u][i / 2][2 * upper + i % 2]);
    }
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2)) * to_power;
    float shrink = 1.0f;
    if (most > base[row] + kMostAboveBase) {
      shrink = quick_exp2(base[row] - most);
      base[row] = most;
      sum[row] *= shrink;
    }
    const float zero = base[row] == kNothing ? 0.0f : base[row];
#pragma unroll
    for (int u = 0; u < kUpdate; ++u) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& score = scores[u][i / 2][2 * upper + i % 2];
        score = quick_exp2(fmaf(score, to_power, -zero));
        sum[row] += score;
      }
    }
    return shrink;
  }

  // Of the weights in four registers, all parts: operands that meet the values of a slice.
  __device__ static void weights_of(const Slice<Layout>& slice, const float (&weights)[2][4],
                                    std::uint32_t (&operands)[kParts][4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float pair[2];
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        pair[k] = weights[i / 2][i % 2 * 2 + k];
        if constexpr (has_kv_scales(Layout::kType)) pair[k] *= slice.value_scales()[token_of(i / 2, k)];
      }
      if constexpr (kParts == 2) {
        split_pair<kIsHalf>(pair[0], pair[1], operands[0][i], operands[1][i]);
      } else {
        operands[0][i] = pair_of<kIsHalf>(pair[0], pair[1]);
      }
    }
  }

  __device__ void multiply_values(const Slice<Layout> (&slices)[kUpdate], const Scores& weights) {
#pragma unroll
    for (int u = 0; u < kUpdate; ++u) {
      std::uint32_t operands[kTiles][kParts][4];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) weights_of(slices[u], weights[tile][u], operands[tile]);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        if (is_beyond_head(step)) break;
#pragma unroll
        for (int plane = 0; plane < Layout::kPlanes; ++plane) {
          std::uint32_t read[2][2];
          slices[u].read_values(plane, step, read[0], read[1]);
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
              for (int half = 0; half < 2; ++half)
                multiply_step<kIsHalf>(values[tile][2 * step + half], operands[tile][part], read[half]);
            }
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

// Queries times the score's scale, in powers of two, as parts [parts][rows][pitch]; a warp for each row, of
// several at once, so that their loads do not wait for each other. REQUIRES: num_rows is a multiple of these
// for each warp
template <class Layout>
__device__ void load_queries(const TileRows& rows, int num_rows, std::uint16_t* numbers, float* factors) {
  constexpr int kAtOnce = Layout::kIsPrefill ? 8 : 4, kNumbers = Layout::kHeadDim / 32;
  const int lane = static_cast<int>(threadIdx.x % kWarp), num_warps = static_cast<int>(blockDim.x / kWarp);
  const int head_dim = rows.arguments.places.head_dim;
  for (int first = static_cast<int>(threadIdx.x / kWarp); first < num_rows; first += kAtOnce * num_warps) {
    float values[kAtOnce][kNumbers];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      const int row = first + r * num_warps;
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) {
        const bool is_there = rows.is_there(row) && lane + i * 32 < head_dim;
        values[r][i] = is_there ? rows.query(row)[lane + i * 32] : 0.0f;
      }
    }
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      const int row = first + r * num_warps;
      float most = 0.0f;
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) {
        values[r][i] *= rows.arguments.score_scale;
        most = fmaxf(most, fabsf(values[r][i]));
      }
      const PowerOfTwo scale = half_scale(warp_max(most));
      if (lane == 0) factors[row] = scale.inverse;
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) {
        std::uint32_t parts[2];
        split_number<Layout::Stored::kIsHalf>(values[r][i] * scale.value, parts[0], parts[1]);
#pragma unroll
        for (int part = 0; part < Layout::kParts; ++part) {
          numbers[(part * num_rows + row) * Layout::kPitch + lane + i * 32] =
              static_cast<std::uint16_t>(parts[part]);
        }
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
