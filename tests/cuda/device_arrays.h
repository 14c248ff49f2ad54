// Arrays of the emulated device for tests of single kernels: made of values of the host, and read back.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/matmul/weight_loader.h"
#include "kernels/cuda/runtime/device.h"
#include "tests/cuda/violations.h"

namespace octavo::kernels::cuda {

// A stream, and the status that outlives it.
class TestStream {
 public:
  TestStream() : stream_(Stream::create(status_).value()) {}
  Stream& get() { return stream_; }
  // Waits; every operation so far must have succeeded.
  void finish() {
    stream_.synchronize();
    const Result<void> result = status_.result();
    EXPECT_TRUE(result) << (result ? "" : result.error().message);
  }

 private:
  DeviceStatus status_;
  Stream stream_;
};

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::span<const T> values)
      : size_(values.size()),
        memory_(upload(values.data(), static_cast<std::int64_t>(values.size_bytes()), "a test").value()) {}
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(std::span<const T>(values)) {}

  T* data() const { return memory_.as<T>(); }
  // REQUIRES: the streams that write it were waited for.
  std::vector<T> read() const {
    std::vector<T> values(size_);
    if (size_ == 0) return values;
    EXPECT_EQ(cudaMemcpy(values.data(), memory_.data(), size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  std::size_t size_;
  DeviceMemory memory_;
};

// As a backend loads it, in pieces of some thousand numbers.
inline std::unique_ptr<DeviceMatrix> load_matrix(const MatrixSource& source) {
  DeviceStatus status;
  return WeightLoader::create(status, 16 * 1024).value().prepare(source).value();
}

}  // namespace octavo::kernels::cuda
