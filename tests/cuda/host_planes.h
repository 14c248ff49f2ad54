// The planes of weight_planes.h made by the host, number by number, as that file describes them: what the
// device must make, byte for byte.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/base/check.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/dequantize.h"

namespace octavo::kernels::cuda {

// One group as the file has it, taken apart: the integers, and the bytes that go to the scale plane.
struct Group {
  std::uint8_t quants[32] = {};
  std::byte scale[4] = {};
};

inline unsigned at(const std::byte* bytes, int index) { return std::to_integer<unsigned>(bytes[index]); }

// Blocks of 32: low halves hold elements 0..15, high halves 16..31; the fifth bits stand in a row.
inline void read_nibbles(const std::byte* nibbles, const std::byte* fifth_bits, Group& group) {
  for (int i = 0; i < 32; ++i) {
    const unsigned low = i < 16 ? at(nibbles, i) & 15u : at(nibbles, i - 16) >> 4;
    const unsigned fifth = fifth_bits == nullptr ? 0u : at(fifth_bits, i / 8) >> (i % 8) & 1u;
    group.quants[i] = static_cast<std::uint8_t>(low | fifth << 4);
  }
}

inline void read_scale_bytes(const std::byte* source, int count, Group& group) {
  for (int i = 0; i < count; ++i) group.scale[i] = source[i];
}

inline void set_scale_bytes(unsigned first, unsigned second, Group& group) {
  group.scale[0] = static_cast<std::byte>(first & 0xffu);
  group.scale[1] = static_cast<std::byte>(second & 0xffu);
}

// Eight pairs of six bits in 12 bytes; dequantize.cc says how.
inline void read_pair_of_six_bits(const std::byte* scales, int index, Group& group) {
  if (index < 4) return set_scale_bytes(at(scales, index) & 63u, at(scales, index + 4) & 63u, group);
  const unsigned halves = at(scales, index + 4);
  set_scale_bytes((halves & 15u) | at(scales, index - 4) >> 6 << 4, halves >> 4 | at(scales, index) >> 6 << 4,
                  group);
}

inline unsigned q3_k_scale(const std::byte* scales, int index) {
  const unsigned low = at(scales, index % 8) >> (index / 8 * 4) & 15u;
  const unsigned high = at(scales, 8 + index % 4) >> (index / 4 * 2) & 3u;
  return (low | high << 4) - 32u;  // its low byte is the signed number
}

// Of blocks of 256, group `index` of 8.
inline void read_q2_k(const std::byte* block, int index, Group& group) {
  read_scale_bytes(block + 2 * index, 2, group);
  for (int i = 0; i < 32; ++i) {
    group.quants[i] = static_cast<std::uint8_t>(at(block + 16, 32 * (index / 4) + i) >> (index % 4 * 2) & 3u);
  }
}

inline void read_q3_k(const std::byte* block, int index, Group& group) {
  set_scale_bytes(q3_k_scale(block + 96, 2 * index), q3_k_scale(block + 96, 2 * index + 1), group);
  for (int i = 0; i < 32; ++i) {
    const unsigned low = at(block + 32, 32 * (index / 4) + i) >> (index % 4 * 2) & 3u;
    group.quants[i] = static_cast<std::uint8_t>(low | (at(block, i) >> index & 1u) << 2);
  }
}

inline void read_q4_k_or_q5_k(const std::byte* block, int index, bool has_fifth_bits, Group& group) {
  read_pair_of_six_bits(block + 4, index, group);
  const std::byte* const nibbles = block + (has_fifth_bits ? 48 : 16) + 32 * (index / 2);
  for (int i = 0; i < 32; ++i) {
    const unsigned low = at(nibbles, i) >> (index % 2 * 4) & 15u;
    const unsigned fifth = has_fifth_bits ? at(block + 16, i) >> index & 1u : 0u;
    group.quants[i] = static_cast<std::uint8_t>(low | fifth << 4);
  }
}

inline void read_q6_k(const std::byte* block, int index, Group& group) {
  read_scale_bytes(block + 192 + 2 * index, 2, group);
  for (int i = 0; i < 32; ++i) {
    const unsigned low = at(block, 64 * (index / 4) + 32 * (index % 2) + i) >> (index % 4 / 2 * 4) & 15u;
    const unsigned high = at(block + 128, 32 * (index / 4) + i) >> (index % 4 * 2) & 3u;
    group.quants[i] = static_cast<std::uint8_t>(low | high << 4);
  }
}

// Eight 6-bit scales: four bits each in bytes 4..7, the upper two in the word before them.
inline void read_iq4_xs(const std::byte* block, int index, Group& group) {
  const unsigned low = at(block, 4 + index / 2) >> (index % 2 * 4) & 15u;
  const unsigned high = at(block, 2 + index / 4) >> (index % 4 * 2) & 3u;
  const unsigned scale = (low | high << 4) - 32u;  // its low byte is the signed number
  set_scale_bytes(scale, scale, group);
  read_nibbles(block + 8 + 16 * index, nullptr, group);
}

// As bfloat16, whose exponents are those of float and whose mantissa holds the bit of the denormal scales.
inline void read_mxfp4(const std::byte* block, Group& group) {
  const unsigned word =
      std::bit_cast<std::uint32_t>(mxfp4_scale(std::to_integer<std::uint8_t>(block[0]))) >> 16;
  set_scale_bytes(word, word >> 8, group);
  read_nibbles(block + 1, nullptr, group);
}

// `block`: the file's block that holds the group; `index`: which of its groups.
inline Group read_group(TensorType type, const std::byte* block, int index) {
  Group group;
  switch (type) {
    case TensorType::kQ4_0:
    case TensorType::kIQ4_NL:
      read_scale_bytes(block, 2, group), read_nibbles(block + 2, nullptr, group);
      break;
    case TensorType::kQ4_1: read_scale_bytes(block, 4, group), read_nibbles(block + 4, nullptr, group); break;
    case TensorType::kQ5_0:
      read_scale_bytes(block, 2, group), read_nibbles(block + 6, block + 2, group);
      break;
    case TensorType::kQ5_1:
      read_scale_bytes(block, 4, group), read_nibbles(block + 8, block + 4, group);
      break;
    case TensorType::kQ8_0:
      read_scale_bytes(block, 2, group);
      std::memcpy(group.quants, block + 2, 32);
      break;
    case TensorType::kQ2_K: read_q2_k(block, index, group); break;
    case TensorType::kQ3_K: read_q3_k(block, index, group); break;
    case TensorType::kQ4_K: read_q4_k_or_q5_k(block, index, false, group); break;
    case TensorType::kQ5_K: read_q4_k_or_q5_k(block, index, true, group); break;
    case TensorType::kQ6_K: read_q6_k(block, index, group); break;
    case TensorType::kIQ4_XS: read_iq4_xs(block, index, group); break;
    case TensorType::kMXFP4: read_mxfp4(block, group); break;
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16: OCTAVO_CHECK(false, "an unquantised type has no groups");
    case TensorType::kIQ1_S:
    case TensorType::kIQ1_M:
    case TensorType::kIQ2_XXS:
    case TensorType::kIQ2_XS:
    case TensorType::kIQ2_S:
    case TensorType::kIQ3_XXS:
    case TensorType::kIQ3_S:
    case TensorType::kTQ1_0:
    case TensorType::kTQ2_0:
    case TensorType::kQ1_0:
    case TensorType::kQ2_0:
    case TensorType::kU4_G32:
    case TensorType::kU4_G128:
    case TensorType::kU8_G32:
    case TensorType::kU8_G128:
    case TensorType::kF8_G32:
    case TensorType::kF8_G128:
    case TensorType::kNVFP4: OCTAVO_CHECK(false, "a type that is not multiplied with here: multiplies()");
  }
  return group;
}

inline void write_word(std::byte* target, std::uint32_t word) { std::memcpy(target, &word, sizeof word); }

// Where the other group of a pair may have left its bits.
inline void add_word(std::byte* target, std::uint32_t bits) {
  std::uint32_t word = 0;
  std::memcpy(&word, target, sizeof word);
  write_word(target, word | bits);
}

// `place` of a group in its pair, whose first word is at `target`.
inline void write_low(const QuantTraits& traits, const Group& group, int place, std::byte* target) {
  std::uint32_t words[2 * 8] = {};  // of the pair; this group's are set
  for (int e = 0; e < 32; ++e) {
    const std::uint32_t quant = group.quants[e] & ((1u << traits.low_bits) - 1u);
    const int half = e / 16, quad = e % 16 / 4, byte = 8 * (e % 4);
    if (traits.low_bits == 8) words[4 * quad + 2 * place + half] |= quant << byte;
    if (traits.low_bits == 4) words[2 * quad + place] |= quant << (byte + 4 * half);
    if (traits.low_bits == 2) words[2 * place + half] |= quant << (byte + 2 * quad);
  }
  for (int word = 0; word < 2 * traits.low_bits; ++word) add_word(target + 4 * word, words[word]);
}

inline void write_high(const QuantTraits& traits, const Group& group, int place, std::byte* target) {
  std::uint32_t words[2 * 2] = {};
  for (int e = 0; e < 32; ++e) {
    const std::uint32_t bits = static_cast<std::uint32_t>(group.quants[e]) >> traits.low_bits;
    if (traits.high_bits == 1) words[place] |= bits << (8 * (e % 4) + e / 4);
    if (traits.high_bits == 2) words[2 * place + e / 16] |= bits << (8 * (e % 4) + 2 * (e % 16 / 4));
  }
  for (int word = 0; word < 2 * traits.high_bits; ++word) add_word(target + 4 * word, words[word]);
}

// Where the f16 scale (and minimum) of a block of 256 stand.
inline std::uint32_t super_word(TensorType type, const std::byte* block) {
  const auto word = [block](int offset) { return at(block, offset) | at(block, offset + 1) << 8; };
  switch (type) {
    case TensorType::kQ2_K: return word(80) | word(82) << 16;
    case TensorType::kQ3_K: return word(108);
    case TensorType::kQ6_K: return word(208);
    case TensorType::kIQ4_XS: return word(0);
    default: return word(0) | word(2) << 16;
  }
}

inline std::vector<std::byte> planes_of_quantised(const MatrixSource& source) {
  const TensorTypeTraits& file = traits_of(source.type);
  const QuantTraits traits = quant_traits(source.type);
  const GroupBytes bytes = group_bytes(source.type);
  const PlaneLayout layout = plane_layout(source.type, source.rows, source.columns);
  std::vector<std::byte> planes(static_cast<std::size_t>(layout.bytes));
  const std::int64_t groups = padded_columns(source.columns) / kGroupColumns;
  const std::int64_t groups_in_block = file.block_elements / kGroupColumns;
  const std::int64_t blocks_in_row = source.columns / file.block_elements;
  for (std::int64_t row = 0; row < source.rows; ++row) {
    for (std::int64_t g = 0; g < blocks_in_row * groups_in_block; ++g) {
      const std::byte* const block =
          source.bytes.data() + (row * blocks_in_row + g / groups_in_block) * file.block_bytes;
      const std::int64_t index = row * groups + g;
      const Group group = read_group(source.type, block, static_cast<int>(g % groups_in_block));
      const int place = static_cast<int>(index % kPairGroups);
      const std::int64_t first = index - place;
      write_low(traits, group, place, planes.data() + layout.offsets[0] + first * bytes.low);
      write_high(traits, group, place, planes.data() + layout.offsets[1] + first * bytes.high);
      std::memcpy(planes.data() + layout.offsets[2] + index * bytes.scale, group.scale,
                  static_cast<std::size_t>(bytes.scale));
      if (bytes.super > 0 && g % kSuperGroups == 0) {
        write_word(planes.data() + layout.offsets[3] + index / kSuperGroups * bytes.super,
                   super_word(source.type, block));
      }
    }
  }
  return planes;
}

inline std::vector<std::byte> planes_of_numbers(const MatrixSource& source) {
  const std::int64_t element_bytes = traits_of(source.type).block_bytes;
  const std::int64_t row_bytes = source.columns * element_bytes;
  const std::int64_t packed_row_bytes = padded_columns(source.columns) * element_bytes;
  std::vector<std::byte> planes(static_cast<std::size_t>(source.rows * packed_row_bytes));
  for (std::int64_t row = 0; row < source.rows; ++row) {
    std::memcpy(planes.data() + row * packed_row_bytes, source.bytes.data() + row * row_bytes,
                static_cast<std::size_t>(row_bytes));
  }
  return planes;
}

inline std::vector<std::byte> planes_on_host(const MatrixSource& source) {
  return traits_of(source.type).quantised ? planes_of_quantised(source) : planes_of_numbers(source);
}

}  // namespace octavo::kernels::cuda
