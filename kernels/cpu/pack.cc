#include "kernels/cpu/pack.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "kernels/dequantize_grids.h"

namespace octavo::kernels::cpu {
namespace {

// ---- reading: one group of 32 columns of one row

// A reader sets what its panel format keeps: numbers as the file has them, without their offset, and words
// and bits of their scales. Nothing is calculated.
struct WeightGroup {
  // Nibble formats use the first 16 bytes: byte i holds column i, and column 16 + i in its high nibble. So do
  // the file's blocks of 32, whose bytes are copied as they are.
  std::uint8_t stored[kGroupColumns];
  std::uint16_t scale_word, min_word;
  std::uint8_t six_bit_scale, six_bit_min;
  // Of each half, or the first of all: a signed byte, two nibbles, an exponent, an 8-bit float or an odd
  // scale's s.
  std::uint8_t byte_scales[2];
  // Of grids: the entries' indices, in which bit the sign of each column stands, in which the direction of
  // each entry.
  std::uint16_t indices[8];
  std::uint32_t signs;
  std::uint8_t directions;
  // Of types that no GGUF file holds.
  float float_scale;
  std::uint8_t zero;
};

std::uint8_t byte_at(const std::byte* source, std::int64_t index) {
  return std::to_integer<std::uint8_t>(source[index]);
}

std::uint16_t word_at(const std::byte* source) {
  return static_cast<std::uint16_t>(byte_at(source, 0) | byte_at(source, 1) << 8);
}

std::uint8_t to_byte(int value) { return static_cast<std::uint8_t>(value); }

void copy_nibble_pairs(const std::byte* pairs, WeightGroup& group) { std::memcpy(group.stored, pairs, 16); }

// For types whose integers are put together column by column.
template <class ColumnFunction>
void set_nibble_pairs(WeightGroup& group, const ColumnFunction& column) {
  for (int i = 0; i < 16; ++i) group.stored[i] = to_byte(column(i) | column(16 + i) << 4);
}

// Five bits: four as nibble pairs, the fifth ones of the 32 columns as 32 bits in a row.
void set_five_bits(const std::byte* fifth_bits, const std::byte* pairs, WeightGroup& group) {
  for (int i = 0; i < 16; ++i) {
    const int low = byte_at(fifth_bits, i / 8) >> (i % 8) & 1,
              high = byte_at(fifth_bits, 2 + i / 8) >> (i % 8) & 1;
    group.stored[i] = to_byte((byte_at(pairs, i) & 15) + (low << 4));
    group.stored[i + 16] = to_byte((byte_at(pairs, i) >> 4) + (high << 4));
  }
}

// And IQ4_NL, whose blocks differ in what a nibble means only.
void read_q4_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 18 * index;
  group.scale_word = word_at(block);
  copy_nibble_pairs(block + 2, group);
}

void read_q4_1(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 20 * index;
  group.scale_word = word_at(block);
  group.min_word = word_at(block + 2);
  copy_nibble_pairs(block + 4, group);
}

void read_q5_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 22 * index;
  group.scale_word = word_at(block);
  set_five_bits(block + 2, block + 6, group);
}

void read_q5_1(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 24 * index;
  group.scale_word = word_at(block);
  group.min_word = word_at(block + 2);
  set_five_bits(block + 4, block + 8, group);
}

void read_q8_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 34 * index;
  group.scale_word = word_at(block);
  for (int i = 0; i < kGroupColumns; ++i) group.stored[i] = byte_at(block, 2 + i) ^ 128;
}

void read_mxfp4(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 17 * index;
  group.byte_scales[0] = byte_at(block, 0);
  copy_nibble_pairs(block + 1, group);
}

// Blocks of 256 (the "K" types, IQ4_XS) hold eight groups.

