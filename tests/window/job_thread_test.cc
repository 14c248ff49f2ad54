#include "app/window/job_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <semaphore>
#include <vector>

namespace octavo::app {
namespace {

TEST(JobThread, DoesJobsInOrderAndWakesUpForWhatThereIsToTell) {
  std::counting_semaphore<> woken(0);
  JobThread<int, int> jobs([](int job) { return job % 2 == 0 ? std::optional(job * 10) : std::nullopt; },
                           [&] { woken.release(); }, JobsLeft::kDone);
  for (int job = 0; job < 6; ++job) jobs.give(job);
  for (int i = 0; i < 3; ++i) woken.acquire();
  EXPECT_EQ(jobs.take_outcomes(), (std::vector{0, 20, 40}));
  EXPECT_TRUE(jobs.take_outcomes().empty());
  EXPECT_FALSE(woken.try_acquire()) << "an odd job has nothing to tell";
}

// The first job ends only when the thread is to end; what becomes of the others is what was asked for.
int num_done_after_the_end(JobsLeft jobs_left) {
  std::atomic<int> num_done = 0;
  {
    std::binary_semaphore begun(0);
    const JobThread<int, int>* running = nullptr;  // known before there is a job
    JobThread<int, int> jobs(
        [&](int job) -> std::optional<int> {
          if (job == 0) begun.release();
          while (job == 0 && !running->stopping()) {
          }
          ++num_done;
          return std::nullopt;
        },
        [] {}, jobs_left);
    running = &jobs;
    for (int job = 0; job < 5; ++job) jobs.give(job);
    begun.acquire();
  }
  return num_done;
}

TEST(JobThread, FinishesOrDropsWhatWaitsWhenItEnds) {
  EXPECT_EQ(num_done_after_the_end(JobsLeft::kDone), 5);
  EXPECT_EQ(num_done_after_the_end(JobsLeft::kDropped), 1);
}

TEST(JobThread, TakesWhatCanOnlyBeMoved) {
  std::binary_semaphore woken(0);
  JobThread<std::unique_ptr<int>, int> jobs([](std::unique_ptr<int> job) { return std::optional(*job); },
                                            [&] { woken.release(); }, JobsLeft::kDropped);
  jobs.give(std::make_unique<int>(7));
  woken.acquire();
  EXPECT_EQ(jobs.take_outcomes(), std::vector{7});
}

}  // namespace
}  // namespace octavo::app
