// The blocks that sequences take in the next steps, as far as it is known without guessing: each takes one
// when its last one is full, at a token a step, and an output that comes to its request's max_tokens ends and
// lets its own go. (It may end earlier, which helps. Who is told of no end that near only grows.) A value;
// any thread.
//
// 17 steps were measured in the saturated queue of figure 2 and at 1.8 requests/s (`octavo experiment
// policy`): fewer preempt more, more leave more of the pool empty.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace octavo::scheduler {

inline constexpr std::int32_t kStepsAhead = 17;

class BlockForecast {
 public:
  // REQUIRES: block_size >= 1
  explicit BlockForecast(std::int32_t block_size) : block_size_(block_size) {}

  // A sequence with slots for its `num_tokens` tokens, the newest of which is computed in the step that is
  // being made. It gets at most `num_left` more, and when it has them, it lets `num_own` blocks go and those
  // that it took until then. nullopt: it is not known when that is, so nothing is let go.
  void add(std::int32_t num_tokens, std::int32_t num_left, std::optional<std::int32_t> num_own);

  // The most that has been taken, less what was let go, by the time of any step looked at; at least 0.
  std::int32_t most_taken() const;

 private:
  std::int32_t block_size_;
  std::array<std::int32_t, kStepsAhead> taken_in_{};  // the next step first; less what is let go before it
};

}  // namespace octavo::scheduler
