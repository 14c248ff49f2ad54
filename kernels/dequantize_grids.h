// The grids of the IQ types: what an index of a few bits stands for, 4 or 8 numbers at once. They are subsets
// that their author chose by what weights of models look like; no formula gives them.
#pragma once

#include <cstdint>

namespace octavo::kernels {

// Number j of an entry is its byte j, counted from the lowest bits up. The same once more, in the fewest
// bits: number j is the value of code j, bits b * j and up of the entry's codes; b is 2, of IQ3 3.
template <class Entry, int kSize>
struct Grid {
  Entry entries[kSize];
  std::uint16_t codes[kSize];
  std::uint8_t values[16];
};

extern const Grid<std::uint64_t, 256> kIq2XxsGrid;  // 8, 25 or 43
extern const Grid<std::uint64_t, 512> kIq2XsGrid;   // the same
extern const Grid<std::uint64_t, 1024> kIq2SGrid;   // the same
extern const Grid<std::uint32_t, 256> kIq3XxsGrid;  // 4, 12, 20, 28, 36, 44, 52 or 62
extern const Grid<std::uint32_t, 512> kIq3SGrid;    // odd, 1 to 15
extern const Grid<std::uint64_t, 2048> kIq1Grid;    // -1, 0 or 1: IQ1_S and IQ1_M

// Eight signs of which seven are stored: bit j is the sign of number j, and the eighth makes the number of
// minus signs even. REQUIRES: stored < 128
constexpr std::uint8_t signs_of_seven(unsigned stored) {
  return static_cast<std::uint8_t>(stored | static_cast<unsigned>(__builtin_parity(stored)) << 7);
}

}  // namespace octavo::kernels
