// What the processor counted while this process worked: cycles, instructions, misses of the last cache. Read
// from the processor's own counters, in user mode only, through Linux's perf_event_open(2).
//
// Many machines do not let a program read them: virtual machines without a counter unit, containers, a
// kernel.perf_event_paranoid above 2. That is no error: what cannot be counted is nullopt.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace octavo::app {

class HardwareCounters {
 public:
  static constexpr std::size_t kNumEvents = 3;
  static constexpr std::array<const char*, kNumEvents> kNames = {"cycles", "instructions", "llc_misses"};
  using Counts = std::array<std::optional<double>,
                            kNumEvents>;  // totals since the object was made, in the order of kNames

  // Counts the calling thread and every thread that it starts from now on, and those that they start.
  HardwareCounters();
  ~HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;

  // When more events are counted than the processor has counters, the kernel lets them take turns; the totals
  // are scaled up.
  Counts read() const;

 private:
  std::array<int, kNumEvents> files_;  // -1: not permitted
};

// What was counted from `begin` to `end`, for each of `amount` things.
HardwareCounters::Counts counted_between(const HardwareCounters::Counts& begin,
                                         const HardwareCounters::Counts& end, double amount);

}  // namespace octavo::app
