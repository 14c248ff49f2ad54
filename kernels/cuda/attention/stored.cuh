// Keys and values as the pool holds them: where a token's stand, as kv_layout.h says, and what its bytes mean
// as operands of tensor cores.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/float8.h"
#include "kernels/kv_layout.h"

namespace octavo::kernels::cuda {

// KvLayout's answers for one layer, as numbers: a kernel's argument.
struct KvPlaces {
  std::byte* pool = nullptr;  // of the layer in block 0
  std::int64_t block_bytes = 0, head_bytes = 0, value_offset = 0;
  std::int64_t key_scale_offset = 0, value_scale_offset = 0;  // of the first token; the next token's follows
  std::int32_t block_size = 1, head_dim = 0;

  static KvPlaces of(const KvLayout& layout, std::int32_t layer, std::byte* pool) {
    const KvLayer& of_layer = layout.layer(layer);
    return {pool + of_layer.offset,
            layout.block_bytes(),
            of_layer.head_bytes,
            of_layer.half_head_bytes,
            layout.has_scales() ? of_layer.key_scale_offset(0) : 0,
            layout.has_scales() ? of_layer.value_scale_offset(0) : 0,
            layout.block_size,
            of_layer.head_dim};
  }
  // Whether eight neighbouring tokens' keys, and eight neighbouring numbers of a value, are one aligned load.
  bool has_octets() const { return block_size % 8 == 0 && head_dim % 8 == 0; }

