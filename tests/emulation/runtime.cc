// The runtime's calls: memory, copies, streams, events, graphs, launches.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "tests/emulation/device_memory.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/grid.h"

namespace octavo::emulation {
namespace {

constexpr std::size_t kUsualSharedBytes = 48 * 1024, kMostSharedBytes = 227 * 1024;

using Work = std::function<void()>;

}  // namespace

// What stream work does to events: `version` is the record that counts, the newest when the call was made.
struct Operation {
  Work work;
  Event* records = nullptr;
  Event* waits_for = nullptr;
  std::int64_t version = 0;
};

struct Graph {
  std::vector<Operation> operations;
};

struct Stream {
  std::deque<Operation> queue;
  std::shared_ptr<Graph> capture;  // while it captures, or has joined another stream that does
  bool began_capture = false;
};

struct Event {
  Stream* stream = nullptr;  // of the newest record
  std::int64_t version = 0, done = 0;
  std::shared_ptr<Graph> capture;
};

namespace {

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
  std::set<std::unique_ptr<Stream>> streams;
  std::set<std::unique_ptr<Event>> events;
  std::set<std::unique_ptr<Graph>> graphs;
  std::map<const void*, int> shared_limits;  // of kernels that asked for more
  std::recursive_mutex mutex;

  void violate(const std::string& what, cudaError_t code) {
    violations.push_back(what);
    if (error == cudaSuccess) error = code;
  }

  void give(Stream& stream, Operation operation) {
    if (stream.capture != nullptr) {
      stream.capture->operations.push_back(std::move(operation));
      return;
    }
    stream.queue.push_back(std::move(operation));
    if (settings.stream_order == StreamOrder::kAtOnce) run_all(stream);
  }

  void run_one(Stream& stream) {
    const Operation operation = std::move(stream.queue.front());
    stream.queue.pop_front();
    if (operation.waits_for != nullptr) run_until(*operation.waits_for, operation.version);
    if (operation.work && error == cudaSuccess) operation.work();
    if (operation.records != nullptr)
      operation.records->done = std::max(operation.records->done, operation.version);
  }
  void run_all(Stream& stream) {
    while (!stream.queue.empty()) run_one(stream);
  }
  void run_until(Event& event, std::int64_t version) {
    while (event.done < version && event.stream != nullptr && !event.stream->queue.empty())
      run_one(*event.stream);
  }
  void run_everything() {
    for (const auto& stream : streams) run_all(*stream);
  }
};

Device& device() {
  static Device* const the_device = new Device;  // outlives every owner
  return *the_device;
}

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

enum class Host { kPinned, kAny };

// Whether a copy's range is one that it may touch.
bool may_copy(Device& self, const void* address, std::size_t bytes, Host host, const char* what) {
  switch (self.memory.place_of(address, bytes)) {
    case DeviceMemory::Place::kDevice:
    case DeviceMemory::Place::kPinned: return true;
    case DeviceMemory::Place::kPageable:
      if (host == Host::kAny) return true;
      self.violate(std::string(what) + " of an asynchronous copy is not pinned", cudaErrorInvalidValue);
      return false;
    case DeviceMemory::Place::kOutside:
      self.violate(
          std::string(what) + " of a copy of " + std::to_string(bytes) + " bytes leaves its allocation",
          cudaErrorInvalidValue);
      return false;
  }
  return false;
}

bool may_copy(Device& self, void* target, const void* source, std::size_t bytes, Host host) {
  return may_copy(self, target, bytes, host, "the target") &&
         may_copy(self, source, bytes, host, "the source");
}

void copy_bytes(void* target, const void* source, std::size_t bytes) {
  std::vector<DeviceMemory::Use> uses;
  device().memory.add_use(target, true, uses);
  device().memory.add_use(source, false, uses);
  const OpenMemory open(std::move(uses));
  std::memmove(target, source, bytes);
}

void fill_bytes(void* target, int byte, std::size_t bytes) {
  std::vector<DeviceMemory::Use> uses;
  device().memory.add_use(target, true, uses);
  const OpenMemory open(std::move(uses));
  std::memset(target, byte, bytes);
}

bool is_valid(const cudaLaunchConfig_t& config, int shared_limit) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535 && threads > 0 && threads <= 1024 && block.z <= 64 &&
         config.dynamicSmemBytes <= static_cast<std::size_t>(shared_limit);
}

