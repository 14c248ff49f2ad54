// Keys and values as the pool holds them: where a token's stand, as kv_layout.h says, and what its bytes mean
// as operands of tensor cores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
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
  // Whether as many neighbouring tokens' keys as a piece has numbers, and as many neighbouring numbers of a
  // value, are one aligned load.
  bool has_pieces(std::int32_t piece_numbers) const {
    return block_size % piece_numbers == 0 && head_dim % piece_numbers == 0;
  }

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
  // Stored bytes stay as they are in shared memory, so that they come in beside the program; those of eight
  // bits are expanded on their way into the registers.
  static constexpr bool kIsCopied = kType != KvType::kF32;
  static constexpr bool kIsExpanded = kv_element_bytes(kType) == 1;
  static constexpr int kBytes = kIsExpanded ? 1 : 2;  // of a number in shared memory, in each plane
  static constexpr int kPieceNumbers = 16 / kBytes;   // that come in at once
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

// Two numbers as a pair of operands, `first` in the low half.
template <bool kIsHalf>
__device__ inline std::uint32_t pair_of(float first, float second) {
  if constexpr (kIsHalf) {
    return half_pair(first, second);
  } else {
    return bfloat_pair(first, second);
  }
}

// Pairs of the numbers rounded, and of what is left.
template <bool kIsHalf>
__device__ inline void split_pair(float first, float second, std::uint32_t& high, std::uint32_t& low) {
  high = pair_of<kIsHalf>(first, second);
  const auto number = [](std::uint32_t bits) {
    return kIsHalf ? float_of_half_bits(bits & 0xffffu) : float_of_bfloat_bits(bits & 0xffffu);
  };
  low = pair_of<kIsHalf>(first - number(high), second - number(high >> 16));
}

// Two e4m3 codes in the upper bytes of the halves of `codes`, as float16: the exponent's bias is less by 8.
// Gives the bits of halves_of_e4m3_pair().
__device__ inline std::uint32_t halves_of_upper_e4m3(std::uint32_t codes) {
  constexpr std::uint32_t kMinusZeros = 0x80008000u, k256 = 0x5c005c00u;
  std::uint32_t halves =
      fma_half_pairs((codes & kMinusZeros) | (codes & 0x7f007f00u) >> 1, k256, kMinusZeros);
  constexpr std::uint32_t kLargest = 0x5f00u;  // 448; the code above it is NaN
  if ((halves & 0x7fffu) > kLargest) halves = (halves & 0xffff0000u) | 0x7fffu;
  if ((halves >> 16 & 0x7fffu) > kLargest) halves = (halves & 0xffffu) | 0x7fff0000u;
  return halves;
}

// The int8 numbers in the lower bytes of the halves of `bytes` as bfloat16: 128 and the lower seven bits,
// less 128 or, where the sign is set, 256; all of them exact.
__device__ inline std::uint32_t bfloats_of_lower_int8(std::uint32_t bytes) {
  constexpr std::uint32_t k128 = 0x43004300u, kMinusOnes = 0xbf80bf80u;
  return fma_bfloat_pairs((bytes & 0x00800080u) | k128, kMinusOnes, (bytes & 0x007f007fu) | k128);
}

// Four stored numbers of eight bits as two pairs of operands: of the bytes 0 and 2, and of 1 and 3. int8
// without its scale.
template <KvType kType>
__device__ inline void expand_bytes(std::uint32_t bytes, std::uint32_t& even, std::uint32_t& odd) {
  static_assert(Operand<kType>::kIsExpanded);
  if constexpr (kType == KvType::kInt8) {
    even = bfloats_of_lower_int8(bytes), odd = bfloats_of_lower_int8(bytes >> 8);
  } else if constexpr (kType == KvType::kFp8E5m2) {
    even = bytes << 8 & 0xff00ff00u, odd = bytes & 0xff00ff00u;  // float16 is e5m2 with more bits
  } else if constexpr (kConvertsE4m3) {
    const std::uint32_t in_order = __byte_perm(bytes, 0, 0x3120);
    even = halves_of_e4m3_pair(in_order & 0xffffu), odd = halves_of_e4m3_pair(in_order >> 16);
  } else {
    even = halves_of_upper_e4m3(bytes << 8), odd = halves_of_upper_e4m3(bytes);
  }
}

// Eight float32 numbers at an address that is a multiple of their size, as sums of two operands.
__device__ inline void load_split_octet(const std::byte* source, uint4& high, uint4& low) {
  const auto* const numbers = reinterpret_cast<const float4*>(source);
  const float4 first = __ldg(numbers), second = __ldg(numbers + 1);
  split_pair<false>(first.x, first.y, high.x, low.x);
  split_pair<false>(first.z, first.w, high.y, low.y);
  split_pair<false>(second.x, second.y, high.z, low.z);
  split_pair<false>(second.z, second.w, high.w, low.w);
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
