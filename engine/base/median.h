// The middle of measurements. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace octavo {

// Between the two in the middle of an even number; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace octavo
