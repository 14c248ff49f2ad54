#include <chrono>

#include "kernels/cuda/device.h"
#include "tests/bench/gpu/toolkit.h"
#include "tests/emulation/emulation.h"

namespace octavo::bench {
namespace {

class Clock final : public StreamClock {
 public:
  double seconds_of(kernels::cuda::Stream& stream, const std::function<void()>& work) override {
    stream.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    work();
    stream.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

}  // namespace

Result<std::unique_ptr<StreamClock>> StreamClock::create() {
  return std::unique_ptr<StreamClock>(std::make_unique<Clock>());
}

Result<DeviceFigures> device_figures() {
  cudaDeviceProp properties{};
  OCTAVO_TRY_VOID(kernels::cuda::checked(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties"));
  DeviceFigures figures;
  figures.name = properties.name;
  figures.major = properties.major;
  figures.minor = properties.minor;
  figures.num_multiprocessors = properties.multiProcessorCount;
  figures.cache_bytes = properties.l2CacheSize;
  figures.max_shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerBlockOptin);
  figures.total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  figures.is_emulated = true;
  return figures;
}

}  // namespace octavo::bench
