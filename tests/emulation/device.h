// The emulated device behind the runtime's calls, for the files of the runtime only: streams, events,
// captures, and the lock under which every call works.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulation/device_memory.h"
#include "tests/emulation/emulation.h"

namespace octavo::emulation {

using Work = std::function<void()>;

// What stream work does to events: `version` is the record that counts, the newest when the call was made.
struct Operation {
  Work work;
  Event* records = nullptr;
  Event* waits_for = nullptr;
  std::int64_t version = 0;
};

// Captured work in the order of the calls, which is one of the orders that its events allow.
struct Graph {
  std::vector<Operation> operations;
};
struct GraphExecutable {
  std::vector<Operation> operations;
};

// While a stream captures: it and all streams that wait for its events give their work to one list.
struct Capture {
  std::vector<Operation> operations;
  Stream* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread{};
  bool is_broken = false;  // by a call that is not allowed
};

struct Stream {
  std::deque<Operation> queue;
  std::shared_ptr<Capture> capture;  // while it captures, or has joined another stream that does
  std::int64_t num_captured = 0;     // of its own
  bool is_joined = true;             // the capture waits for all of them elsewhere
};

struct Event {
  Stream* stream = nullptr;  // of the newest record
  std::int64_t version = 0, done = 0;
  bool tells_time = false;
  double time_us = 0.0;              // of the newest that is done
  std::shared_ptr<Capture> capture;  // recorded in it; the stream's work until then
  std::int64_t num_captured = 0;
};

// All of the device. Its functions are called under the lock.
class Device {
 public:
  DeviceMemory memory;
  Settings settings;
  std::vector<std::string> violations;
  cudaError_t error = cudaSuccess;  // sticky
  std::optional<std::int64_t> failing_call;
  cudaError_t injected = cudaSuccess;
  std::int64_t num_calls = 0, num_launches = 0;
  Copies copies_to_device, copies_to_host;
  double now_us = 0.0;
  std::int64_t num_single_launches = 0, num_graph_launches = 0, num_captures = 0;
  std::int64_t num_allocations = 0;
  std::set<const void*> loaded_kernels;
  std::set<std::unique_ptr<Stream>> streams;
  std::set<std::unique_ptr<Event>> events;
  std::set<std::unique_ptr<Graph>> graphs;
  std::set<std::unique_ptr<GraphExecutable>> executables;
  std::set<std::shared_ptr<Capture>> captures;
  std::map<const void*, int> shared_limits;  // of kernels that asked for more
  std::recursive_mutex mutex;

  void violate(const std::string& what, cudaError_t code);
  void give(Stream& stream, Operation operation);
  void run_one(Stream& stream);
  void run_all(Stream& stream);
  void run_until(Event& event, std::int64_t version);
  void run_everything();
  // For calls that wait for the device or may do so: not while this thread captures, unless the capture is
  // relaxed. Breaks the capture.
  cudaError_t refuse_in_capture();
};

Device& device();

// Every call: counted, refused once the device has failed.
template <class Function>
cudaError_t call(Function function) {
  Device& self = device();
  const std::lock_guard lock(self.mutex);
  if (self.failing_call == self.num_calls) self.error = self.injected;
  ++self.num_calls;
  if (self.error != cudaSuccess) return self.error;
  const cudaError_t code = function(self);
  return self.error != cudaSuccess ? self.error : code;
}

template <class Function>
cudaError_t waiting_call(Function function) {
  return call([&](Device& self) {
    const cudaError_t refused = self.refuse_in_capture();
    return refused != cudaSuccess ? refused : function(self);
  });
}

}  // namespace octavo::emulation
