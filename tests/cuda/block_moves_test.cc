// Copies and swaps of blocks on the emulated device: the right bytes, in the order of the calls, whenever
// streams run.
#include <gtest/gtest.h>

#include <utility>

#include "tests/cuda/device_problem.h"
#include "tests/kernels/swapped_pools.h"

namespace octavo::kernels::cuda {
namespace {

using emulation::StreamOrder;

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    values[i] = static_cast<std::byte>((i * 37 + i / 251 + seed) & 0xff);
  return values;
}

struct Pools {
  Pools(Backend& backend_, const KvLayout& layout, unsigned seed)
      : backend(backend_),
        device(backend.allocate_kv_cache(layout, 8).value()),
        host(backend.allocate_host_kv_cache(layout, 8).value()),
        expected(pattern(static_cast<std::size_t>(8 * layout.block_bytes()), seed)) {
    EXPECT_EQ(cudaMemcpy(static_cast<CudaKvCache&>(*device).data(), expected.data(), expected.size(),
                         cudaMemcpyDefault),
              cudaSuccess);
  }
  std::vector<std::byte> block(const std::vector<std::byte>& pool, int index) const {
    const auto bytes = static_cast<std::ptrdiff_t>(device->layout().block_bytes());
    return {pool.begin() + index * bytes, pool.begin() + (index + 1) * bytes};
  }

