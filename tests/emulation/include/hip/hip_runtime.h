// The part of HIP that kernels/cuda uses, with HIP's names, on the same emulated device: every call is passed
// on to the one of cuda_runtime.h. Where an AMD card differs, this one does as the card: it has 64 KiB of
// shared memory for a block, and no kernel that begins before the one before it has ended.
//
// Names and meanings: HIP Runtime API, ROCm 6.3.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>
#include <utility>

namespace octavo::emulation {

inline constexpr std::size_t kHipSharedBytes = 64 * 1024;  // LDS, of a workgroup
inline cudaError_t last_hip_error = cudaSuccess;
std::byte* dynamic_shared_memory();

}  // namespace octavo::emulation

// ---- the language
#define HIP_DYNAMIC_SHARED(type, name) type* const name = octavo::emulation::dynamic_shared_memory();

template <class T>
T __shfl(T value, int lane, int width = 32) {
  return __shfl_sync(0xffffffffu, value, lane, width);
}
template <class T>
T __shfl_up(T value, unsigned lanes, int width = 32) {
  return __shfl_up_sync(0xffffffffu, value, lanes, width);
}
template <class T>
T __shfl_xor(T value, int lanes, int width = 32) {
  return __shfl_xor_sync(0xffffffffu, value, lanes, width);
}
inline unsigned long long __ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
inline int __any(int predicate) { return __any_sync(0xffffffffu, predicate); }
inline int __all(int predicate) { return __all_sync(0xffffffffu, predicate); }
inline void __builtin_amdgcn_fence(int, const char*) {}
inline void __builtin_amdgcn_wave_barrier() { __syncwarp(); }

// ---- the runtime
using hipError_t = cudaError_t;
inline constexpr hipError_t hipSuccess = cudaSuccess, hipErrorOutOfMemory = cudaErrorMemoryAllocation,
                            hipErrorInvalidConfiguration = cudaErrorInvalidConfiguration,
                            hipErrorInvalidValue = cudaErrorInvalidValue, hipErrorUnknown = cudaErrorUnknown;
using hipMemcpyKind = cudaMemcpyKind;
inline constexpr hipMemcpyKind hipMemcpyHostToDevice = cudaMemcpyHostToDevice,
                               hipMemcpyDeviceToHost = cudaMemcpyDeviceToHost,
                               hipMemcpyDefault = cudaMemcpyDefault;
inline constexpr cudaFuncAttribute hipFuncAttributeMaxDynamicSharedMemorySize =
    cudaFuncAttributeMaxDynamicSharedMemorySize;
using hipStreamCaptureMode = cudaStreamCaptureMode;
inline constexpr hipStreamCaptureMode hipStreamCaptureModeThreadLocal = cudaStreamCaptureModeThreadLocal;
inline constexpr unsigned hipStreamNonBlocking = cudaStreamNonBlocking, hipEventDefault = cudaEventDefault,
                          hipEventDisableTiming = cudaEventDisableTiming,
                          hipHostMallocDefault = cudaHostAllocDefault;
using hipStream_t = cudaStream_t;
using hipEvent_t = cudaEvent_t;
using hipGraph_t = cudaGraph_t;
using hipGraphExec_t = cudaGraphExec_t;

#define OCTAVO_PASS_ON(hip, cuda)                       \
  template <class... Arguments>                         \
  hipError_t hip(Arguments&&... arguments) {            \
    return cuda(std::forward<Arguments>(arguments)...); \
  }
