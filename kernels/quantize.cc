#include "kernels/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "engine/base/check.h"
#include "engine/base/half.h"

namespace octavo::kernels {
namespace {

void put_half(std::byte* out, float value) {
  const std::uint16_t word = float_to_half(value);
  std::memcpy(out, &word, sizeof word);
}

// What a file's float16 gives back.
float as_half(float value) { return half_to_float(float_to_half(value)); }

std::byte to_byte(int value) { return static_cast<std::byte>(value); }

// ---- blocks of 32, as gguf.quants rounds them

float largest_by_magnitude(const float* x) {
  float largest = x[0];
  for (int i = 1; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  return largest;
}

float inverse_or_zero(float scale) { return scale == 0.0f ? 0.0f : 1.0f / scale; }

void put_nibble_pairs(const int (&q)[32], std::byte* out) {
  for (int i = 0; i < 16; ++i) out[i] = to_byte((q[i] & 15) | (q[16 + i] & 15) << 4);
}

void put_fifth_bits(const int (&q)[32], std::byte* out) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) bits |= static_cast<std::uint32_t>(q[i] >> 4 & 1) << i;
  std::memcpy(out, &bits, sizeof bits);
}

// Integers 0 .. 2 * half - 1 of a scale without a min.
void round_offset(const float* x, int half, float scale, int (&q)[32]) {
  const double inverse = inverse_or_zero(scale);
  for (int i = 0; i < 32; ++i) {
    q[i] = std::clamp(static_cast<int>(std::trunc(static_cast<double>(x[i]) * inverse + (half + 0.5))), 0,
                      2 * half - 1);
  }
}

// Integers 0 .. most of a scale with a min, which are returned.
struct ScaleMin {
  float scale, min;
};
ScaleMin round_with_min(const float* x, int most, int (&q)[32]) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float scale = (*high - *low) / static_cast<float>(most), inverse = inverse_or_zero(scale);
  for (int i = 0; i < 32; ++i)
    q[i] = std::clamp(static_cast<int>(std::trunc((x[i] - *low) * inverse + 0.5f)), 0, most);
  return {scale, *low};
}

void quantize_q8_0(const float* x, std::byte* out) {
  const float scale = std::fabs(largest_by_magnitude(x)) / 127.0f, inverse = inverse_or_zero(scale);
  put_half(out, scale);
  for (int i = 0; i < 32; ++i) out[2 + i] = to_byte(static_cast<int>(std::round(x[i] * inverse)));
}

void quantize_q4_0(const float* x, std::byte* out) {
  const float scale = largest_by_magnitude(x) / -8.0f;
  int q[32];
  round_offset(x, 8, scale, q);
  put_half(out, scale);
  put_nibble_pairs(q, out + 2);
}

void quantize_q5_0(const float* x, std::byte* out) {
  const float scale = largest_by_magnitude(x) / -16.0f;
  int q[32];
  round_offset(x, 16, scale, q);
  put_half(out, scale);
  put_fifth_bits(q, out + 2);
  put_nibble_pairs(q, out + 6);
}

void quantize_q4_1(const float* x, std::byte* out) {
  int q[32];
  const ScaleMin found = round_with_min(x, 15, q);
  put_half(out, found.scale);
  put_half(out + 2, found.min);
  put_nibble_pairs(q, out + 4);
}

void quantize_q5_1(const float* x, std::byte* out) {
  int q[32];
  const ScaleMin found = round_with_min(x, 31, q);
  put_half(out, found.scale);
  put_half(out + 2, found.min);
  put_fifth_bits(q, out + 4);
  put_nibble_pairs(q, out + 8);
}

// ---- blocks of 256

constexpr int kTriedSteps = 20;

template <int kSize>
std::array<float, kSize> importance(const float* x) {
  float squares = 0.0f;
  for (int i = 0; i < kSize; ++i) squares += x[i] * x[i];
  const float mean = std::sqrt(squares / kSize);
  std::array<float, kSize> weights;
  for (int i = 0; i < kSize; ++i) weights[static_cast<std::size_t>(i)] = mean + std::fabs(x[i]);
  return weights;
}

// Ties to even. Adding so large a number leaves no room for fractions: of a function of the library the loops
// below would make a call for each number.
int nearest(float value, int least, int most) {
  constexpr float kMagic = 0x1.8p23f;
  const float clamped = std::min(std::max(value, static_cast<float>(least)), static_cast<float>(most));
  return static_cast<int>(clamped + kMagic - kMagic);
}

