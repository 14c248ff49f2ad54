#include "kernels/dequantize.h"

#include <array>
#include <bit>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/half.h"
#include "kernels/dequantize_grids.h"
#include "kernels/float8.h"
#include "kernels/four_bit_values.h"

namespace octavo::kernels {
namespace {

// Each function below expands one block. They keep the order of float operations of `gguf.quants`: a scale
// times its sub-scale first, then times the quant, then plus or minus the offset, each rounded to float.

unsigned byte_at(const std::byte* source, int index) { return std::to_integer<unsigned>(source[index]); }

int signed_byte_at(const std::byte* source, int index) {
  return static_cast<std::int8_t>(std::to_integer<std::uint8_t>(source[index]));
}

std::uint16_t word_at(const std::byte* source) {
  return static_cast<std::uint16_t>(byte_at(source, 0) | byte_at(source, 1) << 8);
}

float half_at(const std::byte* source) { return half_to_float(word_at(source)); }

// ---- unquantised

void expand_f32(const std::byte* source, float* out) { std::memcpy(out, source, sizeof(float)); }
void expand_f16(const std::byte* source, float* out) { *out = half_at(source); }
void expand_bf16(const std::byte* source, float* out) { *out = bfloat16_to_float(word_at(source)); }

// ---- blocks of 32: low nibbles hold elements 0..15, high nibbles 16..31

void expand_q4_0(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const std::byte* nibbles = source + 2;
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(static_cast<int>(byte_at(nibbles, i) & 15) - 8);
    out[i + 16] = scale * static_cast<float>(static_cast<int>(byte_at(nibbles, i) >> 4) - 8);
  }
}

void expand_q4_1(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const float minimum = half_at(source + 2);
  const std::byte* nibbles = source + 4;
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(byte_at(nibbles, i) & 15) + minimum;
    out[i + 16] = scale * static_cast<float>(byte_at(nibbles, i) >> 4) + minimum;
  }
}

// The fifth bits of 32 quants are 32 bits in a row; both 5-bit types put them before the nibbles.
std::array<int, 32> five_bit_quants(const std::byte* fifth_bits, const std::byte* nibbles) {
  std::array<int, 32> quants;
  for (int i = 0; i < 16; ++i) {
    const unsigned low_bit = byte_at(fifth_bits, i / 8) >> (i % 8) & 1;
    const unsigned high_bit = byte_at(fifth_bits, 2 + i / 8) >> (i % 8) & 1;
    quants[static_cast<std::size_t>(i)] = static_cast<int>((byte_at(nibbles, i) & 15) | low_bit << 4);
    quants[static_cast<std::size_t>(i + 16)] = static_cast<int>(byte_at(nibbles, i) >> 4 | high_bit << 4);
  }
  return quants;
}

void expand_q5_0(const std::byte* source, float* out) {
  const float scale = half_at(source);
  for (const int quant : five_bit_quants(source + 2, source + 6))
    *out++ = scale * static_cast<float>(quant - 16);
}

void expand_q5_1(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const float minimum = half_at(source + 2);
  for (const int quant : five_bit_quants(source + 4, source + 8))
    *out++ = scale * static_cast<float>(quant) + minimum;
}

void expand_q8_0(const std::byte* source, float* out) {
  const float scale = half_at(source);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(signed_byte_at(source + 2, i)) * scale;
}

// ---- blocks whose nibbles are places in a table, in the same order

void expand_by_table(const std::int8_t (&values)[16], float scale, const std::byte* nibbles, float* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>(values[byte_at(nibbles, i) & 15]);
    out[i + 16] = scale * static_cast<float>(values[byte_at(nibbles, i) >> 4]);
  }
}

void expand_iq4_nl(const std::byte* source, float* out) {
  expand_by_table(kIq4Values, half_at(source), source + 2, out);
}

