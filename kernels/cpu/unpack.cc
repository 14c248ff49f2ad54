#include <cstring>

#include "engine/base/check.h"
#include "engine/base/half.h"
#include "kernels/cpu/pack.h"
#include "kernels/dequantize.h"
#include "kernels/dequantize_grids.h"
#include "kernels/float8.h"

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

// ---- grids

// Of a row, all its indices' bits above the lower eight, and what stands above those.
unsigned high_bits_of(const GridTraits& grid, const std::byte* high, std::int64_t row) {
  switch (grid.high_bytes()) {
    case 0: return 0;
    case kPanelRows / 2: return static_cast<unsigned>(byte_at(high, row % 8) >> (row / 8 * 4) & 15);
    case kPanelRows: return static_cast<unsigned>(byte_at(high, row));
    default: return get<std::uint16_t>(high, row);
  }
}

// Number j of an entry is byte j.
std::uint64_t entry_at(NumberGrid grid, unsigned index) {
  switch (grid) {
    case NumberGrid::kIq2Xxs: return kIq2XxsGrid.entries[index];
    case NumberGrid::kIq2Xs: return kIq2XsGrid.entries[index];
    case NumberGrid::kIq2S: return kIq2SGrid.entries[index];
    case NumberGrid::kIq3Xxs: return kIq3XxsGrid.entries[index];
    case NumberGrid::kIq3S: return kIq3SGrid.entries[index];
    case NumberGrid::kIq1S:
    case NumberGrid::kIq1M: return kIq1Grid.entries[index];
    case NumberGrid::kNone: break;
  }
  OCTAVO_CHECK(false, "no grid");
  return 0;
}

// Without an offset.
void read_grid(NumberGrid which, const std::byte* weights, std::int64_t row, int (&numbers)[kGroupColumns]) {
  const GridTraits& grid = traits_of(which);
  const std::byte* const high = weights + grid.index_bytes();
  const std::byte* const signs = high + grid.high_bytes();
  const unsigned bits = high_bits_of(grid, high, row);
  for (int i = 0; i < kGroupColumns; ++i) {
    const int entry = i / grid.entry_columns;
    const unsigned upper = bits >> (grid.high_bits * entry) & ((1u << grid.high_bits) - 1u);
    const auto index = static_cast<unsigned>(byte_at(weights, entry * kPanelRows + row)) | upper << 8;
    const int number = static_cast<int>(entry_at(which, index) >> (8 * (i % grid.entry_columns)) & 255);
    if (grid.has_signs) {
      numbers[i] = (byte_at(signs, 4 * row + i % 4) >> (i / 4) & 1) != 0 ? -number : number;
    } else {
      const bool moves_down = (bits >> (which == NumberGrid::kIq1S ? 15 : 12 + entry) & 1) != 0;
      numbers[i] = 8 * static_cast<std::int8_t>(number) + (moves_down ? -1 : 1);
    }
  }
}

int number_of_nibble(const StoredNumbers& stored, int nibble) {
  return stored.table == NibbleTable::kNone ? nibble : numbers_of(stored.table)[nibble];
}

// Without their offset.
void read_numbers(const StoredNumbers& stored, const std::byte* weights, std::int64_t row,
                  int (&numbers)[kGroupColumns]) {
  if (stored.grid != NumberGrid::kNone) return read_grid(stored.grid, weights, row, numbers);
  std::memset(numbers, 0, sizeof numbers);
  if (!stored.nibble_pairs) {
    add_planes(weights, row, stored.low_bits, stored.shift, numbers);
    add_planes(weights + 64 * stored.low_bits, row, stored.high_bits, stored.low_bits, numbers);
  } else {
    for (int i = 0; i < kGroupColumns / 2; ++i) {
      const int pair = byte_at(weights, 64 * (i / 4) + 4 * row + i % 4);
      numbers[i] = number_of_nibble(stored, pair & 15);
      numbers[kGroupColumns / 2 + i] = number_of_nibble(stored, pair >> 4);
    }
  }
  for (int& number : numbers) number -= stored.offset;
}

