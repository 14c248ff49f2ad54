#include <chrono>

#include "kernels/cuda/runtime/device.h"
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

Result<void> add_toolkit_figures(DeviceFigures& figures) {
  figures.is_emulated = true;
  return {};
}

}  // namespace octavo::bench