// Eight 6-bit scales: four bits each in bytes 4..7, the upper two in the word before them.
void read_iq4_xs(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 136 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  const int low = byte_at(block, 4 + in_block / 2) >> (in_block % 2 * 4) & 15;
  const int high = word_at(block + 2) >> (2 * in_block) & 3;
  group.scale_word = word_at(block);
  group.byte_scales[0] = to_byte((low | high << 4) - 32);
  copy_nibble_pairs(block + 8 + 16 * in_block, group);
}

// Eight pairs of 6-bit numbers in 12 bytes: the first four pairs in the low bits of bytes 0..3 and 4..7; of
// the others the low four bits in bytes 8..11 and the rest on top of bytes 0..7.
void read_six_bit_pair(const std::byte* pairs, int index, WeightGroup& group) {
  if (index < 4) {
    group.six_bit_scale = byte_at(pairs, index) & 63;
    group.six_bit_min = byte_at(pairs, index + 4) & 63;
  } else {
    group.six_bit_scale = to_byte((byte_at(pairs, index + 4) & 15) | byte_at(pairs, index - 4) >> 6 << 4);
    group.six_bit_min = to_byte(byte_at(pairs, index + 4) >> 4 | byte_at(pairs, index) >> 6 << 4);
  }
}

// Groups 2i and 2i + 1 are the low and the high nibbles of bytes 32i..32i+31.
int nibble_of_plane(const std::byte* nibbles, int index, int column) {
  return byte_at(nibbles, 32 * (index / 2) + column) >> (index % 2 * 4) & 15;
}

void read_q4_k(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 144 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  group.scale_word = word_at(block);
  group.min_word = word_at(block + 2);
  read_six_bit_pair(block + 4, in_block, group);
  set_nibble_pairs(group, [&](int column) { return nibble_of_plane(block + 16, in_block, column); });
}

void read_q5_k(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 176 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  group.scale_word = word_at(block);
  group.min_word = word_at(block + 2);
  read_six_bit_pair(block + 4, in_block, group);
  for (int i = 0; i < kGroupColumns; ++i) {
    group.stored[i] =
        to_byte(nibble_of_plane(block + 48, in_block, i) | (byte_at(block, 16 + i) >> in_block & 1) << 4);
  }
}

void read_q6_k(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 210 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  const int part = in_block / 4, plane = in_block % 4;  // 128 columns; 32 of them
  const std::byte* low = block + 64 * part + 32 * (plane % 2);
  const std::byte* high = block + 128 + 32 * part;
  for (int i = 0; i < kGroupColumns; ++i) {
    const int low_bits = byte_at(low, i) >> (plane / 2 * 4) & 15;
    const int high_bits = byte_at(high, i) >> (plane * 2) & 3;
    group.stored[i] = to_byte(low_bits | high_bits << 4);
  }
  group.scale_word = word_at(block + 208);
  for (int half = 0; half < 2; ++half) group.byte_scales[half] = byte_at(block, 192 + 2 * in_block + half);
}

// Two bits of 32 columns: plane `in_block % 4` of the bytes of 128 columns.
int two_bits(const std::byte* quants, int in_block, int column) {
  return byte_at(quants, 32 * (in_block / 4) + column) >> (in_block % 4 * 2) & 3;
}

void read_q2_k(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 84 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  for (int i = 0; i < kGroupColumns; ++i) group.stored[i] = to_byte(two_bits(block + 16, in_block, i));
  group.scale_word = word_at(block + 80);
  group.min_word = word_at(block + 82);
  for (int half = 0; half < 2; ++half) group.byte_scales[half] = byte_at(block, 2 * in_block + half);
}

