#include "tests/bench/gpu/measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "kernels/cuda/create_cuda_backend.h"

namespace octavo::bench {
namespace {

constexpr double kSampleSeconds = 2e-3;
constexpr double kMostCalls = 200;

std::int64_t pattern_bytes(const Sizes& sizes) {
  return sizes.is_emulated ? std::int64_t{1} << 16 : std::int64_t{64} << 20;
}

Result<void> last_error(kernels::cuda::Stream& stream) {
  OCTAVO_TRY_VOID(stream.status().result());
  return kernels::cuda::checked(cudaGetLastError(), "cudaGetLastError");
}

std::int64_t calls_of_a_sample(double seconds_of_call) {
  if (seconds_of_call <= 0) return static_cast<std::int64_t>(kMostCalls);
  return static_cast<std::int64_t>(std::clamp(std::ceil(kSampleSeconds / seconds_of_call), 1.0, kMostCalls));
}

// Of the device that the backend takes. REQUIRES: find_device() found it.
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
  figures.multiprocessor_shared_bytes = static_cast<std::int64_t>(properties.sharedMemPerMultiprocessor);
  figures.total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  OCTAVO_TRY_VOID(add_toolkit_figures(figures));
  return figures;
}

}  // namespace

double Record::median_seconds() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::vector<ModelShape> model_shapes(const Sizes& sizes) {
  if (sizes.is_emulated) {
    return {{"tiny tied", 1, 256, 256, 4, 2, 64, 160, true}, {"tiny", 2, 256, 256, 8, 2, 32, 96, false}};
  }
  return {{"Llama-1B", 16, 2048, 8192, 32, 8, 64, 128256, true},
          {"Llama-8B", 32, 4096, 14336, 32, 8, 128, 128256, false}};
}

Result<std::unique_ptr<Bench>> Bench::create(const Sizes& sizes) {
  OCTAVO_TRY_VOID(kernels::cuda::find_device());
  OCTAVO_TRY_VOID(kernels::cuda::checked(cudaSetDevice(0), "cudaSetDevice"));
  OCTAVO_TRY(DeviceFigures figures, device_figures());
  auto status = std::make_unique<kernels::cuda::DeviceStatus>();
  OCTAVO_TRY(kernels::cuda::Stream stream, kernels::cuda::Stream::create(*status));
  OCTAVO_TRY(std::unique_ptr<StreamClock> clock, StreamClock::create());
  return std::unique_ptr<Bench>(
      new Bench(sizes, std::move(figures), std::move(status), std::move(stream), std::move(clock)));
}

Bench::Bench(const Sizes& sizes, DeviceFigures figures, std::unique_ptr<kernels::cuda::DeviceStatus> status,
             kernels::cuda::Stream stream, std::unique_ptr<StreamClock> clock)
    : sizes_(sizes),
      figures_(std::move(figures)),
      status_(std::move(status)),
      stream_(std::move(stream)),
      clock_(std::move(clock)),
      random_(stream_, pattern_bytes(sizes)) {}

Bench::Timer Bench::stream_timer() {
  return [this](const std::function<void()>& work) { return clock_->seconds_of(stream_, work); };
}

Bench::Timer Bench::host_timer() {
  return [this](const std::function<void()>& work) {
    stream_.status().check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const auto begin = std::chrono::steady_clock::now();
    work();
    stream_.status().check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
}

Result<void> Bench::measure(std::vector<Case> cases, const Timer& timer) {
  struct Progress {
    std::int64_t calls_of_sample = 1, next_call = 0;
  };
  std::vector<Progress> progress(cases.size());
  const auto sample = [&](std::size_t i) {
    Progress& mine = progress[i];
    const double seconds = timer([&] {
      for (std::int64_t call = 0; call < mine.calls_of_sample; ++call) cases[i].run(mine.next_call++);
    });
    return seconds / static_cast<double>(mine.calls_of_sample);
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    sample(i);  // loads modules, chooses the library's algorithms
    if (!sizes_.is_emulated) progress[i].calls_of_sample = calls_of_a_sample(sample(i));
    OCTAVO_TRY_VOID(last_error(stream_));
  }
  for (int round = 0; round < sizes_.num_rounds; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].record.seconds.push_back(sample(i));
    OCTAVO_TRY_VOID(last_error(stream_));
  }
  const Record& first = cases.front().record;
  std::fprintf(stderr, "%s: %s and %zu more\n", first.section.c_str(), first.name.c_str(), cases.size() - 1);
  for (Case& each : cases) records_.push_back(std::move(each.record));
  return {};
}

void Bench::leave_out(Record record, const std::string& reason) {
  std::fprintf(stderr, "%s: %s: left out: %s\n", record.section.c_str(), record.name.c_str(), reason.c_str());
  record.left_out = reason;
  records_.push_back(std::move(record));
}

std::string Bench::memory_is_missing(std::int64_t bytes) const {
  constexpr double kGigabyte = 1e9;
  std::size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess) return "cudaMemGetInfo failed";
  const auto needed = static_cast<double>(bytes), free = static_cast<double>(free_bytes);
  if (needed <= 0.95 * free) return "";
  char text[96];
  std::snprintf(text, sizeof text, "needs %.1f GB of device memory, %.1f are free", needed / kGigabyte,
                free / kGigabyte);
  return text;
}

}  // namespace octavo::bench