// x ~ scale * q - min with q in 0 .. most and min >= 0, as these types have it.
ScaleMin fit_with_min(const float* x, int most) {
  constexpr int kSize = 32;
  const std::array<float, kSize> weights = importance<kSize>(x);
  const auto [lowest, highest] = std::minmax_element(x, x + kSize);
  const float low = std::min(*lowest, 0.0f), range = *highest - low;
  if (!(range > 0.0f)) return {0.0f, -low};
  ScaleMin best = {range / static_cast<float>(most), -low};
  float best_error = -1.0f;
  for (int step = 0; step <= kTriedSteps; ++step) {
    const float inverse = (static_cast<float>(most) - 1.0f + 0.1f * static_cast<float>(step)) / range;
    // Sums of the normal equations of both unknowns.
    float w = 0, q1 = 0, q2 = 0, x1 = 0, xq = 0;
    int q[kSize];
    for (int i = 0; i < kSize; ++i) {
      const float weight = weights[static_cast<std::size_t>(i)];
      q[i] = nearest((x[i] - low) * inverse, 0, most);
      const auto number = static_cast<float>(q[i]);
      w += weight;
      q1 += weight * number;
      q2 += weight * number * number;
      x1 += weight * x[i];
      xq += weight * x[i] * number;
    }
    const float determinant = w * q2 - q1 * q1;
    ScaleMin fit = {0.0f, 0.0f};
    if (determinant > 0.0f) fit = {(w * xq - q1 * x1) / determinant, (q1 * xq - q2 * x1) / determinant};
    if (fit.min < 0.0f || !(determinant > 0.0f)) fit = {q2 > 0.0f ? xq / q2 : 0.0f, 0.0f};
    if (!(fit.scale > 0.0f)) continue;
    float error = 0.0f;
    for (int i = 0; i < kSize; ++i) {
      const float difference = fit.scale * static_cast<float>(q[i]) - fit.min - x[i];
      error += weights[static_cast<std::size_t>(i)] * difference * difference;
    }
    if (best_error < 0.0f || error < best_error) {
      best_error = error;
      best = fit;
    }
  }
  return best;
}