// Sixteen 6-bit scales in 12 bytes: the low four bits in the nibbles of bytes 0..7, the high two bits in
// bytes 8..11.
int q3_k_scale(const std::byte* scales, int index) {
  const int low = byte_at(scales, index % 8) >> (index / 8 * 4) & 15;
  const int high = byte_at(scales, 8 + index % 4) >> (index / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

void read_q3_k(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 110 * (index / 8);
  const int in_block = static_cast<int>(index % 8);
  for (int i = 0; i < kGroupColumns; ++i) {
    const int high_bit = byte_at(block, i) >> in_block & 1;
    group.stored[i] = to_byte(two_bits(block + 32, in_block, i) | high_bit << 2);
  }
  group.scale_word = word_at(block + 108);
  for (int half = 0; half < 2; ++half)
    group.byte_scales[half] = to_byte(q3_k_scale(block + 96, 2 * in_block + half));
}

// ---- the types

// ---- grids: blocks of 256

std::uint32_t double_word_at(const std::byte* source) {
  return word_at(source) | static_cast<std::uint32_t>(word_at(source + 2)) << 16;
}

// Four times seven signs, and a scale of four bits above them.
void set_sevens(std::uint32_t sevens, WeightGroup& group) {
  group.signs = 0;
  for (int i = 0; i < 4; ++i)
    group.signs |= static_cast<std::uint32_t>(signs_of_seven(sevens >> (7 * i) & 127)) << (8 * i);
  group.byte_scales[0] = to_byte(static_cast<int>(sevens >> 28));
}

void set_nibble_scales(std::uint8_t nibbles, WeightGroup& group) {
  group.byte_scales[0] = nibbles & 15;
  group.byte_scales[1] = nibbles >> 4;
}

void read_iq2_xxs(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 66 * (index / 8);
  const std::byte* indices = block + 2 + 8 * (index % 8);
  group.scale_word = word_at(block);
  for (int i = 0; i < 4; ++i) group.indices[i] = byte_at(indices, i);
  set_sevens(double_word_at(indices + 4), group);
}

void read_iq2_xs(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 74 * (index / 8);
  group.scale_word = word_at(block);
  group.signs = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned word = word_at(block + 2 + 8 * (index % 8) + 2 * i);
    group.indices[i] = static_cast<std::uint16_t>(word & 511);
    group.signs |= static_cast<std::uint32_t>(signs_of_seven(word >> 9)) << (8 * i);
  }
  set_nibble_scales(byte_at(block, 66 + index % 8), group);
}

void read_iq2_s(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 82 * (index / 8);
  const std::int64_t in_block = index % 8;
  group.scale_word = word_at(block);
  for (int i = 0; i < 4; ++i) {
    const int high = byte_at(block, 66 + in_block) >> (2 * i) & 3;
    group.indices[i] = static_cast<std::uint16_t>(byte_at(block, 2 + 4 * in_block + i) | high << 8);
  }
  group.signs = double_word_at(block + 34 + 4 * in_block);
  set_nibble_scales(byte_at(block, 74 + in_block), group);
}

void read_iq3_xxs(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 98 * (index / 8);
  const std::int64_t in_block = index % 8;
  group.scale_word = word_at(block);
  for (int i = 0; i < 8; ++i) group.indices[i] = byte_at(block, 2 + 8 * in_block + i);
  set_sevens(double_word_at(block + 66 + 4 * in_block), group);
}

void read_iq3_s(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 110 * (index / 8);
  const std::int64_t in_block = index % 8;
  group.scale_word = word_at(block);
  for (int i = 0; i < 8; ++i) {
    const int high = byte_at(block, 66 + in_block) >> i & 1;
    group.indices[i] = static_cast<std::uint16_t>(byte_at(block, 2 + 8 * in_block + i) | high << 8);
  }
  group.signs = double_word_at(block + 74 + 4 * in_block);
  group.byte_scales[0] = byte_at(block, 106 + in_block / 2) >> (in_block % 2 * 4) & 15;
}

void read_iq1_s(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 50 * (index / 8);
  const std::int64_t in_block = index % 8;
  const int word = word_at(block + 34 + 2 * in_block);
  group.scale_word = word_at(block);
  for (int i = 0; i < 4; ++i) {
    group.indices[i] =
        static_cast<std::uint16_t>(byte_at(block, 2 + 4 * in_block + i) | (word >> (3 * i) & 7) << 8);
  }
  // In the bits that stand above the indices' in the panel too.
  group.directions = to_byte(word >> 12);
}

void read_iq1_m(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 56 * (index / 8);
  const std::int64_t in_block = index % 8;
  const std::byte* words = block + 48;
  group.scale_word = 0;
  for (int i = 0; i < 4; ++i)
    group.scale_word |= static_cast<std::uint16_t>(word_at(words + 2 * i) >> 12 << (4 * i));
  group.directions = 0;
  for (int i = 0; i < 4; ++i) {
    const int nibble = byte_at(block, 32 + 2 * in_block + i / 2) >> (i % 2 * 4) & 15;
    group.indices[i] = static_cast<std::uint16_t>(byte_at(block, 4 * in_block + i) | (nibble & 7) << 8);
    group.directions |= to_byte(nibble >> 3 << i);
  }
  const int word = word_at(words + in_block / 2 * 2);
  for (int half = 0; half < 2; ++half)
    group.byte_scales[half] = to_byte(word >> (3 * (2 * (in_block % 2) + half)) & 7);
}

// ---- few bits, one scale for a block

int tq1_0_digit(const std::byte* block, int element) {
  constexpr int kPowers[] = {1, 3, 9, 27, 81};
  const auto digit = [&](int byte, int index) {
    return (byte_at(block, byte) * kPowers[index] & 255) * 3 >> 8;
  };
  if (element < 160) return digit(element % 32, element / 32);
  if (element < 240) return digit(32 + (element - 160) % 16, (element - 160) / 16);
  return digit(48 + (element - 240) % 4, (element - 240) / 4);
}

void read_tq1_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 54 * (index / 8);
  group.scale_word = word_at(block + 52);
  for (int i = 0; i < kGroupColumns; ++i)
    group.stored[i] = to_byte(tq1_0_digit(block, kGroupColumns * static_cast<int>(index % 8) + i));
}

