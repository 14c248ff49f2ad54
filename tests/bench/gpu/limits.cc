#include "kernels/cuda/matmul/library.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "tests/bench/gpu/sections.h"

namespace octavo::bench {
namespace {

using kernels::TensorType;
using kernels::cuda::DeviceMemory;
using kernels::cuda::LibraryProducts;
using kernels::cuda::PinnedMemory;

Record limit(const std::string& name, double bytes, double operations) {
  Record record;
  record.section = "limits";
  record.name = name;
  record.bytes = bytes;
  record.operations = operations;
  return record;
}

Result<void> measure_copies(Bench& bench) {
  const std::int64_t device_bytes = std::int64_t{1} << (bench.sizes().is_emulated ? 16 : 30);
  const std::int64_t host_bytes = device_bytes / 4;
  OCTAVO_TRY(const DeviceMemory source, bench.random().allocate(Numbers::kBytes, device_bytes));
  OCTAVO_TRY(const DeviceMemory target, DeviceMemory::allocate(device_bytes, "the target of a copy"));
  OCTAVO_TRY(const PinnedMemory host, PinnedMemory::allocate(host_bytes, "the host's side of a copy"));
  kernels::cuda::Stream& stream = bench.stream();
  stream.copy(host.data(), source.data(), host_bytes);
  const auto host_double = static_cast<double>(host_bytes);
  const std::size_t first = bench.records().size();
  OCTAVO_TRY_VOID(
      bench.measure({{limit("copy within the device", 2.0 * static_cast<double>(device_bytes), 0),
                      [&](std::int64_t) { stream.copy(target.data(), source.data(), device_bytes); }},
                     {limit("device to pinned host", host_double, 0),
                      [&](std::int64_t) { stream.copy(host.data(), source.data(), host_bytes); }},
                     {limit("pinned host to device", host_double, 0),
                      [&](std::int64_t) { stream.copy(target.data(), host.data(), host_bytes); }}},
                    bench.stream_timer()));
  double* const figures[] = {&bench.limits().copy_bytes, &bench.limits().to_host_bytes,
                             &bench.limits().to_device_bytes};
  for (std::size_t i = 0; i < 3; ++i) {
    const Record& record = bench.records()[first + i];
    *figures[i] = record.bytes / record.median_seconds();
  }
  return {};
}

// cuBLASLt's product as kernels/cuda calls it: float results, the first algorithm that its heuristic names.
Result<void> measure_peak(Bench& bench, LibraryProducts& library, TensorType type, double& operations_per_s) {
  const bool is_half = type == TensorType::kF16;
  const Numbers numbers = is_half ? Numbers::kF16 : Numbers::kBf16;
  const std::int64_t size = bench.sizes().is_emulated ? 64 : 8192;
  const auto wide = static_cast<double>(size);
  OCTAVO_TRY(const DeviceMemory a, bench.random().allocate(numbers, size * size * 2));
  OCTAVO_TRY(const DeviceMemory b, bench.random().allocate(numbers, size * size * 2));
  OCTAVO_TRY(const DeviceMemory c, DeviceMemory::allocate(size * size * 4, "the result of a product"));
  const std::string edge = std::to_string(size);
  const std::string name = std::string("cuBLASLt ") + (is_half ? "f16 " : "bf16 ") + edge + " x " + edge +
                           " x " + edge + ", float result";
  const kernels::cuda::LibraryProduct product{
      .shape = {.type = type, .outputs = size, .rows = size, .columns = size, .out_stride = size},
      .weights = a.data(),
      .activations = b.data(),
      .out = c.as<float>()};
  if (!library.multiply(bench.stream(), product))
    return Error{ErrorCode::kDevice, "cuBLASLt refused a product of " + edge + " rows"};
  OCTAVO_TRY_VOID(bench.measure({{limit(name, 0, 2 * wide * wide * wide),
                                  [&](std::int64_t) { library.multiply(bench.stream(), product); }}},
                                bench.stream_timer()));
  const Record& record = bench.records().back();
  operations_per_s = record.operations / record.median_seconds();
  return {};
}

Result<void> measure_peaks(Bench& bench, cublasLtHandle_t handle) {
  OCTAVO_TRY(const std::unique_ptr<LibraryProducts> library, LibraryProducts::create(handle));
  OCTAVO_TRY_VOID(measure_peak(bench, *library, TensorType::kF16, bench.limits().f16_operations));
  return measure_peak(bench, *library, TensorType::kBF16, bench.limits().bf16_operations);
}

}  // namespace

Result<void> measure_limits(Bench& bench) {
  OCTAVO_TRY_VOID(measure_copies(bench));
  const cublasLtHandle_t handle = kernels::cuda::open_library();
  if (handle == nullptr) {
    bench.leave_out(limit("matrix peak", 0, 0),
                    "there is no libcublasLt.so of this version: no figure has a share of the peak");
    return {};
  }
  const Result<void> result = measure_peaks(bench, handle);
  kernels::cuda::close_library(handle);
  return result;
}

}  // namespace octavo::bench
