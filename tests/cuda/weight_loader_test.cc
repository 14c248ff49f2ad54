// Weights on their way to the device: what stands there, and what happens where the way ends.
#include "kernels/cuda/matmul/weight_loader.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/dequantize.h"
#include "tests/cuda/device_problem.h"
#include "tests/cuda/host_planes.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::cuda {
namespace {

using emulation::StreamOrder;
using testing::OwnedMatrix;
using testing::random_matrix;

std::string name_of(TensorType type) { return std::string(traits_of(type).name); }

// At least one block, and an odd number of them where `blocks` is odd.
std::int64_t columns_of(TensorType type, std::int64_t blocks) {
  const bool is_number = !traits_of(type).quantised;
  return blocks * (is_number ? 23 : traits_of(type).block_elements);
}

std::vector<std::byte> planes_on_device(WeightLoader& loader, const OwnedMatrix& weights) {
  const auto matrix = loader.prepare(weights.source).value();
  std::vector<std::byte> bytes(static_cast<std::size_t>(matrix->memory_bytes()));
  EXPECT_EQ(cudaMemcpy(bytes.data(), matrix->planes().low, bytes.size(), cudaMemcpyDeviceToHost),
            cudaSuccess);
  return bytes;
}

// Pieces that end anywhere in a row, that hold several rows, and one for all.
TEST(WeightLoader, MakesThePlanesThatTheHostWouldMakeByteForByte) {
  for (const StreamOrder order : {StreamOrder::kWhenNeeded, StreamOrder::kAtOnce}) {
    emulation::settings().stream_order = order;
    for (const std::int64_t piece_bytes :
         {std::int64_t{256}, std::int64_t{3000}, WeightLoader::kPieceBytes}) {
      DeviceStatus status;
      WeightLoader loader = WeightLoader::create(status, piece_bytes).value();
      for (const TensorType type : testing::kEveryTensorType) {
        for (const auto& [rows, blocks] : {std::pair{1, 1}, {5, 3}, {3, 4}, {2, 9}}) {
          const OwnedMatrix weights = random_matrix(type, rows, columns_of(type, blocks), 5);
          ASSERT_EQ(planes_on_device(loader, weights), planes_on_host(weights.source))
              << name_of(type) << ", " << rows << " rows of " << blocks << " blocks, pieces of "
              << piece_bytes;
        }
      }
    }
  }
}

TEST(WeightLoader, MakesNothingOfNoRows) {
  DeviceStatus status;
  WeightLoader loader = WeightLoader::create(status).value();
  const auto matrix =
      loader.prepare({.type = TensorType::kQ4_0, .rows = 0, .columns = 64, .bytes = {}}).value();
  EXPECT_EQ(matrix->rows(), 0);
  EXPECT_EQ(matrix->memory_bytes(), 0);
}

// What the kernels read of planes is bit-equal to what dequantize.h reads of the file.
TEST(WeightPlanes, HoldEveryNumberThatTheFileMeans) {
  DeviceStatus status;
  WeightLoader loader = WeightLoader::create(status, 1000).value();
  for (const TensorType type : testing::kEveryTensorType) {
    for (const std::int64_t blocks : {1, 2, 3}) {
      const OwnedMatrix weights = random_matrix(type, 3, columns_of(type, blocks), 5);
      const std::int64_t columns = weights.source.columns;
      std::vector<float> expected(static_cast<std::size_t>(3 * columns));
      dequantize(type, weights.bytes.data(), 3 * columns, expected.data());
      const std::vector<std::byte> bytes = planes_on_device(loader, weights);
      const WeightPlanes planes = planes_at(bytes.data(), type, 3, columns);
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t group = 0; group < padded_columns(columns) / kGroupColumns; ++group) {
          float got[kGroupColumns];
          expand_group(planes, row, group, got);
          for (std::int64_t i = 0; i < kGroupColumns; ++i) {
            const std::int64_t column = group * kGroupColumns + i;
            const float wanted =
                column < columns ? expected[static_cast<std::size_t>(row * columns + column)] : 0.0f;
            ASSERT_EQ(got[i], wanted) << name_of(type) << " row " << row << " column " << column;
          }
        }
      }
    }
  }
}

