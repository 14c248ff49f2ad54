#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {
namespace {

// Whether kernels may begin while the one before them runs.
Result<bool> has_overlap() {
#ifdef OCTAVO_HIP
  return false;
#else
  constexpr int kFromMajor = 9;  // compute capability
  int device = 0, major = 0;
  OCTAVO_TRY_VOID(checked(cudaGetDevice(&device), "cudaGetDevice"));
  OCTAVO_TRY_VOID(checked(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                          "cudaDeviceGetAttribute"));
  return major >= kFromMajor;
#endif
}

Error allocation_error(cudaError_t code, const char* purpose, std::int64_t bytes, const char* call) {
  if (code != cudaErrorMemoryAllocation) return Error{ErrorCode::kDevice, describe(code, call)};
  return Error{ErrorCode::kOutOfMemory, std::string(purpose) + " needs " + std::to_string(bytes) +
                                            " bytes, which the device refused; choose a smaller size"};
}

std::string name_of_kernel(const void* kernel) {
  const char* name = nullptr;
  return cudaFuncGetName(&name, kernel) == cudaSuccess && name != nullptr ? name : "a kernel";
}

std::string text_of(const dim3& size) {
  return std::to_string(size.x) + " x " + std::to_string(size.y) + " x " + std::to_string(size.z);
}

}  // namespace

std::string describe(cudaError_t code, const char* call) {
  return std::string(call) + ": " + cudaGetErrorString(code) + " (" + std::to_string(static_cast<int>(code)) +
         ")";
}

Result<void> checked(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return {};
  const ErrorCode kind = code == cudaErrorMemoryAllocation ? ErrorCode::kOutOfMemory : ErrorCode::kDevice;
  return Error{kind, describe(code, call)};
}

void DeviceStatus::check(cudaError_t code, const char* call) {
  if (code == cudaSuccess || !ok()) return;
  error_ = code;
  call_ = call;
}

void DeviceStatus::check_launch(cudaError_t code, const void* kernel) {
  if (code == cudaSuccess || !ok()) return;
  error_ = code;
  call_ = "starting " + name_of_kernel(kernel);
}

void DeviceStatus::refuse_launch(const LaunchShape& shape, const void* kernel) {
  if (!ok()) return;
  error_ = cudaErrorInvalidConfiguration;
  call_ = "starting " + name_of_kernel(kernel) + " with a grid of " + text_of(shape.grid) +
          " blocks, each of " + text_of(shape.block) + " threads";
}

Result<void> DeviceStatus::result() const {
  if (ok()) return {};
  return Error{ErrorCode::kDeviceLost, "the GPU failed (" + describe(error_, call_.c_str()) +
                                           "); your chats are safe: continue on the CPU, or restart Octavo"};
}

template <MemoryKind kKind>
Result<OwnedMemory<kKind>> OwnedMemory<kKind>::allocate(std::int64_t bytes, const char* purpose) {
  constexpr bool kIsDevice = kKind == MemoryKind::kDevice;
  OwnedMemory memory;
  if (bytes == 0) return Result<OwnedMemory>(std::move(memory));
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const cudaError_t code =
      kIsDevice ? cudaMalloc(&data, size) : cudaHostAlloc(&data, size, cudaHostAllocDefault);
  if (code != cudaSuccess) {
    (void)cudaGetLastError();  // a refused allocation is not sticky; the next check must not find it
    return allocation_error(code, purpose, bytes, kIsDevice ? "cudaMalloc" : "cudaHostAlloc");
  }
  memory.data_ = static_cast<std::byte*>(data);
  memory.bytes_ = bytes;
  return Result<OwnedMemory>(std::move(memory));
}

// A failure to free is one of an earlier operation, which the status of its stream has told.
template <MemoryKind kKind>
OwnedMemory<kKind>::~OwnedMemory() {
  if (data_ != nullptr) (void)(kKind == MemoryKind::kDevice ? cudaFree(data_) : cudaFreeHost(data_));
}

template class OwnedMemory<MemoryKind::kDevice>;
template class OwnedMemory<MemoryKind::kPinned>;

Result<void> upload_to(void* target, const void* source, std::int64_t bytes) {
  if (bytes == 0) return {};
  OCTAVO_TRY_VOID(checked(cudaMemcpy(target, source, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice),
                          "cudaMemcpy"));
  return checked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Result<DeviceMemory> upload(const void* source, std::int64_t bytes, const char* purpose) {
  OCTAVO_TRY(DeviceMemory memory, DeviceMemory::allocate(bytes, purpose));
  OCTAVO_TRY_VOID(upload_to(memory.data(), source, bytes));
  return Result<DeviceMemory>(std::move(memory));
}

Result<Event> Event::create(Kind kind) {
  const unsigned flags = kind == Kind::kTellsTime ? cudaEventDefault : cudaEventDisableTiming;
  cudaEvent_t event = nullptr;
  OCTAVO_TRY_VOID(checked(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags"));
  return Event(event);
}

Event::~Event() {
  if (event_ != nullptr) (void)cudaEventDestroy(event_);
}

Result<Stream> Stream::create(DeviceStatus& status) {
  OCTAVO_TRY(const bool overlaps, has_overlap());
  cudaStream_t stream = nullptr;
  OCTAVO_TRY_VOID(
      checked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  return Stream(status, stream, overlaps);
}

// Memory that the stream's last work uses may be freed next.
Stream::~Stream() {
  if (stream_ == nullptr) return;
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
}

void Stream::copy(void* target, const void* source, std::int64_t bytes) {
  if (!status_->ok() || bytes == 0) return;
  status_->check(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_),
                 "cudaMemcpyAsync");
}

void Stream::fill(void* target, std::uint8_t byte, std::int64_t bytes) {
  if (!status_->ok() || bytes == 0) return;
  status_->check(cudaMemsetAsync(target, byte, static_cast<std::size_t>(bytes), stream_), "cudaMemsetAsync");
}

void Stream::record(const Event& event) {
  if (status_->ok()) status_->check(cudaEventRecord(event.handle(), stream_), "cudaEventRecord");
}

void Stream::wait_for(const Event& event) {
  if (status_->ok()) status_->check(cudaStreamWaitEvent(stream_, event.handle(), 0), "cudaStreamWaitEvent");
}

void Stream::synchronize() {
  if (status_->ok()) status_->check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

void Stream::await(const Event& event) {
  if (status_->ok()) status_->check(cudaEventSynchronize(event.handle()), "cudaEventSynchronize");
}

}  // namespace octavo::kernels::cuda
