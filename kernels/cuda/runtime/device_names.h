// The vendor's runtime and language by one set of names, CUDA's. Compiled for an AMD card (__HIP__, which
// hipcc defines) the same names mean HIP's, so that there is one text of everything in this folder. No other
// file includes a vendor's header, but matmul/library_names.h, which does the same for the matrix library
// (tests/tidy/vendor_names_test.cc).
//
// Only names are here, and what is a matter of spelling. What a device has or lacks is in hardware.cuh; where
// the two runtimes do things differently, files ask for OCTAVO_HIP: device.h, device.cu, cuda_backend.cu.
// Source: HIP Runtime API and HIP C++ language extensions, ROCm 6.3; ROCm 5.2 has all of it but
// hipGraphUpload.
#pragma once

#if defined(__HIP__) || defined(__HIP_PLATFORM_AMD__)

#define OCTAVO_HIP 1

#include <hip/hip_bfloat16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <hip/hip_version.h>

namespace octavo::kernels::cuda {

inline constexpr const char* kVendor = "AMD";

inline hipError_t find_kernel_name(const char** name, const void* kernel) {
  *name = hipKernelNameRefByPtr(kernel, nullptr);
  return *name != nullptr ? hipSuccess : hipErrorUnknown;
}

// Lanes of a wave go in step, but the compiler may move what they read and write.
__device__ inline void meet_lanes() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

}  // namespace octavo::kernels::cuda

// ---- the language. Masks of lanes are all of them everywhere, and a wave has as many as a warp
// (cuda_backend.cu refuses devices on which it has not).
#ifndef __grid_constant__
#define __grid_constant__
#endif
#define __all_sync(mask, predicate) __all(predicate)
#define __any_sync(mask, predicate) __any(predicate)
#define __ballot_sync(mask, predicate) static_cast<unsigned>(__ballot(predicate))
#define __shfl_sync(mask, ...) __shfl(__VA_ARGS__)
#define __shfl_up_sync(mask, ...) __shfl_up(__VA_ARGS__)
#define __shfl_xor_sync(mask, ...) __shfl_xor(__VA_ARGS__)
#define __syncwarp ::octavo::kernels::cuda::meet_lanes
#define __ldcg(address) (*(address))  // behind a __threadfence(), which drops what is cached near a block
#define __nv_bfloat16 hip_bfloat16
#define __float2bfloat16_rn(value) hip_bfloat16(value)
#define __bfloat162float(value) static_cast<float>(value)
#define __bfloat16_as_ushort(value) (value).data

// ---- the runtime
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaDriverGetVersion hipDriverGetVersion
#define cudaErrorInvalidConfiguration hipErrorInvalidConfiguration
#define cudaErrorMemoryAllocation hipErrorOutOfMemory
#define cudaError_t hipError_t
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDefault hipEventDefault
#define cudaEventDestroy hipEventDestroy
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeHost hipHostFree
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncGetName ::octavo::kernels::cuda::find_kernel_name
#define cudaFuncSetAttribute hipFuncSetAttribute
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaGraphDestroy hipGraphDestroy
#define cudaGraphExecDestroy hipGraphExecDestroy
#define cudaGraphExec_t hipGraphExec_t
#define cudaGraphInstantiate hipGraphInstantiateWithFlags
#define cudaGraphLaunch hipGraphLaunch
#if HIP_VERSION_MAJOR >= 6
#define cudaGraphUpload hipGraphUpload
#else
#define cudaGraphUpload(executable, stream) hipSuccess  // the first launch does it
#endif
#define cudaGraph_t hipGraph_t
#define cudaHostAlloc hipHostMalloc
#define cudaHostAllocDefault hipHostMallocDefault
#define cudaMalloc hipMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpy hipMemcpy
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemsetAsync hipMemsetAsync
#define cudaSetDevice hipSetDevice
#define cudaStreamBeginCapture hipStreamBeginCapture
#define cudaStreamCaptureModeThreadLocal hipStreamCaptureModeThreadLocal
#define cudaStreamCreateWithFlags hipStreamCreateWithFlags
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamEndCapture hipStreamEndCapture
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStreamWaitEvent hipStreamWaitEvent
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#define sharedMemPerMultiprocessor maxSharedMemoryPerMultiProcessor
#define sharedMemPerBlockOptin sharedMemPerBlock  // there is no more for those who ask

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace octavo::kernels::cuda {

inline constexpr const char* kVendor = "NVIDIA";

}  // namespace octavo::kernels::cuda

#endif
