#include "engine/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace octavo {
namespace {

using namespace std::chrono_literals;  // NOLINT

TEST(BoundedQueue, AFullQueueRefusesAndLeavesTheValue) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  EXPECT_TRUE(queue.try_push(first));
  EXPECT_FALSE(queue.try_push(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(**queue.pop(), 1);
  EXPECT_TRUE(queue.try_push(second));
}

TEST(BoundedQueue, EveryValueArrivesOnceInItsProducersOrder) {
  constexpr int kProducers = 3, kPerProducer = 2000;
  BoundedQueue<std::pair<int, int>> queue(7);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (int i = 0; i < kPerProducer; ++i) EXPECT_TRUE(queue.push({p, i}));
    });
  }
  std::vector<int> next(kProducers);
  for (int i = 0; i < kProducers * kPerProducer; ++i) {
    const auto [producer, value] = *queue.pop();
    EXPECT_EQ(value, next[static_cast<std::size_t>(producer)]++);
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(queue.empty());
}

TEST(BoundedQueue, ClosingWakesWaitersAndKeepsWhatIsInside) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1));
  std::thread producer([&] { EXPECT_FALSE(queue.push(2)); });  // waits for room, which never comes
  std::this_thread::sleep_for(20ms);
  queue.close();
  producer.join();
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
  EXPECT_FALSE(queue.push(3));
}

TEST(BoundedQueue, WaitingEndsWithTheTimeOrAValue) {
  BoundedQueue<int> queue(1);
  EXPECT_FALSE(queue.wait_for(1ms));
  EXPECT_EQ(queue.try_pop(), std::nullopt);
  std::thread producer([&] { EXPECT_TRUE(queue.push(5)); });
  EXPECT_TRUE(queue.wait_for(10s));
  producer.join();
  EXPECT_EQ(queue.try_pop(), 5);
}

}  // namespace
}  // namespace octavo