TEST(WeightPlanes, AreHardlyLargerThanTheFile) {
  for (const TensorType type : testing::kEveryTensorType) {
    const OwnedMatrix weights = random_matrix(type, 64, 512, 5);
    const auto file = static_cast<double>(weights.bytes.size());
    EXPECT_LE(static_cast<double>(plane_layout(type, 64, 512).bytes), 1.09 * file + 4 * 256) << name_of(type);
  }
}

TEST(WeightLoader, IsKeptUntilAStepIsReservedAndCountedMeanwhile) {
  const testing::Shape shape = testing::one_tiny_head();
  const auto backend = emulated_backend(shape);
  const std::int64_t scratch = backend->scratch_bytes(), allocated = emulation::allocated_bytes();
  const OwnedMatrix weights = random_matrix(TensorType::kQ4_K, 3, 256, 5);
  const auto matrix = backend->prepare_matrix(weights.source).value();
  EXPECT_EQ(backend->scratch_bytes() - scratch, 2 * WeightLoader::kPieceBytes);
  EXPECT_EQ(emulation::allocated_bytes() - allocated, 2 * WeightLoader::kPieceBytes + matrix->memory_bytes());
  const auto second = backend->prepare_matrix(weights.source).value();
  EXPECT_EQ(backend->scratch_bytes() - scratch, 2 * WeightLoader::kPieceBytes) << "places of its own";
  ASSERT_TRUE(backend->reserve_step(step_shape(shape)));
  EXPECT_EQ(backend->scratch_bytes(), scratch);
  EXPECT_EQ(emulation::allocated_bytes() - allocated, matrix->memory_bytes() + second->memory_bytes());
}

TEST(WeightLoader, AFailureOfAnyCallStaysAndLeavesNothing) {
  const OwnedMatrix weights = random_matrix(TensorType::kQ5_K, 7, 512, 5);
  const std::int64_t allocated = emulation::allocated_bytes();
  std::int64_t num_calls = 0;
  {
    DeviceStatus status;
    WeightLoader loader = WeightLoader::create(status, 1000).value();
    const std::int64_t begin = emulation::num_calls();
    ASSERT_TRUE(loader.prepare(weights.source));
    num_calls = emulation::num_calls() - begin;
  }
  ASSERT_GT(num_calls, 10);
  for (std::int64_t call = 0; call < num_calls; ++call) {
    {
      DeviceStatus status;
      WeightLoader loader = WeightLoader::create(status, 1000).value();
      emulation::fail_call(call, cudaErrorLaunchFailure);
      const auto matrix = loader.prepare(weights.source);
      ASSERT_FALSE(matrix) << call;
      const bool is_of_allocation = call == 0;
      EXPECT_EQ(matrix.error().code, is_of_allocation ? ErrorCode::kDevice : ErrorCode::kDeviceLost) << call;
      const std::int64_t launches = emulation::num_launches();
      EXPECT_FALSE(loader.prepare(weights.source)) << call;
      EXPECT_EQ(emulation::num_launches(), launches) << "work was started after a failure";
    }
    emulation::heal();
    EXPECT_EQ(emulation::allocated_bytes(), allocated) << call;
  }
}

TEST(WeightLoader, TooLittleMemoryIsOneSentence) {
  const OwnedMatrix weights = random_matrix(TensorType::kQ8_0, 64, 512, 5);
  DeviceStatus status;
  WeightLoader loader = WeightLoader::create(status, 1000).value();
  emulation::settings().total_bytes = emulation::allocated_bytes() + 1000;
  const auto matrix = loader.prepare(weights.source);
  ASSERT_FALSE(matrix);
  EXPECT_EQ(matrix.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(matrix.error().message, "a weight matrix needs " +
                                        std::to_string(plane_layout(TensorType::kQ8_0, 64, 512).bytes) +
                                        " bytes, which the device refused; choose a smaller size");
  EXPECT_TRUE(status.ok()) << "the device works on";
  const auto places = WeightLoader::create(status);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace octavo::kernels::cuda
