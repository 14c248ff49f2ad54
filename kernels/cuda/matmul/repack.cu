// A group's 32 integers are read as eight words of four, element 4 i + b in byte b of word i, which is how
// quantised.cuh unpacks them, too: what lies side by side in the planes is found there by whole words.
#include "kernels/cuda/matmul/repack.h"

#include "engine/base/check.h"
#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kNumbersPerThread = 16;

struct RepackArguments {
  std::byte *low, *high, *scale, *super;
  const std::byte* blocks;  // in the file's order, from block `first` on
  std::int64_t first, count;
  std::int64_t blocks_in_row, groups_in_row;  // in the file, and in the planes
  std::int64_t block_bytes;
};

__device__ inline std::uint32_t byte_of_block(const std::byte* block, int offset) {
  return static_cast<std::uint32_t>(block[offset]);
}

// Blocks have even sizes, and what is read of them even offsets; but for MXFP4.
template <TensorType kType>
__device__ inline std::uint32_t half_of_block(const std::byte* block, int offset) {
  if constexpr (kType == TensorType::kMXFP4) {
    return byte_of_block(block, offset) | byte_of_block(block, offset + 1) << 8;
  } else {
    return *reinterpret_cast<const std::uint16_t*>(block + offset);
  }
}

template <TensorType kType>
__device__ inline std::uint32_t word_of_block(const std::byte* block, int offset) {
  return half_of_block<kType>(block, offset) | half_of_block<kType>(block, offset + 2) << 16;
}

// Bit b of four in the lowest bit of byte b.
__device__ inline std::uint32_t bits_in_bytes(std::uint32_t bits) {
  return (bits * 0x00204081u) & 0x01010101u;
}

// Of a block of 32: low halves hold elements 0..15, high halves 16..31.
template <TensorType kType>
__device__ inline std::uint32_t nibbles_of_block(const std::byte* nibbles, int i) {
  return word_of_block<kType>(nibbles, 4 * (i % 4)) >> (4 * (i / 4)) & 0x0f0f0f0fu;
}

template <TensorType kType>
__device__ inline std::uint32_t fifth_bits_of_block(const std::byte* bits, int i) {
  return bits_in_bytes(byte_of_block(bits, i / 2) >> (i % 2 * 4) & 15u) << 4;
}

// Word `i` of group `index` of a block; kernels/dequantize.cc says where the file has them.
template <TensorType kType>
__device__ inline std::uint32_t integers_of_block(const std::byte* block, int index, int i) {
  const auto word = [&](int offset) { return word_of_block<kType>(block, offset + 4 * i); };
  const int quarter = 32 * (index / 4), bits = index % 4 * 2;
  switch (kType) {
    case TensorType::kQ4_1: return nibbles_of_block<kType>(block + 4, i);
    case TensorType::kQ5_0:
      return nibbles_of_block<kType>(block + 6, i) | fifth_bits_of_block<kType>(block + 2, i);
    case TensorType::kQ5_1:
      return nibbles_of_block<kType>(block + 8, i) | fifth_bits_of_block<kType>(block + 4, i);
    case TensorType::kQ8_0: return word(2);
    case TensorType::kQ2_K: return word(16 + quarter) >> bits & 0x03030303u;
    case TensorType::kQ3_K:
      return (word(32 + quarter) >> bits & 0x03030303u) | (word(0) >> index & 0x01010101u) << 2;
    case TensorType::kQ4_K: return word(16 + 32 * (index / 2)) >> (index % 2 * 4) & 0x0f0f0f0fu;
    case TensorType::kQ5_K:
      return (word(48 + 32 * (index / 2)) >> (index % 2 * 4) & 0x0f0f0f0fu) |
             (word(16) >> index & 0x01010101u) << 4;
    case TensorType::kQ6_K:
      return (word(64 * (index / 4) + 32 * (index % 2)) >> (index % 4 / 2 * 4) & 0x0f0f0f0fu) |
             (word(128 + quarter) >> bits & 0x03030303u) << 4;
    case TensorType::kIQ4_XS: return nibbles_of_block<kType>(block + 8 + 16 * index, i);
    case TensorType::kMXFP4: return nibbles_of_block<kType>(block + 1, i);
    default: return nibbles_of_block<kType>(block + 2, i);  // Q4_0, IQ4_NL
  }
}

