// The part of the CUDA runtime that kernels/cuda uses, as declarations with the toolkit's names: what nvcc
// and its headers give a source file, given to a plain C++ compiler. Behind it a grid on the processor
// (tests/emulation/grid.h) and a device that checks what it is told (tests/emulation/emulation.h).
//
// Names and meanings: CUDA Runtime API 13.0 and CUDA C++ Programming Guide. Only what is used is here.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

// ---- the language
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __grid_constant__
// Blocks run one after the other.
#define __shared__ static

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define OCTAVO_EMULATED_VECTOR(name, element, bytes) \
  struct alignas(bytes) name##2 {                    \
    element x, y;                                    \
  };                                                 \
  inline name##2 make_##name##2(element x, element y) { return {x, y}; }
#define OCTAVO_EMULATED_VECTOR4(name, element, bytes) \
  struct alignas(bytes) name##4 {                     \
    element x, y, z, w;                               \
  };                                                  \
  inline name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; }
OCTAVO_EMULATED_VECTOR(float, float, 8)
OCTAVO_EMULATED_VECTOR(int, int, 8)
OCTAVO_EMULATED_VECTOR(uint, unsigned, 8)
OCTAVO_EMULATED_VECTOR(short, short, 4)
OCTAVO_EMULATED_VECTOR(ushort, unsigned short, 4)
OCTAVO_EMULATED_VECTOR(char, signed char, 2)
OCTAVO_EMULATED_VECTOR(uchar, unsigned char, 2)
OCTAVO_EMULATED_VECTOR4(float, float, 16)
OCTAVO_EMULATED_VECTOR4(int, int, 16)
OCTAVO_EMULATED_VECTOR4(uint, unsigned, 16)
OCTAVO_EMULATED_VECTOR4(short, short, 8)
OCTAVO_EMULATED_VECTOR4(ushort, unsigned short, 8)
OCTAVO_EMULATED_VECTOR4(char, signed char, 4)
OCTAVO_EMULATED_VECTOR4(uchar, unsigned char, 4)
#undef OCTAVO_EMULATED_VECTOR
#undef OCTAVO_EMULATED_VECTOR4

// Of the thread that runs; set by the grid.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace octavo::emulation {

// The block's barrier. Every thread comes to the same place in the text, and none may have ended. Returns the
// number of threads with a predicate other than zero.
int barrier(int predicate, const char* file, int line);

// What the lanes of a warp do together: when all lanes of `mask` have come with the same function, it is
// called once with their arguments, and they go on.
using Combine = void (*)(void* const (&lanes)[32], unsigned mask);
void warp_collective(unsigned mask, Combine combine, void* argument);

template <class T>
struct Shuffle {
  T value;
  unsigned source;  // lane
  T result;
};

template <class T>
T shuffle(unsigned mask, T value, unsigned source) {
  Shuffle<T> argument{value, source, value};
  warp_collective(
      mask,
      [](void* const(&lanes)[32], unsigned) {
        for (void* lane : lanes) {
          if (lane == nullptr) continue;
          auto* mine = static_cast<Shuffle<T>*>(lane);
          // A lane that does not take part gives what nobody may rely on: here the lane's own value.
          const auto* other = static_cast<const Shuffle<T>*>(lanes[mine->source % 32]);
          if (other != nullptr) mine->result = other->value;
        }
      },
      &argument);
  return argument.result;
}

