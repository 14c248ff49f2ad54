// What this machine can do at most, measured: the denominators of "which
// fraction of the hardware did we use".
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/result.h"

namespace octavo::kernels {

struct MachineLimits {
  double read_bytes_per_s = 0.0;           // streaming reads of memory far larger than the caches
  double int8_multiply_adds_per_s = 0.0;   // 8-bit products added into 32 bits, registers only
  double float_multiply_adds_per_s = 0.0;  // single precision, fused, registers only
};

// With `threads` threads and the instruction set that the CPU backend would use. Takes
// about half a second and 256 MiB.
Result<MachineLimits> measure_machine_limits(std::int32_t threads);

// Bytes a second of each of `count` streaming reads, one after the other. What a machine reads that is shared
// with others changes from minute to minute: what a run read belongs beside what could be read just before
// and after it. Takes about 10 ms for each reading and half a second for the 256 MiB that are read.
Result<std::vector<double>> measure_reads(std::int32_t threads, std::int32_t count);

}  // namespace octavo::kernels
