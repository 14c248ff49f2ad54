// What only the hardware has, by name: tensor-core steps, loads of their fragments, copies that run beside
// the program, dynamic shared memory. Under nvcc inline PTX, with another way where a target lacks an
// instruction (sm_75: cp.async, bf16 steps); for an AMD card portable_hardware.cuh; else without nvcc the
// definitions of tests/emulation/include/emulated_hardware.h. All have the same signatures.
//
// Fragments, as PTX defines them for m16n8k16 (lane = 4 * g + t, registers hold two 16-bit numbers, the lower
// column or row in the low half):
//   A [16][16] row-major  a[0]: (g, 2t..)      a[1]: (g + 8, 2t..)
//                         a[2]: (g, 2t + 8..)  a[3]: (g + 8, 2t + 8..)
//   B [16][8]             b[0]: (2t.., g)      b[1]: (2t + 8.., g)
//   C [16][8] float       c[0], c[1]: (g, 2t), (g, 2t + 1)
//                         c[2], c[3]: (g + 8, 2t), (g + 8, 2t + 1)
// and for the steps of bytes, whose registers hold four signed ones, the lowest column or row lowest:
//   k32  A [16][32]       a[0]: (g, 4t..)       a[1]: (g + 8, 4t..)
//                         a[2]: (g, 4t + 16..)  a[3]: (g + 8, 4t + 16..)
//        B [32][8]        b[0]: (4t.., g)       b[1]: (4t + 16.., g)
//        C [16][8] int    as above
//   k16  the same without a[2], a[3] and b[1]
// Source: PTX ISA 9.0, "Warp-level matrix instructions".
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/portable_hardware.cuh"

#if defined(OCTAVO_HIP)

namespace octavo::kernels::cuda {

using portable::await_inputs;
using portable::bfloat_pair;
using portable::copy_async_16;
using portable::copy_async_commit;
using portable::copy_async_wait;
using portable::dot_of_four;
using portable::fma_bfloat_pairs;
using portable::fma_half_pairs;
using portable::half_pair;
using portable::halves_of_e4m3_pair;
using portable::kConvertsE4m3;
using portable::let_next_begin;
using portable::load_matrices_x2;
using portable::load_matrices_x2_transposed;
using portable::load_matrices_x4;
using portable::load_matrices_x4_transposed;
using portable::load_streamed;
using portable::multiply_step_bf16;
using portable::multiply_step_f16;
using portable::multiply_step_s8_k16;
using portable::multiply_step_s8_k32;
using portable::prefetch_line;
using portable::quick_exp2;

template <class T>
__device__ T* dynamic_shared() {
  HIP_DYNAMIC_SHARED(__attribute__((aligned(16))) std::byte, octavo_dynamic_shared)
  return reinterpret_cast<T*>(octavo_dynamic_shared);
}

}  // namespace octavo::kernels::cuda

#elif !defined(__CUDACC__)
#include <emulated_hardware.h>
#else

namespace octavo::kernels::cuda {

// The block's dynamic shared memory, aligned to 16 bytes.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) std::byte octavo_dynamic_shared[];
  return reinterpret_cast<T*>(octavo_dynamic_shared);
}

// Copies 16 bytes from global to shared memory beside the program; with `valid` false it writes zeros and
// reads nothing. Both addresses are multiples of 16. Copies form groups (commit); a thread sees its own after
// waiting for the group, the others after a barrier behind that.
__device__ inline void copy_async_16(void* shared, const void* global, bool valid = true) {
#if __CUDA_ARCH__ >= 800
  const auto target = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(bytes)
               : "memory");
#else
  portable::copy_async_16(shared, global, valid);
#endif
}

__device__ inline void copy_async_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most `kPending` of this thread's newest groups are under way.
template <int kPending>
__device__ inline void copy_async_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

