// What measuring needs of a device and the emulation does not have: its own clock, and its figures. Two files
// define it: toolkit_device.cc with the CUDA toolkit, toolkit_emulated.cc for tests/emulation, where times
// mean nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "kernels/cuda/runtime/device.h"

namespace octavo::bench {

// Seconds between what a stream did before `work` was given to it and after it. Thread: one.
class StreamClock {
 public:
  static Result<std::unique_ptr<StreamClock>> create();
  virtual ~StreamClock() = default;
  virtual double seconds_of(kernels::cuda::Stream& stream, const std::function<void()>& work) = 0;
};

struct DeviceFigures {
  std::string name;
  std::int32_t major = 0, minor = 0;
  std::int32_t num_multiprocessors = 0;
  std::int64_t cache_bytes = 0;  // of the second level
  std::int64_t max_shared_bytes = 0;
  std::int64_t multiprocessor_shared_bytes = 0;  // of all blocks of one together
  std::int64_t total_bytes = 0;
  std::int32_t driver = 0, runtime = 0;              // 13000 is CUDA 13.0
  std::int32_t clock_khz = 0, memory_clock_khz = 0;  // the highest; 0: not known
  bool is_emulated = false;
};
// Adds what cudaGetDeviceProperties does not tell: versions and clocks, or that the device is emulated.
Result<void> add_toolkit_figures(DeviceFigures& figures);

}  // namespace octavo::bench