void read_tq2_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 66 * (index / 8);
  group.scale_word = word_at(block + 64);
  for (int i = 0; i < kGroupColumns; ++i)
    group.stored[i] = to_byte(two_bits(block, static_cast<int>(index % 8), i));
}

void read_q1_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 18 * (index / 4);
  group.scale_word = word_at(block);
  for (int i = 0; i < kGroupColumns; ++i)
    group.stored[i] = byte_at(block, 2 + 4 * (index % 4) + i / 8) >> (i % 8) & 1;
}

void read_q2_0(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 18 * (index / 2);
  group.scale_word = word_at(block);
  for (int i = 0; i < kGroupColumns; ++i)
    group.stored[i] = byte_at(block, 2 + 8 * (index % 2) + i / 4) >> (i % 4 * 2) & 3;
}

// Each half of a group is 8 bytes of the file: the low nibbles first, then the high ones.
void read_nvfp4(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + 36 * (index / 2);
  const std::int64_t first = index % 2 * 2;
  set_nibble_pairs(group, [&](int column) {
    const std::int64_t byte = 4 + 8 * (first + column / 16) + column % 8;
    return byte_at(block, byte) >> (column % 16 / 8 * 4) & 15;
  });
  for (int half = 0; half < 2; ++half) {
    const std::uint8_t stored = byte_at(block, first + half);
    group.byte_scales[half] = stored == 0x7f ? 0 : stored & 0x7f;
  }
}

// ---- types that no GGUF file holds: blocks of so many groups

template <int kGroups>
void read_u4(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + (5 + 16 * kGroups) * (index / kGroups);
  std::memcpy(&group.float_scale, block, sizeof group.float_scale);
  group.zero = byte_at(block, 4);
  copy_nibble_pairs(block + 5 + 16 * (index % kGroups), group);
}

template <int kGroups>
void read_u8(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + (5 + kGroupColumns * kGroups) * (index / kGroups);
  std::memcpy(&group.float_scale, block, sizeof group.float_scale);
  group.zero = byte_at(block, 4);
  std::memcpy(group.stored, block + 5 + kGroupColumns * (index % kGroups), kGroupColumns);
}