// Four 8 x 8 matrices of 16-bit numbers from shared memory: lane i gives the address (a multiple of 16) of
// row i % 8 of matrix i / 8; out[m] is this lane's pair of matrix m: (g, 2t..), and with `transposed` (2t..,
// g). All lanes take part.
__device__ inline void load_matrices_x4(std::uint32_t (&out)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_x4_transposed(std::uint32_t (&out)[4], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}
// Two matrices: lanes 0..15 give the addresses.
__device__ inline void load_matrices_x2(std::uint32_t (&out)[2], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_x2_transposed(std::uint32_t (&out)[2], const void* row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(out[0]), "=r"(out[1])
               : "r"(address)
               : "memory");
}

// c += A · B, float16 numbers, sums in float. All lanes take part.
__device__ inline void multiply_step_f16(float (&c)[4], const std::uint32_t (&a)[4],
                                         const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int half = 0; half < 2; ++half) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
  }
#endif
}

// The same with bfloat16 numbers. Before sm_80 no such step exists.
__device__ inline void multiply_step_bf16(float (&c)[4], const std::uint32_t (&a)[4],
                                          const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  portable::multiply_step_bf16(c, a, b);
#endif
}

// sums = c + A · B, signed bytes, exact in int: 16 columns of A and rows of B. All lanes take part. `c`
// stands apart, so that a constant in registers begins any number of sums.
__device__ inline void multiply_step_s8_k16(int (&sums)[4], std::uint32_t upper, std::uint32_t lower,
                                            std::uint32_t b, const int (&c)[4]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(upper), "r"(lower), "r"(b), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#else
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=r"(sums[2 * half]), "=r"(sums[2 * half + 1])
                 : "r"(half == 0 ? upper : lower), "r"(b), "r"(c[2 * half]), "r"(c[2 * half + 1]));
  }
#endif
}

// The same of 32 columns and rows.
__device__ inline void multiply_step_s8_k32(int (&sums)[4], const std::uint32_t (&a)[4],
                                            const std::uint32_t (&b)[2], const int (&c)[4]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %11, %12, %13};"
      : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]),
        "r"(c[3]));
#else
  int first[4];
  multiply_step_s8_k16(first, a[0], a[1], b[0], c);
  multiply_step_s8_k16(sums, a[2], a[3], b[1], first);
#endif
}

// The sum, and four products of signed bytes.
__device__ inline int dot_of_four(std::uint32_t a, std::uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

// a * b + c of two float16 numbers at once, each rounded once.
__device__ inline std::uint32_t fma_half_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

// Of memory that is read once, in order: it displaces nothing in the first-level cache, and the second-level
// one fetches a whole line of 128 bytes.
__device__ inline uint4 load_streamed(const uint4* source) {
  uint4 words;
#if __CUDA_ARCH__ >= 800
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(source));
#else
  words = portable::load_streamed(source);
#endif
  return words;
}

// Of a kernel that is started with LaunchShape::awaits_inputs. It may begin while the kernel before it in the
// stream still runs: before await_inputs() it reads nothing that another kernel writes, and writes nothing;
// behind it everything before is done. let_next_begin() lets the next such kernel begin, as soon as every
// block has said so. From sm_90 on; before it kernels follow each other. Source: PTX ISA 9.0, griddepcontrol.
__device__ inline void await_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Two numbers rounded to float16 or bfloat16, `low` in the low half.
__device__ inline std::uint32_t half_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return portable::half_pair(low, high);
#endif
}
__device__ inline std::uint32_t bfloat_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return portable::bfloat_pair(low, high);
#endif
}

// a * b + c of two bfloat16 numbers at once, each rounded once.
__device__ inline std::uint32_t fma_bfloat_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if __CUDA_ARCH__ >= 800
  std::uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
#else
  return portable::fma_bfloat_pairs(a, b, c);
#endif
}

// Two e4m3 codes as float16 numbers, exactly; NaNs as 0x7fff. REQUIRES: kConvertsE4m3
#if __CUDA_ARCH__ >= 890
inline constexpr bool kConvertsE4m3 = true;
__device__ inline std::uint32_t halves_of_e4m3_pair(std::uint32_t codes) {
  std::uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<unsigned short>(codes)));
  return halves;
}
#else
inline constexpr bool kConvertsE4m3 = false;
__device__ std::uint32_t halves_of_e4m3_pair(std::uint32_t codes);
#endif

// 2 to the power of x, within two units of the last place; 0 where that would be subnormal.
__device__ inline float quick_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Asks for the line of 128 bytes that holds `address` to come into the second-level cache.
__device__ inline void prefetch_line(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

}  // namespace octavo::kernels::cuda

#endif  // __CUDACC__
