#include "kernels/dequantize.h"

#include <array>
#include <bit>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/half.h"
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
  }
}

}  // namespace octavo::kernels