// Adds the allocations that the argument names: what a kernel gets no address of it cannot use. An argument
// that is a pointer to const is not written through.
void take_argument(Device& self, const ArgumentBytes& argument, std::size_t index,
                   std::vector<DeviceMemory::Use>& uses) {
  for (std::size_t offset = 0; offset + 8 <= argument.size; offset += 8) {
    std::uint64_t word;
    std::memcpy(&word, static_cast<const std::byte*>(argument.bytes) + offset, 8);
    const auto* address = reinterpret_cast<const void*>(word);
    self.memory.add_use(address, !argument.is_const, uses);
    const bool is_foreign = argument.is_pointer ? address != nullptr && self.memory.place_of(address, 0) ==
                                                                            DeviceMemory::Place::kPageable
                                                : self.memory.is_pageable_address(word);
    if (!is_foreign) continue;
    self.violate("argument " + std::to_string(index) + " of a kernel holds an address of the host's",
                 cudaErrorIllegalAddress);
  }
}

void run_launch(const GridShape& shape, const std::function<void()>& thread,
                const std::vector<DeviceMemory::Use>& uses) {
  Device& self = device();
  OpenMemory open(uses);
  ++self.num_launches;
  std::vector<std::byte> before;
  if (self.settings.finds_races) before = open.image();
  std::string violation = run_grid(shape, thread, ThreadOrder::kAscending);
  if (violation.empty() && self.settings.finds_races) {
    const std::vector<std::byte> ascending = open.image();
    open.set_image(before);
    violation = run_grid(shape, thread, ThreadOrder::kDescending);
    const std::string difference = open.difference(ascending);
    if (violation.empty() && !difference.empty())
      violation = "a race: threads in another order give another " + difference;
  }
  if (violation.empty()) violation = open.broken_border();
  if (!violation.empty()) self.violate(violation, cudaErrorLaunchFailure);
}

}  // namespace

Settings& settings() { return device().settings; }

std::vector<std::string> take_violations() {
  const std::lock_guard lock(device().mutex);
  return std::exchange(device().violations, {});
}

void fail_call(std::int64_t number, cudaError_t error) {
  const std::lock_guard lock(device().mutex);
  device().failing_call = device().num_calls + number;
  device().injected = error;
}

std::int64_t num_calls() { return device().num_calls; }

void heal() {
  const std::lock_guard lock(device().mutex);
  device().error = cudaSuccess;
  device().failing_call.reset();
  device().settings = {};
  for (const auto& stream : device().streams) stream->queue.clear();
}

std::int64_t allocated_bytes() { return device().memory.allocated_bytes(); }
std::int64_t num_launches() { return device().num_launches; }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  return call([&](Device& self) {
    self.give(*stream, {.work = [work = std::move(work)] {
      const OpenMemory open(device().memory.all_uses());
      work();
    }});
    return cudaSuccess;
  });
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                          const ArgumentBytes* arguments, std::size_t num_arguments,
                          std::function<void()> thread) {
  return call([&](Device& self) {
    const auto limit = self.shared_limits.find(kernel);
    if (!is_valid(config,
                  limit == self.shared_limits.end() ? static_cast<int>(kUsualSharedBytes) : limit->second)) {
      return cudaErrorInvalidConfiguration;
    }
    if (config.stream == nullptr) return cudaErrorInvalidResourceHandle;  // we name our streams
    std::vector<DeviceMemory::Use> uses;
    for (std::size_t i = 0; i < num_arguments; ++i) take_argument(self, arguments[i], i, uses);
    const GridShape shape{config.gridDim, config.blockDim, config.dynamicSmemBytes};
    self.give(*config.stream, {.work = [shape, thread = std::move(thread), uses = std::move(uses)] {
      run_launch(shape, thread, uses);
    }});
    return cudaSuccess;
  });
}

}  // namespace octavo::emulation

