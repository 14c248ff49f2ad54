// Device code that reads the planes of weight_planes.h: a pair of groups of 32 columns by one thread or by
// four, in steps, so that a kernel can ask for the next pair's words long before it takes them apart.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/four_bit_values.h"
#include "kernels/tensor.h"

namespace octavo::kernels::cuda {

struct QuantTraits {
  int low_bits, high_bits;
  int offset;         // a weight is scale * (q - offset) - minimum
  int scale_columns;  // that share a scale: 32 or 16
  bool has_minimum;
  bool is_super;  // scales are multiplied with one of 256 columns
  bool has_table = false;

  __host__ __device__ constexpr bool is_signed() const { return low_bits == 8 || has_table; }
};

// REQUIRES: a quantised type.
__host__ __device__ constexpr QuantTraits quant_traits(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return {4, 0, 8, 32, false, false};
    case TensorType::kQ4_1: return {4, 0, 0, 32, true, false};
    case TensorType::kQ5_0: return {4, 1, 16, 32, false, false};
    case TensorType::kQ5_1: return {4, 1, 0, 32, true, false};
    case TensorType::kQ8_0: return {8, 0, 0, 32, false, false};
    case TensorType::kQ2_K: return {2, 0, 0, 16, true, true};
    case TensorType::kQ3_K: return {2, 1, 4, 16, false, true};
    case TensorType::kQ4_K: return {4, 0, 0, 32, true, true};
    case TensorType::kQ5_K: return {4, 1, 0, 32, true, true};
    case TensorType::kQ6_K: return {4, 2, 32, 16, false, true};
    case TensorType::kIQ4_NL: return {4, 0, 0, 32, false, false, true};
    case TensorType::kIQ4_XS: return {4, 0, 0, 32, false, true, true};
    case TensorType::kMXFP4: return {4, 0, 0, 32, false, false, true};
    default: return {0, 0, 0, 0, false, false};
  }
}

__host__ __device__ constexpr bool is_quantised(TensorType type) { return quant_traits(type).low_bits > 0; }

// Calls `function` with std::integral_constant<TensorType, type>; of other types not at all. constexpr: the
// device may call it, too (--expt-relaxed-constexpr).
template <class Function>
constexpr void with_quantised_type(TensorType type, Function&& function) {
  const auto call = [&]<TensorType kType>() { function(std::integral_constant<TensorType, kType>()); };
  switch (type) {
    case TensorType::kQ4_0: return call.template operator()<TensorType::kQ4_0>();
    case TensorType::kQ4_1: return call.template operator()<TensorType::kQ4_1>();
    case TensorType::kQ5_0: return call.template operator()<TensorType::kQ5_0>();
    case TensorType::kQ5_1: return call.template operator()<TensorType::kQ5_1>();
    case TensorType::kQ8_0: return call.template operator()<TensorType::kQ8_0>();
    case TensorType::kQ2_K: return call.template operator()<TensorType::kQ2_K>();
    case TensorType::kQ3_K: return call.template operator()<TensorType::kQ3_K>();
    case TensorType::kQ4_K: return call.template operator()<TensorType::kQ4_K>();
    case TensorType::kQ5_K: return call.template operator()<TensorType::kQ5_K>();
    case TensorType::kQ6_K: return call.template operator()<TensorType::kQ6_K>();
    case TensorType::kIQ4_NL: return call.template operator()<TensorType::kIQ4_NL>();
    case TensorType::kIQ4_XS: return call.template operator()<TensorType::kIQ4_XS>();
    case TensorType::kMXFP4: return call.template operator()<TensorType::kMXFP4>();
    default: return;
  }
}

// What a thread holds of a pair of groups between asking for it and using it: all of it, or what one of four
// lanes that share it needs (`kLanes` 4; the bits of less than four for each number it has as a whole).
template <TensorType kType, int kLanes = 1>
struct RawPair {
  static constexpr QuantTraits kTraits = quant_traits(kType);
  static constexpr int kLowWords = 2 * kTraits.low_bits / (kTraits.low_bits < 4 ? 1 : kLanes);
  static constexpr int kHighWords = 2 * kTraits.high_bits;
  static constexpr int kScaleWords = kTraits.has_minimum && !kTraits.is_super ? 2 : 1;
  std::uint32_t low[kLowWords];
  std::uint32_t high[kHighWords > 0 ? kHighWords : 1];
  std::uint32_t scale[kScaleWords];
  std::uint32_t super;
};

template <int kWords>
__device__ inline void load_words(const std::byte* source, std::uint32_t (&words)[kWords]) {
  if constexpr (kWords == 1) {
    words[0] = __ldg(reinterpret_cast<const std::uint32_t*>(source));
  } else if constexpr (kWords == 2) {
    const uint2 two = __ldg(reinterpret_cast<const uint2*>(source));
    words[0] = two.x, words[1] = two.y;
  } else {
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 four = __ldg(reinterpret_cast<const uint4*>(source) + i);
      words[4 * i] = four.x, words[4 * i + 1] = four.y, words[4 * i + 2] = four.z, words[4 * i + 3] = four.w;
    }
  }
}

