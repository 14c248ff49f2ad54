// kernels/cuda/runtime/hardware.cuh where there is no such hardware: each step by its definition.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

namespace octavo::emulation {

std::byte* dynamic_shared_memory();
void copy_async_16(void* shared, const void* global, bool valid);
void copy_async_commit();
void copy_async_wait(int pending);
void await_inputs();
// Matrices of 8 rows; `out` has num_matrices words.
void load_matrices(std::uint32_t* out, const void* row, int num_matrices, bool transposed);
void multiply_step(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                   float (*widen)(std::uint16_t));
// Of 16 columns for each of `b`; a[2 * i] and a[2 * i + 1] meet b[i].
void multiply_step_s8(int (&sums)[4], const std::uint32_t* a, const std::uint32_t* b, int num_sixteens,
                      const int (&c)[4]);

}  // namespace octavo::emulation

namespace octavo::kernels::cuda {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulation::dynamic_shared_memory());
}

inline void copy_async_16(void* shared, const void* global, bool valid = true) {
  emulation::copy_async_16(shared, global, valid);
}
inline void copy_async_commit() { emulation::copy_async_commit(); }
template <int kPending>
void copy_async_wait() {
  emulation::copy_async_wait(kPending);
}

inline void load_matrices_x4(std::uint32_t (&out)[4], const void* row) {
  emulation::load_matrices(out, row, 4, false);
}
inline void load_matrices_x4_transposed(std::uint32_t (&out)[4], const void* row) {
  emulation::load_matrices(out, row, 4, true);
}
inline void load_matrices_x2(std::uint32_t (&out)[2], const void* row) {
  emulation::load_matrices(out, row, 2, false);
}
inline void load_matrices_x2_transposed(std::uint32_t (&out)[2], const void* row) {
  emulation::load_matrices(out, row, 2, true);
}

inline void multiply_step_f16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  emulation::multiply_step(c, a, b, [](std::uint16_t bits) { return half_to_float(bits); });
}
inline void multiply_step_bf16(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  emulation::multiply_step(c, a, b, [](std::uint16_t bits) { return bfloat16_to_float(bits); });
}

inline void multiply_step_s8_k16(int (&sums)[4], std::uint32_t upper, std::uint32_t lower, std::uint32_t b,
                                 const int (&c)[4]) {
  const std::uint32_t a[2] = {upper, lower};
  emulation::multiply_step_s8(sums, a, &b, 1, c);
}
inline void multiply_step_s8_k32(int (&sums)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                 const int (&c)[4]) {
  emulation::multiply_step_s8(sums, a, b, 2, c);
}

inline int dot_of_four(std::uint32_t a, std::uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

// The product is exact in float and in double; the sum is rounded to float first, which can differ from one
// rounding in the last place of a float16 number once in many thousands.
inline std::uint32_t fma_half_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result = 0;
  for (unsigned shift = 0; shift < 32; shift += 16) {
    const auto number = [shift](std::uint32_t word) {
      return static_cast<double>(half_to_float(static_cast<std::uint16_t>(word >> shift & 0xffffu)));
    };
    const auto sum = static_cast<float>(number(a) * number(b) + number(c));
    result |= static_cast<std::uint32_t>(float_to_half(sum)) << shift;
  }
  return result;
}

inline uint4 load_streamed(const uint4* source) { return *source; }

inline std::uint32_t half_pair(float low, float high) {
  return static_cast<std::uint32_t>(float_to_half(high)) << 16 | float_to_half(low);
}
inline std::uint32_t bfloat_pair(float low, float high) {
  return static_cast<std::uint32_t>(float_to_bfloat16(high)) << 16 | float_to_bfloat16(low);
}

// Exact in double where the product is, as with the factors of the kernels.
inline std::uint32_t fma_bfloat_pairs(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto sum = [&](unsigned shift) {
    const auto number = [shift](std::uint32_t word) {
      return static_cast<double>(bfloat16_to_float(static_cast<std::uint16_t>(word >> shift & 0xffffu)));
    };
    return static_cast<float>(number(a) * number(b) + number(c));
  };
  return bfloat_pair(sum(0), sum(16));
}

// The arithmetic of targets without the instruction is what tests see.
inline constexpr bool kConvertsE4m3 = false;
std::uint32_t halves_of_e4m3_pair(std::uint32_t codes);

inline float quick_exp2(float x) { return x < -126.0f ? 0.0f : std::exp2(x); }

inline void prefetch_line(const void*) {}

inline void await_inputs() { emulation::await_inputs(); }
inline void let_next_begin() {}

}  // namespace octavo::kernels::cuda
