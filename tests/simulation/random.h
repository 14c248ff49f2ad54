// Random choices that one seed repeats on every machine.
#pragma once

#include <cstdint>

#include "engine/base/hash.h"

namespace octavo::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix64(seed)) {}

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15u); }

  // In [low, high].
  std::int32_t between(std::int32_t low, std::int32_t high) {
    const auto width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    return low + static_cast<std::int32_t>(next() % width);
  }

  // Small values as likely as large ones: the exponent is drawn first.
  std::int32_t between_powers(std::int32_t low_exponent, std::int32_t high_exponent) {
    const std::int32_t power = 1 << between(low_exponent, high_exponent);
    return between((power + 1) / 2, power);
  }

  bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1.0p-53 < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace octavo::simulation
