#include "kernels/cuda/runtime/device.h"
#include "tests/bench/gpu/toolkit.h"

namespace octavo::bench {
namespace {

using kernels::cuda::checked;

class Clock final : public StreamClock {
 public:
  Clock(cudaEvent_t begin, cudaEvent_t end) : begin_(begin), end_(end) {}
  ~Clock() override {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }

  double seconds_of(kernels::cuda::Stream& stream, const std::function<void()>& work) override {
    kernels::cuda::DeviceStatus& status = stream.status();
    status.check(cudaEventRecord(begin_, stream.handle()), "cudaEventRecord");
    work();
    status.check(cudaEventRecord(end_, stream.handle()), "cudaEventRecord");
    stream.synchronize();
    float milliseconds = 0.0f;
    if (status.ok()) status.check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t begin_, end_;
};

Result<std::int32_t> attribute(cudaDeviceAttr which) {
  int value = 0;
  OCTAVO_TRY_VOID(checked(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute"));
  return value;
}

}  // namespace

Result<std::unique_ptr<StreamClock>> StreamClock::create() {
  cudaEvent_t begin = nullptr, end = nullptr;
  OCTAVO_TRY_VOID(checked(cudaEventCreate(&begin), "cudaEventCreate"));
  OCTAVO_TRY_VOID(checked(cudaEventCreate(&end), "cudaEventCreate"));
  return std::unique_ptr<StreamClock>(std::make_unique<Clock>(begin, end));
}

Result<void> add_toolkit_figures(DeviceFigures& figures) {
  OCTAVO_TRY_VOID(checked(cudaDriverGetVersion(&figures.driver), "cudaDriverGetVersion"));
  OCTAVO_TRY_VOID(checked(cudaRuntimeGetVersion(&figures.runtime), "cudaRuntimeGetVersion"));
  OCTAVO_TRY(figures.clock_khz, attribute(cudaDevAttrClockRate));
  OCTAVO_TRY(figures.memory_clock_khz, attribute(cudaDevAttrMemoryClockRate));
  return {};
}

}  // namespace octavo::bench