// Eight 6-bit scales: the low four bits in the nibbles of bytes 4..7, the high two bits in a word before
// them.
void expand_iq4_xs(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const unsigned high_bits = word_at(source + 2);
  for (int group = 0; group < 8; ++group) {
    const unsigned low = byte_at(source + 4, group / 2) >> (group % 2 * 4) & 15;
    const int group_scale = static_cast<int>(low | (high_bits >> (2 * group) & 3) << 4) - 32;
    expand_by_table(kIq4Values, scale * static_cast<float>(group_scale), source + 8 + 16 * group,
                    out + 32 * group);
  }
}

void expand_mxfp4(const std::byte* source, float* out) {
  expand_by_table(kMxfp4Values, mxfp4_scale(std::to_integer<std::uint8_t>(source[0])), source + 1, out);
}

// ---- blocks of 256 ("K" types): sub-blocks of 16 or 32 elements with their own small scales

void expand_q2_k(const std::byte* source, float* out) {
  const std::byte* scales = source;  // low nibble: scale, high nibble: minimum; one byte for each 16 elements
  const std::byte* quants = source + 16;
  const float scale = half_at(source + 80);
  const float minimum = half_at(source + 82);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(byte_at(scales, group) & 15);
    const float group_minimum = minimum * static_cast<float>(byte_at(scales, group) >> 4);
    const std::byte* bytes = quants + 32 * (group / 8) + 16 * (group % 2);
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      *out++ = group_scale * static_cast<float>(byte_at(bytes, i) >> shift & 3) - group_minimum;
    }
  }
}

// Sixteen 6-bit scales in 12 bytes: the low four bits in the nibbles of bytes 0..7,
// the high two bits in bytes 8..11.
int q3_k_scale(const std::byte* scales, int group) {
  const unsigned low = byte_at(scales, group % 8) >> (group / 8 * 4) & 15;
  const unsigned high = byte_at(scales, 8 + group % 4) >> (group / 4 * 2) & 3;
  return static_cast<int>(low | high << 4) - 32;
}

void expand_q3_k(const std::byte* source, float* out) {
  const std::byte* high_bits = source;  // bit k of byte i: element 32 k + i
  const std::byte* quants = source + 32;
  const std::byte* scales = source + 96;
  const float scale = half_at(source + 108);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(q3_k_scale(scales, group));
    const std::byte* low = quants + 32 * (group / 8) + 16 * (group % 2);
    const std::byte* high = high_bits + 16 * (group % 2);
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      const int high_bit = static_cast<int>(byte_at(high, i) >> (group / 2) & 1);
      const int quant = static_cast<int>(byte_at(low, i) >> shift & 3) - 4 * (1 - high_bit);
      *out++ = group_scale * static_cast<float>(quant);
    }
  }
}

struct ScaleAndMinimum {
  unsigned scale;
  unsigned minimum;
};

// Eight pairs of 6-bit numbers in 12 bytes. The first four pairs are the low six bits of bytes 0..3 and 4..7;
// of the last four, bytes 8..11 hold the low nibbles and the top two bits of bytes 0..7 the rest.
ScaleAndMinimum q4_k_scale(const std::byte* scales, int group) {
  if (group < 4) return {byte_at(scales, group) & 63, byte_at(scales, group + 4) & 63};
  const unsigned nibbles = byte_at(scales, group + 4);
  return {(nibbles & 15) | byte_at(scales, group - 4) >> 6 << 4,
          nibbles >> 4 | byte_at(scales, group) >> 6 << 4};
}

void expand_q4_k(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const float minimum = half_at(source + 2);
  const std::byte* scales = source + 4;
  const std::byte* quants = source + 16;
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMinimum packed = q4_k_scale(scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_minimum = minimum * static_cast<float>(packed.minimum);
    const std::byte* nibbles = quants + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      *out++ = group_scale * static_cast<float>(byte_at(nibbles, i) >> shift & 15) - group_minimum;
    }
  }
}

