// What hardware.cuh names, for devices that have no such instructions: plain arithmetic, operands passed
// between the lanes by shuffles, memory read by each lane itself. Fragments are those of hardware.cuh. An AMD
// card takes all of it; of NVIDIA's, sm_75 the steps of bfloat16 numbers. Steps take about thirty times as
// long as the instruction: right everywhere first.
//
// Numbers: bytes are summed up exactly, as by the instruction. Steps of 16-bit numbers have exact products
// too, added in the order of the columns, each sum rounded once, where tensor cores have an order and a
// rounding of their own; tests/emulation has the order of this file, so that both give the same bits there
// (tests/cuda/portable_hardware_test.cc).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda::portable {

__device__ inline void copy_async_16(void* shared, const void* global, bool valid = true) {
  *static_cast<uint4*>(shared) = valid ? *static_cast<const uint4*>(global) : make_uint4(0, 0, 0, 0);
}
__device__ inline void copy_async_commit() {}
template <int kPending>
__device__ inline void copy_async_wait() {}

// The address that another lane gave.
__device__ inline const std::byte* row_of_lane(const void* row, int lane) {
  const auto address = __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(row), lane);
  return reinterpret_cast<const std::byte*>(address);
}

template <int kMatrices>
__device__ inline void load_by_lanes(std::uint32_t (&out)[kMatrices], const void* row) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
#pragma unroll
  for (int m = 0; m < kMatrices; ++m)
    out[m] = *reinterpret_cast<const std::uint32_t*>(row_of_lane(row, 8 * m + g) + 4 * t);
}
template <int kMatrices>
__device__ inline void load_transposed_by_lanes(std::uint32_t (&out)[kMatrices], const void* row) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
  const auto number = [&](int matrix_row) -> std::uint32_t {
    return *reinterpret_cast<const std::uint16_t*>(row_of_lane(row, matrix_row) + 2 * g);
  };
#pragma unroll
  for (int m = 0; m < kMatrices; ++m) {
    const std::uint32_t low = number(8 * m + 2 * t), high = number(8 * m + 2 * t + 1);
    out[m] = high << 16 | low;
  }
}

__device__ inline void load_matrices_x4(std::uint32_t (&out)[4], const void* row) { load_by_lanes(out, row); }
__device__ inline void load_matrices_x4_transposed(std::uint32_t (&out)[4], const void* row) {
  load_transposed_by_lanes(out, row);
}
__device__ inline void load_matrices_x2(std::uint32_t (&out)[2], const void* row) { load_by_lanes(out, row); }
__device__ inline void load_matrices_x2_transposed(std::uint32_t (&out)[2], const void* row) {
  load_transposed_by_lanes(out, row);
}

// The lower or the upper number of a pair.
template <bool kIsHalf>
__device__ inline float number_of_pair(std::uint32_t pair, int index) {
  if constexpr (kIsHalf) {
    const std::uint32_t bits = index == 0 ? pair & 0xffffu : pair >> 16;
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  } else {
    return __uint_as_float(index == 0 ? pair << 16 : pair & 0xffff0000u);
  }
}

// Not inlined: a kernel has dozens of steps.
template <bool kIsHalf>
__device__ __noinline__ inline float4 sums_by_lanes(float4 c, uint4 a, uint2 b) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
#pragma unroll 1
  for (int pair = 0; pair < 8; ++pair) {
    const bool is_high = pair >= 4;
    const int quarter = pair % 4;
    const std::uint32_t upper = __shfl_sync(kAllLanes, is_high ? a.z : a.x, 4 * g + quarter);
    const std::uint32_t lower = __shfl_sync(kAllLanes, is_high ? a.w : a.y, 4 * g + quarter);
    const std::uint32_t mine = is_high ? b.y : b.x;
    const std::uint32_t left = __shfl_sync(kAllLanes, mine, 4 * (2 * t) + quarter);
    const std::uint32_t right = __shfl_sync(kAllLanes, mine, 4 * (2 * t + 1) + quarter);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float of_upper = number_of_pair<kIsHalf>(upper, k), of_lower = number_of_pair<kIsHalf>(lower, k),
                  of_left = number_of_pair<kIsHalf>(left, k), of_right = number_of_pair<kIsHalf>(right, k);
      c.x = fmaf(of_upper, of_left, c.x);
      c.y = fmaf(of_upper, of_right, c.y);
      c.z = fmaf(of_lower, of_left, c.z);
      c.w = fmaf(of_lower, of_right, c.w);
    }
  }
  return c;
}