using octavo::emulation::call;
using octavo::emulation::Device;
using octavo::emulation::device;
using octavo::emulation::Operation;

namespace {

template <class T>
bool erase(std::set<std::unique_ptr<T>>& set, T* element) {
  const auto found =
      std::find_if(set.begin(), set.end(), [element](const auto& each) { return each.get() == element; });
  if (found == set.end()) return false;
  set.erase(found);
  return true;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorUnknown: return "cudaErrorUnknown";
  }
  return "another error";
}
const char* cudaGetErrorString(cudaError_t code) { return cudaGetErrorName(code); }

cudaError_t cudaGetLastError() { return device().error; }
cudaError_t cudaPeekAtLastError() { return device().error; }

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Device& self) {
    *count = self.settings.num_devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
cudaError_t cudaSetDevice(int index) {
  return call(
      [&](Device& self) { return index < self.settings.num_devices ? cudaSuccess : cudaErrorNoDevice; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return call([&](Device& self) {
    *properties = {};
    std::strcpy(properties->name, "emulated grid");
    properties->totalGlobalMem = static_cast<std::size_t>(self.settings.total_bytes);
    properties->sharedMemPerBlockOptin = octavo::emulation::kMostSharedBytes;
    properties->major = 9;
    properties->minor = 0;
    properties->multiProcessorCount = 4;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
  });
}
cudaError_t cudaDriverGetVersion(int* version) {
  return call([&](Device&) {
    *version = 13000;
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return call([&](Device& self) {
    *total_bytes = static_cast<std::size_t>(self.settings.total_bytes);
    *free_bytes = static_cast<std::size_t>(
        std::max(self.settings.total_bytes - self.memory.allocated_bytes(), std::int64_t{0}));
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceSynchronize() {
  return call([](Device& self) {
    self.run_everything();
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call([&](Device& self) {
    *memory = self.memory.allocate(bytes, self.settings.total_bytes);
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
// Freeing waits for everything, and works on a device that has failed too: owners have to end.
cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (memory == nullptr) return cudaSuccess;
  device().run_everything();
  if (!device().memory.release(memory))
    device().violate("cudaFree of what is no allocation", cudaErrorInvalidValue);
  return device().error;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return call([&](Device& self) {
    *memory = self.memory.allocate_pinned(bytes);
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaFreeHost(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (memory == nullptr) return cudaSuccess;
  device().run_everything();
  if (!device().memory.release_pinned(memory)) {
    device().violate("cudaFreeHost of what is no allocation", cudaErrorInvalidValue);
  }
  return device().error;
}

// Streams that do not block do not wait for it, nor it for them.
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind) {
  return call([&](Device& self) {
    if (!octavo::emulation::may_copy(self, target, source, bytes, octavo::emulation::Host::kAny)) {
      return cudaErrorInvalidValue;
    }
    octavo::emulation::copy_bytes(target, source, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return call([&](Device& self) {
    if (!octavo::emulation::may_copy(self, target, source, bytes, octavo::emulation::Host::kPinned)) {
      return cudaErrorInvalidValue;
    }
    self.give(*stream, {.work = [=] { octavo::emulation::copy_bytes(target, source, bytes); }});
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t code =
        cudaMemcpyAsync(static_cast<std::byte*>(target) + row * target_pitch,
                        static_cast<const std::byte*>(source) + row * source_pitch, width, kind, stream);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}
cudaError_t cudaMemset(void* target, int byte, std::size_t bytes) {
  return call([&](Device& self) {
    if (!octavo::emulation::may_copy(self, target, bytes, octavo::emulation::Host::kPinned, "the target")) {
      return cudaErrorInvalidValue;
    }
    octavo::emulation::fill_bytes(target, byte, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void* target, int byte, std::size_t bytes, cudaStream_t stream) {
  return call([&](Device& self) {
    if (!octavo::emulation::may_copy(self, target, bytes, octavo::emulation::Host::kPinned, "the target")) {
      return cudaErrorInvalidValue;
    }
    self.give(*stream, {.work = [=] { octavo::emulation::fill_bytes(target, byte, bytes); }});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return call([&](Device& self) {
    *stream = self.streams.insert(std::make_unique<octavo::emulation::Stream>()).first->get();
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(device().mutex);
  device().run_all(*stream);
  for (const auto& event : device().events) {
    if (event->stream == stream) event->stream = nullptr;
  }
  return erase(device().streams, stream) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&](Device& self) {
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    self.run_all(*stream);
    return cudaSuccess;
  });
}
// Whoever asks again and again has to see an end: each time one piece of work is done.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&](Device& self) {
    if (stream->queue.empty()) return cudaSuccess;
    self.run_one(*stream);
    return cudaErrorNotReady;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call([&](Device& self) {
    if (event->capture != nullptr) {
      stream->capture = event->capture;  // a fork within a capture, whose list is in the order of the calls
      return cudaSuccess;
    }
    self.give(*stream, {.work = {}, .waits_for = event, .version = event->version});
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return call([&](Device& self) {
    *event = self.events.insert(std::make_unique<octavo::emulation::Event>()).first->get();
    return cudaSuccess;
  });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(device().mutex);
  device().run_everything();  // nobody may name it any more
  return erase(device().events, event) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&](Device& self) {
    event->capture = stream->capture;
    if (stream->capture != nullptr) return cudaSuccess;
    event->stream = stream;
    ++event->version;
    self.give(*stream, {.work = {}, .records = event, .version = event->version});
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&](Device& self) {
    self.run_until(*event, event->version);
    return cudaSuccess;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&](Device& self) {
    if (event->done >= event->version) return cudaSuccess;
    if (event->stream != nullptr && !event->stream->queue.empty()) self.run_one(*event->stream);
    return cudaErrorNotReady;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return call([&](Device&) {
    if (stream->capture != nullptr) return cudaErrorStreamCaptureUnsupported;
    stream->capture = std::make_shared<octavo::emulation::Graph>();
    stream->began_capture = true;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&](Device& self) {
    if (!stream->began_capture) return cudaErrorStreamCaptureUnsupported;
    const auto capture = stream->capture;
    *graph = self.graphs.insert(std::make_unique<octavo::emulation::Graph>(*capture)).first->get();
    stream->began_capture = false;
    for (const auto& each : self.streams) {
      if (each->capture == capture) each->capture = nullptr;
    }
    for (const auto& each : self.events) {
      if (each->capture == capture) each->capture = nullptr;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call([&](Device& self) {
    *executable = self.graphs.insert(std::make_unique<octavo::emulation::Graph>(*graph)).first->get();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call([&](Device& self) {
    for (const Operation& operation : executable->operations) self.give(*stream, operation);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const std::lock_guard lock(device().mutex);
  return erase(device().graphs, graph) ? device().error : cudaErrorInvalidResourceHandle;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return cudaGraphDestroy(executable); }

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  return call([&](Device& self) {
    if (value < 0 || static_cast<std::size_t>(value) > octavo::emulation::kMostSharedBytes)
      return cudaErrorInvalidValue;
    self.shared_limits[kernel] = value;
    return cudaSuccess;
  });
}
cudaError_t cudaFuncGetName(const char** name, const void*) {
  *name = "a kernel";
  return cudaSuccess;
}
