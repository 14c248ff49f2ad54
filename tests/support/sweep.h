// Sweeps that are too long for every run: OCTAVO_FULL_SWEEP=1 takes all cases, which some of
// tests/long/run do.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace octavo::test {

inline bool is_full_sweep() {
  const char* const value = std::getenv("OCTAVO_FULL_SWEEP");
  return value != nullptr && std::string_view(value) == "1";
}

// Else every n-th case from `first` on: with an n that no number of values divides, every value of every
// parameter is among them.
template <class Case>
std::vector<Case> some_of(const std::vector<Case>& cases, std::size_t n, std::size_t first = 0) {
  const std::size_t begin = is_full_sweep() ? 0 : first, step = is_full_sweep() ? 1 : n;
  std::vector<Case> some;
  some.reserve(cases.size() / step + 1);
  for (std::size_t i = begin; i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

}  // namespace octavo::test
