// Counter-based random numbers: the number at (seed, output_index, position) is a pure function of the three,
// so a sequence draws the same numbers whatever its batch, its preemptions or its neighbours are.
#pragma once

#include <cstdint>

#include "engine/base/hash.h"

namespace octavo {

// Uniform in [0, 1), 53 bits.
//   output_index  which sample of the request (0 for n = 1)
//   position      index of the generated token within that output, 0-based
constexpr double uniform_at(std::uint64_t seed, std::uint32_t output_index, std::uint64_t position) {
  // hash_combine mixes its second argument only: were the seed mixed as well, seed
  // and output could be exchanged.
  const std::uint64_t bits = hash_combine(hash_combine(seed, output_index), position);
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace octavo