void expand_q5_k(const std::byte* source, float* out) {
  const float scale = half_at(source);
  const float minimum = half_at(source + 2);
  const std::byte* scales = source + 4;
  const std::byte* fifth_bits = source + 16;  // bit k of byte i: element 32 k + i
  const std::byte* quants = source + 48;
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMinimum packed = q4_k_scale(scales, group);
    const float group_scale = scale * static_cast<float>(packed.scale);
    const float group_minimum = minimum * static_cast<float>(packed.minimum);
    const std::byte* nibbles = quants + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const unsigned fifth_bit = byte_at(fifth_bits, i) >> group & 1;
      const unsigned quant = (byte_at(nibbles, i) >> shift & 15) | fifth_bit << 4;
      *out++ = group_scale * static_cast<float>(quant) - group_minimum;
    }
  }
}

void expand_q6_k(const std::byte* source, float* out) {
  const std::byte* low_nibbles = source;
  const std::byte* high_bits = source + 128;
  const std::byte* scales = source + 192;
  const float scale = half_at(source + 208);
  for (int group = 0; group < 16; ++group) {
    const float group_scale = scale * static_cast<float>(signed_byte_at(scales, group));
    const std::byte* low = low_nibbles + 64 * (group / 8) + 16 * (group % 4);
    const std::byte* high = high_bits + 32 * (group / 8) + 16 * (group % 2);
    const int low_shift = group % 8 / 4 * 4;
    const int high_shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      const unsigned quant = (byte_at(low, i) >> low_shift & 15) | (byte_at(high, i) >> high_shift & 3) << 4;
      *out++ = group_scale * static_cast<float>(static_cast<int>(quant) - 32);
    }
  }
}

// ---- blocks of 256 whose indices stand for several numbers at once, times a scale for each 16 or 32

std::uint32_t double_word_at(const std::byte* source) {
  return word_at(source) | static_cast<std::uint32_t>(word_at(source + 2)) << 16;
}

// The numbers of one entry, bit j of `signs` for number j.
template <class Entry>
float* expand_entry(float scale, Entry entry, unsigned signs, float* out) {
  for (unsigned j = 0; j < sizeof(Entry); ++j) {
    const float magnitude = scale * static_cast<float>(entry >> (8 * j) & 255);
    *out++ = (signs >> j & 1) != 0 ? -magnitude : magnitude;
  }
  return out;
}

// Of the types that store 2 s + 1 halves.
float halved_scale(float scale, unsigned stored, float factor) {
  return scale * (0.5f + static_cast<float>(stored)) * factor;
}

// Of each 32 numbers four bytes of indices, then four times seven signs and a scale of four bits.
void expand_iq2_xxs(const std::byte* source, float* out) {
  for (int group = 0; group < 8; ++group) {
    const std::byte* indices = source + 2 + 8 * group;
    const std::uint32_t signs = double_word_at(indices + 4);
    const float scale = halved_scale(half_at(source), signs >> 28, 0.25f);
    for (int i = 0; i < 4; ++i) {
      out = expand_entry(scale, kIq2XxsGrid.entries[byte_at(indices, i)],
                         signs_of_seven(signs >> (7 * i) & 127), out);
    }
  }
}

// Nine bits of index and seven signs in a word for each 8 numbers; a nibble of scale for each 16.
void expand_iq2_xs(const std::byte* source, float* out) {
  for (int i = 0; i < 32; ++i) {
    const unsigned word = word_at(source + 2 + 2 * i);
    const unsigned scale = byte_at(source + 66, i / 4) >> (i / 2 % 2 * 4) & 15;
    out = expand_entry(halved_scale(half_at(source), scale, 0.25f), kIq2XsGrid.entries[word & 511],
                       signs_of_seven(word >> 9), out);
  }
}

// The two upper bits of four indices in a byte.
void expand_iq2_s(const std::byte* source, float* out) {
  const std::byte *indices = source + 2, *signs = source + 34, *high_bits = source + 66,
                  *scales = source + 74;
  for (int i = 0; i < 32; ++i) {
    const unsigned index = byte_at(indices, i) | (byte_at(high_bits, i / 4) >> (i % 4 * 2) & 3) << 8;
    const unsigned scale = byte_at(scales, i / 4) >> (i / 2 % 2 * 4) & 15;
    out = expand_entry(halved_scale(half_at(source), scale, 0.25f), kIq2SGrid.entries[index],
                       byte_at(signs, i), out);
  }
}

