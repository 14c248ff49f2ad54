// Grids that a device does not take are refused with a sentence, and what a model or a request can make large
// is not where they end. Of these grids the emulated device runs some blocks, the first and the last among
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/backend.h"
#include "kernels/cuda/sampling/adjust_logits.h"
#include "kernels/cuda/sampling/logits_summary.h"
#include "tests/cuda/device_arrays.h"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kMostYz = 65535;

__global__ void write_one(int* out) { *out = 1; }

TEST(LaunchLimits, WhatNoDeviceTakesIsAFailureOfTheStreamAndNotStarted) {
  constexpr unsigned kMost = 0xffffffffu;
  for (const LaunchShape& shape : {LaunchShape{.grid = dim3(1, kMostYz + 1), .block = dim3(1)},
                                   {.grid = dim3(1, 1, kMostYz + 1), .block = dim3(1)},
                                   {.grid = dim3(num_pieces(std::int64_t{1} << 40, 2)), .block = dim3(1)},
                                   {.grid = dim3(kMost), .block = dim3(1)},
                                   {.grid = dim3(1), .block = dim3(1025)},
                                   {.grid = dim3(1), .block = dim3(1, 1, 65)}}) {
    DeviceStatus status;
    Stream stream = Stream::create(status).value();
    const DeviceArray<int> out(std::vector<int>{0});
    const std::int64_t calls = emulation::num_calls();
    launch(write_one, shape, stream, out.data());
    EXPECT_LE(emulation::num_calls(), calls + 1) << "only the kernel's name is asked for";
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(out.read()[0], 0);
  }
  DeviceStatus status;
  Stream stream = Stream::create(status).value();
  const DeviceArray<int> out(std::vector<int>{0});
  launch(write_one, {.grid = dim3(2, 70000, 3), .block = dim3(32, 2)}, stream, out.data());
  EXPECT_EQ(status.result().error().message,
            "the GPU failed (starting a kernel with a grid of 2 x 70000 x 3 blocks, each of 32 x 2 x 1 "
            "threads: cudaErrorInvalidConfiguration (9)); your chats are safe: continue on the CPU, or "
            "restart Octavo");
}

TEST(LaunchLimits, TheEmulatedDeviceRefusesThemByItself) {
  TestStream stream;
  const DeviceArray<int> out(std::vector<int>{0});
  cudaLaunchConfig_t config{};
  config.stream = stream.get().handle();
  const auto start = [&](dim3 grid, dim3 block) {
    config.gridDim = grid;
    config.blockDim = block;
    return cudaLaunchKernelEx(&config, write_one, out.data());
  };
  for (const dim3 grid : {dim3(1, kMostYz + 1), dim3(1, 1, kMostYz + 1), dim3(0x80000000u), dim3(0)})
    EXPECT_EQ(start(grid, dim3(1)), cudaErrorInvalidConfiguration);
  for (const dim3 block : {dim3(1025), dim3(1, 1, 65), dim3(0)})
    EXPECT_EQ(start(dim3(1), block), cudaErrorInvalidConfiguration);
  stream.finish();
  EXPECT_EQ(out.read()[0], 0);
  emulation::settings().most_blocks = 2;
  EXPECT_EQ(start(dim3(0x7fffffffu, kMostYz, 1), dim3(1)), cudaSuccess);
  stream.finish();
  EXPECT_EQ(out.read()[0], 1);
}

class ManyRows : public ::testing::Test {
 protected:
  static constexpr std::int32_t kRows = static_cast<std::int32_t>(kMostYz) + 5;
  static constexpr std::int64_t kVocabulary = 3;  // a piece
  void SetUp() override { emulation::settings().most_blocks = 32; }
  static float logit(std::int64_t row, std::int64_t id) { return static_cast<float>((row + id * id) % 7); }

  TestStream stream;
  const DeviceArray<float> logits{[] {
    std::vector<float> values;
    for (std::int64_t row = 0; row < kRows; ++row) {
      for (std::int64_t id = 0; id < kVocabulary; ++id) values.push_back(logit(row, id));
    }
    return values;
  }()};
  const DeviceArray<float> sums{std::vector<float>(kRows)}, maxima{std::vector<float>(kRows)},
      scratch{std::vector<float>(kRows)};
};

TEST_F(ManyRows, AreSummedUp) {
  summarise_logits(stream.get(), logits.data(), kRows, kVocabulary, 0.0f, sums.data(), maxima.data(),
                   scratch.data());
  stream.finish();
  const std::vector<float> got = sums.read(), largest = maxima.read();
  for (const std::int32_t row : {0, kRows - 1}) {
    double sum = 0.0;
    for (std::int64_t id = 0; id < kVocabulary; ++id) sum += std::exp(double{logit(row, id)});
    EXPECT_NEAR(got[static_cast<std::size_t>(row)], std::log(sum), 1e-5) << row;
    EXPECT_EQ(largest[static_cast<std::size_t>(row)], std::max({logit(row, 0), logit(row, 1), logit(row, 2)}))
        << row;
  }
}

TEST_F(ManyRows, AreAdjusted) {
  std::vector<RowAdjustment> rows;
  std::vector<LogitAdjustment> tokens;
  for (std::int32_t row = 0; row < kRows; ++row) {
    rows.push_back({.row = row, .first_token = row, .num_tokens = 1});
    tokens.push_back({.token_id = 1, .bias = 50.0});
  }
  LogitAdjuster adjuster = LogitAdjuster::create(kRows, kRows).value();
  UploadRing inputs = UploadRing::create(LogitAdjuster::input_bytes(kRows, kRows)).value();
  adjuster.adjust(stream.get(), inputs, {logits.data(), sums.data(), maxima.data(), kVocabulary}, 0,
                  {.rows = rows, .tokens = tokens});
  stream.finish();
  const std::vector<float> got = logits.read(), largest = maxima.read();
  for (const std::int32_t row : {0, kRows - 1}) {
    EXPECT_EQ(got[static_cast<std::size_t>(row * kVocabulary + 1)], logit(row, 1) + 50.0f) << row;
    EXPECT_EQ(largest[static_cast<std::size_t>(row)], logit(row, 1) + 50.0f) << row;
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