// The first four pairs of 6-bit numbers lie in bytes 0..3 and 4..7; the others' lower halves in 8..11, the
// rest on top of 0..7.
void put_six_bit_pairs(const int (&scales)[8], const int (&mins)[8], std::byte* out) {
  for (int i = 0; i < 4; ++i) {
    out[i] = to_byte(scales[i] | scales[i + 4] >> 4 << 6);
    out[i + 4] = to_byte(mins[i] | mins[i + 4] >> 4 << 6);
    out[i + 8] = to_byte((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
  }
}

// Writes 16 bytes: both scales of the block and those of its eight sub-blocks; and finds the integers.
void quantize_with_mins(const float* x, int most, std::byte* out, int (&q)[256]) {
  ScaleMin fits[8];
  float largest_scale = 0.0f, largest_min = 0.0f;
  for (int i = 0; i < 8; ++i) {
    fits[i] = fit_with_min(x + 32 * i, most);
    largest_scale = std::max(largest_scale, fits[i].scale);
    largest_min = std::max(largest_min, fits[i].min);
  }
  const float scale = as_half(largest_scale / 63.0f), min = as_half(largest_min / 63.0f);
  int scales[8], mins[8];
  for (int i = 0; i < 8; ++i) {
    scales[i] = nearest(fits[i].scale * inverse_or_zero(scale), 0, 63);
    mins[i] = nearest(fits[i].min * inverse_or_zero(min), 0, 63);
    const float step = scale * static_cast<float>(scales[i]), below = min * static_cast<float>(mins[i]);
    for (int k = 32 * i; k < 32 * i + 32; ++k)
      q[k] = step > 0.0f ? nearest((x[k] + below) / step, 0, most) : 0;
  }
  put_half(out, scale);
  put_half(out + 2, min);
  put_six_bit_pairs(scales, mins, out + 4);
}

void put_nibble_planes(const int (&q)[256], std::byte* out) {
  for (int i = 0; i < 128; ++i) {
    const int first = i / 32 * 64 + i % 32;
    out[i] = to_byte((q[first] & 15) | (q[first + 32] & 15) << 4);
  }
}

void quantize_q4_k(const float* x, std::byte* out) {
  int q[256];
  quantize_with_mins(x, 15, out, q);
  put_nibble_planes(q, out + 16);
}

void quantize_q5_k(const float* x, std::byte* out) {
  int q[256];
  quantize_with_mins(x, 31, out, q);
  for (int i = 0; i < 32; ++i) {
    int bits = 0;
    for (int k = 0; k < 8; ++k) bits |= (q[32 * k + i] >> 4) << k;
    out[16 + i] = to_byte(bits);
  }
  put_nibble_planes(q, out + 48);
}

// x ~ scale * q with q in -half .. half - 1.
float fit_without_min(const float* x, int half) {
  constexpr int kSize = 16;
  const std::array<float, kSize> weights = importance<kSize>(x);
  float largest = 0.0f;
  for (int i = 0; i < kSize; ++i)
    if (std::fabs(x[i]) > std::fabs(largest)) largest = x[i];
  if (largest == 0.0f) return 0.0f;
  float best = largest / static_cast<float>(-half), best_gain = -1.0f;
  for (int step = 0; step <= kTriedSteps; ++step) {
    const float inverse = -(static_cast<float>(half) - 1.0f + 0.1f * static_cast<float>(step)) / largest;
    float xq = 0.0f, q2 = 0.0f;
    for (int i = 0; i < kSize; ++i) {
      const float weight = weights[static_cast<std::size_t>(i)];
      const auto number = static_cast<float>(nearest(x[i] * inverse, -half, half - 1));
      xq += weight * x[i] * number;
      q2 += weight * number * number;
    }
    // The error is that of nothing less this.
    if (q2 > 0.0f && xq * xq / q2 > best_gain) {
      best_gain = xq * xq / q2;
      best = xq / q2;
    }
  }
  return best;
}

void quantize_q6_k(const float* x, std::byte* out) {
  float fits[16], largest = 0.0f;
  for (int i = 0; i < 16; ++i) {
    fits[i] = fit_without_min(x + 16 * i, 32);
    if (std::fabs(fits[i]) > std::fabs(largest)) largest = fits[i];
  }
  const float scale = as_half(largest / -128.0f), inverse = inverse_or_zero(scale);
  int q[256];
  for (int i = 0; i < 16; ++i) {
    const int stored = nearest(fits[i] * inverse, -128, 127);
    const float step = scale * static_cast<float>(stored);
    for (int k = 16 * i; k < 16 * i + 16; ++k) q[k] = 32 + (step == 0.0f ? 0 : nearest(x[k] / step, -32, 31));
    out[192 + i] = to_byte(stored);
  }
  put_half(out + 208, scale);
  for (int part = 0; part < 2; ++part) {
    const int* const numbers = q + 128 * part;
    for (int i = 0; i < 64; ++i)
      out[64 * part + i] = to_byte((numbers[i] & 15) | (numbers[64 + i] & 15) << 4);
    for (int i = 0; i < 32; ++i) {
      int bits = 0;
      for (int plane = 0; plane < 4; ++plane) bits |= (numbers[32 * plane + i] >> 4) << (2 * plane);
      out[128 + 32 * part + i] = to_byte(bits);
    }
  }
}

// ---- the types

using QuantizeBlock = void (*)(const float* x, std::byte* out);

QuantizeBlock block_quantizer(TensorType type) {
  switch (type) {
    case TensorType::kF32: return [](const float* x, std::byte* out) { std::memcpy(out, x, sizeof *x); };
    case TensorType::kF16: return [](const float* x, std::byte* out) { put_half(out, *x); };
    case TensorType::kBF16:
      return [](const float* x, std::byte* out) {
        const std::uint16_t word = float_to_bfloat16(*x);
        std::memcpy(out, &word, sizeof word);
      };
    case TensorType::kQ4_0: return quantize_q4_0;
    case TensorType::kQ4_1: return quantize_q4_1;
    case TensorType::kQ5_0: return quantize_q5_0;
    case TensorType::kQ5_1: return quantize_q5_1;
    case TensorType::kQ8_0: return quantize_q8_0;
    case TensorType::kQ4_K: return quantize_q4_k;
    case TensorType::kQ5_K: return quantize_q5_k;
    case TensorType::kQ6_K: return quantize_q6_k;
    default: return nullptr;
  }
}

}  // namespace

bool can_quantize(TensorType type) { return block_quantizer(type) != nullptr; }

void quantize(TensorType type, const float* source, std::int64_t num_elements, std::byte* out) {
  const TensorTypeTraits& traits = traits_of(type);
  const QuantizeBlock quantize_block = block_quantizer(type);
  OCTAVO_CHECK(quantize_block != nullptr, "nothing makes %s", traits.name.data());
  OCTAVO_CHECK(num_elements % traits.block_elements == 0, "%lld elements of a type with blocks of %d",
               static_cast<long long>(num_elements), traits.block_elements);
  for (std::int64_t i = 0; i < num_elements / traits.block_elements; ++i)
    quantize_block(source + i * traits.block_elements, out + i * traits.block_bytes);
}

std::optional<TensorType> type_for_columns(TensorType type, std::int64_t columns) {
  const auto fits = [columns](TensorType candidate) {
    return columns % traits_of(candidate).block_elements == 0;
  };
  if (fits(type)) return type;
  TensorType instead = type;
  if (type == TensorType::kQ4_K) instead = TensorType::kQ5_0;
  if (type == TensorType::kQ5_K) instead = TensorType::kQ5_1;
  if (type == TensorType::kQ6_K) instead = TensorType::kQ8_0;
  if (fits(instead)) return instead;
  return std::nullopt;
}

}  // namespace octavo::kernels