// 64 bytes of indices, one for each 4 numbers; then as IQ2_XXS four times seven signs and a scale for
// each 32.
void expand_iq3_xxs(const std::byte* source, float* out) {
  for (int group = 0; group < 8; ++group) {
    const std::byte* indices = source + 2 + 8 * group;
    const std::uint32_t all_signs = double_word_at(source + 66 + 4 * group);
    const float scale = halved_scale(half_at(source), all_signs >> 28, 0.5f);
    for (int i = 0; i < 8; ++i) {
      const unsigned signs = signs_of_seven(all_signs >> (i / 2 * 7) & 127);
      out = expand_entry(scale, kIq3XxsGrid.entries[byte_at(indices, i)], signs >> (i % 2 * 4), out);
    }
  }
}

// The ninth bits of eight indices in a byte; a nibble of scale for each 32 numbers.
void expand_iq3_s(const std::byte* source, float* out) {
  const std::byte *indices = source + 2, *high_bits = source + 66, *signs = source + 74,
                  *scales = source + 106;
  for (int i = 0; i < 64; ++i) {
    const unsigned index = byte_at(indices, i) | (byte_at(high_bits, i / 8) >> (i % 8) & 1) << 8;
    const unsigned stored = byte_at(scales, i / 16) >> (i / 8 % 2 * 4) & 15;
    const float scale = half_at(source) * static_cast<float>(1 + 2 * stored);
    out = expand_entry(scale, kIq3SGrid.entries[index], byte_at(signs, i / 2) >> (i % 2 * 4), out);
  }
}

// Eight numbers -1, 0 or 1, all moved by an eighth up or down.
float* expand_moved_entry(float scale, std::uint64_t entry, bool moves_down, float* out) {
  const float delta = moves_down ? -0.125f : 0.125f;
  for (int j = 0; j < 8; ++j)
    *out++ = scale * (static_cast<float>(static_cast<std::int8_t>(entry >> (8 * j) & 255)) + delta);
  return out;
}

// A word for each 32 numbers: the upper three bits of four indices, three bits of scale, the direction.
void expand_iq1_s(const std::byte* source, float* out) {
  const std::byte *indices = source + 2, *words = source + 34;
  for (int i = 0; i < 32; ++i) {
    const unsigned word = word_at(words + i / 4 * 2);
    const unsigned index = byte_at(indices, i) | (word >> (i % 4 * 3) & 7) << 8;
    const float scale = half_at(source) * static_cast<float>(2 * (word >> 12 & 7) + 1);
    out = expand_moved_entry(scale, kIq1Grid.entries[index], word >> 15 != 0, out);
  }
}

// A nibble for each 8 numbers: the upper three bits of the index and the direction. Four words hold three
// bits of scale for each 16 numbers, and in their uppermost bits the four nibbles of the block's scale.
void expand_iq1_m(const std::byte* source, float* out) {
  const std::byte *indices = source, *high_bits = source + 32, *words = source + 48;
  unsigned scale_word = 0;
  for (int i = 0; i < 4; ++i) scale_word |= static_cast<unsigned>(word_at(words + 2 * i) >> 12) << (4 * i);
  const float block_scale = half_to_float(static_cast<std::uint16_t>(scale_word));
  for (int i = 0; i < 32; ++i) {
    const unsigned nibble = byte_at(high_bits, i / 2) >> (i % 2 * 4) & 15;
    const unsigned stored = word_at(words + i / 8 * 2) >> (i / 2 % 4 * 3) & 7;
    out =
        expand_moved_entry(block_scale * static_cast<float>(2 * stored + 1),
                           kIq1Grid.entries[byte_at(indices, i) | (nibble & 7) << 8], (nibble & 8) != 0, out);
  }
}

// ---- few bits, one scale for a block

float ternary(float scale, unsigned digit) { return scale * static_cast<float>(static_cast<int>(digit) - 1); }

