// A seed for whoever brings none: the one place at which a run is not a function of what it was given. What
// draws numbers takes it as a `SeedSource`, so that tests choose.
//
// Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <random>

namespace octavo {

using SeedSource = std::function<std::uint64_t()>;

// 53 bits: every reader of JSON gives such a number back unchanged.
inline std::uint64_t draw_seed() {
  std::random_device device;
  const std::uint64_t high = device();
  return (high << 32 | device()) >> 11;
}

}  // namespace octavo
