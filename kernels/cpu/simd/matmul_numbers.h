// A panel's numbers, and dot products of them, in the vectors of the instruction set.
#pragma once

#include "kernels/cpu/simd.h"

#if defined(OCTAVO_SIMD_PORTABLE)
#include "kernels/cpu/simd/matmul_portable.h"
#elif defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/integers_avx512.h"
#include "kernels/cpu/simd/matmul_dot.h"
#else
#include "kernels/cpu/simd/integers_avx2.h"
#include "kernels/cpu/simd/matmul_dot.h"
#endif
