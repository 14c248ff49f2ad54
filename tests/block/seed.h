// The seed of a randomised test: --gtest_random_seed=N replays, else a new one each time. Print it on
// failure.
#pragma once

#include <gtest/gtest.h>

#include <random>

namespace octavo {

inline unsigned test_seed() {
  const auto chosen = static_cast<unsigned>(GTEST_FLAG_GET(random_seed));
  return chosen != 0 ? chosen : std::random_device{}() % 99'999 + 1;
}

}  // namespace octavo