// Two numbers of six bits, scale and minimum, of eight pairs in 12 bytes.
__device__ inline std::uint32_t pair_of_six_bits(const std::byte* scales, int index) {
  if (index < 4) return (byte_of_block(scales, index) & 63u) | (byte_of_block(scales, index + 4) & 63u) << 8;
  const std::uint32_t halves = byte_of_block(scales, index + 4);
  const std::uint32_t scale = (halves & 15u) | byte_of_block(scales, index - 4) >> 6 << 4;
  const std::uint32_t minimum = halves >> 4 | byte_of_block(scales, index) >> 6 << 4;
  return scale | minimum << 8;
}

// A signed number of six bits as a byte.
__device__ inline std::uint32_t signed_byte(std::uint32_t low, std::uint32_t high) {
  return (((low & 15u) | (high & 3u) << 4) - 32u) & 0xffu;
}

__device__ inline std::uint32_t q3_k_scale(const std::byte* scales, int index) {
  return signed_byte(byte_of_block(scales, index % 8) >> (index / 8 * 4),
                     byte_of_block(scales, 8 + index % 4) >> (index / 4 * 2));
}

// What the scale plane has of group `index` of a block.
template <TensorType kType>
__device__ inline std::uint32_t scales_of_block(const std::byte* block, int index) {
  switch (kType) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1: return word_of_block<kType>(block, 0);
    case TensorType::kQ2_K: return half_of_block<kType>(block, 2 * index);
    case TensorType::kQ3_K:
      return q3_k_scale(block + 96, 2 * index) | q3_k_scale(block + 96, 2 * index + 1) << 8;
    case TensorType::kQ4_K:
    case TensorType::kQ5_K: return pair_of_six_bits(block + 4, index);
    case TensorType::kQ6_K: return half_of_block<kType>(block, 192 + 2 * index);
    case TensorType::kIQ4_XS:
      return 0x0101u * signed_byte(byte_of_block(block, 4 + index / 2) >> (index % 2 * 4),
                                   byte_of_block(block, 2 + index / 4) >> (index % 4 * 2));
    case TensorType::kMXFP4: {  // the upper half of what mxfp4_scale() gives
      const std::uint32_t exponent = byte_of_block(block, 0);
      return exponent < 2 ? 0x20u << exponent : (exponent - 1u) << 7;
    }
    default: return half_of_block<kType>(block, 0);
  }
}

// The f16 scale (and minimum) of a block of 256.
template <TensorType kType>
__device__ inline std::uint32_t super_of_block(const std::byte* block) {
  switch (kType) {
    case TensorType::kQ2_K: return word_of_block<kType>(block, 80);
    case TensorType::kQ3_K: return half_of_block<kType>(block, 108);
    case TensorType::kQ6_K: return half_of_block<kType>(block, 208);
    case TensorType::kIQ4_XS: return half_of_block<kType>(block, 0);
    default: return word_of_block<kType>(block, 0);
  }
}

// Stores the lowest bits of each integer to `target`, the pair's first word; `place` of the group in it.
template <int kBits>
__device__ inline void store_low(const std::uint32_t (&integers)[8], int place, std::uint32_t* target) {
  constexpr std::uint32_t kMask = ((1u << kBits) - 1u) * 0x01010101u;
#pragma unroll
  for (int i = 0; i < kBits; ++i) {
    if constexpr (kBits == 8) {
      target[4 * (i % 4) + 2 * place + i / 4] = integers[i];
    } else if constexpr (kBits == 4) {
      target[2 * i + place] = (integers[i] & kMask) | (integers[i + 4] & kMask) << 4;
    } else {
      std::uint32_t word = 0;
#pragma unroll
      for (int quad = 0; quad < 4; ++quad) word |= (integers[4 * i + quad] & kMask) << (2 * quad);
      target[2 * place + i] = word;
    }
  }
}

// The bits above.
template <TensorType kType>
__device__ inline void store_high(const std::uint32_t (&integers)[8], int place, std::uint32_t* target) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  constexpr std::uint32_t kMask = ((1u << kTraits.high_bits) - 1u) * 0x01010101u;
  constexpr int kTogether = 8 / kTraits.high_bits;  // words of integers that meet in one
#pragma unroll
  for (int i = 0; i < kTraits.high_bits; ++i) {
    std::uint32_t word = 0;
#pragma unroll
    for (int each = 0; each < kTogether; ++each) {
      const std::uint32_t bits = integers[kTogether * i + each] >> kTraits.low_bits & kMask;
      word |= bits << (kTraits.high_bits * each);
    }
    target[kTraits.high_bits * place + i] = word;
  }
}

