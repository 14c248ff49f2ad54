// Time as an argument. The engine core asks a Clock, so that a simulation owns time.
// Monotonic; the zero is arbitrary.
#pragma once

#include <chrono>
#include <cstdint>

namespace octavo {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_us() const = 0;
};

class SteadyClock final : public Clock {
 public:
  std::int64_t now_us() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

// The wall clock, in milliseconds since 1970, UTC: for dates that people read. It may jump; nothing is timed
// by it.
inline std::int64_t unix_time_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Moves only when set. For tests and simulation.
class ManualClock final : public Clock {
 public:
  std::int64_t now_us() const override { return now_us_; }
  void advance_us(std::int64_t by_us) { now_us_ += by_us; }

 private:
  std::int64_t now_us_ = 0;
};

}  // namespace octavo