  __device__ std::byte* head(std::int64_t block, std::int64_t kv_head) const {
    return pool + block * block_bytes + kv_head * head_bytes;
  }
  // Elements, from the start of a head's keys or values.
  __device__ std::int64_t key_index(int dimension, int offset) const {
    return static_cast<std::int64_t>(dimension) * block_size + offset;
  }
  __device__ std::int64_t value_index(int offset, int dimension) const {
    return static_cast<std::int64_t>(offset) * head_dim + dimension;
  }
};

// What stands for a stored number in tensor cores: float16 or bfloat16, one number or the sum of two.
template <KvType kType>
struct Operand {
  static constexpr bool kIsHalf =
      kType == KvType::kF16 || kType == KvType::kFp8E4m3 || kType == KvType::kFp8E5m2;
  static constexpr int kPlanes = kType == KvType::kF32 ? 2 : 1;
  static constexpr bool kNeedsNoConversion = kType == KvType::kF16 || kType == KvType::kBf16;
};

__device__ inline std::uint32_t bfloat_bits(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
__device__ inline std::uint32_t half_bits(float value) { return __half_as_ushort(__float2half_rn(value)); }
__device__ inline float float_of_bfloat_bits(std::uint32_t bits) { return __uint_as_float(bits << 16); }
__device__ inline float float_of_half_bits(std::uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// A number as the sum of two 16-bit ones: bits of the number rounded, and of what is left.
template <bool kIsHalf>
__device__ inline void split_number(float value, std::uint32_t& high, std::uint32_t& low) {
  high = kIsHalf ? half_bits(value) : bfloat_bits(value);
  const float rest = value - (kIsHalf ? float_of_half_bits(high) : float_of_bfloat_bits(high));
  low = kIsHalf ? half_bits(rest) : bfloat_bits(rest);
}

// Two e4m3 codes in the upper bytes of the halves of `codes`, as float16: the exponent's bias is less by 8.
__device__ inline std::uint32_t halves_of_e4m3(std::uint32_t codes) {
  constexpr std::uint32_t kMinusZeros = 0x80008000u, k256 = 0x5c005c00u;
  std::uint32_t halves =
      fma_half_pairs((codes & kMinusZeros) | (codes & 0x7f007f00u) >> 1, k256, kMinusZeros);
  constexpr std::uint32_t kLargest = 0x5f00u;  // 448; the code above it is NaN
  if ((halves & 0x7fffu) > kLargest) halves |= 0x7e00u;
  if ((halves >> 16 & 0x7fffu) > kLargest) halves |= 0x7e000000u;
  return halves;
}

// Eight stored numbers, as two words for each four.
struct Octet {
  std::uint32_t words[4];
};

__device__ inline Octet octet_of(const uint4& words) { return {{words.x, words.y, words.z, words.w}}; }

// Eight stored numbers at an address that is a multiple of their size, as operands; int8 without its scale.
template <KvType kType>
__device__ inline void load_octet(const std::byte* source, Octet (&planes)[Operand<kType>::kPlanes]) {
  if constexpr (kType == KvType::kF32) {
    const auto* const numbers = reinterpret_cast<const float4*>(source);
    const float4 first = __ldg(numbers), second = __ldg(numbers + 1);
    const float values[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      std::uint32_t high[2], low[2];
      split_number<false>(values[2 * i], high[0], low[0]);
      split_number<false>(values[2 * i + 1], high[1], low[1]);
      planes[0].words[i] = high[1] << 16 | high[0];
      planes[1].words[i] = low[1] << 16 | low[0];
    }
  } else if constexpr (Operand<kType>::kNeedsNoConversion) {
    planes[0] = octet_of(__ldg(reinterpret_cast<const uint4*>(source)));
  } else {
    const uint2 bytes = __ldg(reinterpret_cast<const uint2*>(source));
    const std::uint32_t words[2] = {bytes.x, bytes.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Each of two bytes to the upper half of 16 bits.
      const std::uint32_t codes = __byte_perm(words[i / 2], 0, i % 2 == 0 ? 0x1404u : 0x3424u);
      if constexpr (kType == KvType::kFp8E5m2) {
        planes[0].words[i] = codes;  // float16 is e5m2 with more bits
      } else if constexpr (kType == KvType::kFp8E4m3) {
        planes[0].words[i] = halves_of_e4m3(codes);
      } else {
        const auto first = static_cast<float>(static_cast<std::int8_t>(codes >> 8 & 0xffu));
        const auto second = static_cast<float>(static_cast<std::int8_t>(codes >> 24));
        planes[0].words[i] = (__float_as_uint(second) & 0xffff0000u) | __float_as_uint(first) >> 16;  // exact
      }
    }
  }
}

// One stored number, anywhere.
template <KvType kType>
__device__ inline void load_number(const std::byte* source,
                                   std::uint16_t (&planes)[Operand<kType>::kPlanes]) {
  if constexpr (kType == KvType::kF32) {
    std::uint32_t high = 0, low = 0;
    split_number<false>(*reinterpret_cast<const float*>(source), high, low);
    planes[0] = static_cast<std::uint16_t>(high), planes[1] = static_cast<std::uint16_t>(low);
  } else if constexpr (Operand<kType>::kNeedsNoConversion) {
    planes[0] = *reinterpret_cast<const std::uint16_t*>(source);
  } else {
    const std::uint32_t byte = *reinterpret_cast<const std::uint8_t*>(source);
    if constexpr (kType == KvType::kFp8E5m2) planes[0] = static_cast<std::uint16_t>(byte << 8);
    if constexpr (kType == KvType::kFp8E4m3)
      planes[0] = static_cast<std::uint16_t>(halves_of_e4m3(byte << 8));
    if constexpr (kType == KvType::kInt8) {
      planes[0] = static_cast<std::uint16_t>(bfloat_bits(static_cast<float>(static_cast<std::int8_t>(byte))));
    }
  }
}

// Rounds a number into its place; `scale` counts for int8 only.
template <KvType kType>
__device__ inline void store_number(std::byte* start, std::int64_t index, float value, float scale) {
  if constexpr (kType == KvType::kF32) reinterpret_cast<float*>(start)[index] = value;
  if constexpr (kType == KvType::kF16)
    reinterpret_cast<std::uint16_t*>(start)[index] = static_cast<std::uint16_t>(half_bits(value));
  if constexpr (kType == KvType::kBf16) {
    reinterpret_cast<std::uint16_t*>(start)[index] = static_cast<std::uint16_t>(bfloat_bits(value));
  }
  if constexpr (kType == KvType::kInt8) {
    const float quotient = scale > 0.0f ? rintf(value / scale) : 0.0f;
    reinterpret_cast<std::int8_t*>(start)[index] = static_cast<std::int8_t>(quotient);
  }
  if constexpr (kType == KvType::kFp8E4m3)
    reinterpret_cast<std::uint8_t*>(start)[index] = Fp8E4m3::from_float(value);
  if constexpr (kType == KvType::kFp8E5m2)
    reinterpret_cast<std::uint8_t*>(start)[index] = Fp8E5m2::from_float(value);
}

}  // namespace octavo::kernels::cuda