// Pair `pair` of a row whose first is the matrix's pair `row`. `lane`: which of kLanes.
template <TensorType kType, int kLanes = 1>
__device__ inline RawPair<kType, kLanes> load_pair(const WeightPlanes& planes, std::int64_t row,
                                                   std::int64_t pair, int lane = 0) {
  using Raw = RawPair<kType, kLanes>;
  constexpr QuantTraits kTraits = quant_traits(kType);
  const std::int64_t index = row + pair;
  Raw raw;
  const int share = Raw::kLowWords < 2 * kTraits.low_bits ? lane : 0;
  load_words(planes.low + index * (8 * kTraits.low_bits) + share * (4 * Raw::kLowWords), raw.low);
  raw.high[0] = 0;
  if constexpr (kTraits.high_bits > 0) load_words(planes.high + index * (8 * kTraits.high_bits), raw.high);
  load_words(planes.scale + index * (4 * Raw::kScaleWords), raw.scale);
  raw.super = 0;
  if constexpr (kTraits.is_super) {
    constexpr std::int64_t kSuperPairs = kSuperGroups / kPairGroups;
    raw.super = __ldg(reinterpret_cast<const std::uint32_t*>(planes.super) + index / kSuperPairs);
  }
  return raw;
}

// Numbers [first, first + 4) of a table, one in each byte.
__host__ __device__ constexpr std::uint32_t word_of_table(const std::int8_t (&values)[16], int first) {
  std::uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<std::uint8_t>(values[first + i]);
  return word;
}

// Four bytes 0..15 as the table's numbers at those places. __byte_perm chooses among eight bytes, so both
// halves of the table are asked and the fourth bit of a place decides.
template <TensorType kType>
__device__ inline std::uint32_t look_up(std::uint32_t places) {
  constexpr bool kIsIq4 = kType != TensorType::kMXFP4;
  constexpr std::uint32_t kFirst = word_of_table(kIsIq4 ? kIq4Values : kMxfp4Values, 0),
                          kSecond = word_of_table(kIsIq4 ? kIq4Values : kMxfp4Values, 4),
                          kThird = word_of_table(kIsIq4 ? kIq4Values : kMxfp4Values, 8),
                          kFourth = word_of_table(kIsIq4 ? kIq4Values : kMxfp4Values, 12);
  const std::uint32_t selector = __byte_perm(places | places >> 4, 0u, 0x4420u) & 0x7777u;
  const std::uint32_t lower = __byte_perm(kFirst, kSecond, selector),
                      upper = __byte_perm(kThird, kFourth, selector);
  const std::uint32_t is_upper = (places >> 3 & 0x01010101u) * 0xffu;
  return lower ^ ((lower ^ upper) & is_upper);
}

// Word `i` of 8 of a group, from the word that holds its low bits and the one that holds those above.
template <TensorType kType>
__device__ inline std::uint32_t unpacked_word(std::uint32_t low, std::uint32_t high, int i) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  std::uint32_t word = low;
  if constexpr (kTraits.low_bits == 4) word = low >> (i / 4 * 4) & 0x0f0f0f0fu;
  if constexpr (kTraits.low_bits == 2) word = low >> (i % 4 * 2) & 0x03030303u;
  if constexpr (kTraits.has_table) word = look_up<kType>(word);
  if constexpr (kTraits.high_bits == 1) word |= (high >> i & 0x01010101u) << kTraits.low_bits;
  if constexpr (kTraits.high_bits == 2) word |= (high >> (i % 4 * 2) & 0x03030303u) << 4;
  return word;
}

// The word with the upper bits of words 4 half .. 4 half + 3 of a group; 0 where a type has none.
template <TensorType kType, int kLanes>
__device__ inline std::uint32_t high_word(const RawPair<kType, kLanes>& raw, int group, int half) {
  constexpr int kHighBits = quant_traits(kType).high_bits;
  if constexpr (kHighBits == 0) return 0;
  return raw.high[kHighBits == 2 ? 2 * group + half : group];
}

// The integers of group 0 or 1 as bytes: element 4 i + b in byte b of word i; unsigned, or is_signed().
template <TensorType kType>
__device__ inline void unpack_group(const RawPair<kType>& raw, int group, std::uint32_t (&words)[8]) {
  constexpr QuantTraits kTraits = quant_traits(kType);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int half = i / 4;
    const std::uint32_t low = kTraits.low_bits == 8   ? raw.low[4 * (i % 4) + 2 * group + half]
                              : kTraits.low_bits == 4 ? raw.low[2 * (i % 4) + group]
                                                      : raw.low[2 * group + half];
    words[i] = unpacked_word<kType>(low, high_word(raw, group, half), i);
  }
}

// Four bytes without their offset, as signed ones.
template <TensorType kType>
__device__ inline std::uint32_t without_offset(std::uint32_t word) {
  constexpr std::uint32_t kRaise = (128u - quant_traits(kType).offset) * 0x01010101u;
  return quant_traits(kType).offset == 0 ? word : (word + kRaise) ^ 0x80808080u;
}

