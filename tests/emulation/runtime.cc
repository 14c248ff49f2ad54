// The runtime's calls: memory, copies, launches. Streams, events and graphs: streams.cc.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "tests/emulation/device.h"
#include "tests/emulation/grid.h"

namespace octavo::emulation {
namespace {

constexpr std::size_t kUsualSharedBytes = 48 * 1024, kMostSharedBytes = 227 * 1024;

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

// When work runs: a graph may hold addresses of memory that was freed after its capture.
bool is_there(const void* address, std::size_t bytes) {
  if (device().memory.place_of(address, bytes) != DeviceMemory::Place::kOutside) return true;
  device().violate("work in a stream uses memory that was freed", cudaErrorIllegalAddress);
  return false;
}

void copy_bytes(void* target, const void* source, std::size_t bytes) {
  if (!is_there(target, bytes) || !is_there(source, bytes)) return;
  std::vector<DeviceMemory::Use> uses;
  device().memory.add_use(target, true, uses);
  device().memory.add_use(source, false, uses);
  const OpenMemory open(std::move(uses));
  std::memmove(target, source, bytes);
  const auto is_device = [bytes](const void* address) {
    return device().memory.place_of(address, bytes) == DeviceMemory::Place::kDevice;
  };
  if (is_device(source) == is_device(target)) return;
  Copies& copies = is_device(source) ? device().copies_to_host : device().copies_to_device;
  ++copies.count;
  copies.bytes += static_cast<std::int64_t>(bytes);
}

void fill_bytes(void* target, int byte, std::size_t bytes) {
  if (!is_there(target, bytes)) return;
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
  for (const DeviceMemory::Use& use : uses) {
    if (!is_there(use.data, use.bytes)) return;
  }
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
  for (const auto& stream : device().streams) {
    stream->queue.clear();
    stream->capture = nullptr;
    stream->is_joined = true;
  }
  for (const auto& event : device().events) event->capture = nullptr;
  device().captures.clear();
}

std::int64_t allocated_bytes() { return device().memory.allocated_bytes(); }
std::int64_t num_launches() { return device().num_launches; }
Copies copies_to_device() { return device().copies_to_device; }
Copies copies_to_host() { return device().copies_to_host; }
std::int64_t num_single_launches() { return device().num_single_launches; }
std::int64_t num_graph_launches() { return device().num_graph_launches; }
std::int64_t num_captures() { return device().num_captures; }
std::int64_t num_loaded_kernels() { return static_cast<std::int64_t>(device().loaded_kernels.size()); }
void unload_kernels() { device().loaded_kernels.clear(); }
std::int64_t num_allocations() { return device().num_allocations; }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  return call([&](Device& self) {
    const bool is_captured = stream->capture != nullptr;
    if (self.settings.loses && self.settings.loses({.is_of_library = true, .is_captured = is_captured}))
      return cudaSuccess;
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
    GridShape shape{config.gridDim, config.blockDim, config.dynamicSmemBytes};
    for (unsigned i = 0; i < config.numAttrs; ++i)
      shape.awaits_inputs |= config.attrs[i].val.programmaticStreamSerializationAllowed != 0;
    shape.most_blocks = self.settings.most_blocks;
    self.loaded_kernels.insert(kernel);
    const bool is_captured = config.stream->capture != nullptr;
    if (!is_captured) ++self.num_single_launches;
    if (self.settings.loses &&
        self.settings.loses({.arguments = {arguments, num_arguments}, .is_captured = is_captured})) {
      return cudaSuccess;
    }
    self.give(*config.stream, {.work = [shape, thread = std::move(thread), uses = std::move(uses)] {
      run_launch(shape, thread, uses);
    }});
    return cudaSuccess;
  });
}

}  // namespace octavo::emulation

constexpr int kComputeCapabilityMajor = 9;

using octavo::emulation::call;
using octavo::emulation::Device;
using octavo::emulation::device;
using octavo::emulation::waiting_call;

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorIllegalState: return "cudaErrorIllegalState";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnmatched: return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined: return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation: return "cudaErrorStreamCaptureIsolation";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread: return "cudaErrorStreamCaptureWrongThread";
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
cudaError_t cudaGetDevice(int* index) {
  return call([&](Device&) {
    *index = 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  return call([&](Device&) {
    *value = kComputeCapabilityMajor;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return call([&](Device& self) {
    *properties = {};
    std::strcpy(properties->name, "emulated grid");
    properties->totalGlobalMem = static_cast<std::size_t>(self.settings.total_bytes);
    properties->sharedMemPerBlockOptin = octavo::emulation::kMostSharedBytes;
    properties->sharedMemPerMultiprocessor = octavo::emulation::kMostSharedBytes + 1024;
    properties->major = kComputeCapabilityMajor;
    properties->minor = 0;
    properties->warpSize = self.settings.warp_size;
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
  return waiting_call([](Device& self) {
    self.run_everything();
    return cudaSuccess;
  });
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return waiting_call([&](Device& self) {
    ++self.num_allocations;
    *memory = self.memory.allocate(bytes, self.settings.total_bytes);
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
// Freeing waits for everything, and works on a device that has failed too: owners have to end.
cudaError_t cudaFree(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (memory == nullptr) return cudaSuccess;
  const cudaError_t refused = device().refuse_in_capture();
  if (refused != cudaSuccess) return refused;
  device().run_everything();
  if (!device().memory.release(memory))
    device().violate("cudaFree of what is no allocation", cudaErrorInvalidValue);
  return device().error;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return waiting_call([&](Device& self) {
    ++self.num_allocations;
    *memory = self.memory.allocate_pinned(bytes);
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
cudaError_t cudaFreeHost(void* memory) {
  const std::lock_guard lock(device().mutex);
  if (memory == nullptr) return cudaSuccess;
  const cudaError_t refused = device().refuse_in_capture();
  if (refused != cudaSuccess) return refused;
  device().run_everything();
  if (!device().memory.release_pinned(memory)) {
    device().violate("cudaFreeHost of what is no allocation", cudaErrorInvalidValue);
  }
  return device().error;
}

// Streams that do not block do not wait for it, nor it for them.
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind) {
  return waiting_call([&](Device& self) {
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
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (!octavo::emulation::may_copy(self, target, source, bytes, octavo::emulation::Host::kPinned)) {
      return cudaErrorInvalidValue;
    }
    self.give(*stream, {.work = [=, &self] {
      octavo::emulation::copy_bytes(target, source, bytes);
      const double rate = self.settings.copied_bytes_per_us;
      if (rate > 0.0) self.now_us += static_cast<double>(bytes) / rate;
    }});
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
  return waiting_call([&](Device& self) {
    if (!octavo::emulation::may_copy(self, target, bytes, octavo::emulation::Host::kPinned, "the target")) {
      return cudaErrorInvalidValue;
    }
    octavo::emulation::fill_bytes(target, byte, bytes);
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void* target, int byte, std::size_t bytes, cudaStream_t stream) {
  return call([&](Device& self) {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (!octavo::emulation::may_copy(self, target, bytes, octavo::emulation::Host::kPinned, "the target")) {
      return cudaErrorInvalidValue;
    }
    self.give(*stream, {.work = [=] { octavo::emulation::fill_bytes(target, byte, bytes); }});
    return cudaSuccess;
  });
}

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
