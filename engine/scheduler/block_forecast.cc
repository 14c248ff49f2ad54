#include "engine/scheduler/block_forecast.h"

#include <algorithm>
#include <cstddef>

namespace octavo::scheduler {

void BlockForecast::add(std::int32_t num_tokens, std::int32_t num_left, std::optional<std::int32_t> num_own) {
  std::int32_t num_taken = 0;
  for (std::int32_t step = 1; step <= kStepsAhead; ++step) {
    std::int32_t& taken = taken_in_[static_cast<std::size_t>(step - 1)];
    if (step >= num_left) {
      if (num_own) taken -= *num_own + num_taken;
      return;
    }
    const bool last_is_full = (num_tokens + step - 1) % block_size_ == 0;
    if (!last_is_full) continue;
    ++taken;
    ++num_taken;
  }
}

std::int32_t BlockForecast::most_taken() const {
  std::int32_t sum = 0, most = 0;
  for (const std::int32_t taken : taken_in_) most = std::max(most, sum += taken);
  return most;
}

}  // namespace octavo::scheduler
