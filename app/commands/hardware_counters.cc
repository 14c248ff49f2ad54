#include "app/commands/hardware_counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace octavo::app {
namespace {

constexpr std::array<std::uint64_t, HardwareCounters::kNumEvents> kEvents = {
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CACHE_MISSES};

int open_event(std::uint64_t event) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, /*pid=*/0, /*cpu=*/-1, /*group=*/-1, PERF_FLAG_FD_CLOEXEC));
}

// The layout that read_format asks for.
struct Reading {
  std::uint64_t value = 0;
  std::uint64_t enabled_ns = 0;
  std::uint64_t running_ns = 0;
};

std::optional<double> read_event(int file) {
  Reading reading;
  if (file < 0 || ::read(file, &reading, sizeof reading) != sizeof reading || reading.running_ns == 0)
    return std::nullopt;
  return static_cast<double>(reading.value) * static_cast<double>(reading.enabled_ns) /
         static_cast<double>(reading.running_ns);
}

}  // namespace

HardwareCounters::HardwareCounters() {
  for (std::size_t i = 0; i < kNumEvents; ++i) files_[i] = open_event(kEvents[i]);
}

HardwareCounters::~HardwareCounters() {
  for (const int file : files_) {
    if (file >= 0) close(file);
  }
}

HardwareCounters::Counts HardwareCounters::read() const {
  Counts counts;
  for (std::size_t i = 0; i < kNumEvents; ++i) counts[i] = read_event(files_[i]);
  return counts;
}

HardwareCounters::Counts counted_between(const HardwareCounters::Counts& begin,
                                         const HardwareCounters::Counts& end, double amount) {
  HardwareCounters::Counts counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (begin[i].has_value() && end[i].has_value() && amount > 0.0)
      counts[i] = (*end[i] - *begin[i]) / amount;
  }
  return counts;
}

}  // namespace octavo::app
