// Work on untrusted input that may never end, take all memory or crash: in a child process, which sees the
// memory of this one as it is when it begins, and gives back a text. Whatever it does, this process goes on,
// and when it is not wanted any more it is ended at once.
//
// The child has no file but the pipe, little more memory than it began with, a limit of processor time, and a
// lower priority. It must not start threads, and what other threads of this process hold locked stays
// locked in it: work that touches nothing but its own input and the heap ends all the same.
//
// Any thread; waits for the child.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace octavo {

struct WorkLimits {
  std::chrono::seconds processor_time{5};
  std::chrono::seconds time{30};                       // beside busy processes the other is slower
  std::int64_t memory_bytes = std::int64_t{1} << 30u;  // beside what this process has
  std::size_t result_bytes = std::size_t{256} << 20u;
};

enum class WorkEnd { kDone, kStopped, kTimeLimit, kMemoryLimit, kCrashed };

struct WorkResult {
  WorkEnd end = WorkEnd::kCrashed;
  std::string text = {};  // of kDone
};

// `work` may throw: std::bad_alloc is kMemoryLimit, anything else kCrashed.
WorkResult run_confined(const std::function<std::string()>& work, const WorkLimits& limits,
                        std::stop_token stop);

}  // namespace octavo