unsigned ballot(unsigned mask, bool predicate);
unsigned lane_index();

}  // namespace octavo::emulation

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  octavo::emulation::barrier(0, file, line);
}
inline int __syncthreads_count(int predicate, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  return octavo::emulation::barrier(predicate, file, line);
}
inline int __syncthreads_or(int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return octavo::emulation::barrier(predicate, file, line) != 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  octavo::emulation::warp_collective(
      mask, [](void* const(&)[32], unsigned) {}, &mask);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned lane = octavo::emulation::lane_index(), size = static_cast<unsigned>(width);
  return octavo::emulation::shuffle(mask, value, lane / size * size + static_cast<unsigned>(source) % size);
}
template <class T>
T __shfl_sync(unsigned mask, T value, unsigned source, int width = 32) {
  return __shfl_sync(mask, value, static_cast<int>(source), width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  const unsigned lane = octavo::emulation::lane_index(), other = lane ^ static_cast<unsigned>(lanes);
  const bool is_inside = other / static_cast<unsigned>(width) <= lane / static_cast<unsigned>(width);
  return octavo::emulation::shuffle(mask, value, is_inside ? other : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
  const unsigned lane = octavo::emulation::lane_index(), size = static_cast<unsigned>(width);
  return octavo::emulation::shuffle(mask, value, lane % size + lanes < size ? lane + lanes : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32) {
  const unsigned lane = octavo::emulation::lane_index(), size = static_cast<unsigned>(width);
  return octavo::emulation::shuffle(mask, value, lane % size >= lanes ? lane - lanes : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return octavo::emulation::ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

// Threads run one at a time between the points where they meet.
template <class T>
T atomicAdd(T* address, T value) {
  const T old = *address;
  *address = static_cast<T>(old + value);
  return old;
}
template <class T>
T atomicMax(T* address, T value) {
  const T old = *address;
  *address = old < value ? value : old;
  return old;
}
template <class T>
T atomicMin(T* address, T value) {
  const T old = *address;
  *address = value < old ? value : old;
  return old;
}
template <class T>
T atomicExch(T* address, T value) {
  return std::exchange(*address, value);
}
template <class T>
T atomicCAS(T* address, T expected, T value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, T value) {
  *address = value;
}
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline int __float2int_rn(float value) { return static_cast<int>(std::nearbyintf(value)); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned choice = selector >> (4 * i) & 0xfu;
    auto byte = static_cast<unsigned>(bytes >> (8 * (choice & 7u)) & 0xffu);
    if ((choice & 8u) != 0) byte = (byte & 0x80u) != 0 ? 0xffu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
// Four products of signed bytes and their sum.
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int>(static_cast<std::int8_t>(a >> (8 * i))) *
         static_cast<int>(static_cast<std::int8_t>(b >> (8 * i)));
  }
  return c;
}

// ---- the runtime
enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorIllegalState = 401,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorStreamCaptureUnmatched = 903,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
  cudaErrorStreamCaptureWrongThread = 908,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal = 0,
  cudaStreamCaptureModeThreadLocal = 1,
  cudaStreamCaptureModeRelaxed = 2,
};
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                          cudaHostAllocDefault = 0;

namespace octavo::emulation {
struct Stream;
struct Event;
struct Graph;
struct GraphExecutable;
}  // namespace octavo::emulation
using cudaStream_t = octavo::emulation::Stream*;
using cudaEvent_t = octavo::emulation::Event*;
using cudaGraph_t = octavo::emulation::Graph*;
using cudaGraphExec_t = octavo::emulation::GraphExecutable*;

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  std::size_t sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int major, minor;
  int warpSize;
  int multiProcessorCount;
  int l2CacheSize;
};
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

const char* cudaGetErrorString(cudaError_t code);
const char* cudaGetErrorName(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes);
cudaError_t cudaDeviceSynchronize();

cudaError_t cudaMalloc(void** memory, std::size_t bytes);
template <class T>
cudaError_t cudaMalloc(T** memory, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
cudaError_t cudaFree(void* memory);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* memory);
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemset(void* target, int byte, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* target, int byte, std::size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventQuery(cudaEvent_t event);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetName(const char** name, const void* kernel);

namespace octavo::emulation {

// The bytes of one argument of a kernel, looked through for addresses of the host.
struct ArgumentBytes {
  const void* bytes;
  std::size_t size;
  bool is_pointer, is_const;  // is_const: a pointer through which nothing is written
};
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel,
                          const ArgumentBytes* arguments, std::size_t num_arguments,
                          std::function<void()> thread);

}  // namespace octavo::emulation

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  const std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return std::apply(
      [&](const Parameters&... each) {
        const octavo::emulation::ArgumentBytes bytes[] = {
            {&each, sizeof each, std::is_pointer_v<Parameters>,
             std::is_const_v<std::remove_pointer_t<Parameters>>}...,
            {nullptr, 0, false, false}};
        return octavo::emulation::launch_kernel(*config, reinterpret_cast<const void*>(kernel), bytes,
                                                sizeof...(Parameters),
                                                [kernel, values] { std::apply(kernel, values); });
      },
      values);
}