// Floats of 8 bits, column by column.
void unpack_floats(const std::byte* weights, std::int64_t row, float scale, float* out) {
  for (int i = 0; i < kGroupColumns; ++i)
    out[i] = scale * Fp8E4m3::to_float(get<std::uint8_t>(weights, i * kPanelRows + row));
}

// ---- scales

struct ScaleAndMin {
  float scale = 0.0f, min = 0.0f;
};

ScaleAndMin words_at(const std::byte* words, std::int64_t row, bool has_min) {
  return {half_to_float(get<std::uint16_t>(words, row)),
          has_min ? half_to_float(get<std::uint16_t>(words, kPanelRows + row)) : 0.0f};
}

int row_nibble(const std::byte* nibbles, std::int64_t row) {
  return byte_at(nibbles, row % 8) >> (row / 8 * 4) & 15;
}

float odd_scale(const PanelTraits& traits, float factor, int stored) {
  return factor * static_cast<float>(2 * stored + 1) * traits_of(traits.numbers.grid).unit;
}

// Of columns 16 * half and on. `head` and `scales` are the group's.
ScaleAndMin scale_and_min(const PanelTraits& traits, const std::byte* head, const std::byte* scales,
                          std::int64_t row, int half) {
  const auto byte = [&](std::int64_t index) { return byte_at(scales, index * kPanelRows + row); };
  const auto factors = [&] { return words_at(head, row, traits.has_min); };
  switch (traits.scales) {
    case ScaleLayout::kHalf: return words_at(scales, row, traits.has_min);
    case ScaleLayout::kPower: return {mxfp4_scale(get<std::uint8_t>(scales, row)), 0.0f};
    case ScaleLayout::kE4m3Halves:  // what stands for zero in a file is zero in a panel
      return {nvfp4_scale(static_cast<std::uint8_t>(byte(half) | 0x80)), 0.0f};
    case ScaleLayout::kHead: return factors();
    case ScaleLayout::kHeadZero:
    case ScaleLayout::kHeadFloat: return {get<float>(head, row), 0.0f};
    case ScaleLayout::kSuper: {
      const int low = byte(0), high = row_nibble(scales + kPanelRows, row);
      return {factors().scale * static_cast<float>(low & 63),
              -(factors().min * static_cast<float>(low >> 6 | high << 2))};
    }
    case ScaleLayout::kByte:
    case ScaleLayout::kByteHalves: {
      const int place = traits.scales == ScaleLayout::kByte ? 0 : half;
      return {factors().scale * static_cast<float>(static_cast<std::int8_t>(byte(place))), 0.0f};
    }
    case ScaleLayout::kNibbleHalves:
      return {factors().scale * static_cast<float>(byte(half) & 15),
              -(factors().min * static_cast<float>(byte(half) >> 4))};
    case ScaleLayout::kOddNibble: return {odd_scale(traits, factors().scale, row_nibble(scales, row)), 0.0f};
    case ScaleLayout::kOddNibbleHalves:
      return {odd_scale(traits, factors().scale, byte(0) >> (4 * half) & 15), 0.0f};
    case ScaleLayout::kOddWord: {
      const std::byte* const words = scales - traits_of(traits.numbers.grid).high_bytes();
      return {odd_scale(traits, factors().scale, get<std::uint16_t>(words, row) >> 12 & 7), 0.0f};
    }
    case ScaleLayout::kFloat:
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
    if (bytes.head > 0 && g % bytes.head_groups == 0) {
      head = panel;
      panel += bytes.head;
    }
    if (traits.numbers.are_floats) {
      unpack_floats(panel, row, get<float>(head, row), out);
      out += kGroupColumns;
      panel += bytes.group();
      continue;
    }
    int numbers[kGroupColumns];
    read_numbers(traits.numbers, panel, row, numbers);
    if (traits.scales == ScaleLayout::kHeadZero) {
      for (int& number : numbers) number -= get<std::int8_t>(head + 4 * kPanelRows, row);
    }
    for (int half = 0; half < 2; ++half) {
      const ScaleAndMin of_half = scale_and_min(traits, head, panel + bytes.weights, row, half);
      for (int i = 16 * half; i < 16 * half + 16; ++i) {
        // Products of so few bits are exact wherever there is a min: this rounds once.
        *out = of_half.scale * static_cast<float>(numbers[i]);
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