// Five digits of base 3 in a byte, scaled so that the first one is the byte times 3 / 256: multiplying by 3
// modulo 256 brings the next. Digit k of bytes 0..31 are elements 32 k and on; of bytes 32..47 elements 160 +
// 16 k; of bytes 48..51, which hold four, 240 + 4 k.
void expand_tq1_0(const std::byte* source, float* out) {
  const float scale = half_at(source + 52);
  const auto expand_bytes = [&](int first, int count, int num_digits) {
    unsigned power = 1;
    for (int digit = 0; digit < num_digits; ++digit, power *= 3) {
      for (int i = first; i < first + count; ++i)
        *out++ = ternary(scale, (byte_at(source, i) * power & 255) * 3 >> 8);
    }
  };
  expand_bytes(0, 32, 5);
  expand_bytes(32, 16, 5);
  expand_bytes(48, 4, 4);
}

void expand_tq2_0(const std::byte* source, float* out) {
  const float scale = half_at(source + 64);
  for (int i = 0; i < 256; ++i)
    *out++ = ternary(scale, byte_at(source, i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2) & 3);
}

void expand_q1_0(const std::byte* source, float* out) {
  const float scale = half_at(source);
  for (int i = 0; i < 128; ++i) out[i] = (byte_at(source + 2, i / 8) >> (i % 8) & 1) != 0 ? scale : -scale;
}

void expand_q2_0(const std::byte* source, float* out) {
  const float scale = half_at(source);
  for (int i = 0; i < 64; ++i) out[i] = ternary(scale, byte_at(source + 2, i / 4) >> (i % 4 * 2) & 3);
}

// Four times 16 numbers of MXFP4's kind, each with a scale.
void expand_nvfp4(const std::byte* source, float* out) {
  for (int group = 0; group < 4; ++group, out += 16) {
    const float scale = nvfp4_scale(std::to_integer<std::uint8_t>(source[group]));
    for (int i = 0; i < 8; ++i) {
      const unsigned pair = byte_at(source, 4 + 8 * group + i);
      out[i] = scale * static_cast<float>(kMxfp4Values[pair & 15]);
      out[i + 8] = scale * static_cast<float>(kMxfp4Values[pair >> 4]);
    }
  }
}

// ---- types that no GGUF file holds

float float_at(const std::byte* source) {
  float value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <int kColumns>
void expand_u4(const std::byte* source, float* out) {
  const float scale = float_at(source);
  const auto zero = static_cast<float>(byte_at(source, 4));
  for (int i = 0; i < kColumns; ++i) {
    const unsigned pair = byte_at(source, 5 + i / 32 * 16 + i % 16);
    out[i] = scale * (static_cast<float>(pair >> (i % 32 / 16 * 4) & 15) - zero);
  }
}

template <int kColumns>
void expand_u8(const std::byte* source, float* out) {
  const float scale = float_at(source);
  const auto zero = static_cast<float>(byte_at(source, 4));
  for (int i = 0; i < kColumns; ++i) out[i] = scale * (static_cast<float>(byte_at(source, 5 + i)) - zero);
}

template <int kColumns>
void expand_f8(const std::byte* source, float* out) {
  const float scale = float_at(source);
  for (int i = 0; i < kColumns; ++i)
    out[i] = scale * Fp8E4m3::to_float(std::to_integer<std::uint8_t>(source[4 + i]));
}

template <void (*expand_block)(const std::byte*, float*)>
void expand_all(const TensorTypeTraits& traits, const std::byte* source, std::int64_t num_elements,
                float* out) {
  const std::int64_t num_blocks = num_elements / traits.block_elements;
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    expand_block(source + block * traits.block_bytes, out + block * traits.block_elements);
  }
}

}  // namespace