template <int kGroups>
void read_f8(const std::byte* row, std::int64_t index, WeightGroup& group) {
  const std::byte* block = row + (4 + kGroupColumns * kGroups) * (index / kGroups);
  std::memcpy(&group.float_scale, block, sizeof group.float_scale);
  std::memcpy(group.stored, block + 4 + kGroupColumns * (index % kGroups), kGroupColumns);
}

struct QuantisedType {
  PanelFormat format;
  void (*read_group)(const std::byte* row, std::int64_t index, WeightGroup& group);
};

QuantisedType quantised_type(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return {PanelFormat::kNibbles, read_q4_0};
    case TensorType::kQ4_1: return {PanelFormat::kNibblesMin, read_q4_1};
    case TensorType::kQ5_0: return {PanelFormat::kFiveBits, read_q5_0};
    case TensorType::kQ5_1: return {PanelFormat::kFiveBitsMin, read_q5_1};
    case TensorType::kQ8_0: return {PanelFormat::kBytes, read_q8_0};
    case TensorType::kQ2_K: return {PanelFormat::kTwoBits, read_q2_k};
    case TensorType::kQ3_K: return {PanelFormat::kThreeBits, read_q3_k};
    case TensorType::kQ4_K: return {PanelFormat::kNibblesSuper, read_q4_k};
    case TensorType::kQ5_K: return {PanelFormat::kFiveBitsSuper, read_q5_k};
    case TensorType::kQ6_K: return {PanelFormat::kSixBits, read_q6_k};
    case TensorType::kIQ4_NL: return {PanelFormat::kTableHalf, read_q4_0};
    case TensorType::kIQ4_XS: return {PanelFormat::kTableByte, read_iq4_xs};
    case TensorType::kMXFP4: return {PanelFormat::kTablePower, read_mxfp4};
    case TensorType::kIQ2_XXS: return {PanelFormat::kGridIq2Xxs, read_iq2_xxs};
    case TensorType::kIQ2_XS: return {PanelFormat::kGridIq2Xs, read_iq2_xs};
    case TensorType::kIQ2_S: return {PanelFormat::kGridIq2S, read_iq2_s};
    case TensorType::kIQ3_XXS: return {PanelFormat::kGridIq3Xxs, read_iq3_xxs};
    case TensorType::kIQ3_S: return {PanelFormat::kGridIq3S, read_iq3_s};
    case TensorType::kIQ1_S: return {PanelFormat::kGridIq1S, read_iq1_s};
    case TensorType::kIQ1_M: return {PanelFormat::kGridIq1M, read_iq1_m};
    case TensorType::kTQ1_0: return {PanelFormat::kTernary, read_tq1_0};
    case TensorType::kTQ2_0: return {PanelFormat::kTernary, read_tq2_0};
    case TensorType::kNVFP4: return {PanelFormat::kTableE4m3, read_nvfp4};
    case TensorType::kQ1_0: return {PanelFormat::kOneBit, read_q1_0};
    case TensorType::kQ2_0: return {PanelFormat::kTwoBitsTwo, read_q2_0};
    case TensorType::kU4_G32: return {PanelFormat::kNibblesZero, read_u4<1>};
    case TensorType::kU4_G128: return {PanelFormat::kNibblesZeroFour, read_u4<4>};
    case TensorType::kU8_G32: return {PanelFormat::kBytesZero, read_u8<1>};
    case TensorType::kU8_G128: return {PanelFormat::kBytesZeroFour, read_u8<4>};
    case TensorType::kF8_G32: return {PanelFormat::kFloat8, read_f8<1>};
    case TensorType::kF8_G128: return {PanelFormat::kFloat8Four, read_f8<4>};
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16: break;
  }
  OCTAVO_CHECK(false, "type %u is not quantised", static_cast<unsigned>(type));
  return {};
}

PanelFormat float_format(TensorType type) {
  if (type == TensorType::kF32) return PanelFormat::kF32;
  return type == TensorType::kF16 ? PanelFormat::kF16 : PanelFormat::kBf16;
}