  Backend& backend;
  std::unique_ptr<KvCache> device;
  std::unique_ptr<HostKvCache> host;
  std::vector<std::byte> expected;
};

class BlockMoves : public ::testing::TestWithParam<StreamOrder> {
 protected:
  void SetUp() override { emulation::settings().stream_order = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(EveryOrder, BlockMoves,
                         ::testing::Values(StreamOrder::kWhenNeeded, StreamOrder::kAtOnce),
                         [](const auto& info) {
                           return info.param == StreamOrder::kAtOnce ? "AtOnce" : "WhenNeeded";
                         });

// Bytes in a block: a multiple of 16, of 4, and neither.
const KvLayout kLayouts[] = {
    {KvType::kF16, 16, 2, 2, 8}, {KvType::kF16, 3, 1, 1, 5}, {KvType::kFp8E4m3, 5, 1, 1, 7}};

TEST_P(BlockMoves, CopiesAreWhole) {
  const auto backend = emulated_backend(testing::one_tiny_head());
  for (const KvLayout& layout : kLayouts) {
    const Pools pools(*backend, layout, 1);
    const std::vector<BlockCopy> copies = {{0, 5}, {0, 6}, {3, 1}};
    backend->copy_blocks(*pools.device, copies);
    const auto after = read_pool(*pools.device);
    const int source_of[] = {0, 3, 2, 3, 4, 0, 0, 7};
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(pools.block(after, i), pools.block(pools.expected, source_of[i])) << i;
  }
}

TEST_P(BlockMoves, WhatIsSwappedOutComesBackInOrder) {
  const auto backend = emulated_backend(testing::one_tiny_head());
  for (const KvLayout& layout : kLayouts) {
    const Pools pools(*backend, layout, 2);
    // Out, overwritten at once, in again elsewhere, and copied from there: each sees what was before it.
    const std::vector<BlockCopy> out = {{0, 2}, {1, 3}, {6, 0}}, first = {{7, 0}},
                                 in = {{2, 4}, {3, 5}, {0, 1}}, last = {{4, 6}};
    backend->swap_out(*pools.device, *pools.host, out);
    backend->copy_blocks(*pools.device, first);
    backend->swap_in(*pools.host, *pools.device, in);
    backend->copy_blocks(*pools.device, last);
    const auto after = read_pool(*pools.device);
    const int source_of[] = {7, 6, 2, 3, 0, 1, 0, 7};
    for (int i = 0; i < 8; ++i)
      EXPECT_EQ(pools.block(after, i), pools.block(pools.expected, source_of[i])) << i;
  }
}

TEST_P(BlockMoves, AThousandBlocksComeBackAsTheyLeft) {
  EmulatedBackend backend({.shape = testing::one_tiny_head()});
  testing::expect_blocks_come_back(backend, 1000);
}

TEST_P(BlockMoves, AttentionWaitsForTheSwapBeforeIt) {
  const testing::Shape shape = testing::one_tiny_head();
  const auto backend = emulated_backend(shape);
  const testing::PagedProblem problem = make_problem(shape, {{1, 20, 1}}, {.block_size = 8});
  const auto kv = device_pool(*backend, problem);
  const auto host = backend->allocate_host_kv_cache(problem.layout, problem.num_blocks).value();
  std::vector<BlockCopy> all;
  for (std::int32_t block = 0; block < problem.num_blocks; ++block) all.push_back({block, block});

  const std::int64_t width = shape.query_width();
  const Rows q(*backend, rows_of(problem, 7, width, 3.0f), width);
  const auto attend = [&] {
    const Rows out(*backend, std::vector<float>(static_cast<std::size_t>(width)), width);
    const PagedBatch batch = problem.batch();
    backend->begin_step(batch, {});
    backend->paged_attention(shape.attention, batch, 1, *kv, q.view(), out.view());
    return out.read();
  };
  const std::vector<float> expected = attend();
  backend->swap_out(*kv, *host, all);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(cudaMemset(static_cast<CudaKvCache&>(*kv).data(), 0xff, problem.pool.size()), cudaSuccess);
  backend->swap_in(*host, *kv, all);
  EXPECT_EQ(attend(), expected);
}

// In the device's time, and only what the moves themselves take: not what they wait for, which is here the
// list of what is copied within the pool, on its way to the device.
TEST_P(BlockMoves, TellWhatTheyTook) {
  emulation::settings().copied_bytes_per_us = 2.0;
  const auto backend = emulated_backend(testing::one_tiny_head());
  const Pools pools(*backend, kLayouts[0], 2);
  const std::int64_t us_per_block = kLayouts[0].block_bytes() / 2;
  ASSERT_GT(us_per_block, 0);
  const std::vector<BlockCopy> three = {{0, 2}, {1, 3}, {6, 0}}, two = {{2, 4}, {3, 5}},
                               within = {{7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 5}};
  const auto expect_times = [&](std::int64_t out_blocks, std::int64_t in_blocks) {
    const std::optional<SwapTimes> times = backend->take_swap_times();
    ASSERT_TRUE(times.has_value());
    EXPECT_NEAR(static_cast<double>(times->out_us), static_cast<double>(out_blocks * us_per_block), 1.0);
    EXPECT_NEAR(static_cast<double>(times->in_us), static_cast<double>(in_blocks * us_per_block), 1.0);
  };
  expect_times(0, 0);
  backend->copy_blocks(*pools.device, within);
  backend->swap_out(*pools.device, *pools.host, three);
  backend->copy_blocks(*pools.device, within);
  backend->swap_in(*pools.host, *pools.device, two);
  expect_times(3, 2);
  expect_times(0, 0);
  backend->swap_in(*pools.host, *pools.device, two);
  expect_times(0, 2);
  emulation::fail_call(0, cudaErrorLaunchFailure);
  backend->swap_in(*pools.host, *pools.device, two);
  expect_times(0, 0);
  EXPECT_FALSE(backend->status());
}

TEST(BlockMoves, NeighboursMoveTogether) {
  const auto backend = emulated_backend(testing::one_tiny_head());
  const Pools pools(*backend, kLayouts[0], 3);
  const std::vector<BlockCopy> neighbours = {{1, 4}, {2, 5}, {3, 6}}, apart = {{1, 4}, {3, 5}, {2, 6}};
  const std::int64_t begin = emulation::num_calls();
  backend->swap_out(*pools.device, *pools.host, neighbours);
  const std::int64_t together = emulation::num_calls() - begin;
  backend->swap_out(*pools.device, *pools.host, apart);
  EXPECT_EQ(emulation::num_calls() - begin - together, together + 2);
}

}  // namespace
}  // namespace octavo::kernels::cuda
