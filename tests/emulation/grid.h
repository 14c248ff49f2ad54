// One launch of a kernel on the processor: blocks one after the other, a block's threads as fibers. A thread
// runs until it has to meet others, at a barrier or in what a warp does together; so between two meetings
// threads run one after the other, ascending or descending. Whatever two threads do to the same memory
// between meetings therefore happens in one order in one run and in the other order in the other: results
// that differ in a bit are a race.
//
// Copies beside the program (cp.async) are done as late as they may be when ascending, at once when
// descending: who reads too early, or writes too late, gets other bytes in one of the runs.
//
// Violations that a run finds by itself: a barrier that not all threads of the block come to, or not to the
// same one; lanes that do not come together; memory that is not the device's; a thread that never awaited its
// inputs, though the kernel was started so. The run ends at the first.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>

namespace octavo::emulation {

enum class ThreadOrder { kAscending, kDescending };

struct GridShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  bool awaits_inputs = false;
  std::uint64_t most_blocks = 0;  // Settings::most_blocks
};

// Calls `thread` once for each thread. Returns a violation as a sentence, empty if there was none. One grid
// at a time.
std::string run_grid(const GridShape& shape, const std::function<void()>& thread, ThreadOrder order);

}  // namespace octavo::emulation