OCTAVO_PASS_ON(hipDeviceSynchronize, cudaDeviceSynchronize)
OCTAVO_PASS_ON(hipDriverGetVersion, cudaDriverGetVersion)
OCTAVO_PASS_ON(hipEventCreateWithFlags, cudaEventCreateWithFlags)
OCTAVO_PASS_ON(hipEventDestroy, cudaEventDestroy)
OCTAVO_PASS_ON(hipEventElapsedTime, cudaEventElapsedTime)
OCTAVO_PASS_ON(hipEventRecord, cudaEventRecord)
OCTAVO_PASS_ON(hipEventSynchronize, cudaEventSynchronize)
OCTAVO_PASS_ON(hipFree, cudaFree)
OCTAVO_PASS_ON(hipGetDeviceCount, cudaGetDeviceCount)
OCTAVO_PASS_ON(hipGraphDestroy, cudaGraphDestroy)
OCTAVO_PASS_ON(hipGraphExecDestroy, cudaGraphExecDestroy)
OCTAVO_PASS_ON(hipGraphInstantiateWithFlags, cudaGraphInstantiate)
OCTAVO_PASS_ON(hipGraphLaunch, cudaGraphLaunch)
OCTAVO_PASS_ON(hipGraphUpload, cudaGraphUpload)
OCTAVO_PASS_ON(hipHostFree, cudaFreeHost)
OCTAVO_PASS_ON(hipHostMalloc, cudaHostAlloc)
OCTAVO_PASS_ON(hipMalloc, cudaMalloc)
OCTAVO_PASS_ON(hipMemGetInfo, cudaMemGetInfo)
OCTAVO_PASS_ON(hipMemcpy, cudaMemcpy)
OCTAVO_PASS_ON(hipMemcpyAsync, cudaMemcpyAsync)
OCTAVO_PASS_ON(hipMemsetAsync, cudaMemsetAsync)
OCTAVO_PASS_ON(hipSetDevice, cudaSetDevice)
OCTAVO_PASS_ON(hipStreamBeginCapture, cudaStreamBeginCapture)
OCTAVO_PASS_ON(hipStreamCreateWithFlags, cudaStreamCreateWithFlags)
OCTAVO_PASS_ON(hipStreamDestroy, cudaStreamDestroy)
OCTAVO_PASS_ON(hipStreamEndCapture, cudaStreamEndCapture)
OCTAVO_PASS_ON(hipStreamSynchronize, cudaStreamSynchronize)
OCTAVO_PASS_ON(hipStreamWaitEvent, cudaStreamWaitEvent)
#undef OCTAVO_PASS_ON

inline const char* hipGetErrorString(hipError_t code) { return cudaGetErrorString(code); }
inline hipError_t hipGetLastError() { return std::exchange(octavo::emulation::last_hip_error, hipSuccess); }
inline const char* hipKernelNameRefByPtr(const void*, hipStream_t) { return "a kernel"; }

struct hipDeviceProp_t {
  char name[256], gcnArchName[256];
  std::size_t totalGlobalMem, sharedMemPerBlock, maxSharedMemoryPerMultiProcessor;
  int major, minor;
  int warpSize;
  int multiProcessorCount;
};
inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  cudaDeviceProp same{};
  const hipError_t code = cudaGetDeviceProperties(&same, device);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "%s", same.name);
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "gfx1100");
  properties->totalGlobalMem = same.totalGlobalMem;
  properties->sharedMemPerBlock = octavo::emulation::kHipSharedBytes;
  properties->maxSharedMemoryPerMultiProcessor = octavo::emulation::kHipSharedBytes;
  properties->major = 11;
  properties->warpSize = same.warpSize;
  properties->multiProcessorCount = same.multiProcessorCount;
  return code;
}

inline hipError_t hipFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (value < 0 || static_cast<std::size_t>(value) > octavo::emulation::kHipSharedBytes)
    return hipErrorInvalidValue;
  return cudaFuncSetAttribute(kernel, attribute, value);
}

template <class... Parameters, class... Arguments>
void hipLaunchKernelGGL(void (*kernel)(Parameters...), dim3 grid, dim3 block, unsigned shared_bytes,
                        hipStream_t stream, Arguments&&... arguments) {
  const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, nullptr, 0};
  octavo::emulation::last_hip_error =
      cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
}
