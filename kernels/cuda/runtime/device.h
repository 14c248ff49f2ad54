// What the operations need of the CUDA runtime: owners of memory, streams and events, checked calls, and the
// start of a kernel. No `<<<>>>` anywhere: the same sources compile by nvcc and, against tests/emulation, as
// plain C++.
//
// Errors. What happens while a model loads is a Result. What happens in a step is recorded in the
// DeviceStatus and stays there: CUDA's errors are sticky, so the first one is the story, and after it nothing
// more is started. Whoever runs steps asks once for each. Thread: one thread at a time for each object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "engine/base/result.h"
#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

struct LaunchShape;

// The first failure of a device, kept.
class DeviceStatus {
 public:
  bool ok() const { return error_ == cudaSuccess; }
  // Records `code`, if it is the first failure, as one of `call`.
  void check(cudaError_t code, const char* call);
  void check_launch(cudaError_t code, const void* kernel);
  // Of a kernel that was not started, because no device takes a launch of this shape.
  void refuse_launch(const LaunchShape& shape, const void* kernel);
  // Error kDeviceLost.
  Result<void> result() const;

 private:
  cudaError_t error_ = cudaSuccess;
  std::string call_;
};

// "cudaMalloc: out of memory (2)"
std::string describe(cudaError_t code, const char* call);
// For calls while loading: kDevice, or kOutOfMemory for cudaErrorMemoryAllocation.
Result<void> checked(cudaError_t code, const char* call);

enum class MemoryKind {
  kDevice,  // the device's own, aligned to 256
  kPinned,  // the host's, that the device copies from and to without a detour
};

// Bytes, contents undefined. Freed at the end; freeing waits for what still uses them.
template <MemoryKind kKind>
class OwnedMemory {
 public:
  OwnedMemory() = default;
  // `purpose` begins the sentence of an error: "the KV pool". 0 bytes: null.
  static Result<OwnedMemory> allocate(std::int64_t bytes, const char* purpose);
  OwnedMemory(OwnedMemory&& other) noexcept { swap(other); }
  OwnedMemory& operator=(OwnedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnedMemory();

  std::byte* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(OwnedMemory& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

using DeviceMemory = OwnedMemory<MemoryKind::kDevice>;
using PinnedMemory = OwnedMemory<MemoryKind::kPinned>;

// Copies while loading, from any memory of the host, and waits until the bytes have arrived: a copy from
// memory that is not pinned returns when its last part has been staged, and our streams do not wait for it by
// themselves.
Result<void> upload_to(void* target, const void* source, std::int64_t bytes);
// The same into memory of its own.
Result<DeviceMemory> upload(const void* source, std::int64_t bytes, const char* purpose);

// A point in a stream that another stream, or the host, can wait for.
class Event {
 public:
  enum class Kind : std::uint8_t { kPlain, kTellsTime };
  static Result<Event> create(Kind kind = Kind::kPlain);
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  ~Event();
  cudaEvent_t handle() const { return event_; }

 private:
  explicit Event(cudaEvent_t event) : event_(event) {}
  cudaEvent_t event_;
};

// Work in order. Failures go to the status that it was created with, which outlives it.
class Stream {
 public:
  static Result<Stream> create(DeviceStatus& status);
  Stream(Stream&& other) noexcept
      : status_(other.status_), stream_(std::exchange(other.stream_, nullptr)), overlaps_(other.overlaps_) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream();

  cudaStream_t handle() const { return stream_; }
  DeviceStatus& status() const { return *status_; }
  // Whether a kernel may begin while the one before it runs, if it awaits its inputs itself.
  bool overlaps() const { return overlaps_; }

  // `source` and `target` in either memory; from or to the host it must be pinned, and stay until the stream
  // has passed.
  void copy(void* target, const void* source, std::int64_t bytes);
  void fill(void* target, std::uint8_t byte, std::int64_t bytes);
  void record(const Event& event);
  void wait_for(const Event& event);
  // The host waits for all that the stream was given; or for what it was given before `event` was recorded.
  void synchronize();
  void await(const Event& event);

 private:
  Stream(DeviceStatus& status, cudaStream_t stream, bool overlaps)
      : status_(&status), stream_(stream), overlaps_(overlaps) {}
  DeviceStatus* status_;
  cudaStream_t stream_;
  bool overlaps_;
};

struct LaunchShape {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  // dynamic: dynamic_shared() in hardware.cuh
  bool awaits_inputs = false;    // the kernel does so itself, as hardware.cuh's await_inputs() says
};

// Whether every device takes it, but for the shared memory, which the device itself is asked for. Compute
// capabilities have these limits in common (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability").
constexpr bool is_startable(const LaunchShape& shape) {
  constexpr unsigned kMostGridX = 0x7fffffff, kMostGridYz = 65535, kMostBlockZ = 64, kMostThreads = 1024;
  const dim3 &grid = shape.grid, &block = shape.block;
  return grid.x <= kMostGridX && grid.y <= kMostGridYz && grid.z <= kMostGridYz && block.z <= kMostBlockZ &&
         std::uint64_t{block.x} * block.y * block.z <= kMostThreads;
}

// Dynamic shared memory that a kernel gets without asking for more: of 48 KiB some may be taken by what it
// declares itself.
inline constexpr std::size_t kUsualSharedBytes = 40 * 1024;

// Starts a kernel in the stream. A grid without blocks is nothing to do; one beyond a device's limits is a
// failure of the stream's.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), const LaunchShape& shape, Stream& stream,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  const bool is_empty = shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0;
  if (is_empty || !stream.status().ok()) return;
  const void* const name = reinterpret_cast<const void*>(kernel);
  if (!is_startable(shape)) return stream.status().refuse_launch(shape, name);
  if (shape.shared_bytes > kUsualSharedBytes) {
    const auto bytes = static_cast<int>(shape.shared_bytes);
    stream.status().check_launch(
        cudaFuncSetAttribute(name, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), name);
  }
#ifdef OCTAVO_HIP
  hipLaunchKernelGGL(kernel, shape.grid, shape.block, static_cast<unsigned>(shape.shared_bytes),
                     stream.handle(), static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  stream.status().check_launch(cudaGetLastError(), name);
#else
  cudaLaunchConfig_t config{};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream.handle();
  cudaLaunchAttribute overlap{};
  if (shape.awaits_inputs && stream.overlaps()) {
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &overlap;
    config.numAttrs = 1;
  }
  stream.status().check_launch(
      cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...),
      name);
#endif
}

// Ceiling of a division, for grids; what an unsigned number cannot hold is one that launch() refuses.
// Negative: not possible.
constexpr unsigned num_pieces(std::int64_t whole, std::int64_t piece) {
  const std::int64_t pieces = (whole + piece - 1) / piece;
  return static_cast<unsigned>(std::min<std::int64_t>(pieces, std::numeric_limits<unsigned>::max()));
}

}  // namespace octavo::kernels::cuda
