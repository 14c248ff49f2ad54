#include <cstring>

#include "engine/base/check.h"
#include "engine/base/half.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"

namespace octavo::kernels::cpu {
namespace {

template <class Number>
Number get(const std::byte* array, std::int64_t index) {
  Number value;
  std::memcpy(&value, array + index * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

int byte_at(const std::byte* array, std::int64_t index) { return std::to_integer<int>(array[index]); }

// ---- stored numbers

// Quad q of the 16 rows stands in line q / quads_in_line of 64 bytes, `bits` at a time from the lowest on;
// added to what is there, `place` bits higher.
void add_planes(const std::byte* planes, std::int64_t row, int bits, int place,
                int (&numbers)[kGroupColumns]) {
  const int quads_in_plane = bits > 0 ? 8 / bits : 0;
  for (int line = 0; line < bits; ++line) {
    for (int i = 0; i < 4 * quads_in_plane; ++i) {
      const int byte = byte_at(planes, 64 * line + 4 * row + i % 4);
      numbers[4 * quads_in_plane * line + i] += (byte >> (i / 4 * bits) & ((1 << bits) - 1)) << place;
    }
  }
}

int number_of_nibble(const StoredNumbers& stored, int nibble) {
  return stored.table == NibbleTable::kNone ? nibble : numbers_of(stored.table)[nibble];
}

void read_numbers(const StoredNumbers& stored, const std::byte* weights, std::int64_t row,
                  int (&numbers)[kGroupColumns]) {
  std::memset(numbers, 0, sizeof numbers);
  if (!stored.nibble_pairs) {
    add_planes(weights, row, stored.low_bits, 0, numbers);
    add_planes(weights + 64 * stored.low_bits, row, stored.high_bits, stored.low_bits, numbers);
    return;
  }
  for (int i = 0; i < kGroupColumns / 2; ++i) {
    const int pair = byte_at(weights, 64 * (i / 4) + 4 * row + i % 4);
    numbers[i] = number_of_nibble(stored, pair & 15);
    numbers[kGroupColumns / 2 + i] = number_of_nibble(stored, pair >> 4);
  }
}

// ---- scales

struct ScaleAndMin {
  float scale = 0.0f, min = 0.0f;
};

ScaleAndMin words_at(const std::byte* words, std::int64_t row, bool has_min) {
  return {half_to_float(get<std::uint16_t>(words, row)),
          has_min ? half_to_float(get<std::uint16_t>(words, kPanelRows + row)) : 0.0f};
}

// Of columns 16 * half and on. `head` and `scales` are the group's.
ScaleAndMin scale_and_min(const PanelTraits& traits, const std::byte* head, const std::byte* scales,
                          std::int64_t row, int half) {
  if (traits.scales == ScaleLayout::kHalf) return words_at(scales, row, traits.has_min);
  if (traits.scales == ScaleLayout::kPower) return {mxfp4_scale(get<std::uint8_t>(scales, row)), 0.0f};
  const ScaleAndMin factors = words_at(head, row, traits.has_min);
  const int place_of_half = traits.scales == ScaleLayout::kByte ? 0 : half * kPanelRows;
  const int integers = byte_at(scales, place_of_half + row);
  switch (traits.scales) {
    case ScaleLayout::kSuper: {
      const int low = byte_at(scales, row), high = byte_at(scales, 16 + row % 8) >> (row / 8 * 4) & 15;
      return {factors.scale * static_cast<float>(low & 63),
              -(factors.min * static_cast<float>(low >> 6 | high << 2))};
    }
    case ScaleLayout::kByte:
    case ScaleLayout::kByteHalves:
      return {factors.scale * static_cast<float>(static_cast<std::int8_t>(integers)), 0.0f};
    case ScaleLayout::kNibbleHalves:
      return {factors.scale * static_cast<float>(integers & 15),
              -(factors.min * static_cast<float>(integers >> 4))};
    case ScaleLayout::kHalf:
    case ScaleLayout::kPower:
    case ScaleLayout::kFloatHalves: break;
  }
  OCTAVO_CHECK(false, "no matrix holds expanded weights");
  return {};
}

void unpack_quantised_row(const PanelTraits& traits, const std::byte* panel, std::int64_t columns,
                          std::int64_t row, float* out) {
  const PanelBytes& bytes = traits.bytes;
  const std::byte* head = panel;
  for (std::int64_t g = 0; g < columns / kGroupColumns; ++g) {
    if (bytes.head > 0 && g % kSuperGroups == 0) {
      head = panel;
      panel += bytes.head;
    }
    int numbers[kGroupColumns];
    read_numbers(traits.numbers, panel, row, numbers);
    for (int half = 0; half < 2; ++half) {
      const ScaleAndMin of_half = scale_and_min(traits, head, panel + bytes.weights, row, half);
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        // Products of so few bits are exact wherever there is a min: this rounds once.
        *out = of_half.scale * static_cast<float>(numbers[i] - traits.numbers.offset);
        if (traits.has_min) *out += of_half.min;
        ++out;
      }
    }
    panel += bytes.group();
  }
}

float float_at(PanelFormat format, const std::byte* panel, std::int64_t index) {
  if (format == PanelFormat::kF32) return get<float>(panel, index);
  const auto word = get<std::uint16_t>(panel, index);
  return format == PanelFormat::kF16 ? half_to_float(word) : bfloat16_to_float(word);
}

}  // namespace

void unpack_row(PanelFormat format, const std::byte* panel, std::int64_t columns, std::int64_t row,
                float* out) {
  OCTAVO_CHECK(row >= 0 && row < kPanelRows, "row %lld", static_cast<long long>(row));
  if (is_quantised(format)) return unpack_quantised_row(traits_of(format), panel, columns, row, out);
  for (std::int64_t column = 0; column < columns; ++column)
    out[column] = float_at(format, panel, column * kPanelRows + row);
}

}  // namespace octavo::kernels::cpu