// ---- writing

template <class Number>
void put(std::byte* array, std::int64_t index, Number value) {
  std::memcpy(array + index * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

std::uint32_t quad_of(const WeightGroup& group, int quad) {
  std::uint32_t bytes;
  std::memcpy(&bytes, group.stored + 4 * quad, sizeof bytes);
  return bytes;
}

// Bits [first, first + count) of each of four bytes.
std::uint32_t bits_of_quad(std::uint32_t quad, int first, int count) {
  return quad >> first & 0x01010101u * ((1u << count) - 1u);
}

// Four bytes of every 64 belong to a row: those of `count` bits of each number, from bit `first` on.
void write_planes(const WeightGroup& group, std::int64_t row, int first, int count, std::byte* out) {
  const int quads_in_plane = count > 0 ? 8 / count : 0;
  for (int plane = 0; plane < count; ++plane) {
    std::uint32_t line = 0;
    for (int i = 0; i < quads_in_plane; ++i)
      line |= bits_of_quad(quad_of(group, quads_in_plane * plane + i), first, count) << (i * count);
    std::memcpy(out + 64 * plane + 4 * row, &line, sizeof line);
  }
}

// A nibble for each row, rows 8 and up in the upper halves.
void write_row_nibble(int nibble, std::int64_t row, std::byte* out) {
  out[row % 8] |= std::byte{to_byte(nibble << (row / 8 * 4))};
}

void write_grid(const GridTraits& grid, const WeightGroup& group, std::int64_t row, std::byte* out) {
  std::uint32_t high = 0;
  for (int i = 0; i < grid.num_entries(); ++i) {
    out[i * kPanelRows + row] = std::byte{to_byte(group.indices[i] & 255)};
    high |= static_cast<std::uint32_t>(group.indices[i] >> 8) << (grid.high_bits * i);
  }
  out += grid.index_bytes();
  switch (grid.high_bytes()) {
    case 0: break;
    case kPanelRows / 2: write_row_nibble(static_cast<int>(high), row, out); break;
    case kPanelRows: put(out, row, static_cast<std::uint8_t>(high)); break;
    default:
      put(out, row, static_cast<std::uint16_t>(high | static_cast<std::uint32_t>(group.directions) << 12));
  }
  if (!grid.has_signs) return;
  out += grid.high_bytes();
  for (int i = 0; i < kGroupColumns; ++i)
    out[4 * row + i % 4] |= std::byte{to_byte(static_cast<int>(group.signs >> i & 1) << (i / 4))};
}

void write_weights(const StoredNumbers& numbers, const WeightGroup& group, std::int64_t row, std::byte* out) {
  if (numbers.grid != NumberGrid::kNone) {
    write_grid(traits_of(numbers.grid), group, row, out);
  } else if (numbers.are_floats) {
    for (int i = 0; i < kGroupColumns; ++i) put(out, i * kPanelRows + row, group.stored[i]);
  } else if (numbers.nibble_pairs) {
    for (int i = 0; i < 4; ++i) std::memcpy(out + 64 * i + 4 * row, group.stored + 4 * i, 4);
  } else {
    write_planes(group, row, 0, numbers.low_bits, out);
    write_planes(group, row, numbers.low_bits, numbers.high_bits, out + 64 * numbers.low_bits);
  }
}

void write_words(bool has_min, const WeightGroup& group, std::int64_t row, std::byte* out) {
  put(out, row, group.scale_word);
  if (has_min) put(out, kPanelRows + row, group.min_word);
}

void write_head(const PanelTraits& traits, const WeightGroup& group, std::int64_t row, std::byte* out) {
  if (traits.scales != ScaleLayout::kHeadZero && traits.scales != ScaleLayout::kHeadFloat)
    return write_words(traits.has_min, group, row, out);
  put(out, row, group.float_scale);
  if (traits.scales == ScaleLayout::kHeadZero)
    put(out + 4 * kPanelRows, row, to_byte(group.zero - traits.numbers.offset));
}

void write_six_bit_pair(const WeightGroup& group, std::int64_t row, std::byte* out) {
  out[row] = std::byte{to_byte(group.six_bit_scale | (group.six_bit_min & 3) << 6)};
  out[16 + row % 8] |= std::byte{to_byte(group.six_bit_min >> 2 << (row / 8 * 4))};
}

void write_scales(const PanelTraits& traits, const WeightGroup& group, std::int64_t row, std::byte* out) {
  switch (traits.scales) {
    case ScaleLayout::kHalf: write_words(traits.has_min, group, row, out); return;
    case ScaleLayout::kSuper: write_six_bit_pair(group, row, out); return;
    case ScaleLayout::kByte:
    case ScaleLayout::kPower: put(out, row, group.byte_scales[0]); return;
    case ScaleLayout::kByteHalves:
    case ScaleLayout::kNibbleHalves:
    case ScaleLayout::kE4m3Halves:
      for (int half = 0; half < 2; ++half) put(out, half * kPanelRows + row, group.byte_scales[half]);
      return;
    case ScaleLayout::kOddNibble: write_row_nibble(group.byte_scales[0], row, out); return;
    case ScaleLayout::kOddNibbleHalves:
      put(out, row, to_byte(group.byte_scales[0] | group.byte_scales[1] << 4));
      return;
    case ScaleLayout::kHead:
    case ScaleLayout::kHeadZero:
    case ScaleLayout::kHeadFloat:
    case ScaleLayout::kOddWord: return;  // nothing besides what stands before the groups, or in their weights
    case ScaleLayout::kFloat:
    case ScaleLayout::kFloatHalves: OCTAVO_CHECK(false, "no file's weights are expanded ones");
  }
}

std::int64_t row_bytes(TensorType type, std::int64_t columns) {
  return columns / traits_of(type).block_elements * traits_of(type).block_bytes;
}

void pack_quantised_row(TensorType type, const std::byte* source, std::int64_t columns, std::int64_t row,
                        std::byte* out) {
  const QuantisedType quantised = quantised_type(type);
  const PanelTraits& traits = traits_of(quantised.format);
  WeightGroup group = {};
  for (std::int64_t g = 0; g < columns / kGroupColumns; ++g) {
    quantised.read_group(source, g, group);
    if (traits.bytes.head > 0 && g % traits.bytes.head_groups == 0) {
      write_head(traits, group, row, out);
      out += traits.bytes.head;
    }
    write_weights(traits.numbers, group, row, out);
    write_scales(traits, group, row, out + traits.bytes.weights);
    out += traits.bytes.group();
  }
}

void pack_float_row(const std::byte* source, std::int64_t columns, std::int64_t element_bytes,
                    std::int64_t row, std::byte* out) {
  for (std::int64_t column = 0; column < columns; ++column) {
    std::memcpy(out + (column * kPanelRows + row) * element_bytes, source + column * element_bytes,
                static_cast<std::size_t>(element_bytes));
  }
}

}  // namespace

PanelPlan plan_panels(TensorType type, std::int64_t columns) {
  const PanelFormat format = traits_of(type).quantised ? quantised_type(type).format : float_format(type);
  return {format, bytes_of_columns(format, columns)};
}

void pack_panel(const MatrixSource& source, std::int64_t panel, std::byte* out) {
  const std::int64_t first = panel * kPanelRows;
  const std::int64_t count = std::min<std::int64_t>(kPanelRows, source.rows - first);
  const std::int64_t bytes = row_bytes(source.type, source.columns);
  for (std::int64_t row = 0; row < count; ++row) {
    const std::byte* const source_row = source.bytes.data() + (first + row) * bytes;
    if (traits_of(source.type).quantised) {
      pack_quantised_row(source.type, source_row, source.columns, row, out);
    } else {
      pack_float_row(source_row, source.columns, traits_of(source.type).block_bytes, row, out);
    }
  }
}

}  // namespace octavo::kernels::cpu