float mxfp4_scale(std::uint8_t exponent) {
  // A denormal is a bit of the mantissa and no exponent.
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

float nvfp4_scale(std::uint8_t stored) {
  if (stored == 0x7f) return 0.0f;
  // As half of the format's number, which as a 16-bit float has an exponent that is smaller by 8.
  return half_to_float(static_cast<std::uint16_t>((stored & 0x7f) << 7)) * 128.0f;
}

void dequantize(TensorType type, const std::byte* source, std::int64_t num_elements, float* out) {
  const TensorTypeTraits& traits = traits_of(type);
  OCTAVO_CHECK(num_elements % traits.block_elements == 0, "%lld elements of a type with blocks of %d",
               static_cast<long long>(num_elements), traits.block_elements);
  switch (type) {
    case TensorType::kF32: return expand_all<expand_f32>(traits, source, num_elements, out);
    case TensorType::kF16: return expand_all<expand_f16>(traits, source, num_elements, out);
    case TensorType::kBF16: return expand_all<expand_bf16>(traits, source, num_elements, out);
    case TensorType::kQ4_0: return expand_all<expand_q4_0>(traits, source, num_elements, out);
    case TensorType::kQ4_1: return expand_all<expand_q4_1>(traits, source, num_elements, out);
    case TensorType::kQ5_0: return expand_all<expand_q5_0>(traits, source, num_elements, out);
    case TensorType::kQ5_1: return expand_all<expand_q5_1>(traits, source, num_elements, out);
    case TensorType::kQ8_0: return expand_all<expand_q8_0>(traits, source, num_elements, out);
    case TensorType::kQ2_K: return expand_all<expand_q2_k>(traits, source, num_elements, out);
    case TensorType::kQ3_K: return expand_all<expand_q3_k>(traits, source, num_elements, out);
    case TensorType::kQ4_K: return expand_all<expand_q4_k>(traits, source, num_elements, out);
    case TensorType::kQ5_K: return expand_all<expand_q5_k>(traits, source, num_elements, out);
    case TensorType::kQ6_K: return expand_all<expand_q6_k>(traits, source, num_elements, out);
    case TensorType::kIQ4_NL: return expand_all<expand_iq4_nl>(traits, source, num_elements, out);
    case TensorType::kIQ4_XS: return expand_all<expand_iq4_xs>(traits, source, num_elements, out);
    case TensorType::kMXFP4: return expand_all<expand_mxfp4>(traits, source, num_elements, out);
    case TensorType::kIQ1_S: return expand_all<expand_iq1_s>(traits, source, num_elements, out);
    case TensorType::kIQ1_M: return expand_all<expand_iq1_m>(traits, source, num_elements, out);
    case TensorType::kIQ2_XXS: return expand_all<expand_iq2_xxs>(traits, source, num_elements, out);
    case TensorType::kIQ2_XS: return expand_all<expand_iq2_xs>(traits, source, num_elements, out);
    case TensorType::kIQ2_S: return expand_all<expand_iq2_s>(traits, source, num_elements, out);
    case TensorType::kIQ3_XXS: return expand_all<expand_iq3_xxs>(traits, source, num_elements, out);
    case TensorType::kIQ3_S: return expand_all<expand_iq3_s>(traits, source, num_elements, out);
    case TensorType::kNVFP4: return expand_all<expand_nvfp4>(traits, source, num_elements, out);
    case TensorType::kTQ1_0: return expand_all<expand_tq1_0>(traits, source, num_elements, out);
    case TensorType::kTQ2_0: return expand_all<expand_tq2_0>(traits, source, num_elements, out);
    case TensorType::kQ1_0: return expand_all<expand_q1_0>(traits, source, num_elements, out);
    case TensorType::kQ2_0: return expand_all<expand_q2_0>(traits, source, num_elements, out);
    case TensorType::kU4_G32: return expand_all<expand_u4<32>>(traits, source, num_elements, out);
    case TensorType::kU4_G128: return expand_all<expand_u4<128>>(traits, source, num_elements, out);
    case TensorType::kU8_G32: return expand_all<expand_u8<32>>(traits, source, num_elements, out);
    case TensorType::kU8_G128: return expand_all<expand_u8<128>>(traits, source, num_elements, out);
    case TensorType::kF8_G32: return expand_all<expand_f8<32>>(traits, source, num_elements, out);
    case TensorType::kF8_G128: return expand_all<expand_f8<128>>(traits, source, num_elements, out);
  }
}

}  // namespace octavo::kernels
