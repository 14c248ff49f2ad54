// The processor time of this thread: what an operation costs, whatever else runs on the machine.
#pragma once

#include <ctime>

namespace octavo::tokenizer {

inline double cpu_seconds() {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace octavo::tokenizer