// What lane `lane` of four has of group 0 or 1, signed and without offset: elements 4 lane .. 4 lane + 3 and
// those 16 behind.
template <TensorType kType>
__device__ inline void unpack_share(const RawPair<kType, 4>& raw, int group, int lane,
                                    std::uint32_t (&words)[2]) {
  constexpr QuantTraits kTraits = quant_traits(kType);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t low = kTraits.low_bits == 4 ? raw.low[group] : raw.low[2 * group + half];
    words[half] =
        without_offset<kType>(unpacked_word<kType>(low, high_word(raw, group, half), 4 * half + lane));
  }
}

// Of the first and of the last 16 columns.
struct GroupScales {
  float scale[2], minimum[2];
};

__device__ inline float half_of_word(std::uint32_t word) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(word & 0xffffu)));
}

// Of group 0 or 1.
template <TensorType kType, int kLanes>
__device__ inline GroupScales scales_of_group(const RawPair<kType, kLanes>& raw, int group) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  constexpr bool kHasWord = RawPair<kType, kLanes>::kScaleWords == 2;
  const std::uint32_t word = kHasWord ? raw.scale[kHasWord ? group : 0] : raw.scale[0] >> (16 * group);
  GroupScales scales{};
  if constexpr (kType == TensorType::kMXFP4) {
    scales.scale[0] = scales.scale[1] = __uint_as_float(word << 16);
  } else if constexpr (!kTraits.is_super) {
    scales.scale[0] = scales.scale[1] = half_of_word(word);
    if constexpr (kTraits.has_minimum) scales.minimum[0] = scales.minimum[1] = -half_of_word(word >> 16);
  } else {
    const float scale = half_of_word(raw.super), minimum = half_of_word(raw.super >> 16);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t byte = word >> (8 * i) & 0xffu;
      if constexpr (kType == TensorType::kQ2_K) {
        scales.scale[i] = scale * static_cast<float>(byte & 15u);
        scales.minimum[i] = minimum * static_cast<float>(byte >> 4);
      } else if constexpr (kTraits.has_minimum) {
        scales.scale[i] = scale * static_cast<float>(word & 0xffu);
        scales.minimum[i] = minimum * static_cast<float>(word >> 8 & 0xffu);
      } else {
        scales.scale[i] = scale * static_cast<float>(static_cast<std::int8_t>(byte));
      }
    }
  }
  return scales;
}

// The 32 weights of group 0 or 1 as floats: bit-equal to dequantize.h.
template <TensorType kType>
__device__ inline void expand_quantised_group(const RawPair<kType>& raw, int group, float (&out)[32]) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  const GroupScales scales = scales_of_group(raw, group);
  std::uint32_t words[8];
  unpack_group<kType>(raw, group, words);
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t byte = words[i / 4] >> (i % 4 * 8) & 0xffu;
    const int quant = kTraits.is_signed() ? static_cast<int>(static_cast<std::int8_t>(byte))
                                          : static_cast<int>(byte) - kTraits.offset;
    // The product is exact wherever there is a minimum: 17 bits at most times 8 or fewer.
    out[i] = scales.scale[i / 16] * static_cast<float>(quant) - scales.minimum[i / 16];
  }
}

template <TensorType kType>
__device__ inline void expand_quantised_group(const WeightPlanes& planes, std::int64_t row,
                                              std::int64_t group, float (&out)[32]) {
  const std::int64_t pairs = planes.stride / kPairColumns;
  const RawPair<kType> raw = load_pair<kType>(planes, row * pairs, group / kPairGroups);
  group % kPairGroups == 0 ? expand_quantised_group(raw, 0, out) : expand_quantised_group(raw, 1, out);
}

// The same for a type known at run time, unquantised ones too; for operations that read few rows
// (embeddings).
__device__ inline void expand_group(const WeightPlanes& planes, std::int64_t row, std::int64_t group,
                                    float (&out)[32]) {
  const std::int64_t first = row * planes.stride + group * kGroupColumns;
  switch (planes.type) {
    case TensorType::kF32:
      for (int i = 0; i < 32; ++i) out[i] = reinterpret_cast<const float*>(planes.low)[first + i];
      return;
    case TensorType::kF16:
      for (int i = 0; i < 32; ++i)
        out[i] = half_of_word(reinterpret_cast<const std::uint16_t*>(planes.low)[first + i]);
      return;
    case TensorType::kBF16:
      for (int i = 0; i < 32; ++i) {
        const std::uint32_t word = reinterpret_cast<const std::uint16_t*>(planes.low)[first + i];
        out[i] = __uint_as_float(word << 16);
      }
      return;
    default:
      return with_quantised_type(planes.type, [&](auto constant) {
        expand_quantised_group<decltype(constant)::value>(planes, row, group, out);
      });
  }
}

}  // namespace octavo::kernels::cuda
