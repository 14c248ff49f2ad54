#include "kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace octavo::kernels::cpu {
namespace {

std::unique_ptr<ThreadPool> pool_of(std::int32_t threads) { return ThreadPool::create(threads).value(); }

TEST(ThreadPool, RunsEveryItemOnce) {
  for (const std::int32_t threads : {1, 2, 3, 7}) {
    const auto pool = pool_of(threads);
    for (const std::int64_t num_items : {0, 1, 2, 3, 100, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(num_items));  // not atomic: a second run would be a race
      pool->parallel_for(num_items,
                         [&](std::int64_t item, std::int32_t) { ++runs[static_cast<std::size_t>(item)]; });
      for (const int count : runs) EXPECT_EQ(count, 1) << threads << " threads, " << num_items << " items";
      pool->parallel_for_in_runs(
          num_items, [&](std::int64_t item, std::int32_t) { ++runs[static_cast<std::size_t>(item)]; });
      for (const int count : runs) EXPECT_EQ(count, 2) << threads << " threads, " << num_items << " items";
    }
  }
}

TEST(ThreadPool, InRunsEachWorkerBeginsWithItsOwnNeighbours) {
  const auto pool = pool_of(2);
  std::vector<std::int32_t> worker_of(8);
  std::atomic<int> inside{0};
  pool->parallel_for_in_runs(8, [&](std::int64_t item, std::int32_t worker) {
    // The two first items wait for each other; after that luck decides.
    if (item % 4 == 0) {
      inside.fetch_add(1);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    }
    worker_of[static_cast<std::size_t>(item)] = worker;
  });
  EXPECT_EQ(worker_of[0], 0);
  EXPECT_EQ(worker_of[4], 1);
}

TEST(ThreadPool, WhatASlowWorkerLeavesOfItsRunIsTakenByTheOthers) {
  const auto pool = pool_of(2);
  std::vector<std::int32_t> worker_of(100);
  std::atomic<int> num_done{0};
  pool->parallel_for_in_runs(100, [&](std::int64_t item, std::int32_t worker) {
    worker_of[static_cast<std::size_t>(item)] = worker;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (worker == 1 && num_done < 99 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    num_done.fetch_add(1);
  });
  EXPECT_LE(std::count(worker_of.begin(), worker_of.end(), 1), 1);
}

TEST(ThreadPool, NeverGivesOneWorkerNumberToTwoItemsAtOnce) {
  const auto pool = pool_of(4);
  std::vector<int> busy(4);  // not atomic, on purpose: the sanitizer sees a clash
  std::vector<long> counts(4);
  for (int round = 0; round < 2000; ++round) {
    pool->parallel_for(9, [&](std::int64_t, std::int32_t worker) {
      const auto index = static_cast<std::size_t>(worker);
      EXPECT_EQ(busy[index]++, 0);
      ++counts[index];
      --busy[index];
    });
  }
  EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], 9 * 2000);
}

TEST(ThreadPool, EveryLoopSeesWhatTheLastOneWrote) {
  const auto pool = pool_of(3);
  std::vector<std::int64_t> values(64, 0), next(64, 0);
  for (std::int64_t round = 1; round <= 5000; ++round) {
    pool->parallel_for(64, [&](std::int64_t i, std::int32_t) {
      next[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>((i + 17) % 64)] + 1;
    });
    std::swap(values, next);
    ASSERT_EQ(values[static_cast<std::size_t>(round % 64)], round);
  }
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  const auto pool = pool_of(2);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than any spin
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    // Both items wait for each other, so one thread alone could not finish.
    pool->parallel_for(2, [&](std::int64_t, std::int32_t) {
      if (inside.fetch_add(1) == 1) met = true;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!met && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    });
    EXPECT_TRUE(met);
  }
}

TEST(ThreadPool, WaitsForAWorkerThatIsSlow) {
  const auto pool = pool_of(2);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> done(2);
    pool->parallel_for(2, [&](std::int64_t item, std::int32_t worker) {
      if (worker != 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      done[static_cast<std::size_t>(item)] = 1;
    });
    EXPECT_EQ(done[0] + done[1], 2);
  }
}

TEST(ThreadPool, ComesAndGoesInEveryState) {
  for (int round = 0; round < 200; ++round) {
    const auto pool = pool_of(1 + round % 4);
    if (round % 3 == 0) continue;  // never used
    std::atomic<int> sum{0};
    pool->parallel_for(5, [&](std::int64_t item, std::int32_t) { sum += static_cast<int>(item); });
    EXPECT_EQ(sum, 10);
    if (round % 3 == 1) std::this_thread::sleep_for(std::chrono::microseconds(round));
  }
}

TEST(ThreadPool, RefusesImpossibleNumbersOfThreads) {
  for (const std::int32_t threads : {-1, 0, ThreadPool::kMaxThreads + 1}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool.has_value());
    EXPECT_EQ(pool.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(pool.error().message.find(std::to_string(threads)), std::string::npos);
  }
}

TEST(ThreadPool, SleepsWhenThereIsNothingToDo) {
  const auto pool = pool_of(2);
  pool->parallel_for(2, [](std::int64_t, std::int32_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const std::clock_t before = std::clock();  // processor time of all threads
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
}

}  // namespace
}  // namespace octavo::kernels::cpu
