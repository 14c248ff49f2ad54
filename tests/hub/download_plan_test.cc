// What is still to come, against a plain map of bytes; retries and speed without a clock.

#include "app/hub/download_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace octavo::hub {
namespace {

TEST(DownloadPlan, EveryByteIsFetchedOnceWhateverIsGivenBackAndWrittenDown) {
  for (unsigned int seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto size = static_cast<std::int64_t>(random() % 5000);
    std::vector<int> received(static_cast<std::size_t>(size), 0);
    DownloadPlan plan(size);
    for (int step = 0; !plan.is_complete(); ++step) {
      ASSERT_LT(step, 100'000);
      const int worker = static_cast<int>(random() % 4);
      const ByteRange range = plan.in_work(worker);
      if (range.size() == 0) {
        plan.give_back(worker);
        plan.take(worker, 1 + static_cast<std::int64_t>(random() % 700));
      } else if (random() % 5 == 0) {
        plan.give_back(worker);
      } else {
        const std::int64_t count = 1 + static_cast<std::int64_t>(random()) % range.size();
        for (std::int64_t i = 0; i < count; ++i) ++received[static_cast<std::size_t>(range.begin + i)];
        plan.receive(worker, count);
      }
      if (random() % 10 == 0) {  // a crash: what was written down goes on
        const auto again = DownloadPlan::parse(plan.text(), size);
        ASSERT_TRUE(again) << plan.text();
        EXPECT_EQ(again->received(), plan.received());
        EXPECT_EQ(again->text(), plan.text());
        plan = *again;
      }
    }
    for (const int count : received) EXPECT_EQ(count, 1);
  }
}

TEST(DownloadPlan, WhatItCannotHaveWrittenIsNoPlan) {
  const std::string good = DownloadPlan(100).text();
  EXPECT_TRUE(DownloadPlan::parse(good, 100));
  EXPECT_FALSE(DownloadPlan::parse(good, 101)) << "of another size";
  const std::string head = "octavo download 1\n0 100\n";
  EXPECT_TRUE(DownloadPlan::parse(head, 100)) << "complete";
  for (const std::string& text :
       {std::string(), std::string("octavo download 2\n0 100\n"), head + "0 10", head + "10 5\n",
        head + "5 5\n", head + "0 101\n", head + "-1 5\n", head + "0 10\n5 20\n", head + "20 30\n0 10\n",
        head + "0 10 20\n", head + "a b\n", head + "\n", head.substr(0, 20)}) {
    EXPECT_FALSE(DownloadPlan::parse(text, 100)) << text;
  }
}

TEST(Retries, WaitLongerEachTimeAndEndUnlessSomethingCame) {
  using std::chrono::milliseconds;
  Retries retries;
  milliseconds before{0};
  for (int i = 0; i < Retries::kMostFailures; ++i) {
    const auto pause = retries.after_failure({});
    ASSERT_TRUE(pause);
    EXPECT_GE(*pause, before);
    before = *pause;
  }
  EXPECT_FALSE(retries.after_failure({}));
  retries.after_progress();
  EXPECT_EQ(retries.after_failure({}), milliseconds(500));
  EXPECT_EQ(retries.after_failure(milliseconds(40'000)), milliseconds(40'000)) << "what the server asks for";
}

TEST(SpeedMeter, TellsTheLastSecondsAndForgetsWhatWasBefore) {
  SpeedMeter meter;
  EXPECT_EQ(meter.bytes_per_s(0), 0);
  std::int64_t bytes = 0;
  for (std::int64_t us = 0; us <= 10'000'000; us += 200'000) {
    meter.note(us, bytes);
    bytes += us < 5'000'000 ? 1'000'000 : 2'000;
  }
  EXPECT_NEAR(meter.bytes_per_s(10'000'000), 10'000, 200'000);
  EXPECT_LT(meter.bytes_per_s(20'000'000), 100'000) << "nothing comes any more";
}

}  // namespace
}  // namespace octavo::hub
