// A device on the processor, behind the names of the CUDA runtime (include/cuda_runtime.h): what tests ask
// it, and what they can make it do. It is stricter than a device:
//
//   memory    Allocations end at a page that may not be touched, and the host may not touch them at all:
//             outside of kernels and copies their pages are closed. A kernel can use those whose addresses
//             stand in its arguments, and write those that it has other than as a pointer to const. New
//             memory is filled with NaNs. What looks like an address inside an argument must be the device's
//             or pinned.
//   copies    Ranges are checked; asynchronous ones need pinned memory on the host's side.
//   races     Every launch runs twice from the same memory, threads and blocks ascending, then descending
//             (grid.h): bytes that differ are a race.
//   streams   Work waits until somebody waits for it, and then only what that needs runs (kWhenNeeded): an
//             order that the program did not ask for does not happen by luck. kAtOnce is the opposite; a
//             program that is right gives the same with both.
//   graphs    Arguments of kernels are taken when they are captured, memory that is copied is read when the
//             graph runs. What waits for the device, or may, breaks a capture, as does waiting for an event
//             from outside of it, and a product of the library that is the first of its shape. Memory that
//             was freed between capture and launch is found.
//   loading   A kernel's code is loaded when it is first started, as by a driver that loads lazily, which
//   takes
//             time and memory: how many were, and how often memory was allocated, can be asked.
//   time      Passes while asynchronous copies run, as the settings say, and nowhere else.
//   library   An algorithm runs the shape that it was chosen for, and others after a check alone.
//   failures  The n-th call fails, and from then on all do; or a device that says nothing loses launches; or
//             the library refuses.
//
// What is wrong is remembered as a violation, and the call or a later one fails with an error that stays.
// Thread: the runtime may be called from any thread, one call at a time inside.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace octavo::emulation {

enum class StreamOrder { kWhenNeeded, kAtOnce };

// Work that a test may want to know again: a kernel by its arguments, or a product of the library.
struct Launch {
  std::span<const ArgumentBytes> arguments = {};
  bool is_of_library = false;
  bool is_captured = false;  // into a graph
};

// What the matrix library is asked: to choose an algorithm, whether one serves, to multiply.
struct LibraryCall {
  enum class Kind { kChoose, kCheck, kMultiply };
  Kind kind = Kind::kChoose;
  cudaDataType_t type = CUDA_R_16F;
  std::int64_t outputs = 0, rows = 0, columns = 0;  // of the result, and what is summed up
};

struct Settings {
  bool finds_races = true;  // off: each launch runs once
  StreamOrder stream_order = StreamOrder::kWhenNeeded;
  std::int64_t total_bytes = std::int64_t{2} << 30;  // of device memory
  int num_devices = 1;
  // Of a launch with more blocks only so many run, evenly spread, the first and the last among them: for
  // shapes that would take minutes. 0: all.
  std::uint64_t most_blocks = 0;
  std::function<bool(const Launch&)> loses = {};  // a broken device: these launches do nothing
  // What the library answers instead of doing it; success: it does it.
  std::function<cublasStatus_t(const LibraryCall&)> library_answers = {};
  int warp_size = 32;                // that it says it has
  double copied_bytes_per_us = 0.0;  // by asynchronous copies, for events that tell the time; 0: in no time
};
Settings& settings();

// What was found since the last call.
std::vector<std::string> take_violations();

// The call with that number fails, 0 being the next one, and all after it.
void fail_call(std::int64_t number, cudaError_t error);
// Since the program began: to know how many numbers fail_call() has.
std::int64_t num_calls();
// A device that failed works again; streams forget what they had to do. Settings become those of the
// beginning.
void heal();

// Work of a library in the stream: it may use the device's memory.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

// Device memory in use, and the kernels that ran.
std::int64_t allocated_bytes();
std::int64_t num_launches();
// What copies took from the host's memory to the device's, and back.
struct Copies {
  std::int64_t count = 0, bytes = 0;
};
Copies copies_to_device();
Copies copies_to_host();

// Calls that started one kernel, those that started a graph, and captures that ended well.
std::int64_t num_single_launches();
std::int64_t num_graph_launches();
std::int64_t num_captures();

// Kernels that were started since the program began, or since it forgot them: those whose code is loaded.
std::int64_t num_loaded_kernels();
void unload_kernels();
// Allocations of device and pinned memory since the program began.
std::int64_t num_allocations();

}  // namespace octavo::emulation