// A thread to a group of 32 columns: its words, and no other's.
template <TensorType kType>
__global__ void __launch_bounds__(kThreads) repack_groups(const RepackArguments arguments) {
  constexpr QuantTraits kTraits = quant_traits(kType);
  constexpr int kGroupsInBlock = kTraits.is_super ? static_cast<int>(kSuperGroups) : 1;
  constexpr bool kHasScaleWord = kTraits.has_minimum && !kTraits.is_super;
  const std::int64_t number = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t in_piece = number / kGroupsInBlock;
  if (in_piece >= arguments.count) return;
  const int in_block = static_cast<int>(number % kGroupsInBlock);
  const std::byte* const block = arguments.blocks + in_piece * arguments.block_bytes;
  const std::int64_t row = (arguments.first + in_piece) / arguments.blocks_in_row;
  const std::int64_t in_row = arguments.first + in_piece - row * arguments.blocks_in_row;
  const std::int64_t group = row * arguments.groups_in_row + in_row * kGroupsInBlock + in_block;
  const std::int64_t pair = group / kPairGroups;
  const int place = static_cast<int>(group % kPairGroups);

  std::uint32_t integers[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) integers[i] = integers_of_block<kType>(block, in_block, i);
  store_low<kTraits.low_bits>(
      integers, place, reinterpret_cast<std::uint32_t*>(arguments.low) + pair * (2 * kTraits.low_bits));
  if constexpr (kTraits.high_bits > 0) {
    store_high<kType>(integers, place,
                      reinterpret_cast<std::uint32_t*>(arguments.high) + pair * (2 * kTraits.high_bits));
  }
  const std::uint32_t scales = scales_of_block<kType>(block, in_block);
  if constexpr (kHasScaleWord) {
    reinterpret_cast<std::uint32_t*>(arguments.scale)[group] = scales;
  } else {
    reinterpret_cast<std::uint16_t*>(arguments.scale)[group] = static_cast<std::uint16_t>(scales);
  }
  if constexpr (kTraits.is_super) {
    if (in_block == 0)
      reinterpret_cast<std::uint32_t*>(arguments.super)[group / kSuperGroups] = super_of_block<kType>(block);
  }
}

// Of unquantised types, whose blocks and groups are single numbers.
template <class Number>
__global__ void __launch_bounds__(kThreads) place_numbers(const RepackArguments arguments) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kNumbersPerThread + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kNumbersPerThread; ++i) {
    const std::int64_t in_piece = first + i * std::int64_t{kThreads};
    if (in_piece >= arguments.count) return;
    const std::int64_t row = (arguments.first + in_piece) / arguments.blocks_in_row;
    const std::int64_t column = arguments.first + in_piece - row * arguments.blocks_in_row;
    reinterpret_cast<Number*>(arguments.low)[row * arguments.groups_in_row + column] =
        reinterpret_cast<const Number*>(arguments.blocks)[in_piece];
  }
}

// Who makes planes may write them.
std::byte* target_of(const std::byte* plane) { return const_cast<std::byte*>(plane); }

}  // namespace

void launch_repack(Stream& stream, const std::byte* blocks, std::int64_t first, std::int64_t count,
                   const WeightPlanes& planes) {
  const TensorTypeTraits& file = traits_of(planes.type);
  const std::int64_t numbers_of_group = file.quantised ? kGroupColumns : 1;
  const RepackArguments arguments{.low = target_of(planes.low),
                                  .high = target_of(planes.high),
                                  .scale = target_of(planes.scale),
                                  .super = target_of(planes.super),
                                  .blocks = blocks,
                                  .first = first,
                                  .count = count,
                                  .blocks_in_row = planes.columns / file.block_elements,
                                  .groups_in_row = planes.stride / numbers_of_group,
                                  .block_bytes = file.block_bytes};
  const std::int64_t num_groups = count * (file.block_elements / numbers_of_group),
                     groups_of_block = file.quantised ? kThreads : kThreads * kNumbersPerThread;
  const LaunchShape shape{.grid = dim3(num_pieces(num_groups, groups_of_block)), .block = dim3(kThreads)};
  OCTAVO_CHECK(!file.quantised || is_quantised(planes.type), "planes of %s", file.name.data());
  if (file.quantised) {
    with_quantised_type(planes.type, [&](auto constant) {
      launch(repack_groups<decltype(constant)::value>, shape, stream, arguments);
    });
  } else if (file.block_bytes == 4) {
    launch(place_numbers<std::uint32_t>, shape, stream, arguments);
  } else {
    launch(place_numbers<std::uint16_t>, shape, stream, arguments);
  }
}

}  // namespace octavo::kernels::cuda