template <bool kIsHalf>
__device__ inline void multiply_by_lanes(float (&c)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
  const float4 sums = sums_by_lanes<kIsHalf>(make_float4(c[0], c[1], c[2], c[3]),
                                             make_uint4(a[0], a[1], a[2], a[3]), make_uint2(b[0], b[1]));
  c[0] = sums.x, c[1] = sums.y, c[2] = sums.z, c[3] = sums.w;
}
__device__ inline void multiply_step_f16(float (&c)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
  multiply_by_lanes<true>(c, a, b);
}
__device__ inline void multiply_step_bf16(float (&c)[4], const std::uint32_t (&a)[4],
                                          const std::uint32_t (&b)[2]) {
  multiply_by_lanes<false>(c, a, b);
}

// The sum, and four products of signed bytes.
__device__ inline int dot_of_four(std::uint32_t a, std::uint32_t b, int sum) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum += static_cast<int>(static_cast<std::int8_t>(a >> (8 * i))) *
           static_cast<int>(static_cast<std::int8_t>(b >> (8 * i)));
  }
  return sum;
}

__device__ __noinline__ inline int4 byte_sums_by_lanes(int4 c, uint2 a, std::uint32_t b) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), g = lane / 4, t = lane % 4;
#pragma unroll
  for (int quarter = 0; quarter < 4; ++quarter) {
    const std::uint32_t upper = __shfl_sync(kAllLanes, a.x, 4 * g + quarter);
    const std::uint32_t lower = __shfl_sync(kAllLanes, a.y, 4 * g + quarter);
    const std::uint32_t left = __shfl_sync(kAllLanes, b, 4 * (2 * t) + quarter);
    const std::uint32_t right = __shfl_sync(kAllLanes, b, 4 * (2 * t + 1) + quarter);
    c.x = dot_of_four(upper, left, c.x);
    c.y = dot_of_four(upper, right, c.y);
    c.z = dot_of_four(lower, left, c.z);
    c.w = dot_of_four(lower, right, c.w);
  }
  return c;
}

__device__ inline void multiply_step_s8_k16(int (&sums)[4], std::uint32_t upper, std::uint32_t lower,
                                            std::uint32_t b, const int (&c)[4]) {
  const int4 all = byte_sums_by_lanes(make_int4(c[0], c[1], c[2], c[3]), make_uint2(upper, lower), b);
  sums[0] = all.x, sums[1] = all.y, sums[2] = all.z, sums[3] = all.w;
}
__device__ inline void multiply_step_s8_k32(int (&sums)[4], const std::uint32_t (&a)[4],
                                            const std::uint32_t (&b)[2], const int (&c)[4]) {
  int first[4];
  multiply_step_s8_k16(first, a[0], a[1], b[0], c);
  multiply_step_s8_k16(sums, a[2], a[3], b[1], first);
}

__device__ inline std::uint32_t half_pair(float low, float high) {
  return static_cast<std::uint32_t>(__half_as_ushort(__float2half_rn(high))) << 16 |
         __half_as_ushort(__float2half_rn(low));
}
__device__ inline std::uint32_t bfloat_pair(float low, float high) {
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(__float2bfloat16_rn(high))) << 16 |
         __bfloat16_as_ushort(__float2bfloat16_rn(low));
}

// Rounded to float before; the kernels' sums have no more bits than the result.
template <bool kIsHalf>
__device__ inline float fma_of_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c, int index) {
  return fmaf(number_of_pair<kIsHalf>(a, index), number_of_pair<kIsHalf>(b, index),
              number_of_pair<kIsHalf>(c, index));
}
__device__ inline std::uint32_t fma_half_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return half_pair(fma_of_pairs<true>(a, b, c, 0), fma_of_pairs<true>(a, b, c, 1));
}
__device__ inline std::uint32_t fma_bfloat_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return bfloat_pair(fma_of_pairs<false>(a, b, c, 0), fma_of_pairs<false>(a, b, c, 1));
}

__device__ inline uint4 load_streamed(const uint4* source) { return __ldg(source); }

// Kernels follow each other.
__device__ inline void await_inputs() {}
__device__ inline void let_next_begin() {}

inline constexpr bool kConvertsE4m3 = false;
__device__ std::uint32_t halves_of_e4m3_pair(std::uint32_t codes);

__device__ inline float quick_exp2(float x) { return x < -126.0f ? 0.0f : exp2f(x); }

__device__ inline void prefetch_line(const void*) {}

}  // namespace octavo::kernels::cuda::portable
